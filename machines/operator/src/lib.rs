//! kubevirt-operator: makes KubeVirt virtual machines of Machines.
//!
//! ```text
//!   cli ─► controller: gather ─► machines-core ─► act ─► report
//!              │                                   │
//!              └── mirror of the cluster ◄─────────┘   (cluster)
//!   telemetry: the metrics of the documentation
//! ```

pub mod cli;
pub mod cluster;
pub mod controller;
pub mod telemetry;

/// The lease of the Go program: while that one runs, this one waits, and the reverse.
pub const LEASE_NAME: &str = "09393f52.vitistack.io";
