//! Items from previews: operation, ownership, conflicts, what is reviewed.

use std::sync::Arc;

use profile_sdk::ObjectRef;
use serde_json::{Map, Value, json};

use super::*;
use crate::plan::items::one_by_one;

pub(super) const US: &str = "virt-advisor-operator/p";

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

pub(super) fn draft(spec: Value) -> Draft {
    Draft { impact: Impact::Medium, ..Draft::new("item", Body::Ensure(widget(spec)), "does something") }
}

/// An entry of managedFields that owns fields of the spec.
pub(super) fn entry(manager: &str, operation: &str, fields: &[&str]) -> Value {
    let owned: Map<_, _> = fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": owned}})
}

/// The object as the server returns it.
pub(super) fn served(spec: Value, version: &str, entries: &[Value]) -> Value {
    let mut object = widget(spec);
    object["metadata"]["uid"] = json!("uid-1");
    object["metadata"]["resourceVersion"] = json!(version);
    object["metadata"]["managedFields"] = json!(entries);
    object
}

/// The object with `fields` of the spec owned by us.
fn ours(spec: Value, fields: &[&str]) -> Value {
    served(spec, "1", &[entry(US, "Apply", fields)])
}

pub(super) struct World {
    pub(super) draft: Draft,
    pub(super) live: Option<Value>,
    pub(super) result: Value,
    pub(super) conflicts: Vec<(String, String)>,
    pub(super) effect: Effect,
}

impl World {
    /// `a` is desired to be 1 and is 2, and somebody owns `theirs`.
    fn new() -> Self {
        Self {
            draft: draft(json!({"a": 1})),
            live: Some(served(json!({"a": 2, "theirs": 1}), "1", &[entry("them", "Update", &["a", "theirs"])])),
            result: ours(json!({"a": 1, "theirs": 1}), &["a"]),
            conflicts: Vec::new(),
            effect: Effect::default(),
        }
    }

    pub(super) fn item(&self) -> PlanItem {
        let Body::Ensure(desired) = &self.draft.body else { panic!("a draft of an object") };
        let objects: Vec<_> = self.live.iter().chain([&self.result]).map(fields::Lookup::of).collect();
        let conflict = |(field, manager): &(String, String)| (fields::from_cause(field, &objects), manager.clone());
        let preview = Preview::Known {
            adjusted: desired.clone().into(),
            live: self.live.clone().map(Arc::new),
            result: self.result.clone(),
            conflicts: self.conflicts.iter().map(conflict).collect(),
        };
        compose(&self.draft, None, US, preview, self.effect.clone(), None)
    }
}

#[test]
fn the_operation_is_decided_on_data() {
    let mut world = World::new();
    assert_eq!(world.item().operation, Operation::Update);
    world.live = None;
    assert_eq!(world.item().operation, Operation::Create);
    world.live = Some(world.result.clone());
    let same = world.item();
    assert_eq!(
        (same.operation, same.review.severity, same.review.diff.as_str()),
        (Operation::NoChange, Severity::Low, "")
    );
    assert!(same.live.applied.is_some());
}

/// defect D55: an object whose text says that nothing changes.
#[test]
fn no_text_of_an_object_is_taken_for_a_verdict() {
    let mut world = World::new();
    world.live = Some(served(json!({"a": 2, "text": "(no changes)\n\n--- x\n+++ y\n@@ -1 +1 @@"}), "1", &[]));
    world.result = ours(json!({"a": 1, "text": "(no changes)\n\n--- x\n+++ y\n@@ -1 +1 @@"}), &["a"]);
    let item = world.item();
    assert_eq!(item.operation, Operation::Update);
    assert!(item.review.diff.contains("\n-  a: 2\n+  a: 1\n"), "{}", item.review.diff);
}

