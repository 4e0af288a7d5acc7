//! Disks: those of the template and those of the spec, merged by name.

use std::collections::BTreeSet;

use machines_api::MachineSpec;
use machines_api::storage::Disk;

use super::compute::bytes;
use crate::names;
use crate::problem::{Problem, Reason};

/// A disk that a Machine asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedDisk {
    /// Name of the disk and of its volume.
    pub name: String,
    /// Its place in `spec.disks`; `None` if it comes from the template.
    pub index: Option<usize>,
    /// Its size, as a quantity.
    pub size: String,
    /// The storage class that is named.
    pub storage_class: Option<String>,
    /// The access mode that is named.
    pub access_mode: Option<String>,
    /// The volume mode that is named.
    pub volume_mode: Option<String>,
    /// The bus in the guest.
    pub bus: &'static str,
    /// Whether the machine boots from it.
    pub boot: bool,
}

const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Filesystem", "Block"];
const BUSES: [&str; 3] = ["virtio", "sata", "scsi"];
/// The disk that a template brings.
pub(super) const ROOT: &str = "root";

/// The disks of a Machine called `machine`. `root` is the size of the template's disk.
pub(super) fn disks(
    spec: &MachineSpec,
    machine: &str,
    root: Option<&str>,
    problems: &mut Vec<Problem>,
) -> Vec<WantedDisk> {
    let listed = spec.disks.as_deref().unwrap_or_default();
    // A Machine of the published CRD that lists its disks has these, and no other.
    let from_template = root.filter(|_| spec.template.is_some() || listed.is_empty());
    let mut found: Vec<WantedDisk> = from_template.map(template_disk).into_iter().collect();
    let mut seen = BTreeSet::new();
    for (index, disk) in listed.iter().enumerate() {
        let path = format!("spec.disks[{index}]");
        let name = name(disk, index);
        if !seen.insert(name.clone()) {
            let message = format!("another disk is called {name}: give each its own name");
            problems.push(Problem::new(Reason::InvalidSpec, format!("{path}.name"), message));
            continue;
        }
        check_name(machine, &name, &path, problems);
        let size = size(disk, &path, problems);
        let inherited = found.iter().position(|known| known.name == name);
        let base = inherited.map(|at| found[at].clone());
        let size = size.or_else(|| base.as_ref().map(|base| base.size.clone()));
        if size.is_none() && disk.size.is_none() && disk.size_gb.is_none() {
            let message = "it is missing: set it, for example to 20Gi";
            problems.push(Problem::new(Reason::InvalidSpec, format!("{path}.size"), message));
        }
        let wanted = WantedDisk {
            name,
            index: Some(index),
            size: size.unwrap_or_default(),
            storage_class: disk.storage_class.clone(),
            access_mode: one_of(disk.access_mode.as_deref(), &ACCESS_MODES, &format!("{path}.accessMode"), problems),
            volume_mode: one_of(disk.volume_mode.as_deref(), &VOLUME_MODES, &format!("{path}.volumeMode"), problems),
            bus: bus(disk),
            boot: disk.boot == Some(true),
        };
        match inherited {
            Some(at) => found[at] = wanted,
            None => found.push(wanted),
        }
    }
    let mut boots = found.iter().filter(|disk| disk.boot);
    if let (Some(first), Some(second)) = (boots.next(), boots.next()) {
        let message = format!("both {} and {} have boot: true: leave it at one of them", first.name, second.name);
        problems.push(Problem::new(Reason::InvalidSpec, "spec.disks", message));
    }
    if found.is_empty() {
        let message = "the Machine has no disk: list one, or set spec.template to small, medium or large";
        problems.push(Problem::new(Reason::InvalidSpec, "spec.disks", message));
    }
    found
}

fn template_disk(size: &str) -> WantedDisk {
    WantedDisk {
        name: ROOT.to_owned(),
        index: None,
        size: size.to_owned(),
        storage_class: None,
        access_mode: None,
        volume_mode: None,
        bus: BUSES[0],
        boot: false,
    }
}

pub(super) fn name(disk: &Disk, index: usize) -> String {
    match disk.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None if index == 0 => ROOT.to_owned(),
        None => format!("disk{index}"),
    }
}

fn check_name(machine: &str, name: &str, path: &str, problems: &mut Vec<Problem>) {
    let problem = if [names::CLOUD_INIT_VOLUME, names::ISO_VOLUME].contains(&name) {
        Some(format!("{name} is the name of a disk that the operator makes: use another one"))
    } else if !names::is_label(name) {
        Some(format!("{name:?} can't be the name of a disk: use at most 63 lower-case letters, digits and dashes"))
    } else if !names::is_subdomain(&names::claim(machine, name)) && names::is_label(machine) {
        Some(format!("{name} makes the name of the claim too long: use a shorter one"))
    } else {
        None
    };
    problems.extend(problem.map(|message| Problem::new(Reason::InvalidSpec, format!("{path}.name"), message)));
}

/// The size in the spelling in which it is written.
fn size(disk: &Disk, path: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let written = disk.size.as_deref().and_then(|size| {
        let bytes = bytes(&format!("{path}.size"), size, problems)?;
        Some((bytes, size.to_owned()))
    });
    if let Some(gib) = disk.size_gb.filter(|gib| !(1..=65536).contains(gib)) {
        let message = format!("it must be between 1 and 65536, not {gib}");
        problems.push(Problem::new(Reason::InvalidSpec, format!("{path}.sizeGB"), message));
    }
    let published = disk.size_gb.map(|gib| (i128::from(gib) << 30, format!("{gib}Gi")));
    match (written, published) {
        (Some((bytes, size)), Some((other, other_size))) if bytes != other => {
            let message =
                format!("it is {size}, and {path}.sizeGB is {other_size}: set one of them, or both to the same value");
            problems.push(Problem::new(Reason::InvalidSpec, format!("{path}.size"), message));
            None
        }
        (Some((_, size)), _) | (None, Some((_, size))) => Some(size),
        (None, None) => None,
    }
}

fn one_of(value: Option<&str>, allowed: &[&str], path: &str, problems: &mut Vec<Problem>) -> Option<String> {
    let value = value?;
    if !allowed.contains(&value) {
        let message = format!("{value:?} is not one of {}", allowed.join(", "));
        problems.push(Problem::new(Reason::InvalidSpec, path, message));
    }
    Some(value.to_owned())
}

/// The published CRD leaves `type` open, and its examples have words such as `ssd` there: like the
/// Go program, everything but sata and scsi is virtio.
fn bus(disk: &Disk) -> &'static str {
    let wanted = disk.bus.as_deref().unwrap_or(BUSES[0]);
    BUSES.into_iter().find(|bus| *bus == wanted).unwrap_or(BUSES[0])
}
