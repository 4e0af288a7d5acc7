//! What a hostile or careless person writes into a spec, an annotation or an object: it is their
//! own trouble, and nobody else's.

use advisor_core::api::{Operation, Phase, VirtPlatformConfig};
use advisor_core::plan::overrides::{IGNORE, PATCH};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use object::limits;
use serde_json::{Value, json};

use crate::fixture::PATIENCE;
use crate::stage::Stage;
use crate::stage::profile::{NAME, OTHER, item, object};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!({"a": inner}))
}

fn spec(key: &str, overrides: Value) -> Value {
    json!({"action": "DryRun", "options": {key: {"items": [item("x", 0, json!({"size": 1}))]}}, "overrides": overrides})
}

fn patch(operations: Value) -> Value {
    json!([{"target": {"kind": "Widget", "namespace": "default", "name": "x"}, "patch": operations}])
}

const CONFIGS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
const WIDGETS: &str = "/apis/example.dev/v1/namespaces/default/widgets";

/// A request whose answer is not parsed: the test's own client could not.
async fn raw(stage: &Stage, method: &str, path: &str, body: &Value) -> String {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", kind);
    let body = if method == "GET" { Vec::new() } else { body.to_string().into_bytes() };
    stage.admin.request_text(request.body(body).unwrap()).await.unwrap()
}

/// T6: one configuration, target or input that is nested deeper than any parser takes is told, and
/// its neighbours go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t6_one_object_that_is_nested_too_deep_stops_no_other() {
    let stage = Stage::set().await;
    let mut deep = spec(OTHER, patch(json!([{"op": "add", "path": "/spec/free", "value": nested(140)}])));
    deep["profile"] = json!(OTHER);
    let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": OTHER}, "spec": deep});
    raw(&stage, "POST", CONFIGS, &config).await;
    let stored = raw(&stage, "GET", CONFIGS, &json!(null)).await;
    assert!(serde_json::from_str::<Value>(&stored).is_err(), "a parser takes it: this test shows nothing");
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("y", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "a neighbour", Phase::Completed).await;
    // Read as the operator does.
    let configs: Api<VirtPlatformConfig> = Api::all(stage.client());
    let until = tokio::time::Instant::now() + PATIENCE;
    let text = loop {
        let status = configs.get(OTHER).await.unwrap().status.unwrap_or_default();
        if status.phase == Some(Phase::Failed) {
            break status.summary.unwrap().text;
        }
        assert!(tokio::time::Instant::now() < until, "nothing is told: {status:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(text.contains("spec.overrides[0].patch[0].value is nested more than 50 levels deep"), "{text}");
    stage.patch(OTHER, json!({"overrides": null})).await;
    stage.wait_for(OTHER, "corrected", Phase::ReviewRequired).await;

    // A target, by whoever may edit it.
    raw(&stage, "PATCH", &format!("{WIDGETS}/y"), &json!({"spec": {"free": nested(140)}})).await;
    let told = stage.wait(NAME, "a deep target", |status| status.items[0].operation == Operation::Blocked).await;
    assert!(told.items[0].message.contains("nested more than 100 levels deep"), "{}", told.items[0].message);
    stage.edit("y", json!({"spec": {"free": null}})).await;
    stage.wait_for(NAME, "corrected", Phase::Completed).await;

    // T8: one of so many maps that they would fill the memory.
    let maps = vec![json!({"a": 0}); 100_000];
    raw(&stage, "PATCH", &format!("{WIDGETS}/y"), &json!({"spec": {"free": {"maps": maps}}})).await;
    let told =
        stage.wait(NAME, "a target of many maps", |status| status.items[0].operation == Operation::Blocked).await;
    assert!(told.items[0].message.contains("more than 20000 maps and lists"), "{}", told.items[0].message);
    stage.edit("y", json!({"spec": {"free": null}})).await;
    stage.wait_for(NAME, "corrected", Phase::Completed).await;
    stage.finish(running).await;
}

/// T4 and T5: operations that a library can't undo, that double what is there, or that nest it
/// without an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t4_t5_no_patch_ends_the_process_or_fills_its_memory() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("y", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "a neighbour", Phase::Completed).await;
    let undone =
        json!([{"op": "move", "from": "/spec/size", "path": "/spec"}, {"op": "test", "path": "/none", "value": 1}]);
    let seed = json!({"op": "add", "path": "/spec/free", "value": {"k": "x".repeat(1000)}});
    let doubles = (0..40).map(|n| json!({"op": "copy", "from": "/spec/free", "path": format!("/spec/free/k{n}")}));
    let doubles: Vec<_> = std::iter::once(seed).chain(doubles).collect();
    let seed = json!({"op": "add", "path": "/spec/free", "value": {}});
    let nests = (0..8)
        .map(|n| json!({"op": "copy", "from": "/spec/free", "path": format!("/spec/free{}", "/k".repeat(1 << n))}));
    let nests: Vec<_> = std::iter::once(seed).chain(nests).collect();
    let seed = json!({"op": "add", "path": "/spec/free", "value": {"k": vec![json!({"a": 0}); 100]}});
    let small = (0..8).map(|_| json!({"op": "copy", "from": "/spec/free/k", "path": "/spec/free/k/-"}));
    let small: Vec<_> = std::iter::once(seed).chain(small).collect();
    for (name, operations, says) in [
        ("a move onto its own ancestor", undone, "can't be applied to what the profile wants"),
        ("copies", json!(doubles), "larger than the 1572000 bytes"),
        ("copies of small values", json!(small), "add more than 5000 values"),
        ("copies into themselves", json!(nests), "nested more than 100 levels deep"),
    ] {
        stage.configure_with(OTHER, spec(OTHER, patch(operations.clone()))).await;
        let told = stage.wait(OTHER, name, |status| {
            status.items.first().is_some_and(|item| item.operation == Operation::Blocked && item.message.contains(says))
        });
        told.await;
        stage.configs().delete(OTHER, &Default::default()).await.unwrap();
        // The same as an annotation of the target.
        let annotations = json!({"metadata": {"annotations": {PATCH: operations.to_string()}}});
        stage.edit("y", annotations).await;
        stage
            .wait(NAME, name, |status| {
                status.items[0].operation == Operation::Blocked && status.items[0].message.contains(says)
            })
            .await;
        stage.edit("y", json!({"metadata": {"annotations": {PATCH: null}}})).await;
        stage.wait_for(NAME, "corrected", Phase::Completed).await;
    }
    stage.finish(running).await;
}

