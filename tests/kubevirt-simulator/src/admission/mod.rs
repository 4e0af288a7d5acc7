//! KubeVirt's webhooks for VirtualMachines, as admission policies, so that the API server refuses
//! and completes them in the same request as a real cluster does.

use serde_json::{Value, json};

mod mutating;
mod validating;

/// The name of both policies and of their bindings.
pub const NAME: &str = "virtualmachines.kubevirt.io";

/// All objects to create: two policies, and the binding of each.
#[must_use]
pub fn admission() -> Vec<Value> {
    vec![validating::policy(), binding("ValidatingAdmissionPolicyBinding"), mutating::policy(), {
        binding("MutatingAdmissionPolicyBinding")
    }]
}

fn binding(kind: &str) -> Value {
    let mut spec = json!({"policyName": NAME});
    if kind.starts_with("Validating") {
        spec["validationActions"] = json!(["Deny"]);
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}, "spec": spec})
}

/// VirtualMachines that are created or updated, but not those that are being deleted.
fn matching() -> (Value, Value) {
    let rules = json!([{"apiGroups": ["kubevirt.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": ["virtualmachines"]}]);
    let alive = json!([{"name": "alive", "expression": "!has(object.metadata.deletionTimestamp)"}]);
    (json!({"resourceRules": rules}), alive)
}
