//! When claims are bound, grow, and go. Plays Kubernetes' binder (pkg/controller/volume), a
//! provisioner, and the protection of claims in use.

use serde_json::{Value, json};

/// Finalizer that the API server gives to claims.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// What is to be done with a claim.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Write the claim: it is bound to a volume, or let go.
    Write(Value),
    /// Write its status.
    Status(Value),
    /// Write its status a moment later.
    Grow(Value),
}

/// `class` is the storage class that it names; without one it is bound at once.
pub(crate) fn step(claim: &Value, class: Option<&Value>, has_consumer: bool, is_used: bool) -> Option<Step> {
    let mut next = claim.clone();
    if !claim["metadata"]["deletionTimestamp"].is_null() {
        let finalizers = next["metadata"]["finalizers"].as_array_mut()?;
        let before = finalizers.len();
        finalizers.retain(|name| name != PROTECTION && name != "foregroundDeletion" && name != "orphan");
        return (!is_used && finalizers.len() < before).then_some(Step::Write(next));
    }
    let request = &claim["spec"]["resources"]["requests"]["storage"];
    if claim["status"]["phase"] == "Bound" {
        let bytes = |value: &Value| value.as_str().and_then(super::quantity::value);
        let is_larger = bytes(request) > bytes(&claim["status"]["capacity"]["storage"]);
        next["status"]["capacity"]["storage"] = request.clone();
        return is_larger.then_some(Step::Grow(next));
    }
    let waits = class.is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer");
    if waits && !has_consumer {
        return None;
    }
    if claim["spec"]["volumeName"].is_null() {
        let uid = claim["metadata"]["uid"].as_str()?;
        next["spec"]["volumeName"] = format!("pvc-{uid}").into();
        next["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
        return Some(Step::Write(next));
    }
    next["status"] = json!({"phase": "Bound", "accessModes": claim["spec"]["accessModes"],
        "capacity": {"storage": request}});
    Some(Step::Status(next))
}
