//! Machines, one after the other and some at once: gather, plan, act, report.
//!
//! ```text
//!   run: watches, queue ─► reconcile ─► gather ─► plan (machines-core) ─► act ─► report
//!                              └─────► delete
//! ```

mod act;
mod context;
mod delete;
mod error;
pub mod gather;
mod reconcile;
mod report;
mod run;

pub use context::{DiskDeletion, Settings};
pub use error::Error;
pub use run::run;
