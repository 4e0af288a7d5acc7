//! What is decided about objects, without any reading and writing.

pub(crate) mod claims;
pub(crate) mod conditions;
pub(crate) mod config;
pub(crate) mod guest;
pub(crate) mod instance;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod quantity;
pub(crate) mod restart;
pub(crate) mod status;
