//! What has to be written so that the cluster has what a Machine asks for, what each edit does to a
//! running machine, and what stands in the way.
//!
//! ```text
//!   resolved, live ─► claims ─┐
//!                  ─► merge ──┼─► Plan: writes in order, pending changes, problems
//!                  ─► leaves ─┘
//! ```

mod claims;
mod leaves;
mod merge;

use std::collections::{BTreeMap, BTreeSet};

use machines_api::status::{DiskStatus, PendingChange};
use machines_api::{ADOPT, Machine, RunStrategy, Updates};
use object::digest;
use serde_json::{Value, json};

pub use claims::attached;
pub use leaves::{Change, changes, covers};

use crate::deletion::has_templates;
use crate::effects::{self, Effect, Situation};
use crate::facts::KubeVirt;
use crate::objects;
use crate::ownership::{is_adopted, is_controlled, meta, text};
use crate::problem::{Problem, Reason};
use crate::resolve::{Resolved, ResolvedNic};

/// Annotation of a VirtualMachine: which disks and interfaces the operator has written, and a
/// digest of what it wanted. Everything else in the lists is somebody else's.
pub const APPLIED: &str = "machine.vitistack.io/applied";

/// Whether `vm` was written with the data of the first boot that `digest` stands for. It is written
/// after the Secret with that data.
#[must_use]
pub fn has_cloud_init(vm: &Value, digest: &str) -> bool {
    let record: Option<Value> = serde_json::from_str(meta(vm, "annotations", APPLIED)).ok();
    record.is_some_and(|record| record["cloudInit"] == digest)
}

/// What the cluster has of a Machine.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The VirtualMachine of the Machine's name.
    pub vm: Option<Value>,
    /// The running instance.
    pub vmi: Option<Value>,
    /// Claims by name: those that the Machine wants, has recorded, or whose virtual machine has
    /// them.
    pub claims: BTreeMap<String, Value>,
    /// The Secret of the wanted name.
    pub secret: Option<Value>,
    /// The DataVolume with the image.
    pub image: Option<Value>,
    /// Names of the NetworkAttachmentDefinitions that exist, of those that the Machine needs.
    pub attachments: BTreeSet<String>,
    /// Who else uses a claim: sentences such as `VirtualMachine other`, by claim.
    pub users: BTreeMap<String, Vec<String>>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Create the claim of a disk.
    CreateClaim(Value),
    /// Grow a claim to the size in this object, if it is still this claim.
    GrowClaim {
        /// What is applied: the name, and the new size.
        object: Value,
        /// uid of the claim.
        uid: String,
        /// Version of the claim.
        resource_version: String,
    },
    /// Apply the Secret.
    ApplySecret {
        /// The Secret.
        object: Value,
        /// uid and version of the live one.
        live: Option<(String, String)>,
    },
    /// Create a NetworkAttachmentDefinition or DataVolume.
    Create(Value),
    /// Apply the VirtualMachine.
    ApplyVm {
        /// The VirtualMachine.
        object: Value,
        /// uid and version of the live one.
        live: Option<(String, String)>,
        /// Whether fields of others may be taken: only entries of shared lists, which are all kept.
        only_lists: bool,
    },
    /// Restart the machine by deleting its instance, which KubeVirt makes anew.
    Restart {
        /// uid of the instance.
        uid: String,
    },
}

/// What is to be done for a Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order. Empty if there is a problem.
    pub writes: Vec<Write>,
    /// Edits that have not reached the running machine.
    pub pending: Vec<PendingChange>,
    /// What keeps everything from being written.
    pub problems: Vec<Problem>,
    /// Edits that the cluster can't carry out; everything else is written.
    pub refused: Vec<Problem>,
    /// Claims of the Machine for its status.
    pub disks: Vec<DiskStatus>,
    /// Claims whose disk has left the spec.
    pub detached: Vec<String>,
    /// Why the VirtualMachine is not written although it differs.
    pub held: Option<String>,
    /// Fields of ours that somebody else has changed.
    pub drift: Vec<String>,
}

/// The plan for `machine`. It holds no deletion of a claim, whatever changes.
#[must_use]
pub fn plan(machine: &Machine, resolved: &Resolved, live: &Live, kubevirt: &KubeVirt) -> Plan {
    let mut plan = Plan::default();
    names_are_free(machine, resolved, live, &mut plan.problems);
    let names = claims::plan(machine, resolved, live, &mut plan);
    if !plan.problems.is_empty() {
        preview_of_adoption(resolved, live, kubevirt, &names, &mut plan);
        plan.writes.clear();
        return plan;
    }
    others(resolved, live, &mut plan);
    virtual_machine(resolved, live, kubevirt, &names, &mut plan);
    if resolved.wanted.updates == Updates::Hold {
        plan.writes.clear();
        plan.held = Some("spec.updates is Hold".to_owned());
    }
    plan
}

