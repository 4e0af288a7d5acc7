//! Items from previews: operation, ownership, conflicts, digest.

use profile_sdk::{Body, Draft, Impact};
use serde_json::{Value, json};

use super::*;

const US: &str = "virt-advisor-operator/p";

fn draft(object: Value) -> Draft {
    Draft {
        name: "item",
        body: Body::Ensure(object),
        impact: Impact::Medium,
        wave: 0,
        reason: "does something".into(),
        notes: Vec::new(),
        sensitive: Vec::new(),
    }
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

/// The object as the server returns it, with `fields` of the spec owned by us.
fn served(spec: Value, version: &str, fields: &[&str]) -> Value {
    let mut object = widget(spec);
    let owned: serde_json::Map<_, _> = fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    object["metadata"]["uid"] = json!("uid-1");
    object["metadata"]["resourceVersion"] = json!(version);
    if fields.is_empty() {
        return object;
    }
    object["metadata"]["managedFields"] =
        json!([{"manager": US, "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": owned}}]);
    object
}

fn known(live: Option<Value>, result: Value, conflicts: &[(&str, &str)]) -> Preview {
    let conflicts = conflicts.iter().map(|(field, manager)| ((*field).into(), (*manager).into())).collect();
    Preview::Known { live, result, conflicts }
}

fn planned(live: Option<Value>, result: Value) -> PlanItem {
    compose(&draft(widget(json!({"a": 1}))), US, known(live, result, &[]), Effect::default(), None)
}

#[test]
fn the_operation_is_decided_on_data() {
    let result = served(json!({"a": 1}), "2", &["a"]);
    assert_eq!(planned(None, result.clone()).operation, Operation::Create);
    assert_eq!(planned(Some(served(json!({"a": 2}), "1", &[])), result.clone()).operation, Operation::Update);
    let same = planned(Some(served(json!({"a": 1}), "1", &[])), result);
    assert_eq!((same.operation, same.severity, same.diff.as_str()), (Operation::NoChange, Severity::Low, ""));
    assert!(same.applied.is_some());
}

#[test]
fn the_digest_follows_effective_bytes_and_nothing_else() {
    let live = |version: &str| served(json!({"a": 2, "theirs": 1}), version, &[]);
    let result = served(json!({"a": 1, "theirs": 1}), "9", &["a"]);
    let first = planned(Some(live("1")), result.clone()).hash;
    assert_eq!(planned(Some(live("7")), result.clone()).hash, first, "not the version");
    let mut other_field = live("1");
    other_field["spec"]["theirs"] = json!(5);
    let mut other_result = result.clone();
    other_result["spec"]["theirs"] = json!(5);
    assert_eq!(planned(Some(other_field), other_result).hash, first, "not what others own");
    let mut moved = live("1");
    moved["spec"]["a"] = json!(3);
    assert_ne!(planned(Some(moved), result.clone()).hash, first, "the live value of an owned field");
    let mut replaced = live("1");
    replaced["metadata"]["uid"] = json!("uid-2");
    assert_ne!(planned(Some(replaced), result.clone()).hash, first, "another object");
    let forced = known(Some(live("1")), result.clone(), &[(".spec.a", "them")]);
    let forced = compose(&draft(widget(json!({"a": 1}))), US, forced, Effect::default(), None);
    assert_ne!(forced.hash, first, "a field that is taken over");
    let reboot = |pool: &str, machines| {
        let preview = known(Some(live("1")), served(json!({"a": 1, "theirs": 1}), "9", &["a"]), &[]);
        let effect = Effect { pools: [(pool.to_owned(), machines)].into(), notes: Vec::new() };
        compose(&draft(widget(json!({"a": 1}))), US, preview, effect, None).hash
    };
    assert_ne!(reboot("worker", 3), first, "a pool that reboots");
    assert_ne!(reboot("worker", 3), reboot("infra", 3), "which pool");
    assert_eq!(reboot("worker", 3), reboot("worker", 4), "not how many machines it has");
}

#[test]
fn conflicts_come_in_a_stable_order_with_both_values() {
    let live = served(json!({"a": 2, "b": 2}), "1", &[]);
    let result = served(json!({"a": 1, "b": 1}), "1", &["a", "b"]);
    let preview = known(Some(live), result, &[(".spec.b", "z"), (".spec.a", "y")]);
    let item = compose(&draft(widget(json!({"a": 1, "b": 1}))), US, preview, Effect::default(), None);
    let conflicts: Vec<_> = item
        .conflicts
        .iter()
        .map(|c| (c.path.as_str(), c.manager.as_str(), c.live.clone(), c.desired.clone()))
        .collect();
    assert_eq!(
        conflicts,
        [("/spec/a", "y", Some(json!(2)), Some(json!(1))), ("/spec/b", "z", Some(json!(2)), Some(json!(1)))]
    );
    assert!(item.needs_review());
    assert!(item.message.contains("Takes 2 fields over from y, z."), "{}", item.message);
}

#[test]
fn what_moved_names_path_values_and_manager() {
    let before = served(json!({"a": 1}), "1", &["a"]);
    let applied = applied_view(&before, &fields::applied_by(&before, US)).unwrap();
    let mut live = served(json!({"a": 5}), "2", &[]);
    live["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit", "operation": "Update", "time": "2026-02-02T00:00:00Z",
        "fieldsV1": {"f:spec": {"f:a": {}}}}]);
    let plain = |object: &Value| object.clone();
    let moved = moved(&applied, Some(&live), &before, &fields::applied_by(&before, US), &plain);
    assert_eq!(moved[0].text, "/spec/a is 5 instead of 1, changed by kubectl-edit at 2026-02-02T00:00:00Z");
    assert!(super::moved(&applied, Some(&before), &before, &[], &plain).is_empty());
    assert!(super::moved(&applied, None, &before, &[], &plain)[0].text.contains("deleted"));
}

#[test]
fn entries_that_an_atomic_list_loses_are_named() {
    let live = served(json!({"list": ["ours", "theirs"]}), "1", &[]);
    let result = served(json!({"list": ["ours"]}), "1", &["list"]);
    let item =
        compose(&draft(widget(json!({"list": ["ours"]}))), US, known(Some(live), result, &[]), Effect::default(), None);
    assert_eq!(item.lost, ["/spec/list: \"theirs\""]);
    assert!(item.needs_review());

    // What we put there ourselves is nobody else's, until somebody else claims the list too.
    let mut live = served(json!({"list": ["ours", "ours of before"]}), "1", &["list"]);
    let result = served(json!({"list": ["ours"]}), "1", &["list"]);
    let plan = |live: &Value| {
        let preview = known(Some(live.clone()), result.clone(), &[]);
        compose(&draft(widget(json!({"list": ["ours"]}))), US, preview, Effect::default(), None)
    };
    assert!(plan(&live).lost.is_empty());
    let theirs = json!({"manager": "them", "operation": "Apply", "fieldsV1": {"f:spec": {"f:list": {}}}});
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(theirs);
    assert_eq!(plan(&live).lost, ["/spec/list: \"ours of before\""]);
}

#[test]
fn a_long_diff_is_cut_at_a_line_with_the_counts() {
    let text = "one\ntwo\nthree\n";
    assert_eq!(cut(text, 100), (text.to_owned(), None));
    assert_eq!(cut(text, 9), ("one\ntwo\n".to_owned(), Some(Truncated { shown: 2, total: 3 })));
}
