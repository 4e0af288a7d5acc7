//! Taking a Machine away: the virtual machine first, then only claims that are provably the
//! Machine's and that nobody wants kept.

use std::collections::BTreeMap;

use kube::ResourceExt;
use machines_api::status::DiskStatus;
use machines_api::{ADOPT, Machine, ON_DELETE};
use serde_json::Value;

use crate::effects::condition;
use crate::ownership::{ClaimOwnership, claim_ownership, is_adopted, is_controlled, meta, text};
use crate::understand::{has_disk, kept_disks};

/// What is read for a deletion, at the moment of it and not from a cache.
#[derive(Clone, Debug, Default)]
pub struct Remains {
    /// The VirtualMachine of the Machine's name.
    pub vm: Option<Value>,
    /// The instance of its name.
    pub vmi: Option<Value>,
    /// The recorded claims.
    pub claims: BTreeMap<String, Value>,
    /// Who else uses a claim.
    pub users: BTreeMap<String, Vec<String>>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Delete the VirtualMachine with this uid and version.
    DeleteVm {
        /// Its uid.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// Nothing can be done but wait; why.
    Wait(String),
    /// The machine is gone: the fate of each claim, and then the finalizer.
    Claims(Vec<Fate>),
}

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Name of the claim.
    pub claim: String,
    /// uid and version, if it is deleted.
    pub delete: Option<(String, String)>,
    /// Why it is kept or deleted.
    pub reason: String,
}

/// The next step of the deletion of `machine`; `never` keeps all claims.
#[must_use]
pub fn next(machine: &Machine, remains: &Remains, never: bool) -> Step {
    let own = remains.vm.as_ref().filter(|vm| is_controlled(machine, vm) || is_adopted(machine, vm));
    if let Some(vm) = own {
        if has_templates(vm) && text(vm, "/metadata/deletionTimestamp").is_empty() {
            let name = text(vm, "/metadata/name");
            return Step::Wait(format!(
                "VirtualMachine {name} has dataVolumeTemplates, and KubeVirt would delete their disks with it: remove them from its \
                 spec and its owner references from the DataVolumes, or delete the VirtualMachine yourself"
            ));
        }
        if text(vm, "/metadata/deletionTimestamp").is_empty() {
            let (uid, resource_version) = (text(vm, "/metadata/uid"), text(vm, "/metadata/resourceVersion"));
            return Step::DeleteVm { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        }
        return Step::Wait(waiting(vm, remains.vmi.as_ref()));
    }
    if let Some(vmi) = remains.vmi.as_ref().filter(|_| remains.vm.is_none()) {
        return Step::Wait(format!("VirtualMachineInstance {} is still there", text(vmi, "/metadata/name")));
    }
    let recorded = machine.status.iter().flat_map(|status| &status.disks);
    Step::Claims(recorded.filter_map(|disk| fate(machine, disk, remains, never)).collect())
}

/// Whether a virtual machine owns disks that are deleted with it (K12).
#[must_use]
pub fn has_templates(vm: &Value) -> bool {
    vm.pointer("/spec/dataVolumeTemplates").and_then(Value::as_array).is_some_and(|templates| !templates.is_empty())
}

fn waiting(vm: &Value, vmi: Option<&Value>) -> String {
    let name = text(vm, "/metadata/name");
    let failure =
        condition(vm, "Failure").map(|failure| text(failure, "/message")).filter(|message| !message.is_empty());
    match (failure, vmi) {
        (Some(failure), _) => format!("VirtualMachine {name} is being deleted: {failure}"),
        (None, Some(_)) => format!("VirtualMachine {name} is being deleted; its instance is shutting down"),
        (None, None) => format!("VirtualMachine {name} is being deleted; its finalizers have not been removed yet"),
    }
}

fn fate(machine: &Machine, disk: &DiskStatus, remains: &Remains, never: bool) -> Option<Fate> {
    let name = disk.pvc_name.clone()?;
    let claim = remains.claims.get(&name)?;
    let keep = |reason: String| Some(Fate { claim: name.clone(), delete: None, reason });
    if claim_ownership(machine, claim) != ClaimOwnership::Ours {
        let why = if is_adopted(machine, claim) {
            format!("it was taken over with {ADOPT}")
        } else {
            "it is not this Machine's".to_owned()
        };
        return keep(why);
    }
    let is_keep = |value: &str| value.eq_ignore_ascii_case("keep");
    let of_machine = machine.annotations().get(ON_DELETE).map(String::as_str).unwrap_or_default();
    if never {
        return keep("the operator runs with --disk-deletion=Never".to_owned());
    }
    let name_of_disk = disk.name.as_deref().unwrap_or_default();
    if kept_disks(&machine.spec).contains(name_of_disk) {
        return keep("onDelete of its disk is Keep".to_owned());
    }
    if !has_disk(&machine.spec, name_of_disk) {
        return keep("its disk has left the spec".to_owned());
    }
    if is_keep(of_machine) || is_keep(meta(claim, "annotations", ON_DELETE)) {
        return keep(format!("the annotation {ON_DELETE} is Keep"));
    }
    if let Some(users) = remains.users.get(&name).filter(|users| !users.is_empty()) {
        return keep(format!("{} uses it", users.join(" and ")));
    }
    let delete = (text(claim, "/metadata/uid").to_owned(), text(claim, "/metadata/resourceVersion").to_owned());
    Some(Fate { claim: name, delete: Some(delete), reason: "it belongs to this Machine alone".to_owned() })
}