/// The object that a claim name belongs to, and the version in which it was seen.
fn identity(object: &Value) -> (String, String) {
    (text(object, "/metadata/uid").to_owned(), text(object, "/metadata/resourceVersion").to_owned())
}

fn names_are_free(machine: &Machine, resolved: &Resolved, live: &Live, problems: &mut Vec<Problem>) {
    let name = &resolved.wanted.name;
    let found = [("VirtualMachine", &live.vm), ("Secret", &live.secret), ("DataVolume", &live.image)];
    for (kind, object) in found {
        let Some(object) = object else { continue };
        if is_controlled(machine, object) || is_adopted(machine, object) {
            continue;
        }
        let (uid, _) = identity(object);
        let taken = text(object, "/metadata/name");
        let message = format!(
            "{kind} {taken} exists and is not this Machine's: rename the Machine, or take the {kind} over with \
             kubectl annotate machine {name} {ADOPT}={uid}"
        );
        problems.push(Problem::new(Reason::NameTaken, "metadata.name", message));
    }
    if let Some(vm) = live.vm.as_ref().filter(|vm| has_templates(vm) && !is_controlled(machine, vm)) {
        let message = format!(
            "VirtualMachine {} has dataVolumeTemplates, and its disks would be deleted with it: remove them from its spec and its owner \
             references from the DataVolumes before the Machine takes it over",
            text(vm, "/metadata/name")
        );
        problems.push(Problem::new(Reason::NameTaken, "metadata.name", message));
    }
    if live.vm.is_none() && live.vmi.is_some() {
        let message =
            format!("VirtualMachineInstance {name} runs without a VirtualMachine: delete it, or rename the Machine");
        problems.push(Problem::new(Reason::NameTaken, "metadata.name", message));
    }
    if let Some(vm) = live.vm.as_ref().filter(|vm| !text(vm, "/metadata/deletionTimestamp").is_empty()) {
        let message =
            format!("VirtualMachine {} is being deleted: it is made anew when it is gone", text(vm, "/metadata/name"));
        problems.push(Problem::new(Reason::KubeVirtApiError, "", message));
    }
}

/// Before a virtual machine is taken over by word, status.pending tells what that would change.
fn preview_of_adoption(
    resolved: &Resolved,
    live: &Live,
    kubevirt: &KubeVirt,
    names: &BTreeMap<String, String>,
    plan: &mut Plan,
) {
    let is_taken = plan.problems.iter().any(|problem| problem.reason == Reason::NameTaken);
    if is_taken && live.vm.is_some() {
        let mut preview = Plan::default();
        virtual_machine(resolved, live, kubevirt, names, &mut preview);
        plan.pending.extend(preview.pending);
    }
}

/// Secret, image and networks.
fn others(resolved: &Resolved, live: &Live, plan: &mut Plan) {
    for attachment in objects::network_attachments(resolved) {
        if !live.attachments.contains(text(&attachment, "/metadata/name")) {
            plan.writes.push(Write::Create(attachment));
        }
    }
    if let Some(image) = objects::image(resolved).filter(|_| live.image.is_none()) {
        plan.writes.push(Write::Create(image));
    }
    let Some(secret) = objects::secret(resolved) else { return };
    let is_same =
        live.secret.as_ref().is_some_and(|live| covers(live, &secret) && live.get("data") == secret.get("data"));
    if !is_same {
        if live.vm.is_some() {
            plan.pending.push(PendingChange {
                path: "Secret/data".to_owned(),
                from: None,
                to: None,
                effect: Effect::WithoutEffect.name().to_owned(),
                reason: "cloud-init runs once for each machine, at its first boot: make a new Machine to run it again"
                    .to_owned(),
            });
        }
        plan.writes.push(Write::ApplySecret { object: secret, live: live.secret.as_ref().map(identity) });
    }
}

