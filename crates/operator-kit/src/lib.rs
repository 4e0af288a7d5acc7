//! What any operator of ours needs around its work. It knows no kind of ours: names, metrics and
//! what is ready are the program's.
//!
//! ```text
//!   flags ──► process: endpoints opened, signals, leading from start to end
//!      │
//!   leader ──► Fence: every write passes it, or fails
//!   logs, pulse (does the working thread run?)
//!      │
//!   endpoints ──► /healthz, /readyz on a thread of their own
//!            └──► /metrics: who may ask, over TLS as the cluster demands it
//!   command: how a command ends and with which exit code
//!   clock: the only place that reads clocks; backoff: pauses between tries
//! ```

pub mod backoff;
pub mod clock;
pub mod command;
pub mod endpoints;
pub mod flags;
pub mod leader;
pub mod logs;
pub mod process;
mod pulse;

pub use pulse::Pulse;
