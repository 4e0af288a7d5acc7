//! What is hidden and what is not: in objects, and in everything that an item shows.

use std::sync::Arc;

use profile_sdk::{Body, Draft};
use serde_json::json;

use super::*;
use crate::plan::items::drift;
use crate::plan::items::from_preview::compose;
use crate::plan::items::{Effect, LiveObject, PlanItem, Preview, Review};
use object::fields;

fn secret(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "data": data})
}

#[test]
fn x3_a_changed_secret_is_visible_as_changed_and_nothing_more() {
    let (old, new) = (
        secret(json!({"same": "YQ==", "changed": "b25l", "gone": "Yg=="})),
        secret(json!({"same": "YQ==", "changed": "dHdv", "new": "Yw=="})),
    );
    let redactor = Redactor::new(&[], &[&old, &new]);
    assert_eq!(
        redactor.show(&old)["data"],
        json!({"changed": "(hidden 1)", "gone": "(hidden 2)", "same": "(hidden 3)"})
    );
    assert_eq!(
        redactor.show(&new)["data"],
        json!({"changed": "(hidden 4)", "new": "(hidden 5)", "same": "(hidden 3)"})
    );
    assert_eq!(redactor.show(&secret(json!({"other": "eA=="})))["data"]["other"], "(hidden)");
}

#[test]
fn x3_two_values_that_change_places_are_visible() {
    let (old, new) = (secret(json!({"a": "MQ==", "b": "Mg=="})), secret(json!({"a": "Mg==", "b": "MQ=="})));
    let redactor = Redactor::new(&[], &[&old, &new]);
    assert_ne!(redactor.show(&old), redactor.show(&new));
}

#[test]
fn sensitive_paths_of_any_kind_are_hidden() {
    let object = json!({"kind": "Widget", "spec": {"password": "p", "size": 1, "peers": [{"key": "k"}]}});
    let sensitive = ["/spec/password".into(), "/spec/peers/*/key".into(), "/spec/peers".into(), "/spec/absent".into()];
    let shown = Redactor::new(&[&sensitive[..2], &sensitive[3..]].concat(), &[&object]).show(&object);
    assert_eq!(shown["spec"], json!({"password": "(hidden 1)", "size": 1, "peers": [{"key": "(hidden 2)"}]}));
    let redactor = Redactor::new(&sensitive, &[&object]);
    assert_eq!(redactor.show(&object)["spec"]["peers"], "(hidden 2)");
    assert_eq!(redactor.places(&object, None).len(), 2, "what is below another one is not counted");
}

fn machine_config(config: Value) -> Value {
    let mut config = config;
    config["ignition"] = json!({"version": "3.5.0"});
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "spec": {"config": config}})
}

fn file(mode: u32) -> Value {
    json!({"path": "/etc/f", "mode": mode, "contents": {"source": "data:,canary"}})
}

/// defect D76: everybody who may read the plan was shown what was in an object before.
#[test]
fn what_a_machine_lets_only_the_owner_read_is_not_shown() {
    let files = |file: Value| machine_config(json!({"storage": {"files": [file]}}));
    let users = json!([{"name": "core", "passwordHash": "canary"}]);
    let object = machine_config(json!({"storage": {"files": [file(0o600), file(0o400)]}, "passwd": {"users": users}}));
    assert!(!Redactor::new(&[], &[&object]).show(&object).to_string().contains("canary"));
    // A file that is private in one of the states is hidden in both: a plan must not reveal what it
    // would make readable.
    let (before, after) = (files(file(0o600)), files(file(0o644)));
    let redactor = Redactor::new(&[], &[&before, &after]);
    assert!(!redactor.show(&after).to_string().contains("canary"));
    // Even if only one of the states has a header.
    let mut headless = files(file(0o600));
    headless["spec"]["config"].as_object_mut().unwrap().remove("ignition");
    let redactor = Redactor::new(&[], &[&before, &headless]);
    assert!(!redactor.show(&headless).to_string().contains("canary"));
    let luks = json!([{"keyFile": {"source": "data:,canary"}}]);
    let appended = json!({"path": "/f", "mode": 0o600, "append": [{"source": "data:,canary"}]});
    let more = machine_config(json!({"storage": {"files": [appended], "luks": luks}}));
    assert!(!Redactor::new(&[], &[&more]).show(&more).to_string().contains("canary"));
    assert!(hides_something(&more));
    let public = files(file(0o644));
    assert!(Redactor::new(&[], &[&public]).show(&public).to_string().contains("canary"));
}

#[test]
fn t11_nothing_is_hidden_because_of_its_name() {
    let annotations = json!({"keyFile": "read", "password": "this"});
    for (api_version, kind) in [("v1", "ConfigMap"), ("example.dev/v1", "Secret"), ("v1", "Pod")] {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"annotations": annotations},
            "data": {"password": "p", "passwordHash": "h", "keyFile": {"source": "data:,k"}}, "files": [file(0o600)]});
        assert_eq!(Redactor::new(&[], &[&object]).show(&object).as_ref(), &object);
        assert!(!hides_something(&object));
    }
    let mut machines = machine_config(json!({"passwd": {"users": [{"name": "core", "passwordHash": "canary"}]}}));
    machines["metadata"]["annotations"] = annotations.clone();
    let shown = Redactor::new(&[], &[&machines]).show(&machines);
    assert_eq!(shown["metadata"]["annotations"], annotations);
    assert_eq!(shown["spec"]["config"]["passwd"]["users"][0]["passwordHash"], "(hidden 1)");
}