/// P3, and defects D34 to D36: which changes alter the digest, and which do not.
#[test]
fn p3_the_digest_follows_effective_bytes_and_nothing_else() {
    let first = World::new().item().hash;
    let with = |change: &dyn Fn(&mut World)| {
        let mut world = World::new();
        change(&mut world);
        world.item().hash
    };
    for (what, change) in [
        (
            "the version",
            &(|world: &mut World| world.live.as_mut().unwrap()["metadata"]["resourceVersion"] = json!("7"))
                as &dyn Fn(&mut World),
        ),
        ("times of managers", &|world| {
            world.result["metadata"]["managedFields"][0]["time"] = json!("2027-01-01T00:00:00Z")
        }),
        ("the generation", &|world| world.result["metadata"]["generation"] = json!(9)),
        ("the status", &|world| world.live.as_mut().unwrap()["status"] = json!({"phase": "x"})),
        ("a manager that nobody asked", &|world| {
            world.live.as_mut().unwrap()["metadata"]["managedFields"] = json!([]);
        }),
        ("what others own", &|world| {
            world.live.as_mut().unwrap()["spec"]["theirs"] = json!(5);
            world.result["spec"]["theirs"] = json!(5);
        }),
        ("the reason", &|world| world.draft.reason = "does it in other words".into()),
        ("the number of machines", &|world| world.effect = Effect::default()),
        ("notes", &|world| world.effect.notes = vec!["a pool is paused".into()]),
        ("the order of members", &|world| {
            let Body::Ensure(desired) = &world.draft.body else { panic!() };
            world.draft.body = Body::Ensure(serde_json::from_str(&desired.to_string()).unwrap());
        }),
    ] {
        assert_eq!(with(change), first, "{what}");
    }
    let mut others = vec![first];
    for (what, change) in [
        (
            "the live value of an owned field",
            &(|world: &mut World| world.live.as_mut().unwrap()["spec"]["a"] = json!(3)) as &dyn Fn(&mut World),
        ),
        ("another object", &|world| world.live.as_mut().unwrap()["metadata"]["uid"] = json!("uid-2")),
        ("what is wanted", &|world| world.draft.body = Body::Ensure(widget(json!({"a": 1, "b": 1})))),
        ("what admission makes of it", &|world| world.result["spec"]["a"] = json!(4)),
        ("what admission adds", &|world| world.result["metadata"]["labels"] = json!({"added": "by policy"})),
        ("a field that is taken over", &|world| world.conflicts = vec![(".spec.a".into(), "them".into())]),
        ("from somebody else", &|world| world.conflicts = vec![(".spec.a".into(), "others".into())]),
        ("a pool that reboots", &|world| world.effect.pools = one_by_one(&[("worker", 3)])),
        ("another pool", &|world| world.effect.pools = one_by_one(&[("infra", 3)])),
        ("that it is new", &|world| world.live = None),
        ("that it is done", &|world| world.live = Some(world.result.clone())),
    ] {
        let hash = with(change);
        assert!(!others.contains(&hash), "{what}");
        others.push(hash);
    }
    let machines = |count| with(&|world| world.effect.pools = one_by_one(&[("worker", count)]));
    assert_eq!(machines(3), machines(4), "not how many machines a pool has");
}

#[test]
fn conflicts_come_in_a_stable_order_with_both_values() {
    let mut world = World::new();
    world.draft = draft(json!({"a": 1, "b": 1}));
    world.live = Some(served(json!({"a": 2, "b": 2}), "1", &[entry("argocd-controller", "Apply", &["b"])]));
    world.result = ours(json!({"a": 1, "b": 1}), &["a", "b"]);
    world.conflicts = vec![(".spec.b".into(), "argocd-controller".into()), (".spec.a".into(), "kubectl-edit".into())];
    let item = world.item();
    let conflicts: Vec<_> = item
        .review
        .conflicts
        .iter()
        .map(|c| (c.path.as_str(), c.manager.as_str(), c.live.clone(), c.desired.clone(), c.controller))
        .collect();
    assert_eq!(
        conflicts,
        [
            ("/spec/a", "kubectl-edit", Some(json!(2)), Some(json!(1)), false),
            ("/spec/b", "argocd-controller", Some(json!(2)), Some(json!(1)), true)
        ]
    );
    assert!(item.needs_review());
    assert!(
        item.review.message.contains("Takes 2 fields over from argocd-controller, kubectl-edit."),
        "{}",
        item.review.message
    );
    assert!(item.review.message.contains("argocd-controller looks like a controller"), "{}", item.review.message);
}

