//! A real etcd and kube-apiserver for tests and the demo.
//!
//! [`ControlPlane::start`] starts a new one; [`lease`] takes an empty one from a pool that the
//! tests of a process share. Nothing outlives the process that started it: see `guard.rs`. Nothing
//! here knows the operator.
//!
//! A plane is not bound to a tokio runtime: [`ControlPlane::admin`] and [`ControlPlane::client`]
//! make clients for the caller's runtime, so planes can be passed from test to test.

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
