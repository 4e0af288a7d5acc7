//! Objects whose progress is tracked after they were written.

use serde_json::Value;

use crate::api::TargetRef;

/// An object whose progress is tracked.
#[derive(Debug, Clone, PartialEq)]
pub enum Tracked {
    /// It is there: as much of it as its progress depends on.
    Object(Value),
    /// It was removed from these pools.
    Removed {
        /// The object.
        target: TargetRef,
        /// The names of the pools that had it.
        pools: Vec<String>,
    },
}
