//! The stage on which the demo plays and the benchmarks measure: a control plane with everything
//! that load-aware rebalancing meets, and the operator's program running on it.
//!
//! Needs nothing from outside of the repository but the programs of the control plane.

mod operator;
pub mod shell;
mod stage;

pub use operator::Operator;
pub use stage::{DESCHEDULER_NAMESPACE, PROFILE, Stage, USER, our_crd};
