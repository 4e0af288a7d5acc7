//! Finds what holds up a rollout without showing in the pool's status (pkg/controller/node of
//! machine-config-operator, `getAllCandidateMachines`): a cordoned machine counts towards
//! maxUnavailable, and a refused KubeletConfig keeps the render controller from its pools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::kubelet::{self, Acceptance};
use super::pool::{Pool, reason};
use super::{KUBELET_CONFIG, NODE, Question};

/// The most machines that are named.
const NAMED: usize = 5;

const CORDONED: Question =
    Question { kind: NODE, field_selector: Some("spec.unschedulable=true"), metadata_only: true };
const REFUSED: Question = Question { kind: KUBELET_CONFIG, field_selector: None, metadata_only: false };

/// The objects to examine for what holds up `pool`.
pub(super) fn question(pool: &Pool) -> Question {
    // If machines have what they should have, the rollout waits for something that is not rendered.
    if pool.wanted == pool.present { REFUSED } else { CORDONED }
}

/// The cause, according to `found`, that holds up `pool`.
pub(super) fn cause(
    pools: &BTreeMap<String, Pool>,
    pool: &Pool,
    question: &Question,
    found: &[Value],
) -> Option<String> {
    if *question == REFUSED { refused(pool, found) } else { cordoned(pools, pool, found) }
}

/// The pool that updates the machine: master before custom pools, worker last, since machines of
/// custom pools are workers too (pkg/helpers of machine-config-operator, `GetPoolsForNode`).
fn owner<'a>(pools: &'a BTreeMap<String, Pool>, machine: &Value) -> Option<&'a str> {
    let rank = |name: &str| match name {
        "master" => 0,
        "worker" => 2,
        _ => 1,
    };
    let of = pools.values().filter(|pool| pool.has(machine)).map(|pool| pool.name.as_str());
    of.min_by_key(|name| rank(name))
}

fn refused(pool: &Pool, found: &[Value]) -> Option<String> {
    let refused = found.iter().filter(|object| kubelet::selects(object, pool));
    let told = |object: &Value| match kubelet::verdict(object) {
        Acceptance::Accepted => None,
        Acceptance::Unseen => Some(format!(
            "the Machine Config Operator has not accepted KubeletConfig {} yet, and renders nothing for MachineConfigPool {} until \
             it has",
            name(object),
            pool.name
        )),
        Acceptance::Refused(problem) => Some(format!(
            "KubeletConfig {} keeps the Machine Config Operator from rendering MachineConfigPool {}{}. Correct or \
             delete it",
            name(object),
            pool.name,
            reason(&problem)
        )),
    };
    refused.filter_map(told).next()
}

fn cordoned(pools: &BTreeMap<String, Pool>, pool: &Pool, found: &[Value]) -> Option<String> {
    let of_pool = |node: &&Value| owner(pools, node) == Some(pool.name.as_str());
    let by_somebody = found.iter().filter(of_pool).filter(|node| is_idle(node)).map(name);
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
        "cordoned, but not by the update: {}{more}. That counts towards the pool's maxUnavailable and can block the rollout: uncordon \
         machines that should be updated",
        names.join(", ")
    ))
}

/// Whether the machine has no update to do: then it was not cordoned by the update.
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

    fn pools(wanted: &str, present: &str) -> BTreeMap<String, Pool> {
        let pool = |name: &str| {
            Pool::read(&json!({
                "metadata": {"name": name, "labels": {"pool": name}},
                "spec": {"nodeSelector": {"matchLabels": {name: ""}}, "configuration": {"name": wanted}},
                "status": {"configuration": {"name": present}},
            }))
        };
        ["worker", "infra", "master"].map(|name| (name.to_owned(), pool(name))).into()
    }

    fn node(name: &str, roles: &[&str], state: &str, desired: &str) -> Value {
        let labels: BTreeMap<_, _> = roles.iter().map(|role| (*role, "")).collect();
        json!({"metadata": {"name": name, "labels": labels, "annotations": {
            "machineconfiguration.openshift.io/state": state,
            "machineconfiguration.openshift.io/currentConfig": "old",
            "machineconfiguration.openshift.io/desiredConfig": desired,
        }}})
    }

    #[test]
    fn only_machines_of_the_pool_that_the_update_did_not_cordon_are_named() {
        let pools = pools("new", "old");
        let cause_of = |found: &[Value]| cause(&pools, &pools["worker"], &CORDONED, found);
        let asked = question(&pools["worker"]);
        assert_eq!((asked.kind, asked.field_selector), (NODE, Some("spec.unschedulable=true")));
        let nodes = [
            node("w-2", &["worker"], "Working", "new"),
            node("m-1", &["master", "worker"], "Done", "old"),
            node("i-1", &["infra", "worker"], "Done", "old"),
            node("w-1", &["worker"], "Done", "old"),
        ];
        let text = cause_of(&nodes).unwrap();
        assert!(text.contains(": w-1. That counts"), "{text}");
        assert_eq!(cause_of(&nodes[..3]), None);
        let many: Vec<_> = (0..8).map(|n| node(&format!("w-{n}"), &["worker"], "Done", "old")).collect();
        assert!(cause_of(&many).unwrap().contains("w-4 and 3 more"));
    }

    #[test]
    fn a_refused_kubelet_config_is_named_with_what_is_wrong_with_it() {
        let pools = pools("same", "same");
        let asked = question(&pools["worker"]);
        let cause_of = |found: &[Value]| cause(&pools, &pools["worker"], &asked, found);
        let config = |generation: i64, conditions: Value| {
            json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig",
                "metadata": {"name": "limits", "generation": generation},
                "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}},
                "status": {"observedGeneration": 1, "conditions": conditions},
            })
        };
        let accepted = json!([{"type": "Accepted", "status": "True", "message": "Success"}, {"type": "Success", "status": "True"}]);
        let refused = json!([{"type": "Accepted", "status": "False", "message": "Error: no cgroupDriver"}, {"type": "Failure", "status": "True", "message": "Error: no cgroupDriver"}]);
        assert_eq!(cause_of(&[config(1, accepted.clone())]), None);
        let text = cause_of(&[config(1, refused)]).unwrap();
        assert!(text.contains("KubeletConfig limits") && text.contains("no cgroupDriver"), "{text}");
        assert!(cause_of(&[config(2, accepted)]).unwrap().contains("has not accepted"));
    }
}
