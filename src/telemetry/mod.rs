//! Telemetry: metrics and traces of the operator's work.
//!
//! ```text
//!   definitions ─► metrics: counted where things happen ─► /metrics, docs/METRICS.md
//!   traces: one span for each plan, execution and write ─► OTLP, if an endpoint is set
//! ```

pub mod definitions;
mod metrics;
mod traces;

pub use metrics::{Label, Metrics};
pub use traces::Traces;
