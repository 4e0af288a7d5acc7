//! A real etcd and kube-apiserver for tests and the demo.
//!
//! [`ControlPlane::start`] gives one of one's own, [`lease`] an empty one from a pool that the tests of a process
//! share. Nothing outlives the process that started it: see `guard.rs`. Nothing here knows the operator.
//!
//! A plane belongs to no tokio runtime: every [`ControlPlane::admin`] or [`ControlPlane::client`] makes a client of
//! the runtime that asks, so planes may be handed from test to test.

mod audit;
mod binaries;
mod certificates;
mod error;
pub mod faults;
mod guard;
mod install;
mod outside;
mod plane;
mod pool;
mod ports;
mod settings;
mod wipe;

#[cfg(test)]
mod tests;

pub use audit::{Audit, Mark, Request, Stage};
pub use error::Error;
pub use guard::Process;
pub use install::{apply_yaml, install_crds};
pub use outside::{left_out, real_crd, real_crds};
pub use plane::ControlPlane;
pub use pool::{Lease, lease};
