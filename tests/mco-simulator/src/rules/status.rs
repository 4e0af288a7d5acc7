//! The calculation of a pool's status. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/node/status.go: `calculateStatus`; pkg/apihelpers/apihelpers.go:
//! `SetMachineConfigPoolCondition`.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::api::{Condition, MachineConfigPool, PoolStatus, REASON};
use crate::rules::node;
use crate::rules::release::Release;

/// All machines have the pool's configuration.
pub(crate) const UPDATED: &str = "Updated";
/// Some machine does not have it, or is unavailable.
pub(crate) const UPDATING: &str = "Updating";
/// Some machine failed, or the pool cannot be rendered.
pub(crate) const DEGRADED: &str = "Degraded";
/// Some machine failed.
pub(crate) const NODE_DEGRADED: &str = "NodeDegraded";
/// The pool cannot be rendered. Written only by the render controller.
pub(crate) const RENDER_DEGRADED: &str = "RenderDegraded";

/// The status that the node controller gives a pool with these machines.
pub(crate) fn calculate(pool: &MachineConfigPool, nodes: &[&Node], now: &str, release: Release) -> PoolStatus {
    let count = |test: &dyn Fn(&Node) -> bool| {
        i32::try_from(nodes.iter().filter(|node| test(node)).count()).unwrap_or(i32::MAX)
    };
    let before = pool.status.clone().unwrap_or_default();
    let mut status = PoolStatus {
        observed_generation: pool.metadata.generation,
        machine_count: count(&|_| true),
        updated_machine_count: count(&|node| node::is_updated(node, pool)),
        ready_machine_count: count(&|node| node::is_updated(node, pool) && node::unready(node).is_none()),
        unavailable_machine_count: count(&node::is_unavailable),
        degraded_machine_count: count(&node::is_degraded),
        ..before
    };
    let target = format!("MachineConfig {}", pool.spec.configuration.name);
    let all_updated = status.updated_machine_count == status.machine_count
        && status.ready_machine_count == status.machine_count
        && status.unavailable_machine_count == 0;
    let mut set = |kind, is_true, reason: &str, message: &str| set(&mut status, kind, is_true, reason, message, now);
    if all_updated {
        set(UPDATED, true, "", &format!("All nodes are updated with {target}"));
        set(UPDATING, false, "", "");
    } else {
        set(UPDATED, false, "", "");
        if pool.spec.paused {
            set(UPDATING, false, "", &format!("Pool is paused; will not update to {target}"));
        } else {
            set(UPDATING, true, "", &format!("All nodes are updating to {target}"));
        }
    }
    let failed = failures(nodes, release);
    if failed.is_empty() {
        set(NODE_DEGRADED, false, "", "");
    } else {
        let machines = nodes.iter().filter(|node| node::is_degraded(node)).count();
        set(NODE_DEGRADED, true, &format!("{machines} nodes are reporting degraded status on sync"), &failed);
    }
    let render_degraded = pool.status.as_ref().is_some_and(|status| status.is(RENDER_DEGRADED, "True"));
    set(DEGRADED, !failed.is_empty() || render_degraded, "", &failed);
    if all_updated {
        status.configuration = pool.spec.configuration.clone();
    }
    status
}

/// Each failing machine with its reason; twice if the release has MachineConfigNodes: once from
/// there, once from the annotation.
fn failures(nodes: &[&Node], release: Release) -> String {
    let failing = || nodes.iter().filter(|node| node::is_degraded(node));
    let report = |node: &&Node| format!("Node {} is reporting: {:?}", node.name_any(), node::annotation(node, REASON));
    failing().chain(failing().filter(|_| release.repeats_failures)).map(report).collect::<Vec<_>>().join(", ")
}

