//! Conditions of KubeVirt's kinds: a list of them, each with its own time.

use serde_json::{Value, json};

/// The condition of this type.
pub(crate) fn find<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

/// Whether the condition of this type has this status.
pub(crate) fn is(status: &Value, name: &str, wanted: &str) -> bool {
    find(status, name).is_some_and(|condition| condition["status"] == wanted)
}

/// Whether the condition of this type is False for this reason.
pub(crate) fn is_false_for(status: &Value, name: &str, reason: &str) -> bool {
    find(status, name).is_some_and(|condition| condition["status"] == "False" && condition["reason"] == reason)
}

/// Sets a condition; one that says the same already keeps its time. Empty reasons and messages are
/// left out, as KubeVirt does.
pub(crate) fn set(status: &mut Value, name: &str, said: (&str, &str, &str), now: &str) {
    let mut condition =
        json!({"type": name, "status": said.0, "lastProbeTime": Value::Null, "lastTransitionTime": now});
    for (key, text) in [("reason", said.1), ("message", said.2)] {
        if !text.is_empty() {
            condition[key] = text.into();
        }
    }
    put(status, condition);
}

/// Takes over a condition with its times, unless one that says the same is there.
pub(crate) fn put(status: &mut Value, condition: Value) {
    let says = |one: &Value| ["status", "reason", "message"].map(|key| one[key].clone());
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else { return };
    match all.iter_mut().find(|old| old["type"] == condition["type"]) {
        Some(old) if says(old) == says(&condition) => {}
        Some(old) => *old = condition,
        None => all.push(condition),
    }
}

/// Removes the condition of this type.
pub(crate) fn remove(status: &mut Value, name: &str) {
    if let Some(all) = status["conditions"].as_array_mut() {
        all.retain(|condition| condition["type"] != name);
    }
}
