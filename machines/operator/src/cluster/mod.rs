//! The cluster as this operator sees it.
//!
//! ```text
//!   kinds: what is read and written
//!   watches ─► mirror: a small copy of what is watched ─┐
//!   the API server itself (diff) ───────────────────────┴─► reader ─► controller
//! ```

pub mod kinds;
pub mod mirror;
pub mod reader;
pub mod watches;