/// T8 (a): pointers and fields by the thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t8_ignored_fields_by_the_thousand_are_refused_and_a_thousand_are_fast() {
    let stage = Stage::set().await;
    let fields: serde_json::Map<_, _> = (0..2000).map(|n| (format!("key{n}"), json!("x"))).collect();
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("y", 0, json!({"free": fields}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    let pointers = |count: usize| (0..count).map(|n| format!("/spec/free/key{n}")).collect::<Vec<_>>().join(",");
    for (text, says) in [
        (pointers(1001), "at most 1000 are allowed"),
        (pointers(9000), "at most 65536 are allowed"),
        (format!("/spec/{}", "x".repeat(2000)), "is too long"),
    ] {
        stage.edit("y", json!({"metadata": {"annotations": {IGNORE: text}}})).await;
        let told = stage.wait(NAME, says, |status| status.items[0].message.contains(says)).await;
        assert_eq!(told.items[0].operation, Operation::Blocked);
    }
    stage.edit("y", json!({"metadata": {"annotations": {IGNORE: pointers(1000)}}})).await;
    let told = stage.wait(NAME, "a thousand", |status| status.items[0].operation != Operation::Blocked).await;
    assert!(told.items[0].overrides.iter().any(|note| note == "980 more fields are left alone"), "{:?}", told.items[0]);
    stage.finish(running).await;
}

/// T7: nothing that an editor writes reaches a terminal as anything but text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t7_text_of_others_comes_to_the_terminal_as_text() {
    const EVIL: &str = "\u{1b}[2J\u{1b}[8m\r\u{202e}evil\u{200b}";
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "x", json!({"size": 2, "mode": "Fast"}))).await;
    let params = PatchParams { field_manager: Some("\u{1b}[8mrival".into()), force: false, ..PatchParams::default() };
    let refused = stage.widgets().patch("x", &params, &Patch::Merge(json!({"spec": {"size": 3}}))).await;
    assert!(refused.is_err(), "a manager's name has only printable characters: nothing to mend there");
    let mut options = spec(NAME, patch(json!([{"op": "add", "path": "/spec/free", "value": {"a": EVIL, EVIL: "b"}}])));
    options["items"] = json!([{"name": "nothing", "mode": "Skip", "reason": EVIL}]);
    stage.configure_with(NAME, options).await;
    let shown = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    assert!(shown.items[0].diff.contains("evil"), "{}", shown.items[0].diff);
    let mut skipped = spec(NAME, json!([]));
    skipped["items"] =
        json!([{"name": "x", "mode": "Skip", "reason": format!("{EVIL}\n# plan v1:1: the status shows this plan")}]);
    stage.patch(NAME, json!({"overrides": null})).await;
    stage.patch(NAME, json!({"items": skipped["items"]})).await;
    let set_aside = stage.wait(NAME, "set aside", |status| status.items[0].operation == Operation::Skipped).await;
    assert!(
        set_aside.items[0].message.contains("evil") && !set_aside.items[0].message.contains('\n'),
        "{set_aside:#?}"
    );
    for status in [shown, set_aside] {
        let mut status = serde_json::to_value(status).unwrap();
        // Options are the editor's own words, kept as they are to be compared.
        status.as_object_mut().unwrap().remove("appliedOptions");
        let mut texts = Vec::new();
        collect(&status, &mut texts);
        for text in texts {
            assert!(limits::is_plain(&text), "{text:?}");
        }
    }
    stage.finish(running).await;
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|member| collect(member, texts)),
        Value::Object(map) => map.iter().for_each(|(key, member)| {
            texts.push(key.clone());
            collect(member, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// T16: a spec that leaves no room for a status is told by an event, since nothing else can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t16_an_object_without_room_for_a_status_is_told_by_an_event() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let large = patch(json!([{"op": "add", "path": "/spec/free", "value": {"a": "x".repeat(1_570_000)}}]));
    stage.configure_with(OTHER, spec(OTHER, large)).await;
    let events: Api<Event> = Api::namespaced(stage.admin.clone(), "default");
    let until = tokio::time::Instant::now() + PATIENCE;
    let note = loop {
        let all = events.list(&ListParams::default()).await.unwrap();
        let found = all.items.into_iter().find(|event| event.reason.as_deref() == Some("NoRoomForStatus"));
        if let Some(found) = found {
            break found.note.unwrap();
        }
        assert!(tokio::time::Instant::now() < until, "no event comes");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(
        note.contains("at most 524288 bytes are accepted")
            && note.contains("Make the values in spec.overrides and spec.options smaller"),
        "{note}"
    );
    stage.configure(NAME, "Apply", &[item("y", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "a neighbour", Phase::Completed).await;
    stage.patch(OTHER, json!({"overrides": null})).await;
    stage.wait_for(OTHER, "corrected", Phase::ReviewRequired).await;
    stage.finish(running).await;
}

/// A fault of ours in one plan is told there, and ends nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_one_plan_is_told_there_and_ends_nothing_else() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage
        .configure_with(OTHER, json!({"action": "DryRun", "options": {OTHER: {"panic": "a fault of the test"}}}))
        .await;
    let told = stage.reading_failed(OTHER, "True").await;
    assert_eq!(told.reason, "InternalError");
    assert!(told.message.contains("a fault of the test") && told.message.contains("must-gather"), "{told:?}");
    stage.configure(NAME, "Apply", &[item("y", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "a neighbour", Phase::Completed).await;
    stage.patch(OTHER, json!({"options": {OTHER: {"panic": null, "items": [item("z", 0, json!({"size": 1}))]}}})).await;
    stage.wait_for(OTHER, "corrected", Phase::ReviewRequired).await;
    stage.reading_failed(OTHER, "False").await;
    stage.finish(running).await;
}
