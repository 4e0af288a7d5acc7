//! Claims: which one a disk uses, whether it may, and what an edit of it can do. No plan deletes or
//! replaces a claim.

use std::collections::BTreeMap;

use machines_api::status::{DiskStatus, PendingChange};
use machines_api::{ADOPT, Machine};
use object::quantity;
use serde_json::{Value, json};

use super::{Live, Plan, Write, identity};
use crate::effects::Effect;
use crate::names;
use crate::objects;
use crate::ownership::{ClaimOwnership, claim_ownership, text};
use crate::problem::{Problem, Reason};
use crate::resolve::{Resolved, ResolvedDisk};
use crate::understand::WantedDisk;

const SIZE: &str = "/spec/resources/requests/storage";

/// Plans the claims, and returns their names by disk.
pub(super) fn plan(machine: &Machine, resolved: &Resolved, live: &Live, plan: &mut Plan) -> BTreeMap<String, String> {
    let attached = attached(live.vm.as_ref());
    let mut names = BTreeMap::new();
    let wanted = resolved.wanted.disks.iter().zip(&resolved.disks).zip(objects::claims(resolved));
    for ((disk, found), mut object) in wanted {
        let usual = names::claim(&resolved.wanted.name, &disk.name);
        // A disk stays on the claim that its virtual machine has, whatever that is called.
        let name = attached.get(&disk.name).cloned().unwrap_or(usual);
        let path = disk.index.map_or_else(|| "spec.disks".to_owned(), |index| format!("spec.disks[{index}]"));
        let mut status =
            DiskStatus { name: Some(disk.name.clone()), pvc_name: Some(name.clone()), ..DiskStatus::default() };
        match live.claims.get(&name) {
            Some(claim) => {
                let ownership = claim_ownership(machine, claim);
                if !attached.contains_key(&disk.name) {
                    let users = live.users.get(&name);
                    may_be_attached(machine, claim, ownership, users, &path, &mut plan.problems);
                    twice(&attached, &name, &path, &mut plan.problems);
                }
                describe(claim, &mut status);
                if ownership == ClaimOwnership::Foreign {
                    grown_by_its_owner(disk, claim, &path, plan);
                } else {
                    status.uuid = Some(identity(claim).0);
                    edits((disk, found), claim, &path, plan);
                }
            }
            None if was_there(machine, &name) || attached.contains_key(&disk.name) => {
                let message = format!(
                    "the claim {name} of this disk is gone, and an empty one would not be the same: restore it and allow its use with \
                     kubectl annotate machine {} {ADOPT}=UID, or start over with a disk of another name",
                    resolved.wanted.name
                );
                plan.problems.push(Problem::new(Reason::DiskConflict, path, message));
                status.uuid = recorded(machine, &name).and_then(|disk| disk.uuid.clone());
            }
            None => {
                object["metadata"]["name"] = json!(name);
                plan.writes.push(Write::CreateClaim(object));
            }
        }
        plan.disks.push(status);
        names.insert(disk.name.clone(), name);
    }
    detached(machine, live, plan);
    names
}

/// The claims that a virtual machine has attached, by volume.
#[must_use]
pub fn attached(vm: Option<&Value>) -> BTreeMap<String, String> {
    let volumes = vm.and_then(|vm| vm.pointer("/spec/template/spec/volumes")).and_then(Value::as_array);
    let claim = |volume: &Value| {
        // The claim of a DataVolume has its name. The image is no disk of the Machine.
        let named = ["/persistentVolumeClaim/claimName", "/dataVolume/name"].map(|pointer| text(volume, pointer));
        let claim = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        (!claim.is_empty() && text(volume, "/name") != names::ISO_VOLUME)
            .then(|| (text(volume, "/name").to_owned(), claim.to_owned()))
    };
    volumes.into_iter().flatten().filter_map(claim).collect()
}

fn recorded<'a>(machine: &'a Machine, name: &str) -> Option<&'a DiskStatus> {
    machine.status.iter().flat_map(|status| &status.disks).find(|disk| disk.pvc_name.as_deref() == Some(name))
}

/// Whether the Machine has had a claim of this name.
fn was_there(machine: &Machine, name: &str) -> bool {
    recorded(machine, name).is_some_and(|disk| disk.uuid.is_some())
}

fn may_be_attached(
    machine: &Machine,
    claim: &Value,
    ownership: ClaimOwnership,
    users: Option<&Vec<String>>,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let (name, uid) = (text(claim, "/metadata/name"), text(claim, "/metadata/uid"));
    let mut refuse = |reason: Reason, message: String| problems.push(Problem::new(reason, path, message));
    if ownership == ClaimOwnership::Foreign {
        let own = machine.metadata.name.as_deref().unwrap_or_default();
        refuse(
            Reason::DiskConflict,
            format!(
                "the claim {name} exists and is not this Machine's: give the disk another name, or allow its use with \
             kubectl annotate machine {own} {ADOPT}={uid}"
            ),
        );
    } else if !text(claim, "/metadata/deletionTimestamp").is_empty() {
        refuse(
            Reason::DiskInUse,
            format!("the claim {name} is being deleted: wait until it is gone, or give the disk another name"),
        );
    } else if let Some(users) = users.filter(|users| !users.is_empty()) {
        refuse(
            Reason::DiskInUse,
            format!(
                "{} uses the claim {name}, and two machines would destroy its data: stop that use, or give the disk another name",
                users.join(" and ")
            ),
        );
    }
}

/// A claim that another volume of the machine has would be written by two devices.
fn twice(attached: &BTreeMap<String, String>, name: &str, path: &str, problems: &mut Vec<Problem>) {
    if let Some((volume, _)) = attached.iter().find(|(_, claim)| *claim == name) {
        let message = format!(
            "volume {volume} of this machine has the claim {name} already, and two devices would destroy its data: remove that volume, \
             such as with virtctl removevolume"
        );
        problems.push(Problem::new(Reason::DiskInUse, path, message));
    }
}

