//! virt-advisor: reviewed, approved changes to the components of a virtualization cluster.
//!
//! docs/ARCHITECTURE.md has the bird's-eye view, the code map and the invariants.

pub mod api;
pub mod cli;
mod clock;
pub mod cluster;
pub mod controller;
pub mod endpoints;
pub mod engine;
pub mod leader;
pub mod limits;
pub mod plan;
pub mod registry;
pub mod rollout;
pub mod telemetry;
