//! The defaults of a VirtualMachine.
//!
//! pkg/virt-api/webhooks/mutating-webhook/mutators/vm-mutator.go: `setFirmwareDefaultsIfEmpty` when it
//! is created, and `defaults.SetVirtualMachineDefaults` (pkg/defaults/defaults.go) at every write.

use serde_json::{Value, json};

use super::{NAME, matching};

/// Where KubeVirt takes random values, these have the object's uid if there is one yet.
const IDENTITY: &str = "has(object.metadata.uid) && object.metadata.uid != '' ? string(object.metadata.uid) : \
    '5d307ca9-b3ef-428c-8861-06e72d69f223'";

pub(super) fn policy() -> Value {
    let (constraints, alive) = matching();
    let spec = "object.spec.template.spec";
    let has_firmware = format!("has({spec}.domain.firmware)");
    let lacks = |field: &str| format!("(!{has_firmware} || !has({spec}.domain.firmware.{field}))");
    let created = "request.operation == 'CREATE'";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": constraints, "matchConditions": alive, "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "variables": [{"name": "identity", "expression": IDENTITY}],
            "mutations": [
                set(&format!("{created} && {}", lacks("uuid")), "domain.firmware", "uuid: variables.identity"),
                set(&format!("{created} && {}", lacks("serial")), "domain.firmware", "serial: variables.identity"),
                set(&format!("!has({spec}.architecture)"), "", "architecture: 'amd64'"),
                set(
                    &format!("!has({spec}.domain.machine) || !has({spec}.domain.machine.type) || {spec}.domain.machine.type == ''"),
                    "domain.machine",
                    "type: 'q35'",
                ),
            ],
        },
    })
}

/// Sets a field of an object below the template's spec, under a condition.
fn set(condition: &str, object: &str, field: &str) -> Value {
    let mut path = "Object.spec.template.spec".to_owned();
    let (mut before, mut after) = (String::new(), String::new());
    for key in object.split('.').filter(|key| !key.is_empty()) {
        before.push_str(&format!("{path}{{{key}: "));
        after.push('}');
        path = format!("{path}.{key}");
    }
    let inner = format!("{before}{path}{{{field}}}{after}");
    let expression = format!(
        "{condition} ? Object{{spec: Object.spec{{template: Object.spec.template{{spec: {inner}}}}}}} : Object{{}}"
    );
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}
