//! The defaults of a VirtualMachine.
//!
//! pkg/virt-api/webhooks/mutating-webhook/mutators/vm-mutator.go:
//! `setFirmwareDefaultsIfEmpty` when it is created, and `defaults.SetVirtualMachineDefaults`
//! (pkg/defaults/defaults.go) at every write.

use serde_json::{Value, json};

use super::{NAME, matching};

/// Digits for names, different ones for different names. KubeVirt takes a random identity; CEL has
/// neither chance nor hashes, and the object has no uid yet when it is asked.
const VARIABLES: [(&str, &str); 5] = [
    ("alphabet", "'abcdefghijklmnopqrstuvwxyz0123456789-./'"),
    ("name", "has(object.metadata.name) ? object.metadata.name : ''"),
    (
        "near",
        "variables.name.split('').transformList(i, c, (variables.alphabet.indexOf(c) + 1) * (i / 8 + 1) * \
         [1, 41, 1681, 68921, 2825761, 115856201, 4750104241, 194754273881][i % 8])",
    ),
    (
        "far",
        "(request.namespace + '/' + variables.name).split('').transformList(i, c, \
         (variables.alphabet.indexOf(c) + 1) * (i + 1) * (i + 1) * 829348951)",
    ),
    (
        "digits",
        "string(1000000000000000 + variables.near.sum() % 1000000000000000).substring(1) + \
         string(1000000000000000 + variables.far.sum() % 1000000000000000).substring(1)",
    ),
];
const IDENTITY: &str = "variables.digits.substring(0, 8) + '-' + variables.digits.substring(8, 12) + '-4' + \
    variables.digits.substring(12, 15) + '-8' + variables.digits.substring(15, 18) + '-' + \
    variables.digits.substring(18, 30)";

pub(super) fn policy() -> Value {
    let (constraints, alive) = matching();
    let spec = "object.spec.template.spec";
    let has_firmware = format!("has({spec}.domain.firmware)");
    let lacks = |field: &str| format!("(!{has_firmware} || !has({spec}.domain.firmware.{field}))");
    let variables = VARIABLES.iter().chain([&("identity", IDENTITY)]);
    let variables = variables.map(|(name, expression)| json!({"name": name, "expression": expression}));
    let created = "request.operation == 'CREATE'";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": constraints, "matchConditions": alive, "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "variables": Value::from_iter(variables),
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
