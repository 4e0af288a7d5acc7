//! The effect of annotations, spec and the list of excluded objects on one object.

use profile_sdk::{Access, Body, Declared, Draft, Kind, ObjectRef, is_powerful};
use serde_json::{Value, json};

use super::*;
use crate::plan::remedy::Remedy;

const US: &str = "virt-advisor-operator/test";

fn desired() -> Value {
    json!({
        "apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a/b": "1", "c,d": "2"}},
        "spec": {"size": 1, "list": [1, 2], "deep": {"only": true}},
    })
}

/// A live object with these annotations, in which we own the fields `ours`.
fn live(annotations: Value, ours: Value) -> Value {
    let mut object = desired();
    object["metadata"]["annotations"] = annotations;
    object["metadata"]["managedFields"] = json!([
        {"manager": US, "operation": "Apply", "apiVersion": "example.dev/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": ours},
    ]);
    object
}

fn adjusted(live: &Value) -> Result<Adjusted, Remedy> {
    Overrides::of(Some(live), &[])?.adjust(&desired(), Some(live), US, is_powerful("example.dev", "Widget"))
}

fn with(name: &str, value: &str) -> Value {
    live(json!({name: value}), json!({}))
}

#[test]
fn a_patch_changes_what_the_profile_wants_and_says_so() {
    let patch = r#"[{"op": "replace", "path": "/spec/size", "value": 7}, {"op": "remove", "path": "/spec/list"},
        {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"}]"#;
    let adjusted = adjusted(&with(PATCH, patch)).unwrap();
    assert_eq!(adjusted.desired["spec"], json!({"size": 7, "deep": {"only": true}}));
    assert_eq!(adjusted.desired["metadata"]["labels"]["x/y"], "z");
    assert_eq!(adjusted.notes, ["platform.kubevirt.io/patch patches it (3 operations)"]);
    assert!(adjusted.desired["metadata"].get("annotations").is_none(), "the annotation itself is not ours");
}

/// W-1: the fields that identify the object, or are all of it, can't be patched; nor can kinds that
/// run code or grant rights.
#[test]
fn w_1_a_patch_changes_no_identity_and_nothing_that_grants_power() {
    let value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    for (operation, says) in [
        (json!({"op": "replace", "path": "", "value": value}), "may not be patched"),
        (json!({"op": "add", "path": "", "value": value}), "may not be patched"),
        (json!({"op": "replace", "path": "/metadata", "value": {"name": "x"}}), "may not be patched"),
        (json!({"op": "replace", "path": "/metadata/name", "value": "x"}), "may not be patched"),
        (json!({"op": "add", "path": "/metadata/namespace", "value": "x"}), "may not be patched"),
        (json!({"op": "add", "path": "/metadata/ownerReferences", "value": []}), "may not be patched"),
        (json!({"op": "add", "path": "/metadata/finalizers", "value": []}), "may not be patched"),
        (json!({"op": "replace", "path": "/kind", "value": "Secret"}), "may not be patched"),
        (json!({"op": "move", "path": "/spec/kind", "from": "/kind"}), "may not be patched"),
        (json!({"op": "copy", "path": "/spec/all", "from": ""}), "may not be patched"),
        (json!({"op": "add", "path": "/status", "value": {}}), "may not be patched"),
        (json!({"op": "replace", "path": "/spec/gone", "value": 1}), "can't be applied to what the profile wants"),
        (json!({"op": "test", "path": "/spec/size", "value": 2}), "can't be applied to what the profile wants"),
        (json!({"op": "nonsense", "path": "/spec"}), "can't be understood"),
    ] {
        let problem = adjusted(&with(PATCH, &json!([operation]).to_string())).unwrap_err();
        assert!(problem.contains(says) && problem.contains(PATCH), "{operation}: {problem}");
    }
    let second = json!([{"op": "replace", "path": "/spec/size", "value": 2}, {"op": "remove", "path": "/spec/gone"}]);
    let problem = adjusted(&with(PATCH, &second.to_string())).unwrap_err();
    assert!(problem.starts_with(&format!("{PATCH}, operation 2 of 2: \"/spec/gone\" can't be applied")), "{problem}");
    assert!(problem.ends_with("Correct or remove the operation"), "{problem}");
    for op in ["add", "replace", "test"] {
        let pruned = json!({"target": {"apiVersion": "example.dev/v1", "kind": "Widget", "name": "w"}, "patch": [{"op": op, "path": "/spec/size"}]});
        let problem = Overrides::of(None, &[&serde_json::from_value(pruned).unwrap()]).unwrap_err();
        assert!(problem.contains("operation 1 of 1") && problem.contains("op remove"), "{problem}");
    }
    for text in ["not json", "{}", "[1]", "[{\"op\": \"add\"}]"] {
        assert!(adjusted(&with(PATCH, text)).unwrap_err().contains("can't be understood"), "{text}");
    }
    for (group, kind) in [
        ("machineconfiguration.openshift.io", "MachineConfig"),
        ("machineconfiguration.openshift.io", "KubeletConfig"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("", "ServiceAccount"),
        ("apps", "DaemonSet"),
        ("security.openshift.io", "SecurityContextConstraints"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ] {
        assert!(is_powerful(group, kind), "{kind}");
    }
    let patched = with(PATCH, r#"[{"op": "remove", "path": "/spec/size"}]"#);
    let powerful = Overrides::of(Some(&patched), &[]).unwrap().adjust(&desired(), Some(&patched), US, true);
    assert!(powerful.unwrap_err().contains("not allowed"));
    assert!(!is_powerful("remediation.medik8s.io", "NodeHealthCheck") && !is_powerful("", "ConfigMap"));
}

/// W-26: a field is left to others by leaving it out, so that anyone who sets it owns it; a value
/// that is ours alone stays as it is until then.
#[test]
fn w_26_a_field_that_is_left_to_others_is_not_written_and_not_deleted() {
    let ours = json!({"f:spec": {"f:size": {}, "f:list": {}}});
    let mut object = live(json!({IGNORE: "/spec/size"}), ours);
    object["spec"]["size"] = json!(5);
    let mine = adjusted(&object).unwrap();
    assert_eq!(mine.desired["spec"]["size"], 5, "an apply without it would delete it");
    // Somebody has taken it over, so we no longer own it.
    object["metadata"]["managedFields"][0]["fieldsV1"] = json!({"f:spec": {"f:list": {}}});
    let theirs = adjusted(&object).unwrap();
    assert!(theirs.desired["spec"].get("size").is_none());
    assert_eq!(theirs.ignored.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/f:spec/f:size"]);
    assert_eq!(theirs.notes, ["platform.kubevirt.io/ignore-fields leaves /spec/size alone"]);
    // Of a map, only what is ours alone.
    let mut map = live(json!({IGNORE: "/spec"}), json!({"f:spec": {"f:size": {}}}));
    map["spec"] = json!({"size": 5, "sizes": 6, "list": [1], "theirs": {"a": 1}});
    assert_eq!(adjusted(&map).unwrap().desired["spec"], json!({"size": 5}));
    let mut whole = live(json!({IGNORE: "/spec/theirs/a"}), json!({"f:spec": {"f:theirs": {}}}));
    whole["spec"] = json!({"theirs": {"a": 1, "b": 2}});
    assert_eq!(adjusted(&whole).unwrap().desired["spec"]["theirs"], json!({"a": 1}), "a map that is ours as a whole");
    // Of a list, only our entry, and of that only what is ours.
    let mut list = live(
        json!({IGNORE: "/spec/parts"}),
        json!({"f:spec": {"f:parts": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:size": {}}}}}),
    );
    list["spec"]["parts"] = json!([{"name": "a", "size": 1}, {"name": "b", "size": 2, "colour": "red"}]);
    assert_eq!(adjusted(&list).unwrap().desired["spec"]["parts"], json!([{"name": "b", "size": 2}]));
    let mut through = live(json!({IGNORE: "/spec/others/0/size"}), json!({}));
    through["spec"]["others"] = json!([{"size": 1}]);
    assert!(adjusted(&through).unwrap_err().contains("points into a list"));
    // Absent in the object, and so in the desired one; maps that would become empty are removed
    // too.
    let absent = adjusted(&with(IGNORE, "/spec/deep/only, /spec/none/at/all")).unwrap();
    assert_eq!(absent.desired["spec"], json!({"size": 1, "list": [1, 2]}));
    // Ignoring wins over patching (facts 2.7).
    let both = live(
        json!({IGNORE: "/spec/size", PATCH: r#"[{"op": "replace", "path": "/spec/size", "value": 9}]"#}),
        json!({}),
    );
    assert!(adjusted(&both).unwrap().desired["spec"].get("size").is_none());
}

#[test]
fn pointers_have_escapes_and_may_hold_commas() {
    let slash = adjusted(&with(IGNORE, "/metadata/labels/a~1b")).unwrap();
    assert_eq!(slash.desired["metadata"]["labels"], json!({"c,d": "2"}));
    let comma = adjusted(&with(IGNORE, r#"["/metadata/labels/c,d"]"#)).unwrap();
    assert_eq!(comma.desired["metadata"]["labels"], json!({"a/b": "1"}));
    for (text, says) in [
        ("spec/size", "is not an RFC 6901 pointer"),
        ("/spec/a~2b", "neither ~0 nor ~1"),
        ("/", "names no field"),
        ("/metadata/name", "names the object"),
        ("/metadata", "names the object"),
        ("/kind", "names the object"),
        ("/status/x", "names the object"),
        ("/spec/list/0", "points into a list"),
        ("[\"/spec\"", "can't be understood"),
    ] {
        let problem = adjusted(&with(IGNORE, text)).unwrap_err();
        assert!(problem.contains(says), "{text}: {problem}");
    }
}

#[test]
fn mode_unmanaged_is_all_that_mode_can_be() {
    let said = |mode: &str| Overrides::of(Some(&with(MODE, mode)), &[]).map(|said| said.unmanaged.is_some());
    assert_eq!(said("unmanaged"), Ok(true));
    assert_eq!(said(""), Ok(false));
    assert!(said("Unmanaged").unwrap_err().contains("the only valid value is \"unmanaged\""));
}

fn entry(value: Value) -> Override {
    serde_json::from_value(value).unwrap()
}

/// W-27: an override can be given before its object exists.
#[test]
fn w_27_spec_overrides_objects_that_do_not_exist_yet() {
    let target = json!({"kind": "Widget", "name": "w"});
    let choices = Choices {
        overrides: vec![
            entry(json!({"target": target, "patch": [{"op": "replace", "path": "/spec/size", "value": 3}]})),
            entry(json!({"target": {"group": "other.dev", "kind": "Widget", "name": "w"}, "mode": "Unmanaged"})),
            entry(json!({"target": {"kind": "Widget", "name": "w", "namespace": "n"}, "mode": "Unmanaged"})),
        ],
        ..Choices::default()
    };
    let of = choices.of(&TargetRef::of(&desired()));
    assert_eq!(of.len(), 1, "group and namespace are part of what is meant");
    let overrides = Overrides::of(None, &of).unwrap();
    assert_eq!(overrides.adjust(&desired(), None, US, false).unwrap().desired["spec"]["size"], 3);
    let draft = Draft::new("w", Body::Ensure(desired()), "is there");
    let unused = choices.unused(&[draft]);
    assert_eq!(unused.len(), 2, "W-28: what means nothing is said: {unused:?}");
    assert!(unused[1].contains("Widget n/w"), "{unused:?}");
}

#[test]
fn what_is_skipped_or_excluded_is_set_aside_and_names_who_needs_it() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let draft = Draft { feature: Some("swap".into()), ..Draft::new("w", Body::Ensure(desired()), "is there") };
    let needing = Draft { needs: vec!["swap".into()], ..Draft::new("v", Body::Ensure(desired()), "needs it") };
    let gone = ObjectRef { api_version: "v1".into(), kind: "K".into(), namespace: None, name: "x".into() };
    let removed = Draft { needs: vec!["w".into()], ..Draft::new("u", Body::Remove(gone), "goes") };
    assert_eq!(dependants(&draft, &[draft.clone(), needing, removed]), ["v"]);
    for name in ["w", "swap"] {
        let skip = json!({"name": name, "mode": "Skip", "reason": "in June", "until": "2026-06-01T00:00:00Z"});
        let choices = Choices { items: vec![serde_json::from_value(skip).unwrap()], ..Choices::default() };
        let why = choices.set_aside(&draft).unwrap().unwrap();
        assert!(why.contains(name) && why.contains("in June") && why.contains("until 2026-06-01"), "{why}");
        let (before, after) = (at("2026-05-31T23:59:59Z"), at("2026-06-01T00:00:00Z"));
        assert_eq!(choices.next_end(before), Some(after));
        assert_eq!((choices.next_end(after), choices.clone().at(before)), (None, choices.clone()));
        assert_eq!(choices.at(after).set_aside(&draft), Ok(None), "it comes back by itself");
    }
    let excluded = |text: &str| {
        let choices = Choices { exclusions: Exclusions::parse(Some(text)), ..Choices::default() };
        choices.set_aside(&draft).map(|why| why.is_some())
    };
    for (text, expected) in [
        ("", false),
        ("[]", false),
        ("- kind: Widget\n  name: w", true),
        ("- kind: Widget\n  name: '?'", true),
        ("- {kind: Gadget, name: w}\n- {kind: Widget, name: 'w*'}", true),
        ("- kind: '*'\n  name: w", true),
        ("- kind: 'W*'\n  name: '[!v]'", true),
        ("- kind: widget\n  name: w", false),
        ("- kind: Widget\n  name: w\n  namespace: 'n*'", false),
        ("- kind: Widget\n  name: w\n  namespace: '*'", true),
    ] {
        assert_eq!(excluded(text), Ok(expected), "{text}");
    }
    // W-28: an entry without effect is reported, unless it is about another configuration, or about
    // a feature that is off.
    let kind = Kind { group: "example.dev", versions: &["v1"], kind: "Widget", plural: "widgets" };
    let declared = |name| Declared { kind, access: Access::Write, name, namespace: None };
    let text = "- {kind: widget, name: w, namespace: 'n*'}\n- {kind: Widget, name: 'w*'}\n- {kind: Widget, name: x}";
    let exclusions = Exclusions::parse(Some(text));
    let named = declared(Some("w"));
    let unused: Vec<_> = exclusions.unused(&[&named]).collect();
    assert_eq!(unused.len(), 2, "{unused:?}");
    assert!(
        unused[0].contains("disabled-resources names widget n*/w, which can't be an object of any plan"),
        "{unused:?}"
    );
    assert!(unused[1].contains("names Widget x,"), "{unused:?}");
    assert_eq!(exclusions.unused(&[&declared(None)]).count(), 1, "an object of any name");
    // The list can't be understood: nothing is written.
    for text in [
        "Widget/w",
        "- name: w",
        "- kind: ''\n  name: w",
        "- kind: Widget\n  name: '['",
        "- kind: Widget\n  name: '[^v]'",
        "- kind: Widget\n  name: '{v,w}'",
        "- kind: Widget\n  name: '\\w'",
        "- {kind: Widget, name: w, colour: red}",
        "{",
    ] {
        let problem = excluded(text).unwrap_err();
        assert!(
            problem.contains("disabled-resources") && problem.contains("Correct or remove it"),
            "{text}: {problem}"
        );
    }
}

#[test]
fn annotations_that_override_are_inputs_and_no_others() {
    let object = live(json!({MODE: "unmanaged", PATCH: "x".repeat(2000), "other": "y", IGNORE: " "}), json!({}));
    let found = inputs(&object);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(is_override));
    let excluded = wire::input(TargetRef::of(&object), &place(profile_sdk::DISABLED_RESOURCES), None);
    assert!(is_override(&excluded));
    assert!(
        found[0].value.as_ref().unwrap().as_str().unwrap().starts_with("sha256"),
        "a long one is told by its digest"
    );
}
