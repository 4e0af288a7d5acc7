//! virt-advisor: reviewed, approved changes to the components of a virtualization cluster.
//!
//! docs/ARCHITECTURE.md has the bird's-eye view, the code map and the invariants.

pub mod api;
pub mod registry;
pub mod plan;
pub mod cluster;
