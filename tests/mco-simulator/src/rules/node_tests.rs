//! Owns the tests of `node.rs`.

use super::*;
use serde_json::{Value, json};

fn machine(name: &str, current: &str, desired: &str, state: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": {"node-role.kubernetes.io/worker": ""},
            "annotations": {CURRENT_CONFIG: current, DESIRED_CONFIG: desired, STATE: state},
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn node(value: Value) -> Node {
    serde_json::from_value(value).expect("nodes of the tests parse")
}

fn with(mut value: Value, pointer: &str, key: &str, to: Value) -> Value {
    value.pointer_mut(pointer).expect("pointer of the test exists")[key] = to;
    value
}

fn pool(name: &str, role: &str, target: &str) -> MachineConfigPool {
    let spec = json!({
        "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{role}"): ""}},
        "configuration": {"name": target},
    });
    MachineConfigPool::new(name, serde_json::from_value(spec).expect("pools of the tests parse"))
}

fn told(pool: &MachineConfigPool, nodes: &[Value]) -> Vec<String> {
    let nodes: Vec<Node> = nodes.iter().cloned().map(node).collect();
    candidates(pool, &nodes.iter().collect::<Vec<_>>()).into_iter().map(ResourceExt::name_any).collect()
}

#[test]
fn one_machine_is_told_and_the_next_only_when_it_is_done() {
    let (old, pool) = (|name| machine(name, "old", "old", STATE_DONE), pool("worker", "worker", "new"));
    assert_eq!(told(&pool, &[old("a"), old("b")]), ["a"]);
    let at_work = machine("a", "old", "new", "Working");
    assert!(told(&pool, &[at_work, old("b")]).is_empty());
    assert_eq!(told(&pool, &[machine("a", "new", "new", STATE_DONE), old("b")]), ["b"]);
}

#[test]
fn cordoned_not_ready_and_failing_machines_use_up_max_unavailable() {
    let (old, pool) = (|name| machine(name, "old", "old", STATE_DONE), pool("worker", "worker", "new"));
    let cordoned = |machine: Value| with(with(machine, "", "spec", json!({})), "/spec", "unschedulable", json!(true));
    let not_ready = with(old("a"), "/status/conditions/0", "status", json!("False"));
    let failing = machine("a", "old", "new", STATE_DEGRADED);
    for (name, away) in [
        ("cordoned", cordoned(old("a"))),
        ("not ready", not_ready),
        ("failing and cordoned", cordoned(failing.clone())),
        ("failing at this configuration", failing),
    ] {
        assert!(told(&pool, &[away, old("b"), old("c")]).is_empty(), "{name}");
    }
}

#[test]
fn max_unavailable_is_a_number_or_a_percentage_and_at_least_one() {
    for (value, machines, want) in [
        (json!(null), 5, 1),
        (json!(2), 5, 2),
        (json!(0), 5, 1),
        (json!("50%"), 5, 2),
        (json!("10%"), 5, 1),
        (json!("100%"), 3, 3),
        (json!(-1), 3, 0),
        (json!("two"), 3, 0),
    ] {
        let mut pool = pool("worker", "worker", "new");
        pool.spec.max_unavailable = serde_json::from_value(value.clone()).expect("values of the test parse");
        assert_eq!(max_unavailable(&pool, machines), want, "{value} of {machines}");
    }
}

#[test]
fn machines_go_by_zone_then_age_and_those_without_a_zone_last() {
    let placed = |name: &str, zone: Option<&str>, minute: u32| {
        let machine = machine(name, "old", "old", STATE_DONE);
        let time = json!(format!("2026-01-01T00:{minute:02}:00Z"));
        let machine = with(machine, "/metadata", "creationTimestamp", time);
        match zone {
            Some(zone) => with(machine, "/metadata/labels", ZONE_LABEL, json!(zone)),
            None => machine,
        }
    };
    let nodes = [
        placed("none", None, 0),
        placed("b-old", Some("b"), 1),
        placed("a-young", Some("a"), 9),
        placed("a-old", Some("a"), 2),
    ];
    let mut pool = pool("worker", "worker", "new");
    pool.spec.max_unavailable = Some(IntOrString::Int(3));
    assert_eq!(told(&pool, &nodes), ["a-old", "a-young", "b-old"]);
}

#[test]
fn a_custom_pool_takes_its_machines_from_worker() {
    let pools = [
        pool("worker", "worker", "w"),
        pool("infra", "infra", "i"),
        pool("master", "master", "m"),
        pool("gpu", "gpu", "g"),
    ];
    let names = |roles: &[&str]| {
        let labels: serde_json::Map<_, _> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
        let node = node(json!({"metadata": {"name": "n", "labels": labels}}));
        pools_of(&node, pools.iter()).into_iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    assert_eq!(names(&["worker"]), ["worker"]);
    assert_eq!(names(&["worker", "infra"]), ["infra", "worker"]);
    assert_eq!(names(&["worker", "master"]), ["master"]);
    assert!(names(&["worker", "infra", "gpu"]).is_empty(), "two custom pools are an error");
    assert!(names(&[]).is_empty());
}

#[test]
fn only_some_changes_of_a_machine_are_news() {
    let before = machine("a", "old", "old", STATE_DONE);
    let news = |after: &Value| is_news(&node(before.clone()), &node(after.clone()));
    assert!(!news(&before));
    assert!(!news(&with(before.clone(), "/metadata/annotations", crate::api::DESIRED_DRAIN, json!("drain-x"))));
    assert!(news(&with(before.clone(), "/metadata/annotations", STATE, json!("Working"))));
    assert!(news(&with(before.clone(), "/metadata/labels", "x", json!("y"))));
    assert!(news(&with(before.clone(), "", "spec", json!({"unschedulable": true}))));
    assert!(!news(&with(before.clone(), "/metadata/annotations", CURRENT_CONFIG, json!(""))), "unmanaged");
}
