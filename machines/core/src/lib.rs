//! What a Machine means and what becomes of it. Pure: no client, no clock.
//!
//! ```text
//!   Machine ─► understand ─► Wanted ─┐
//!   facts of the cluster ────────────┴─► resolve ─► Resolved ─► objects: claims, Secret, VM
//!                                                                   │
//!   live objects ──────────────────────────────► plan: what to write, effects ─► report ─► status
//!   deletion: what goes, what is kept, and when the finalizer may go
//! ```

pub mod deletion;
pub mod effects;
pub mod facts;
pub mod names;
pub mod objects;
pub mod ownership;
pub mod plan;
pub mod problem;
pub mod report;
pub mod resolve;
pub mod understand;