#[test]
fn t11_hidden_places_are_counted_once_wherever_they_are_in_a_list() {
    let users = |names: &[&str], hash: &str| {
        let users: Vec<_> = names.iter().map(|name| json!({"name": name, "passwordHash": hash})).collect();
        machine_config(json!({"passwd": {"users": users}}))
    };
    let (before, after) = (users(&["a"], "one"), users(&["b", "a"], "two"));
    let redactor = Redactor::new(&[], &[&before, &after]);
    let all: BTreeSet<_> = [&before, &after].into_iter().flat_map(|object| redactor.places(object, None)).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(redactor.places(&before, Some(&numbers("-  x: (hidden 2)\n(hidden x) (hidden"))).len(), 0);
    assert_eq!(redactor.places(&after, Some(&numbers("-  x: (hidden 2)"))).len(), 2);
}

#[test]
fn t10_of_a_document_nothing_is_shown() {
    static DOCUMENTED: Document = Document { field: "/data/config.yaml", settings: "a: 1\n" };
    let object = json!({"kind": "ConfigMap", "data": {"config.yaml": "pw: canary\n", "more": "text"}});
    let redactor = Redactor::new(&[], &[&object]).closing(Some(&DOCUMENTED));
    let shown = redactor.show(&object);
    assert_eq!(shown["data"], json!({"config.yaml": DOCUMENT, "more": "text"}));
    assert!(is_hidden(&shown) && redactor.show_with_document(&object).as_ref() == &object);
    assert_eq!(redactor.show(&json!({"data": {}})).into_owned(), json!({"data": {}}));
}

const US: &str = "virt-advisor-operator/p";
static DOCUMENTED: Document = Document { field: "/data/config.yaml", settings: "ours:\n  size: 1\n" };

/// The document as the server has it, last written by `manager`.
fn documented(text: &str, manager: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1", "managedFields": [
        {"manager": manager, "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {"f:config.yaml": {}}}}]},
        "data": {"config.yaml": text}})
}

fn draft() -> Draft {
    let desired = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
        "data": {"config.yaml": DOCUMENTED.settings}});
    Draft::new("item", Body::Ensure(desired), "is wanted")
}

/// The item of applying `result` over `live`, whose document somebody else owns.
fn taken_over(live: &Value, result: &Value, remembered: Option<&crate::api::Item>) -> PlanItem {
    let desired = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": result["data"]});
    let path = fields::from_cause(".data.config.yaml", &[fields::Lookup::of(live), fields::Lookup::of(result)]);
    let preview = Preview::Known {
        adjusted: desired.into(),
        live: Some(Arc::new(live.clone())),
        result: result.clone(),
        conflicts: vec![(path, "them".to_owned())],
    };
    compose(&draft(), Some(&DOCUMENTED), US, preview, Effect::default(), remembered)
}

/// Everything that is shown of an item, or reported about it later.
fn all_of(item: &PlanItem) -> String {
    let Review { diff, shown, message, conflicts, lost, kept, overrides, .. } = &item.review;
    let LiveObject { moved, glimpses, changed_since_shown: since, .. } = &item.live;
    format!("{diff} {shown} {message} {conflicts:?} {lost:?} {kept:?} {overrides:?} {moved:?} {glimpses:?} {since:?}")
}

#[test]
fn t10_of_a_document_that_others_keep_only_the_lines_that_change_are_shown() {
    let theirs = "password: canary\nours:\n  # canary\n  size: 2\n  more: canary\n";
    let live = documented(theirs, "them");
    let result = documented(&theirs.replace("size: 2", "size: 1"), US);
    let item = taken_over(&live, &result, None);
    assert!(!all_of(&item).contains("canary"), "{}", all_of(&item));
    assert_eq!(
        item.review.diff,
        "--- live/ConfigMap n/c\n+++ planned/ConfigMap n/c\n@@ -7 +7 @@\n-      size: 2\n+      size: 1\n"
    );
    let conflict = &item.review.conflicts[0];
    assert_eq!((conflict.live.as_ref(), conflict.desired.as_ref()), (Some(&json!(DOCUMENT)), Some(&json!(DOCUMENT))));
    assert!(
        item.review.message.contains("Only the changed lines of /data/config.yaml are shown"),
        "{}",
        item.review.message
    );
    assert!(item.review.desired.to_string().contains("canary"), "what is sent is the real thing");
}

