//! Whether a change has taken effect, for kinds that report it by the common conventions (kstatus).

use serde_json::Value;

/// How far a written item is from taking effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    /// In effect; the text says on what.
    Done(String),
    /// Under way; the text says how far and what holds it up.
    Waiting {
        /// Progress in one sentence.
        text: String,
        /// Somebody has paused it: the time limit stands still.
        paused: bool,
    },
    /// It can't take effect without a person.
    Failed(String),
}

/// Reads `object` by the rules of kstatus: `observedGeneration`, then the conditions Stalled, Degraded, Reconciling,
/// Available and Ready. An object without any of them is in effect as soon as it is written.
///
/// Degraded alone is a reason to wait and no verdict: operators report it while they converge.
#[must_use]
pub fn of(object: &Value) -> Rollout {
    let status = object.get("status");
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    if let (Some(generation), Some(observed)) = (number("/metadata/generation"), number("/status/observedGeneration"))
        && observed < generation
    {
        return waiting("its controller has not seen the change yet".to_owned());
    }
    let conditions = status.and_then(|status| status.get("conditions")).and_then(Value::as_array);
    let find = |wanted: &str| {
        let mut all = conditions.into_iter().flatten();
        all.find(|condition| condition.get("type").and_then(Value::as_str) == Some(wanted))
    };
    let is = |wanted: &str, status: &str| {
        find(wanted).filter(|condition| condition.get("status").and_then(Value::as_str) == Some(status))
    };
    let message = |condition: &Value| {
        let text = condition.get("message").and_then(Value::as_str).unwrap_or_default();
        if text.is_empty() { "no reason given".to_owned() } else { text.to_owned() }
    };
    if let Some(stalled) = is("Stalled", "True") {
        return Rollout::Failed(format!("Stalled: {}", message(stalled)));
    }
    for (condition, status) in
        [("Degraded", "True"), ("Reconciling", "True"), ("Available", "False"), ("Ready", "False")]
    {
        if let Some(found) = is(condition, status) {
            return waiting(format!("{condition}={status}: {}", message(found)));
        }
    }
    Rollout::Done("in effect".to_owned())
}

fn waiting(text: String) -> Rollout {
    Rollout::Waiting { text, paused: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_common_conventions() {
        let condition =
            |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status, "message": "m"}]});
        for (name, status, done) in [
            ("no status", json!({}), true),
            ("stale", json!({"observedGeneration": 1}), false),
            ("seen", json!({"observedGeneration": 2}), true),
            ("degraded", condition("Degraded", "True"), false),
            ("not available", condition("Available", "False"), false),
            ("ready", condition("Ready", "True"), true),
        ] {
            let object = json!({"metadata": {"generation": 2}, "status": status});
            assert_eq!(matches!(of(&object), Rollout::Done(_)), done, "{name}");
        }
        let stalled = json!({"status": condition("Stalled", "True")});
        assert_eq!(of(&stalled), Rollout::Failed("Stalled: m".into()));
    }
}
