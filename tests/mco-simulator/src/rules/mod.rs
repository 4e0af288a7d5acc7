//! What the controllers and daemons decide and write, release by release: pure, each rule with its
//! source.

pub mod base;
pub(crate) mod daemon;
pub(crate) mod kubelet;
pub(crate) mod node;
pub mod policy;
pub(crate) mod reconcilable;
pub mod release;
pub mod render;
pub(crate) mod select;
pub(crate) mod status;
