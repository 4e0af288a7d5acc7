//! The API of Machines, as the documentation of vitistack and its published CRD define it.
//!
//! Both spellings of a field are here: `resources.memory.size` of the documentation and `memory` of
//! the published CRD, for example. Nothing here decides which one wins; `machines-core` does.
//!
//! ```text
//!   machine: spec ──► compute, storage, network, cloud_init, domain; inert: without effect here
//!      │  └─────────► status
//!   references: what a Machine names (NetworkConfiguration, MachineClass)
//!   crd: the definitions; policy: what is refused at admission
//! ```

pub mod cloud_init;
pub mod compute;
pub mod crd;
pub mod domain;
pub mod inert;
mod machine;
pub mod network;
pub mod policy;
pub mod references;
pub mod status;
pub mod storage;

pub use machine::{Machine, MachineSpec, RunStrategy, Updates};

/// API group of Machines and of everything that they name.
pub const GROUP: &str = "vitistack.io";
/// The finalizer that keeps a Machine until its virtual machine is gone.
pub const FINALIZER: &str = "machine.vitistack.io/cleanup";
/// The finalizer of the Go program, which adoption takes over.
pub const GO_FINALIZER: &str = "machine.vitistack.io/finalizer";
/// Label of everything that the operator creates.
pub const MANAGED_BY: &str = "vitistack.io/managed-by";
/// The value of [`MANAGED_BY`], and the field manager of every write.
pub const MANAGER: &str = "kubevirt-operator";
/// Label with the name of the Machine.
pub const MACHINE_LABEL: &str = "vitistack.io/machine";
/// Label with the name of the Machine, as the Go program and its command line know it.
pub const SOURCE_MACHINE_LABEL: &str = "vitistack.io/source-machine";
/// Annotation of a Machine: uids of existing objects that it may take over, separated by commas.
pub const ADOPT: &str = "machine.vitistack.io/adopt";
/// Annotation of a Machine or of a claim: `Keep` keeps the claims when the Machine is deleted.
pub const ON_DELETE: &str = "machine.vitistack.io/on-delete";
/// Annotation of a claim: the uid of the Machine that created it.
pub const MACHINE_UID: &str = "machine.vitistack.io/machine-uid";
