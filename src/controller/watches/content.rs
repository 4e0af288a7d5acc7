//! Finds what matters of an object whose owner writes its status all the time
//! ([`profile_sdk::is_talkative`]). Such kinds are watched in full, so that a status with no news
//! about the object's health costs no request.

use std::hash::{DefaultHasher, Hash, Hasher};

use kube::api::DynamicObject;
use serde_json::Value;

use advisor_core::plan::items::health;

/// A hash that stays the same while nothing changes in `object` except parts of its status that do
/// not concern its health. `None` if it can't be computed.
pub(super) fn content_hash(object: &DynamicObject) -> Option<u64> {
    let mut object = serde_json::to_value(object).ok()?;
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {}", health::rollout_of(&object), health::trouble(&object), health::speaks(&object))
        .hash(&mut hasher);
    object.as_object_mut()?.remove("status");
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("resourceVersion");
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        entries.retain(|entry| entry.get("subresource").and_then(Value::as_str) != Some("status"));
    }
    object.to_string().hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str, generation: i64, status: Value, times: [&str; 2]) -> DynamicObject {
        let entries: Vec<_> = [("", times[0]), ("status", times[1])]
            .map(|(subresource, time)| json!({"manager": "m", "operation": "Update", "time": time, "subresource": subresource}))
            .into();
        serde_json::from_value(json!({
            "apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "spec": {"a": generation}, "status": status,
            "metadata": {"name": "h", "resourceVersion": version, "generation": generation, "managedFields": entries},
        }))
        .unwrap()
    }

    #[test]
    fn r15_a_status_that_says_nothing_new_of_health_is_no_other_content() {
        let times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"];
        let status = |related: u32, degraded: &str| {
            json!({"observedGeneration": 1, "relatedObjects": [{"resourceVersion": related.to_string()}],
                "conditions": [{"type": "Degraded", "status": degraded, "message": "m"}]})
        };
        let first = content_hash(&object("5", 1, status(1, "False"), times));
        assert!(first.is_some());
        assert_eq!(content_hash(&object("6", 1, status(2, "False"), [times[0], "2026-01-01T00:00:09Z"])), first);
        for (name, other) in [
            ("health", object("6", 1, status(1, "True"), times)),
            ("spec", object("6", 2, status(1, "False"), times)),
            (
                "another owner of the same fields",
                object("6", 1, status(1, "False"), ["2026-01-01T00:00:09Z", times[1]]),
            ),
            ("no word of health", object("6", 1, json!({"observedGeneration": 1}), times)),
        ] {
            assert_ne!(content_hash(&other), first, "{name}");
        }
    }
}
