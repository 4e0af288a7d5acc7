//! virt-advisor: reviewed, approved changes to the components of a virtualization cluster.
//!
//! docs/ARCHITECTURE.md has the bird's-eye view, the code map and the invariants.

pub mod cli;
pub mod controller;
pub mod telemetry;

/// The lease of the Go program: while that one runs, this one waits, and the reverse.
pub const LEASE_NAME: &str = "8f83cc6e.kubevirt.io";