/// Entries that others put into a list of which one entry is ours: their edits do not alter the
/// digest, but what the server does to them does.
#[test]
fn entries_of_others_beside_ours_move_the_digest_only_if_the_apply_changes_them() {
    let owned = json!({"f:spec": {"f:list": {"k:{\"name\":\"ours\"}": {"f:name": {}, "f:size": {}}}}});
    let us = json!({"manager": US, "operation": "Apply", "fieldsV1": owned});
    let plan = |before: &[Value], after: &[Value]| {
        let list = |foreign: &[Value], size: i32| {
            let ours = json!({"name": "ours", "size": size});
            json!({"list": foreign.iter().cloned().chain([ours]).collect::<Vec<_>>()})
        };
        let mut world = World::new();
        world.draft = draft(json!({"list": [{"name": "ours", "size": 2}]}));
        world.live = Some(served(list(before, 1), "1", &[]));
        world.result = served(list(after, 2), "1", std::slice::from_ref(&us));
        world.conflicts = vec![(".spec.list[name=\"ours\"].size".into(), "them".into())];
        world.item()
    };
    let theirs = |name: &str| json!({"name": name});
    let alone = plan(&[], &[]);
    let beside = plan(&[theirs("a")], &[theirs("a")]);
    assert_eq!(
        (alone.review.conflicts[0].path.as_str(), beside.review.conflicts[0].path.as_str()),
        ("/spec/list/0/size", "/spec/list/1/size")
    );
    assert_eq!(alone.hash, beside.hash, "an index is no part of what is reviewed");
    assert_ne!(plan(&[], &[theirs("by admission")]).hash, alone.hash, "what admission adds is");
    assert_ne!(plan(&[theirs("a")], &[]).hash, alone.hash, "and what it takes");
}