/// A claim that the machine has attached, and that is not the Machine's: its size is not ours.
fn grown_by_its_owner(disk: &WantedDisk, claim: &Value, path: &str, plan: &mut Plan) {
    let now = text(claim, SIZE);
    let is_smaller = bytes(&json!(now)).zip(bytes(&json!(disk.size))).is_some_and(|(now, wanted)| now < wanted);
    if is_smaller && disk.index.is_some() {
        let (name, uid) = (text(claim, "/metadata/name"), text(claim, "/metadata/uid"));
        let reason = format!(
            "the claim {name} is not this Machine's and is not grown: add its uid {uid} to the annotation {ADOPT}, or put {now} back"
        );
        refuse(plan, &format!("{path}.size"), Some(now), &disk.size, reason);
    }
}

fn describe(claim: &Value, status: &mut DiskStatus) {
    let size = claim.pointer("/status/capacity/storage").or_else(|| claim.pointer(SIZE));
    status.size = size.and_then(bytes).and_then(|bytes| i64::try_from(bytes).ok());
    status.volume_mode = Some(text(claim, "/spec/volumeMode").to_owned()).filter(|mode| !mode.is_empty());
    let modes = claim.pointer("/spec/accessModes").and_then(Value::as_array).into_iter().flatten();
    status.access_modes = modes.filter_map(|mode| mode.as_str().map(str::to_owned)).collect();
}

fn bytes(value: &Value) -> Option<i128> {
    quantity::amount(value).map(|amount| amount / 1_000_000_000)
}

/// Edits of a disk whose claim exists.
fn edits((disk, found): (&WantedDisk, &ResolvedDisk), claim: &Value, path: &str, plan: &mut Plan) {
    let fixed = [
        (
            "storageClass",
            disk.storage_class.as_deref().and(found.class.as_ref()).map(|class| class.name.as_str()),
            "/spec/storageClassName",
        ),
        ("accessMode", disk.access_mode.as_deref(), "/spec/accessModes/0"),
        ("volumeMode", disk.volume_mode.as_deref(), "/spec/volumeMode"),
    ];
    for (field, wanted, pointer) in fixed {
        let now = text(claim, pointer);
        if let Some(wanted) = wanted.filter(|wanted| !now.is_empty() && *wanted != now) {
            let reason = format!(
                "it is {now} and can't become {wanted}, because a claim keeps it for life: put {now} back, or add a disk of another name and copy the data"
            );
            refuse(plan, &format!("{path}.{field}"), Some(now), wanted, reason);
        }
    }
    size(disk, found, claim, path, plan);
}

fn size(disk: &WantedDisk, found: &ResolvedDisk, claim: &Value, path: &str, plan: &mut Plan) {
    let now = text(claim, SIZE);
    let (Some(before), Some(after)) = (bytes(&json!(now)), bytes(&json!(disk.size))) else { return };
    let path = format!("{path}.size");
    if after < before {
        // The template's size says nothing about a disk that has grown.
        if disk.index.is_some() {
            let reason = format!("it is {now} and can't shrink to {}: put {now} back", disk.size);
            refuse(plan, &path, Some(now), &disk.size, reason);
        }
        return;
    }
    if after == before {
        return;
    }
    let class = text(claim, "/spec/storageClassName");
    let expands = found.class.as_ref().filter(|found| found.name == class).is_none_or(|class| class.allows_expansion);
    if !expands {
        let reason = format!(
            "the storage class {class} does not let claims grow: put {now} back, or have allowVolumeExpansion of the class set"
        );
        refuse(plan, &path, Some(now), &disk.size, reason);
        return;
    }
    let is_bound = text(claim, "/status/phase") == "Bound";
    let reason = if is_bound {
        "the claim grows at once; partition and file system in the guest are grown there"
    } else {
        "a claim grows only once it is bound, which happens when the machine first starts"
    };
    plan.pending.push(PendingChange {
        path,
        from: Some(now.to_owned()),
        to: Some(disk.size.clone()),
        effect: Effect::Live.name().to_owned(),
        reason: reason.to_owned(),
    });
    if is_bound {
        let (uid, resource_version) = identity(claim);
        let object = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim["metadata"]["name"], "namespace": claim["metadata"]["namespace"]},
            "spec": {"resources": {"requests": {"storage": disk.size}}},
        });
        plan.writes.push(Write::GrowClaim { object, uid, resource_version });
    }
}

fn refuse(plan: &mut Plan, path: &str, from: Option<&str>, to: &str, reason: String) {
    plan.refused.push(Problem::new(Reason::EditRefused, path, reason.clone()));
    plan.pending.push(PendingChange {
        path: path.to_owned(),
        from: from.map(str::to_owned),
        to: Some(to.to_owned()),
        effect: Effect::Refused.name().to_owned(),
        reason,
    });
}

/// Claims whose disk has left the spec stay, and stay recorded.
fn detached(machine: &Machine, live: &Live, plan: &mut Plan) {
    let recorded = machine.status.iter().flat_map(|status| &status.disks);
    for disk in recorded.filter(|disk| disk.uuid.is_some()) {
        let Some(name) = disk.pvc_name.clone() else { continue };
        let is_wanted = plan.disks.iter().any(|wanted| wanted.pvc_name.as_deref() == Some(&name));
        let still_there =
            live.claims.get(&name).is_some_and(|claim| Some(text(claim, "/metadata/uid")) == disk.uuid.as_deref());
        if !is_wanted && still_there {
            plan.disks.push(disk.clone());
            plan.detached.push(name);
        }
    }
}