#[test]
fn t10_drift_of_a_document_is_told_without_its_text() {
    let applied = documented("password: canary\nours:\n  size: 1\n", US);
    let settled = taken_over(&applied, &applied, None);
    assert!(!all_of(&settled).contains("canary"), "{}", all_of(&settled));
    let owned = fields::applied_by(&applied, US);
    let lens = drift::Lens { desired: &settled.review.desired, quantities: &[], hides_paths: false };
    let memory = drift::applied_view(&applied, &owned, lens).unwrap();
    let mut edited = documented("password: canary\nours:\n  size: 5\n", "kubectl-edit");
    edited["metadata"]["managedFields"][0]["time"] = json!("2026-01-02T00:00:00Z");
    let redactor = Redactor::new(&[], &[&edited, &applied]).closing(Some(&DOCUMENTED));
    let moved = drift::moved_since(&memory, Some(&edited), &applied, &owned, lens, &redactor);
    assert_eq!(
        moved[0].text,
        "/data/config.yaml differs from what was applied, changed by field manager kubectl-edit at 2026-01-02T00:00:00Z"
    );
    let drifted = taken_over(&edited, &applied, None);
    assert!(!all_of(&drifted).contains("canary"), "{}", all_of(&drifted));
    // A change of the document between two plans is reported by who wrote it.
    let between = drift::between(&settled.live.glimpses, &drift::glimpses(&edited, &owned, false, &redactor));
    assert_eq!(
        between,
        ["/data/config.yaml was rewritten, changed by field manager kubectl-edit at 2026-01-02T00:00:00Z"]
    );
    assert!(drift::between(&settled.live.glimpses, &settled.live.glimpses).is_empty());
    let unmoved = crate::plan::items::from_preview::unmoved(&draft(), Some(&DOCUMENTED), &settled, &applied).unwrap();
    assert!(!all_of(&unmoved).contains("canary"), "{}", all_of(&unmoved));
}

#[test]
fn t10_a_removal_from_a_document_shows_its_own_lines() {
    let live = documented("password: canary\nours:\n  size: 1\n", US);
    let left = documented("password: canary\n", US);
    let Body::Ensure(desired) = draft().body else { panic!("a draft of an object") };
    let target = profile_sdk::ObjectRef {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("n".into()),
        name: "c".into(),
    };
    let draft = Draft::new("item", Body::Remove(target), "is not wanted any more");
    let preview = Preview::Removal {
        live: Some(Arc::new(live)),
        result: Some(left),
        leaves: Some(desired),
        stays_for: Vec::new(),
    };
    let item = compose(&draft, Some(&DOCUMENTED), US, preview, Effect::default(), None);
    assert!(!all_of(&item).contains("canary"), "{}", all_of(&item));
    assert!(item.review.diff.contains("ours:") && item.review.diff.contains("size: 1"), "{}", item.review.diff);
}

fn planned(draft: &Draft, live: Option<&Value>, desired: &Value) -> PlanItem {
    let result = desired.clone();
    let preview = Preview::Known {
        adjusted: result.clone().into(),
        live: live.cloned().map(Arc::new),
        result,
        conflicts: Vec::new(),
    };
    compose(draft, None, US, preview, Effect::default(), None)
}

#[test]
fn t11_what_an_override_sets_is_read_in_the_clear() {
    let mut live = documented("a: 1\n", US);
    let draft = Draft::new("item", Body::Ensure(live.clone()), "is wanted");
    live["data"]["password"] = json!("hunter2");
    let mut desired = live.clone();
    desired["data"]["password"] = json!("hunter3");
    desired["metadata"]["annotations"] = json!({"keyFile": "/etc/key"});
    let item = planned(&draft, Some(&live), &desired);
    for line in ["-  password: hunter2\n", "+  password: hunter3\n", "+    keyFile: /etc/key\n"] {
        assert!(item.review.diff.contains(line), "{line}: {}", item.review.diff);
    }
    assert_eq!(item.review.shown["data"]["password"], "hunter3");
    assert!(!item.review.message.contains("secret"), "{}", item.review.message);
}

#[test]
fn t11_how_many_values_are_hidden_is_said() {
    let config = |hash: &str| {
        let files: Vec<_> = (0..20).map(|number| json!({"path": format!("/f{number}"), "mode": 0o600, "contents": {"source": format!("data:,{number}")}})).collect();
        machine_config(
            json!({"passwd": {"users": [{"name": "core", "passwordHash": hash}]}, "storage": {"files": files}}),
        )
    };
    let live = config("one");
    let draft = Draft::new("item", Body::Ensure(json!({})), "is wanted");
    let changed = planned(&draft, Some(&live), &config("two"));
    assert!(changed.review.diff.contains("passwordHash: (hidden "), "{}", changed.review.diff);
    assert!(changed.review.message.ends_with(" 21 secret values are not shown."), "{}", changed.review.message);
    // Secrets that appear in nothing that is shown are not counted: the desired object is too large
    // here.
    let mut large = config("two");
    large["spec"]["config"]["systemd"] = json!("x".repeat(10_000));
    let item = planned(&draft, Some(&live), &large);
    assert!(
        item.review.shown.is_null() && item.review.message.ends_with(" 3 secret values are not shown."),
        "{}",
        item.review.message
    );
    let open = planned(&draft, None, &json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "(hidden 1)"}}));
    assert!(!open.review.message.contains("secret"), "{}", open.review.message);
}
