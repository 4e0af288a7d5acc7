//! What a Machine asks for, in one spelling: fields of the documentation, of the published CRD, of
//! template and class are merged, and everything that can't be is named at once.
//!
//! ```text
//!   spec ─► compute ─┐
//!        ─► disks ───┤
//!        ─► nics ────┼─► Wanted, or all problems
//!        ─► boot ────┤
//!        ─► domain ──┘      inert: what has no effect, with the reason
//! ```

mod boot;
mod compute;
mod disks;
mod domain;
mod inert;
mod nics;

use std::collections::BTreeSet;

use kube::ResourceExt;
use machines_api::references::MachineClassSpec;
use machines_api::storage::OnDelete;
use machines_api::{Machine, MachineSpec, RunStrategy, Updates};
use object::digest;

pub use boot::{BootClass, CloudInitData, DataSource, Image};
pub use compute::Topology;
pub use disks::WantedDisk;
pub use domain::{Chipset, WantedDomain};
pub use nics::{NetworkRef, WantedNic};

use crate::names;
use crate::problem::{Problem, Reason};

/// What a Machine asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its namespace.
    pub namespace: String,
    /// Its name, and that of the virtual machine.
    pub name: String,
    /// Its uid; empty for a Machine from a file.
    pub uid: String,
    /// CPU topology.
    pub cpu: Topology,
    /// Memory of the guest, as a quantity.
    pub memory: String,
    /// Disks in order.
    pub disks: Vec<WantedDisk>,
    /// Interfaces in order.
    pub nics: Vec<WantedNic>,
    /// Kinds of devices in the order of booting; empty: the boot disk only.
    pub boot: Vec<BootClass>,
    /// Machine type, features and firmware.
    pub domain: WantedDomain,
    /// Data of the first boot.
    pub cloud_init: Option<CloudInitData>,
    /// A digest of what the Machine says about its first boot.
    pub cloud_init_digest: String,
    /// An ISO image that is offered as a CD-ROM.
    pub image: Option<Image>,
    /// When edits are written and take effect.
    pub updates: Updates,
    /// Whether it runs, if the Machine says so.
    pub run_strategy: Option<RunStrategy>,
    /// Fields that have no effect, with the reason.
    pub without_effect: Vec<(String, &'static str)>,
}

/// A digest of what a spec says about the first boot.
#[must_use]
pub fn cloud_init_digest(spec: &MachineSpec) -> String {
    digest::sha256(&spec.cloud_init)[..16].to_owned()
}

/// The disks of a spec whose claims are to be kept when the Machine is deleted; it need not be
/// valid otherwise.
#[must_use]
pub fn kept_disks(spec: &MachineSpec) -> BTreeSet<String> {
    let disks = spec.disks.iter().flatten().enumerate();
    let kept = disks.filter(|(_, disk)| disk.on_delete == Some(OnDelete::Keep));
    kept.map(|(index, disk)| disks::name(disk, index)).collect()
}

/// Whether a spec has a disk of this name; it need not be valid otherwise.
#[must_use]
pub fn has_disk(spec: &MachineSpec, name: &str) -> bool {
    let listed = spec.disks.as_deref().unwrap_or_default();
    let is_from_template = name == disks::ROOT && (spec.template.is_some() || listed.is_empty());
    is_from_template || listed.iter().enumerate().any(|(index, disk)| disks::name(disk, index) == name)
}

/// Whether this operator is responsible for a Machine.
#[must_use]
pub fn is_ours(spec: &MachineSpec) -> bool {
    spec.provider.as_deref().is_none_or(|provider| matches!(provider, "" | "kubevirt"))
}

/// What `machine` asks for. `class` is the MachineClass that it names, if that exists.
///
/// # Errors
/// All problems of the spec, each with its field.
pub fn understand(machine: &Machine, class: Option<&MachineClassSpec>) -> Result<Wanted, Vec<Problem>> {
    let spec = &machine.spec;
    let mut problems = Vec::new();
    let name = machine.name_any();
    if !names::is_label(&name) {
        let message = format!(
            "{name:?} can't be the name of a virtual machine: create the Machine under a name of at most 63 lower-case letters, \
             digits and dashes"
        );
        problems.push(Problem::new(Reason::InvalidSpec, "metadata.name", message));
    }
    let size = compute::size(spec, class, &mut problems);
    let disks = disks::disks(spec, &name, size.root, &mut problems);
    let nics = nics::nics(spec, &mut problems);
    let boot = boot::boot(spec, &mut problems);
    let domain = domain::domain(spec, &mut problems);
    let cloud_init = boot::cloud_init(spec, &mut problems);
    let image = boot::image(machine);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Wanted {
        namespace: machine.namespace().unwrap_or_default(),
        name,
        uid: machine.uid().unwrap_or_default(),
        cpu: size.cpu,
        memory: size.memory,
        disks,
        nics,
        boot,
        domain,
        cloud_init,
        cloud_init_digest: cloud_init_digest(spec),
        image,
        updates: spec.updates.unwrap_or_default(),
        run_strategy: spec.run_strategy,
        without_effect: inert::without_effect(spec),
    })
}

/// The value that two spellings of one field agree on. `problems` names both if they differ.
fn agreed<T: PartialEq + Clone + std::fmt::Display>(
    one: Option<(&str, T)>,
    other: Option<(&str, T)>,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    match (one, other) {
        (Some((path, value)), Some((other_path, other_value))) if value != other_value => {
            let message =
                format!("it is {value}, and {other_path} is {other_value}: set one of them, or both to the same value");
            problems.push(Problem::new(Reason::InvalidSpec, path, message));
            None
        }
        (Some((_, value)), _) | (None, Some((_, value))) => Some(value),
        (None, None) => None,
    }
}
