//! Whether an object is this Machine's, was adopted by word, or is somebody else's.

use kube::ResourceExt;
use machines_api::{ADOPT, MACHINE_LABEL, MACHINE_UID, MANAGED_BY, MANAGER, Machine};
use serde_json::Value;

/// A text of an object.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value of a label or annotation, whose name may have slashes.
pub(crate) fn meta<'a>(object: &'a Value, map: &str, key: &str) -> &'a str {
    object.pointer(&format!("/metadata/{map}")).and_then(|map| map.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the Machine's annotation names the uid of `object`: its author has seen the object, and
/// wants it taken over.
#[must_use]
pub fn is_adopted(machine: &Machine, object: &Value) -> bool {
    let uid = text(object, "/metadata/uid");
    let named = machine.annotations().get(ADOPT).map(String::as_str).unwrap_or_default();
    !uid.is_empty() && named.split(',').any(|named| named.trim() == uid)
}

/// Whether the Machine is the controller of `object`: its uid is in the owner reference.
#[must_use]
pub fn is_controlled(machine: &Machine, object: &Value) -> bool {
    let uid = machine.uid().unwrap_or_default();
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    !uid.is_empty() && references.into_iter().flatten().any(|reference| text(reference, "/uid") == uid)
}

/// Whether the operator has created `claim` for this very Machine, and not for an earlier one of
/// its name.
#[must_use]
pub fn is_created_for(machine: &Machine, claim: &Value) -> bool {
    let uid = machine.uid().unwrap_or_default();
    !uid.is_empty() && meta(claim, "annotations", MACHINE_UID) == uid
}

/// How a claim belongs to a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOwnership {
    /// The Machine's status has its uid, or the operator created it for this very Machine.
    Ours,
    /// The Machine's annotation names its uid.
    Adopted,
    /// Neither.
    Foreign,
}

/// How `claim` belongs to `machine`. Labels alone prove nothing: they can be copied, and two
/// Machines can want one name.
#[must_use]
pub fn claim_ownership(machine: &Machine, claim: &Value) -> ClaimOwnership {
    let uid = text(claim, "/metadata/uid");
    let name = text(claim, "/metadata/name");
    let recorded = machine.status.iter().flat_map(|status| &status.disks);
    let entry = recorded.into_iter().find(|disk| disk.pvc_name.as_deref() == Some(name));
    let is_labelled =
        meta(claim, "labels", MANAGED_BY) == MANAGER && meta(claim, "labels", MACHINE_LABEL) == machine.name_any();
    let is_created_for = is_created_for(machine, claim);
    match entry.and_then(|disk| disk.uuid.as_deref()) {
        Some(recorded) if recorded == uid && is_labelled && is_created_for => ClaimOwnership::Ours,
        // Once taken over, it stays so without the annotation; labels may come from an earlier
        // Machine.
        Some(recorded) if recorded == uid => ClaimOwnership::Adopted,
        // The intent was recorded, and then the process ended before it could record the uid.
        None if entry.is_some() && is_labelled && is_created_for => ClaimOwnership::Ours,
        _ if is_adopted(machine, claim) => ClaimOwnership::Adopted,
        Some(_) | None => ClaimOwnership::Foreign,
    }
}