/// Sets one condition. An equal one stays unchanged; a changed one moves to the end, and keeps its
/// time if its status is the same.
pub(crate) fn set(status: &mut PoolStatus, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let mut new = Condition {
        kind: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Some(now.to_owned()),
    };
    if let Some(old) = status.condition(kind) {
        if old.status == new.status {
            new.last_transition_time.clone_from(&old.last_transition_time);
        }
        if *old == new {
            return;
        }
    }
    status.conditions.retain(|condition| condition.kind != kind);
    status.conditions.push(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{CURRENT_CONFIG, Configuration, DESIRED_CONFIG, STATE, STATE_DEGRADED, STATE_DONE, STATE_WORKING};
    use serde_json::json;

    fn machine(name: &str, current: &str, desired: &str, state: &str) -> Node {
        let annotations =
            json!({CURRENT_CONFIG: current, DESIRED_CONFIG: desired, STATE: state, REASON: "disk \"full\""});
        serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations}})).expect("parses")
    }

    fn pool(target: &str, reached: &str, paused: bool) -> MachineConfigPool {
        let configuration = |name: &str| Configuration { name: name.to_owned(), ..Configuration::default() };
        let mut pool = MachineConfigPool::new("worker", crate::api::PoolSpec::default());
        pool.metadata.generation = Some(3);
        pool.spec.paused = paused;
        pool.spec.configuration = configuration(target);
        pool.status = Some(PoolStatus { configuration: configuration(reached), ..PoolStatus::default() });
        pool
    }

    /// updated/ready/unavailable, Updated, Updating, Degraded, status.configuration.
    fn summary(pool: &MachineConfigPool, nodes: &[Node]) -> String {
        let status = calculate(pool, &nodes.iter().collect::<Vec<_>>(), "t", Release::default());
        let is = |kind| status.condition(kind).map_or("-", |condition| condition.status.as_str());
        format!(
            "{}/{}/{} {} {} {} {}",
            status.updated_machine_count,
            status.ready_machine_count,
            status.unavailable_machine_count,
            is(UPDATED),
            is(UPDATING),
            is(DEGRADED),
            status.configuration.name
        )
    }

    #[test]
    fn the_configuration_moves_only_when_all_machines_have_it() {
        let (new, old) =
            (|name| machine(name, "new", "new", STATE_DONE), |name| machine(name, "old", "old", STATE_DONE));
        let pool = pool("new", "old", false);
        for (name, nodes, want) in [
            ("nobody told", vec![old("a"), old("b")], "0/0/0 False True False old"),
            ("one at work", vec![machine("a", "old", "new", STATE_WORKING), old("b")], "0/0/1 False True False old"),
            ("one done", vec![new("a"), old("b")], "1/1/0 False True False old"),
            ("all done", vec![new("a"), new("b")], "2/2/0 True False False new"),
            ("no machines", vec![], "0/0/0 True False False new"),
        ] {
            assert_eq!(summary(&pool, &nodes), want, "{name}");
        }
    }

    #[test]
    fn paused_is_neither_updated_nor_updating_unless_there_is_nothing_to_do() {
        let old = machine("a", "old", "old", STATE_DONE);
        assert_eq!(summary(&pool("new", "old", true), std::slice::from_ref(&old)), "0/0/0 False False False old");
        assert_eq!(summary(&pool("old", "old", true), &[old]), "1/1/0 True False False old");
        assert_eq!(summary(&pool("new", "old", true), &[]), "0/0/0 True False False new");
    }

    #[test]
    fn a_cordoned_machine_looks_like_a_roll_out() {
        let mut away = machine("a", "old", "old", STATE_DONE);
        away.spec = serde_json::from_value(json!({"unschedulable": true})).expect("parses");
        let others = [machine("b", "old", "old", STATE_DONE), machine("c", "old", "old", STATE_DONE), away];
        assert_eq!(summary(&pool("old", "old", false), &others), "3/2/1 False True False old");
    }

    #[test]
    fn a_failing_machine_degrades_the_pool_and_is_named_twice() {
        let nodes = [machine("a", "old", "new", STATE_DEGRADED)];
        let status = calculate(&pool("new", "old", false), &nodes.iter().collect::<Vec<_>>(), "t", Release::default());
        let message = r#"Node a is reporting: "disk \"full\"", Node a is reporting: "disk \"full\"""#;
        for kind in [NODE_DEGRADED, DEGRADED] {
            assert_eq!(status.condition(kind).map(|condition| condition.message.as_str()), Some(message), "{kind}");
        }
        assert!(status.is(UPDATING, "True"));
        assert_eq!((status.degraded_machine_count, status.observed_generation), (1, Some(3)));
    }

    #[test]
    fn render_degraded_degrades_the_pool_without_a_message_and_leaves_updated() {
        let mut pool = pool("old", "old", false);
        if let Some(status) = &mut pool.status {
            set(status, RENDER_DEGRADED, true, "", "because", "t");
        }
        let nodes = [machine("a", "old", "old", STATE_DONE)];
        let status = calculate(&pool, &nodes.iter().collect::<Vec<_>>(), "t", Release::default());
        assert!(status.is(UPDATED, "True") && status.is(DEGRADED, "True") && status.is(RENDER_DEGRADED, "True"));
        assert_eq!(status.condition(DEGRADED).map(|condition| condition.message.as_str()), Some(""));
    }

    #[test]
    fn times_stay_while_the_status_stays() {
        let mut status = PoolStatus::default();
        set(&mut status, UPDATING, true, "", "to a", "1");
        set(&mut status, UPDATED, false, "", "", "1");
        set(&mut status, UPDATING, true, "", "to b", "2");
        let updating = status.condition(UPDATING).cloned().unwrap_or_default();
        assert_eq!((updating.message.as_str(), updating.last_transition_time.as_deref()), ("to b", Some("1")));
        assert_eq!(status.conditions.last(), Some(&updating), "changed ones go to the end");
        set(&mut status, UPDATING, false, "", "", "3");
        assert_eq!(status.condition(UPDATING).and_then(|c| c.last_transition_time.as_deref()), Some("3"));
    }
}
