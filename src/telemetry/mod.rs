//! Telemetry: metrics and traces of the operator's work.

pub mod definitions;
mod metrics;
mod traces;

pub use metrics::{Label, Metrics};
pub use traces::Traces;
