//! virt-advisor: reviewed, approved changes to the components of a virtualization cluster.
//!
//! docs/ARCHITECTURE.md has the bird's-eye view, the code map and the invariants.

pub mod cli;
mod clock;
pub mod controller;
pub mod endpoints;
pub mod leader;
pub mod telemetry;