#[test]
fn paths_of_hidden_lists_name_no_values() {
    let mut world = World::new();
    world.draft = Draft { sensitive: vec!["/spec/tokens/*".into()], ..draft(json!({"tokens": ["hunter2"]})) };
    let owned = json!({"f:spec": {"f:tokens": {"v:\"hunter2\"": {}}}});
    let us = json!({"manager": US, "operation": "Apply", "fieldsV1": owned});
    world.result = served(json!({"tokens": ["hunter2"]}), "1", std::slice::from_ref(&us));
    world.live = Some(world.result.clone());
    let settled = world.item();
    let applied = settled.live.applied.unwrap();
    assert!(applied.paths.is_empty() && applied.paths_hash.is_some(), "{applied:?}");
    // Somebody removes it.
    world.live = Some(served(json!({"tokens": []}), "2", &[]));
    world.conflicts = vec![(".spec.tokens[=\"hunter2\"]".into(), "them".into())];
    let item = world.item();
    let lens = Lens { desired: &widget(json!({})), quantities: &[], hides_paths: true };
    let redactor = Redactor::new(&["/spec/tokens/*".into()], &[&world.result]);
    let moved = drift::moved_since(&applied, world.live.as_ref(), &world.result, &item.fields.owned, lens, &redactor);
    assert_eq!(moved.len(), 1);
    let said = format!("{} {} {:?} {moved:?}", item.review.message, item.review.diff, item.review.conflicts);
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn what_moved_names_path_values_and_manager() {
    let before = ours(json!({"a": 1}), &["a"]);
    let owned = fields::applied_by(&before, US);
    let desired = widget(json!({"a": 1}));
    let lens = Lens { desired: &desired, quantities: &[], hides_paths: false };
    let mut applied = applied_view(&before, &owned, lens).unwrap();
    let live = served(json!({"a": 5}), "2", &[entry("kubectl-edit", "Update", &["a"])]);
    let redactor = Redactor::new(&[], &[]);
    let since = |applied: &_, live: Option<&Value>| drift::moved_since(applied, live, &before, &owned, lens, &redactor);
    let says = "/spec/a is 5 instead of 1, changed by field manager kubectl-edit at 2026-01-01T00:00:00Z";
    assert_eq!(since(&applied, Some(&live))[0].text, says);
    let other = drift::moved_since(&applied, Some(&live), &ours(json!({"a": 7}), &["a"]), &owned, lens, &redactor);
    let neither = "/spec/a is 5, last written by field manager kubectl-edit at 2026-01-01T00:00:00Z, and becomes 7 under this plan";
    assert_eq!(other[0].text, neither, "nobody moved it away from what was never applied");
    assert!(since(&applied, Some(&before)).is_empty());
    assert!(since(&applied, None)[0].text.contains("deleted"));
    drift::without_paths(&mut applied);
    assert_eq!(since(&applied, Some(&live))[0].text, says, "also where the paths were left out");
    assert!(since(&applied, Some(&before)).is_empty());
    let other = drift::moved_since(&applied, Some(&live), &before, &[], lens, &redactor);
    assert!(other.is_empty(), "another set of fields is no drift");
}

/// S6: drift is a change of an amount, not of its spelling.
#[test]
fn s6_another_spelling_of_a_quantity_is_no_drift() {
    let quantities = vec!["/spec/memory".to_owned()];
    let (before, live) = (ours(json!({"memory": "1024Mi"}), &["memory"]), ours(json!({"memory": "1Gi"}), &["memory"]));
    let owned = fields::applied_by(&before, US);
    let desired = widget(json!({"memory": "1024Mi"}));
    let lens = Lens { desired: &desired, quantities: &quantities, hides_paths: false };
    let applied = applied_view(&before, &owned, lens).unwrap();
    let redactor = Redactor::new(&[], &[]);
    assert!(drift::moved_since(&applied, Some(&live), &live, &owned, lens, &redactor).is_empty());
    let live = ours(json!({"memory": "1G"}), &["memory"]);
    assert_eq!(drift::moved_since(&applied, Some(&live), &before, &owned, lens, &redactor).len(), 1);
}

/// Only the existence of a map that is desired empty is ours: what others put into it alters
/// nothing.
#[test]
fn what_others_put_into_a_map_that_is_wanted_empty_is_theirs() {
    let plan = |inside: Value| {
        let mut world = World::new();
        world.draft = draft(json!({"map": {}}));
        world.live = Some(ours(json!({"map": inside}), &["map"]));
        world.result = world.live.clone().unwrap();
        world.item()
    };
    let (empty, filled) = (plan(json!({})), plan(json!({"theirs": 1})));
    assert_eq!(empty.hash, filled.hash);
    assert_eq!(empty.live.applied.unwrap().hash, filled.live.applied.unwrap().hash);
    assert_ne!(plan(json!("no map")).hash, empty.hash);
}

/// S3, defect D39: a list without keys is replaced as a whole, whoever filled it.
#[test]
fn s3_what_an_atomic_list_or_map_loses_is_named() {
    let mut world = World::new();
    world.live = Some(served(json!({"list": ["ours", "theirs", "theirs"], "map": {"x": 1, "y": {"z": 2}}}), "1", &[]));
    world.result = ours(json!({"list": ["ours", "theirs"], "map": {"x": 1}}), &["list", "map"]);
    let item = world.item();
    assert_eq!(item.review.lost, ["/spec/list: \"theirs\"", "/spec/map/y: {\"z\":2}"]);
    assert!(item.needs_review());
    assert!(
        item.review
            .message
            .contains("This removes entries that this configuration does not own alone: /spec/list: \"theirs\""),
        "{}",
        item.review.message
    );

    // Entries that we put there belong to nobody else, until somebody else claims the list too.
    world.live = Some(ours(json!({"list": ["ours", "ours of before"]}), &["list"]));
    world.result = ours(json!({"list": ["ours"]}), &["list"]);
    assert!(world.item().review.lost.is_empty());
    let both = [entry(US, "Apply", &["list"]), entry("them", "Apply", &["list"])];
    world.live = Some(served(json!({"list": ["ours", "ours of before"]}), "1", &both));
    assert_eq!(world.item().review.lost, ["/spec/list: \"ours of before\""]);
}

#[test]
fn an_entry_of_a_map_list_that_changes_is_not_lost() {
    let owned = json!({"f:spec": {"f:list": {"k:{\"name\":\"a\"}": {"f:name": {}, "f:size": {}}}}});
    let mut world = World::new();
    world.live = Some(served(json!({"list": [{"name": "a", "size": 1}, {"name": "b"}]}), "1", &[]));
    let us = json!({"manager": US, "operation": "Apply", "fieldsV1": owned});
    world.result = served(json!({"list": [{"name": "a", "size": 2}, {"name": "b"}]}), "1", &[us]);
    assert!(world.item().review.lost.is_empty());
}

/// Fields that the server adds inside an entry of ours are reviewed by their path, as outside of
/// lists.
#[test]
fn defaults_inside_an_entry_of_ours_move_the_digest() {
    let owned = json!({"f:spec": {"f:list": {"k:{\"name\":\"a\"}": {"f:name": {}, "f:size": {}}}}});
    let us = json!({"manager": US, "operation": "Apply", "fieldsV1": owned});
    let plan = |foreign: &[Value], entry: Value| {
        let list = |entry: Value| json!({"list": foreign.iter().cloned().chain([entry]).collect::<Vec<_>>()});
        let mut world = World::new();
        world.live = Some(served(list(json!({"name": "a", "size": 1})), "1", std::slice::from_ref(&us)));
        world.result = served(list(entry), "1", std::slice::from_ref(&us));
        world.item().hash
    };
    let bare = plan(&[], json!({"name": "a", "size": 2}));
    let defaulted = plan(&[], json!({"name": "a", "size": 2, "policy": {"pull": "Always"}}));
    assert_ne!(bare, defaulted);
    assert_eq!(defaulted, plan(&[], json!({"name": "a", "size": 2, "policy": {"pull": "Never"}})), "no values");
    let theirs = [json!({"name": "b"})];
    assert_eq!(defaulted, plan(&theirs, json!({"name": "a", "size": 2, "policy": {"pull": "Always"}})), "no index");
}

/// S1: an apply never removes what somebody else owns too.
#[test]
fn s1_what_stays_although_it_is_not_wanted_is_said_with_its_owner() {
    let mut world = World::new();
    let theirs = entry("kubectl-client-side-apply", "Update", &["b", "c"]);
    world.live = Some(served(json!({"a": 1, "b": 2, "c": 3}), "1", &[entry(US, "Apply", &["a", "b"]), theirs.clone()]));
    world.result = served(json!({"a": 1, "b": 2, "c": 3}), "1", &[entry(US, "Apply", &["a"]), theirs]);
    world.draft.unwanted = vec!["/spec/c".into(), "/spec/d".into()];
    let item = world.item();
    assert_eq!(item.operation, Operation::NoChange);
    let owns = "kubectl-client-side-apply owns it, and an apply can't remove it";
    assert_eq!(item.review.kept, [format!("/spec/b stays 2: {owns}"), format!("/spec/c stays 3: {owns}")]);
    assert!(item.review.message.contains(&item.review.kept[1]), "{}", item.review.message);
}

/// S19: only the exact name, applied, without subresource, is ours; the name without a profile is
/// that of the Go program.
#[test]
fn s19_only_the_exact_manager_is_ours() {
    let entries = [
        entry("virt-advisor-operator/p-test", "Apply", &["a"]),
        entry(US, "Update", &["b"]),
        json!({"manager": US, "operation": "Apply", "subresource": "status", "fieldsV1": {"f:spec": {"f:c": {}}}}),
        entry("virt-advisor-operator", "Apply", &["d", "e"]),
    ];
    let live = served(json!({"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}), "1", &entries);
    assert!(fields::applied_by(&live, US).is_empty());
    let mut world = World::new();
    world.live = Some(live);
    world.result = ours(json!({"a": 1, "b": 1, "c": 1, "d": 2, "e": 1}), &["d"]);
    world.conflicts = vec![(".spec.d".into(), "virt-advisor-operator".into())];
    let item = world.item();
    assert!(
        item.review.message.contains("(field manager virt-advisor-operator) owns 2 of its fields; 1 of them"),
        "{}",
        item.review.message
    );
    assert_eq!(item.review.conflicts[0].manager, "virt-advisor-operator");
}

/// D40: impact by what changes, not by whether the object exists.
#[test]
fn impact_follows_what_changes() {
    let mut world = World::new();
    world.draft.impact = Impact::Derived;
    assert_eq!(world.item().review.severity, Severity::Medium, "a controller acts on spec");
    world.result = ours(json!({"a": 2, "theirs": 1}), &["a"]);
    world.result["metadata"]["labels"] = json!({"x": "y"});
    assert_eq!(world.item().review.severity, Severity::Low, "nobody acts on a label");
    world.effect.pools = one_by_one(&[("worker", 2)]);
    assert_eq!(world.item().review.severity, Severity::High, "machines reboot");
    world.effect.pools = one_by_one(&[("empty", 0)]);
    world.draft.impact = Impact::Low;
    assert_eq!(world.item().review.severity, Severity::Low);
}

/// Fault R21: below a free-form field another manager took over the leaves of a map that was ours:
/// the rest is theirs and is not reported as ours.
#[test]
fn r21_what_stays_below_a_free_form_field_is_not_said_of_its_parents() {
    let theirs = |fields: Value| json!({"manager": "them", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": fields}});
    let spec = json!({"a": 1, "config": {"ignition": {"version": "3.2.0"}}});
    let mut before = ours(spec.clone(), &["a"]);
    before["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:config"] = json!({"f:ignition": {}});
    for (owned, says) in [
        (json!({"f:config": {"f:ignition": {"f:version": {}}}}), vec![]),
        (
            json!({"f:config": {"f:ignition": {}}}),
            vec!["/spec/config/ignition stays {\"version\":\"3.2.0\"}: them owns it, and an apply can't remove it"],
        ),
    ] {
        let result = served(spec.clone(), "1", &[entry(US, "Apply", &["a"]), theirs(owned)]);
        let preview = Preview::Known {
            adjusted: Adjusted::from(widget(json!({"a": 1}))),
            live: Some(Arc::new(before.clone())),
            result,
            conflicts: Vec::new(),
        };
        let item = compose(&draft(json!({"a": 1})), None, US, preview, Effect::default(), None);
        assert_eq!(item.review.kept, says);
    }
}

fn removal(live: Option<Value>, result: Option<Value>, stays_for: &[&str]) -> PlanItem {
    let target =
        ObjectRef { api_version: "example.dev/v1".into(), kind: "Widget".into(), namespace: None, name: "w".into() };
    let draft = Draft::new("item", Body::Remove(target), "is not wanted any more");
    let stays_for = stays_for.iter().map(|name| (*name).to_owned()).collect();
    compose(
        &draft,
        None,
        US,
        Preview::Removal { live: live.map(Arc::new), result, leaves: None, stays_for },
        Effect::default(),
        None,
    )
}

#[test]
fn a_removal_shows_what_goes_and_what_stays() {
    let live = ours(json!({"a": 1}), &["a"]);
    let goes = removal(Some(live.clone()), None, &[]);
    assert_eq!((goes.operation, goes.review.severity), (Operation::Remove, Severity::Medium));
    assert!(
        goes.review.diff.contains("+++ /dev/null") && goes.review.diff.contains("\n-  a: 1\n"),
        "{}",
        goes.review.diff
    );
    assert!(goes.needs_review() && goes.review.message.contains("The object is deleted"), "{}", goes.review.message);

    let both = served(json!({"a": 1, "b": 2}), "1", &[entry(US, "Apply", &["a"]), entry("them", "Update", &["b"])]);
    let released = served(json!({"b": 2}), "1", &[entry("them", "Update", &["b"])]);
    let stays = removal(Some(both.clone()), Some(released), &["them"]);
    assert_eq!(stays.operation, Operation::Remove);
    assert!(
        stays.review.diff.contains("\n-  a: 1\n")
            && stays.review.message.contains("other field managers own fields of it: them"),
        "{}",
        stays.review.message
    );
    assert_ne!(stays.hash, goes.hash);

    let left_alone = removal(Some(both.clone()), Some(both), &["them"]);
    assert_eq!(left_alone.operation, Operation::NoChange);
    assert_eq!(removal(None, None, &[]).operation, Operation::NoChange);
    let mut dying = live;
    dying["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    dying["metadata"]["finalizers"] = json!(["example.dev/hold"]);
    let dying = removal(Some(dying), None, &[]);
    assert_eq!(dying.operation, Operation::NoChange);
    assert!(dying.live.resource_version.is_some(), "or its end would look like what is known already");
    assert_eq!(removal(None, None, &[]).live.resource_version, None);
    assert!(matches!(dying.live.rollout, Rollout::Waiting { text, .. } if text.contains("example.dev/hold")));
}

#[test]
fn a_deferred_item_shows_all_of_it_and_says_that_nobody_has_previewed_it() {
    let draft = draft(json!({"a": 1}));
    let preview = |after: &str| Preview::Deferred { desired: widget(json!({"a": 1})), after: after.into() };
    let item = compose(&draft, None, US, preview("namespace"), Effect::default(), None);
    assert_eq!(item.operation, Operation::Deferred);
    assert!(item.review.diff.contains("--- /dev/null") && item.review.diff.contains("+  a: 1"), "{}", item.review.diff);
    assert!(
        item.review.message.contains("Not previewed") && item.needs_review() && !item.changes(),
        "{}",
        item.review.message
    );
    assert_ne!(item.hash, compose(&draft, None, US, preview("other"), Effect::default(), None).hash);
}

#[test]
fn the_words_of_a_refusal_are_not_reviewed() {
    let draft = draft(json!({"a": 1}));
    let item = |remedy: &str| compose(&draft, None, US, Preview::refused(remedy), Effect::default(), None);
    assert_eq!(item("one").hash, item("two").hash);
    assert_eq!((item("one").operation, item("one").review.message.as_str()), (Operation::Blocked, "one"));
}

/// Fault T8: each of thousands of list entries is found without examining all the others.
#[test]
fn t8_thousands_of_list_entries_of_ours_are_planned() {
    const ENTRIES: usize = 3_000;
    let list = |size: usize| -> Value {
        (0..ENTRIES).map(|n| json!({"name": format!("entry-{n}"), "size": size, "mode": "a", "zone": n % 3})).collect()
    };
    let fields: Map<_, _> = (0..ENTRIES)
        .map(|n| (format!("k:{{\"name\":\"entry-{n}\"}}"), json!({".": {}, "f:name": {}, "f:size": {}, "f:mode": {}})))
        .collect();
    let with = |manager: &str, size: usize| {
        let mut entry = entry(manager, "Apply", &[]);
        entry["fieldsV1"] = json!({"f:spec": {"f:list": fields.clone()}});
        served(json!({"list": list(size)}), "1", &[entry])
    };
    let mut world = World::new();
    world.draft = draft(json!({"list": list(1)}));
    world.live = Some(with("them", 2));
    world.result = with(US, 1);
    world.conflicts =
        (0..ENTRIES).map(|n| (format!(".spec.list[name=\"entry-{n}\"].size"), "them".to_owned())).collect();
    let item = world.item();
    assert_eq!((item.review.conflicts.len(), item.fields.owned.len()), (ENTRIES, 3 * ENTRIES));
    assert_eq!(item.review.conflicts[7].live, Some(json!(2)));
}
