//! What the operator tells of its work: metrics and traces.

pub mod definitions;
mod metrics;
mod traces;

pub use metrics::{Label, Metrics};
pub use traces::Traces;