/// The VirtualMachine as it should be, with `names` of the claims by disk, and with what others
/// have put into it.
#[must_use]
pub fn desired_vm(resolved: &Resolved, live: Option<&Value>, names: &BTreeMap<String, String>) -> Value {
    let mut desired = objects::virtual_machine(resolved);
    if let Some(volumes) = desired.pointer_mut("/spec/template/spec/volumes").and_then(Value::as_array_mut) {
        for volume in volumes {
            let name = names.get(text(volume, "/name")).cloned();
            if let (Some(slot), Some(name)) = (volume.pointer_mut("/persistentVolumeClaim/claimName"), name) {
                *slot = json!(name);
            }
        }
    }
    let digest = digest::sha256(&[&desired["spec"], &desired["metadata"]["labels"]]);
    let list = |pointer: &str| -> Vec<Value> {
        let entries = desired.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        entries.map(|entry| entry["name"].clone()).collect()
    };
    let record = json!({
        "digest": &digest[..16],
        "cloudInit": resolved.wanted.cloud_init_digest,
        "disks": list("/spec/template/spec/domain/devices/disks"),
        "interfaces": list("/spec/template/spec/domain/devices/interfaces"),
    });
    if let Some(live) = live {
        merge::keep_what_others_wrote(&mut desired, live, resolved);
    }
    desired["metadata"]["annotations"] = json!({ APPLIED: record.to_string() });
    desired
}

fn virtual_machine(
    resolved: &Resolved,
    live: &Live,
    kubevirt: &KubeVirt,
    names: &BTreeMap<String, String>,
    plan: &mut Plan,
) {
    let desired = desired_vm(resolved, live.vm.as_ref(), names);
    let Some(vm) = &live.vm else {
        plan.writes.push(Write::ApplyVm { object: desired, live: None, only_lists: false });
        return;
    };
    let situation = Situation::of(live.vmi.as_ref(), kubevirt);
    let now = live.vmi.as_ref().and_then(|vmi| vmi.get("spec")).or_else(|| vm.pointer("/spec/template/spec"));
    let mut restarts_at_once = false;
    let found = changes(now.unwrap_or(&Value::Null), &desired["spec"]["template"]["spec"]);
    for (change, (effect, reason)) in found.iter().zip(effects::of_changes(&found, &situation)) {
        restarts_at_once |= effect == Effect::RestartAtOnce;
        plan.pending.push(pending(
            &format!("VirtualMachine/spec.template.spec.{}", change.path),
            change,
            effect,
            reason,
        ));
    }
    let power = |spec: &Value| -> Value {
        let fields = ["runStrategy", "running"]
            .into_iter()
            .filter_map(|field| Some((field.to_owned(), spec.get(field)?.clone())));
        Value::Object(fields.collect())
    };
    if let Some(change) = changes(&vm["spec"], &power(&desired["spec"])).first() {
        let reason = "KubeVirt starts or stops the machine at once".to_owned();
        plan.pending.push(pending(&format!("VirtualMachine/spec.{}", change.path), change, Effect::Live, reason));
    }
    let is_edited = meta(vm, "annotations", APPLIED) != text_of(&desired);
    let is_covered = covers(vm, &desired);
    let restarts = resolved.wanted.updates == Updates::Restart;
    if is_edited || !is_covered {
        if restarts_at_once && !restarts {
            plan.held = Some(
                "KubeVirt would evict the machine, which can't migrate, and start it anew: set spec.updates to Restart to allow that"
                    .to_owned(),
            );
            return;
        }
        if !is_edited {
            plan.drift = changes(vm, &desired).into_iter().map(|change| change.path).collect();
        }
        plan.writes.push(Write::ApplyVm { object: desired, live: Some(identity(vm)), only_lists: is_edited });
        return;
    }
    let needs_restart =
        effects::condition(vm, "RestartRequired").is_some_and(|condition| condition["status"] == "True");
    let starts_anew = ["Always", "RerunOnFailure"].contains(&text(vm, "/spec/runStrategy"));
    if let Some(vmi) = live.vmi.as_ref().filter(|_| restarts && needs_restart && starts_anew)
        && text(vmi, "/metadata/deletionTimestamp").is_empty()
    {
        plan.writes.push(Write::Restart { uid: identity(vmi).0 });
    }
}

fn text_of(desired: &Value) -> &str {
    meta(desired, "annotations", APPLIED)
}

fn pending(path: &str, change: &Change, effect: Effect, reason: String) -> PendingChange {
    let shown = |value: &Option<Value>| {
        value.as_ref().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    };
    PendingChange {
        path: path.to_owned(),
        from: shown(&change.from),
        to: shown(&change.to),
        effect: effect.name().to_owned(),
        reason,
    }
}

/// Whether the operator keeps a machine running or stopped, or leaves that to people.
#[must_use]
pub fn keeps_power(resolved: &Resolved) -> Option<RunStrategy> {
    resolved.wanted.run_strategy
}

/// Networks that the Machine needs and that may have to be made.
#[must_use]
pub fn attachments(resolved: &Resolved) -> Vec<&str> {
    let bridges = resolved.nics.iter().filter_map(|nic| match nic {
        ResolvedNic::Bridge { attachment, .. } => Some(attachment.as_str()),
        ResolvedNic::Pod | ResolvedNic::Attachment(_) => None,
    });
    bridges.collect()
}
