//! The CustomResourceDefinitions.

use kube::CustomResourceExt;
use schemars::{Schema, json_schema};
use serde_json::{Value, json};

use crate::Machine;
use crate::references::NetworkConfigurationSpec;

/// An object whose fields are not described.
pub(crate) fn any_object(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The definition of Machines.
#[must_use]
pub fn machines() -> Value {
    let mut crd = serde_json::to_value(Machine::crd()).expect("a definition serializes");
    if let Some(names) = crd.pointer_mut("/spec/names") {
        names["categories"] = json!(["vitistack"]);
    }
    without_unknown_formats(&mut crd);
    crd
}

/// The API server warns about formats that OpenAPI does not know, and bounds say more than these.
fn without_unknown_formats(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("format").is_some_and(|format| format.as_str().is_some_and(|name| name.starts_with("uint"))) {
                map.remove("format");
            }
            map.values_mut().for_each(without_unknown_formats);
        }
        Value::Array(list) => list.iter_mut().for_each(without_unknown_formats),
        _ => {}
    }
}

/// The definition of NetworkConfigurations, for clusters without that of vitistack.
#[must_use]
pub fn network_configurations() -> Value {
    let mut schema =
        serde_json::to_value(schemars::schema_for!(NetworkConfigurationSpec)).expect("a schema serializes");
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
    }
    schema["properties"]["vlan"] = json!({
        "type": "integer", "minimum": 0, "maximum": 4094,
        "description": schema["properties"]["vlan"]["description"],
    });
    for field in ["bridge", "networkAttachmentDefinition"] {
        schema["properties"][field]["type"] = json!("string");
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "networkconfigurations.vitistack.io"},
        "spec": {
            "group": crate::GROUP,
            "names": {
                "kind": "NetworkConfiguration", "listKind": "NetworkConfigurationList",
                "plural": "networkconfigurations", "singular": "networkconfiguration", "shortNames": ["nc"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A network that Machines name: a bridge on the nodes with a VLAN.",
                    "properties": {"spec": schema},
                    "required": ["spec"],
                }},
            }],
        },
    })
}
