//! The conversion of HyperConverged between v1beta1 and v1. Pure.

use serde_json::{Value, json};

/// Where a field is in v1 and in v1beta1, below `spec`.
const MOVED: [(&str, &str); 6] = [
    ("/virtualization/higherWorkloadDensity", "/higherWorkloadDensity"),
    ("/virtualization/ksmConfiguration", "/ksmConfiguration"),
    ("/virtualization/liveMigrationConfig", "/liveMigrationConfig"),
    ("/virtualization/permittedHostDevices", "/permittedHostDevices"),
    ("/deployment/uninstallStrategy", "/uninstallStrategy"),
    ("/deployment/applicationAwareConfig/enable", "/enableApplicationAwareQuota"),
];

/// `object` in the version `to`, for example `hco.kubevirt.io/v1`. Of its spec only the fields
/// listed here remain.
#[must_use]
pub fn convert(object: &Value, to: &str) -> Value {
    let mut converted = object.clone();
    let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    converted["apiVersion"] = json!(to);
    if from == to {
        return converted;
    }
    let up = to.ends_with("/v1");
    let source = object.get("spec").cloned().unwrap_or_default();
    let mut spec = json!({});
    for (v1, v1beta1) in MOVED {
        let (from, to) = if up { (v1beta1, v1) } else { (v1, v1beta1) };
        if let Some(value) = source.pointer(from) {
            put(&mut spec, to, value.clone());
        }
    }
    if up && source.get("enableApplicationAwareQuota").is_none() {
        // The Go type of v1beta1 always has it.
        put(&mut spec, "/deployment/applicationAwareConfig/enable", json!(false));
    }
    converted["spec"] = spec;
    converted
}

fn put(within: &mut Value, pointer: &str, value: Value) {
    let mut at = within;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_grouped_in_v1_comes_back_as_it_was() {
        let old = json!({"apiVersion": "hco.kubevirt.io/v1beta1", "metadata": {"name": "h"}, "spec": {
            "higherWorkloadDensity": {"memoryOvercommitPercentage": 150}, "uninstallStrategy": "RemoveWorkloads",
            "enableApplicationAwareQuota": false,
        }});
        let new = convert(&old, "hco.kubevirt.io/v1");
        assert_eq!(
            new.pointer("/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage"),
            Some(&json!(150))
        );
        assert_eq!(new.pointer("/spec/deployment/applicationAwareConfig/enable"), Some(&json!(false)));
        assert_eq!(convert(&new, "hco.kubevirt.io/v1beta1"), old);
        assert_eq!(convert(&new, "hco.kubevirt.io/v1"), new);
    }
}
