//! What holds a rollout up without a sign of its own (facts/machine-config-pools.md sections 4 and 5): a machine that somebody
//! has cordoned uses up what may be unavailable, and a refused KubeletConfig keeps the render controller from its pools.

use serde_json::Value;

use super::kubelet::{self, Verdict};
use super::pool::Pool;
use super::{KUBELET_CONFIG, NODE, Question};

/// As many machines as are named.
const NAMED: usize = 5;

const CORDONED: Question =
    Question { kind: NODE, field_selector: Some("spec.unschedulable=true"), metadata_only: true };
const REFUSED: Question = Question { kind: KUBELET_CONFIG, field_selector: None, metadata_only: false };

/// Where to look for what holds `pool` up.
pub(super) fn question(pool: &Pool) -> Question {
    // Machines that have what they should have wait for something that is not rendered.
    if pool.wanted == pool.present { REFUSED } else { CORDONED }
}

/// What `found` says of `pool`.
pub(super) fn told(pool: &Pool, question: &Question, found: &[Value]) -> Option<String> {
    if *question == REFUSED { refused(pool, found) } else { cordoned(pool, found) }
}

fn refused(pool: &Pool, found: &[Value]) -> Option<String> {
    let refused = found.iter().filter(|object| kubelet::selects(object, pool));
    let problem = |object: &Value| match kubelet::verdict(object) {
        Verdict::Accepted => None,
        Verdict::Unseen => Some("its last change is not looked at yet".to_owned()),
        Verdict::Refused(problem) => Some(problem),
    };
    let (object, problem) = refused.filter_map(|object| Some((object, problem(object)?))).next()?;
    let name = name(object);
    Some(format!(
        "KubeletConfig {name} keeps the machine-config controllers from rendering for MachineConfigPool {}: {problem}. Correct \
         or delete it",
        pool.name
    ))
}

fn cordoned(pool: &Pool, found: &[Value]) -> Option<String> {
    let by_somebody = found.iter().filter(|node| pool.has(node) && is_idle(node)).map(name);
    let mut names: Vec<_> = by_somebody.collect();
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED);
    Some(format!(
        "cordoned by somebody, and not by the update: {}{more}. Uncordon what should be updated, for it uses up the pool's \
         maxUnavailable",
        names.join(", ")
    ))
}

/// Whether the machine has nothing to do: then it was not the update that cordoned it.
fn is_idle(node: &Value) -> bool {
    let annotation = |key: &str| {
        node.pointer(&format!("/metadata/annotations/machineconfiguration.openshift.io~1{key}")).and_then(Value::as_str)
    };
    annotation("state").is_none_or(|state| state == "Done")
        && annotation("currentConfig") == annotation("desiredConfig")
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pool(wanted: &str, present: &str) -> Pool {
        Pool::read(&json!({
            "metadata": {"name": "worker", "labels": {"pool": "worker"}},
            "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}, "configuration": {"name": wanted}},
            "status": {"configuration": {"name": present}},
        }))
    }

    fn node(name: &str, role: &str, state: &str, desired: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"role": role}, "annotations": {
            "machineconfiguration.openshift.io/state": state,
            "machineconfiguration.openshift.io/currentConfig": "old",
            "machineconfiguration.openshift.io/desiredConfig": desired,
        }}})
    }

    #[test]
    fn only_machines_of_the_pool_that_the_update_did_not_cordon_are_named() {
        let pool = pool("new", "old");
        let asked = question(&pool);
        assert_eq!((asked.kind, asked.field_selector), (NODE, Some("spec.unschedulable=true")));
        let idle = node("w-1", "worker", "Done", "old");
        let nodes = [node("w-2", "worker", "Working", "new"), node("m-1", "master", "Done", "old"), idle];
        let text = told(&pool, &asked, &nodes).unwrap();
        assert!(text.contains(": w-1. Uncordon"), "{text}");
        assert_eq!(told(&pool, &asked, &nodes[..2]), None);
        let many: Vec<_> = (0..8).map(|n| node(&format!("w-{n}"), "worker", "Done", "old")).collect();
        assert!(told(&pool, &asked, &many).unwrap().contains("w-4 and 3 more"));
    }

    #[test]
    fn a_refused_kubelet_config_is_named_with_what_is_wrong_with_it() {
        let pool = pool("same", "same");
        let asked = question(&pool);
        let config = |generation: i64, conditions: Value| {
            json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig",
                "metadata": {"name": "limits", "generation": generation},
                "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}},
                "status": {"observedGeneration": 1, "conditions": conditions},
            })
        };
        let accepted = json!([{"type": "Accepted", "status": "True", "message": "Success"}, {"type": "Success", "status": "True"}]);
        let refused = json!([{"type": "Accepted", "status": "False", "message": "Error: no cgroupDriver"}, {"type": "Failure", "status": "True"}]);
        assert_eq!(told(&pool, &asked, &[config(1, accepted.clone())]), None);
        let text = told(&pool, &asked, &[config(1, refused)]).unwrap();
        assert!(text.contains("KubeletConfig limits") && text.contains("no cgroupDriver"), "{text}");
        assert!(told(&pool, &asked, &[config(2, accepted)]).unwrap().contains("not looked at"));
    }
}
