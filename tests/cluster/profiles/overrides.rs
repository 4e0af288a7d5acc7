//! What administrators want otherwise than the profile, all the way on the real server.

use advisor_core::api::{Item, Operation, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::overrides::{IGNORE, MODE, PATCH};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::stage::profile::{NAME, item, object};

fn annotated(annotation: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {annotation: value}}})
}

fn of<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> &'a Item {
    status.items.iter().find(|item| item.name == name).expect("an item of that name")
}

impl Stage {
    /// The configuration that wants `items`, approved beforehand and carried out.
    async fn completed(&self, items: &[Value]) -> VirtPlatformConfigStatus {
        self.configure(NAME, "Apply", items).await;
        self.wait_for(NAME, "applied", Phase::Completed).await
    }

    async fn annotate(&self, name: &str, annotation: &str, value: impl Into<Value>) {
        self.edit(name, annotated(annotation, &value.into())).await;
    }

    async fn approve_plan(&self, status: &VirtPlatformConfigStatus) {
        self.patch(NAME, json!({"approvedPlanHash": status.plan_hash})).await;
    }

    async fn spec(&self, name: &str) -> Value {
        self.widgets().get(name).await.unwrap().data["spec"].clone()
    }

    /// The plan in which item x is `operation`, waiting for a review.
    async fn reviewed(&self, what: &str, operation: Operation) -> VirtPlatformConfigStatus {
        self.wait(NAME, what, |status| {
            status.phase == Some(Phase::ReviewRequired) && of(status, "x").operation == operation
        })
        .await
    }
}

/// A patch by annotation is a change like any other: it is shown, named, and waits for a review
/// even where approval is automatic. So does its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_by_annotation_is_reviewed_carried_out_and_taken_back() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.completed(&[item("x", 0, json!({"size": 1, "labels": {"a/b": "c", "d~e": "f"}}))]).await;
    stage.patch(NAME, json!({"approvalPolicy": "Automatic", "bypassOptimisticLock": true})).await;
    let patch = json!([
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "replace", "path": "/spec/size", "value": 7},
        {"op": "replace", "path": "/spec/labels/a~1b", "value": "changed"},
        {"op": "remove", "path": "/spec/labels/d~0e"},
        {"op": "add", "path": "/spec/atomic", "value": ["first"]},
        {"op": "add", "path": "/spec/atomic/0", "value": "before, it"},
    ]);
    stage.annotate("x", PATCH, patch.to_string()).await;
    let plan = stage.reviewed("the patch", Operation::Update).await;
    let shown = of(&plan, "x");
    assert_eq!(shown.overrides, [format!("{PATCH} patches it (6 operations)")]);
    assert!(shown.diff.contains("-  size: 1\n+  size: 7"), "{}", shown.diff);
    assert!(shown.message.contains("patches it (6 operations)"), "{}", shown.message);
    stage.rest().await;
    assert_eq!(stage.spec("x").await["size"], 1, "nobody has approved it");

    stage.approve_plan(&plan).await;
    let done = stage.wait(NAME, "patched", |status| status.phase == Some(Phase::Completed)).await;
    let patched = json!({"size": 7, "mode": "Slow", "labels": {"a/b": "changed"}, "atomic": ["before, it", "first"]});
    assert_eq!(stage.spec("x").await, patched);
    assert_eq!(of(&done, "x").overrides, shown.overrides);
    // It stays so, also for an operator that knows nothing.
    drop(running);
    let running = Stage::run(stage.client());
    stage.rest().await;
    assert_eq!(stage.status(NAME).await, done);
    // Drift is told against the patched object.
    stage.patch(NAME, json!({"bypassOptimisticLock": false})).await;
    stage.edit("x", json!({"spec": {"size": 8}})).await;
    let drifted = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    assert!(of(&drifted, "x").diff.contains("-  size: 8\n+  size: 7"), "{}", of(&drifted, "x").diff);
    stage.approve_plan(&drifted).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;

    stage.annotate("x", PATCH, Value::Null).await;
    let plan = stage.reviewed("the end of the patch", Operation::Update).await;
    assert!(of(&plan, "x").overrides.is_empty());
    stage.rest().await;
    assert_eq!(stage.spec("x").await["size"], 7, "nobody has approved the end of it");
    stage.approve_plan(&plan).await;
    stage.wait_for(NAME, "as the profile has it", Phase::Completed).await;
    assert_eq!(stage.spec("x").await, json!({"size": 1, "mode": "Slow", "labels": {"a/b": "c", "d~e": "f"}}));
    stage.finish(running).await;
}

/// W-26: a field that is left alone keeps its value, is no drift, and belongs to whoever takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_26_ignored_fields_are_left_to_whoever_takes_them() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.completed(&[item("x", 0, json!({"size": 1, "text": "ours", "labels": {"a,b": "c"}}))]).await;
    stage.annotate("x", IGNORE, r#"["/spec/text", "/spec/labels/a,b"]"#).await;
    let says = [format!("{IGNORE} leaves /spec/text alone"), format!("{IGNORE} leaves /spec/labels/a,b alone")];
    let seen = stage.wait(NAME, "ignored", |status| of(status, "x").overrides == says).await;
    assert_eq!(of(&seen, "x").operation, Operation::NoChange, "nothing is deleted: {}", of(&seen, "x").diff);

    // Somebody takes it: that is what it was left alone for.
    stage.edit("x", json!({"spec": {"text": "theirs"}})).await;
    stage.rest().await;
    let after = stage.status(NAME).await;
    assert_eq!((after.phase, of(&after, "x").operation), (Some(Phase::Completed), Operation::NoChange));
    assert_eq!(stage.spec("x").await["text"], "theirs");
    // Other fields are ours as before, and putting them back does not touch it.
    stage.edit("x", json!({"spec": {"size": 2}})).await;
    let drifted = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    assert!(!of(&drifted, "x").diff.contains("text: ours"), "{}", of(&drifted, "x").diff);
    stage.approve_plan(&drifted).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    assert_eq!(stage.spec("x").await, json!({"size": 1, "text": "theirs", "mode": "Slow", "labels": {"a,b": "c"}}));
    // Taken back, the profile wants it again, and says whose it is now.
    stage.annotate("x", IGNORE, Value::Null).await;
    let plan = stage.reviewed("wanted again", Operation::Update).await;
    assert!(of(&plan, "x").message.contains("over from kubectl-edit"), "{}", of(&plan, "x").message);
    stage.finish(running).await;
}

/// An unmanaged object is not touched and not watched for drift; managed again, what it became is
/// shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unmanaged_object_is_left_alone_until_it_is_managed_again() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.completed(&[item("x", 0, json!({"size": 1})), item("y", 1, json!({"size": 1}))]).await;
    stage.annotate("x", MODE, "unmanaged").await;
    let aside = stage.wait(NAME, "set aside", |status| of(status, "x").operation == Operation::Skipped).await;
    assert_eq!(aside.phase, Some(Phase::Completed), "{aside:#?}");
    assert_eq!(of(&aside, "x").overrides, [format!("its annotation {MODE} is unmanaged")]);
    stage.edit("x", json!({"spec": {"size": 9}})).await;
    stage.rest().await;
    let after = stage.status(NAME).await;
    assert_eq!((after.phase, of(&after, "x")), (Some(Phase::Completed), of(&aside, "x")));
    // Another item goes its way.
    stage.edit("y", json!({"spec": {"size": 9}})).await;
    let drifted = stage.wait_for(NAME, "drift of the other", Phase::Drifted).await;
    stage.approve_plan(&drifted).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    assert_eq!((stage.spec("x").await["size"].clone(), stage.spec("y").await["size"].clone()), (json!(9), json!(1)));

    stage.annotate("x", MODE, Value::Null).await;
    let plan = stage
        .wait(NAME, "managed again", |status| {
            status.phase != Some(Phase::Completed) && of(status, "x").operation == Operation::Update
        })
        .await;
    assert!(of(&plan, "x").diff.contains("-  size: 9\n+  size: 1"), "{}", of(&plan, "x").diff);
    stage.rest().await;
    assert_eq!(stage.spec("x").await["size"], 9, "nobody has approved it");
    stage.approve_plan(&stage.status(NAME).await).await;
    stage.wait_for(NAME, "managed", Phase::Completed).await;
    assert_eq!(stage.spec("x").await["size"], 1);

    // What is gone says nothing of itself any more.
    stage.annotate("x", MODE, "unmanaged").await;
    stage.wait(NAME, "set aside", |status| of(status, "x").operation == Operation::Skipped).await;
    stage.widgets().delete("x", &Default::default()).await.unwrap();
    stage.wait(NAME, "to be created", |status| of(status, "x").operation == Operation::Create).await;
    stage.finish(running).await;
}

/// Edits that follow each other as closely as a program makes them are looked at with growing gaps;
/// those of a person are not.
async fn leave_time() {
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
}

/// W-26: what can't be understood blocks its item, says where the fault is, and stops nothing else;
/// correcting it is enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_26_an_override_that_is_nonsense_blocks_its_item_alone() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.completed(&[item("x", 0, json!({"size": 1, "set": ["a"]})), item("y", 0, json!({"size": 1}))]).await;
    let one = |operation: Value| json!([operation]).to_string();
    for (annotation, value, says) in [
        (PATCH, "no JSON".to_owned(), "can't be understood"),
        (PATCH, "{}".to_owned(), "can't be understood"),
        (PATCH, "null".to_owned(), "can't be understood"),
        (PATCH, one(json!({"op": "merge", "path": "/spec/size", "value": 2})), "can't be understood"),
        (PATCH, one(json!({"op": "add", "path": "/spec/size"})), "can't be understood"),
        (PATCH, one(json!({"op": "add", "path": "spec/size", "value": 2})), "can't be understood"),
        (PATCH, one(json!({"op": "replace", "path": "", "value": {}})), "may not be patched"),
        (PATCH, one(json!({"op": "replace", "path": "/metadata/name", "value": "z"})), "may not be patched"),
        (PATCH, one(json!({"op": "add", "path": "/metadata/namespace", "value": "z"})), "may not be patched"),
        (PATCH, one(json!({"op": "add", "path": "/metadata/ownerReferences", "value": []})), "may not be patched"),
        (PATCH, one(json!({"op": "replace", "path": "/kind", "value": "Gadget"})), "may not be patched"),
        (PATCH, one(json!({"op": "add", "path": "/status", "value": {}})), "may not be patched"),
        (PATCH, one(json!({"op": "copy", "from": "/metadata", "path": "/spec/free"})), "may not be patched"),
        (PATCH, one(json!({"op": "replace", "path": "/spec/nothing", "value": 2})), "can't be applied"),
        (PATCH, one(json!({"op": "test", "path": "/spec/size", "value": 2})), "can't be applied"),
        (PATCH, one(json!({"op": "add", "path": "/spec/set/5", "value": "b"})), "can't be applied"),
        // What the server refuses is told as it tells it.
        (
            PATCH,
            one(json!({"op": "replace", "path": "/spec/size", "value": "big"})),
            "or update the operator that provides this kind. It was previewed with these overrides: platform.kubevirt.io/patch patches it",
        ),
        (IGNORE, "spec/size".to_owned(), "must begin with /"),
        (IGNORE, "/spec/~2".to_owned(), "neither ~0 nor ~1"),
        (IGNORE, "/".to_owned(), "names no field"),
        (IGNORE, "/metadata/name".to_owned(), "mode unmanaged"),
        (IGNORE, "/kind,/spec/size".to_owned(), "mode unmanaged"),
        (IGNORE, "[\"/spec/size\"".to_owned(), "can't be understood"),
        (IGNORE, "/spec/set/0".to_owned(), "into a list"),
        (MODE, "Unmanaged".to_owned(), "the only valid value is \"unmanaged\""),
        (MODE, "managed".to_owned(), "the only valid value is \"unmanaged\""),
    ] {
        leave_time().await;
        stage.annotate("x", annotation, value.as_str()).await;
        let blocked = stage
            .wait(NAME, &format!("{annotation}: {value}"), |status| {
                let x = of(status, "x");
                x.operation == Operation::Blocked && x.message.contains(says)
            })
            .await;
        assert_eq!(of(&blocked, "y").operation, Operation::NoChange, "{value}");
        leave_time().await;
        stage.annotate("x", annotation, Value::Null).await;
        stage.wait(NAME, "corrected", |status| of(status, "x").operation == Operation::NoChange).await;
    }
    // Who can't correct it sets it aside, and the other one is carried out.
    stage.annotate("x", MODE, "off").await;
    stage.edit("y", json!({"spec": {"size": 5}})).await;
    let both = |status: &VirtPlatformConfigStatus| {
        of(status, "x").operation == Operation::Blocked && of(status, "y").operation == Operation::Update
    };
    stage.wait(NAME, "both", both).await;
    stage.patch(NAME, json!({"items": [{"name": "x", "mode": "Skip"}]})).await;
    let plan = stage.wait(NAME, "x aside", |status| of(status, "x").operation == Operation::Skipped).await;
    stage.approve_plan(&plan).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    assert_eq!(stage.spec("y").await["size"], 1);
    stage.finish(running).await;
}

/// W-27: an object that does not exist yet has no annotations: spec says the same, before anything
/// is created.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_27_spec_overrides_an_object_before_it_is_created() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let target = |name: &str| json!({"group": "example.dev", "kind": "Widget", "namespace": "default", "name": name});
    let items: Vec<_> = ["x", "y", "z"].map(|name| item(name, 0, json!({"size": 1, "text": "ours"}))).into();
    let overrides = json!([
        {"target": target("x"), "patch": [{"op": "replace", "path": "/spec/size", "value": 7}]},
        {"target": target("y"), "ignoreFields": ["/spec/text"]},
        {"target": target("z"), "mode": "Unmanaged"},
        {"target": target("elsewhere"), "mode": "Unmanaged"},
    ]);
    stage
        .configure_with(NAME, json!({"action": "Apply", "options": {NAME: {"items": items}}, "overrides": overrides}))
        .await;
    let done = stage.wait_for(NAME, "applied", Phase::Completed).await;
    assert_eq!(stage.spec("x").await, json!({"size": 7, "text": "ours", "mode": "Slow"}));
    assert_eq!(stage.spec("y").await, json!({"size": 1, "mode": "Slow"}));
    assert!(stage.widgets().get_opt("z").await.unwrap().is_none());
    assert_eq!(of(&done, "z").operation, Operation::Skipped);
    assert_eq!(of(&done, "x").overrides, ["spec.overrides patches it (1 operation)"]);
    let told = done.summary.as_ref().unwrap().to_owned();
    assert_eq!(told.skipped, 1);
    assert!(
        serde_json::to_string(&done)
            .unwrap()
            .contains("spec.overrides names Widget default/elsewhere, which is not an object of this plan"),
        "{done:#?}"
    );
    // Changing one is a change like any other.
    stage
        .patch(NAME, json!({"overrides": [{"target": target("x"), "patch": [{"op": "remove", "path": "/spec/text"}]}]}))
        .await;
    let plan = stage.reviewed("the edited one", Operation::Update).await;
    assert_eq!(of(&plan, "z").operation, Operation::Create);
    assert!(of(&plan, "x").diff.contains("-  size: 7\n-  text: ours\n+  size: 1"), "{}", of(&plan, "x").diff);
    stage.approve_plan(&plan).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    assert_eq!(stage.spec("x").await, json!({"size": 1, "mode": "Slow"}));
    assert_eq!(stage.spec("z").await["size"], 1);
    stage.finish(running).await;
}

/// The list of excluded objects: before they exist, by pattern, and when nobody can tell what it
/// means.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_excluded_by_the_list_of_the_platform_object() {
    let stage = Stage::set().await;
    let list = |text: &str| annotated("platform.kubevirt.io/disabled-resources", &text.into());
    stage.create(&object("Widget", "platform", json!({}))).await;
    stage.edit("platform", list("- {kind: Widget, name: 'x*', namespace: default}\n- {kind: Gadget, name: y}")).await;
    let running = Stage::run(stage.client());
    let items: Vec<_> = ["x", "x-2", "y"].map(|name| item(name, 0, json!({"size": 1}))).into();
    let options = json!({NAME: {"items": items, "exclusions": {"kind": "Widget", "name": "platform"}}});
    stage.configure_with(NAME, json!({"action": "DryRun", "options": options})).await;
    let plan = stage.reviewed("excluded", Operation::Skipped).await;
    let operations =
        |status: &VirtPlatformConfigStatus| status.items.iter().map(|item| item.operation).collect::<Vec<_>>();
    assert_eq!(operations(&plan), [Operation::Skipped, Operation::Skipped, Operation::Create]);
    assert!(of(&plan, "x").message.contains("disabled-resources excludes Widget x*"), "{}", of(&plan, "x").message);

    stage.patch(NAME, json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    stage.wait_for(NAME, "the one that is not excluded", Phase::Completed).await;
    assert!(stage.widgets().get_opt("x").await.unwrap().is_none());
    for nonsense in [
        "- Widget",
        "kind: Widget",
        "- {kind: Widget}",
        "- {kind: Widget, name: '['}",
        "- {kind: W, name: x, size: 1}",
        "{{",
    ] {
        stage.edit("platform", list(nonsense)).await;
        let blocked = stage.wait(NAME, nonsense, |status| operations(status) == [Operation::Blocked; 3]).await;
        assert!(
            of(&blocked, "y").message.contains("The excluded objects are unknown"),
            "{}",
            of(&blocked, "y").message
        );
        stage.edit("platform", list("- {kind: Widget, name: 'x*'}")).await;
        stage.wait(NAME, "corrected", |status| operations(status)[2] == Operation::NoChange).await;
    }
    // What is excluded no more is planned; what is excluded from now on stays as it is.
    stage.edit("platform", list("[{kind: Widget, name: y}, {kind: Widget, name: x-?}]")).await;
    let plan = stage.reviewed("another list", Operation::Create).await;
    assert_eq!(operations(&plan), [Operation::Create, Operation::Skipped, Operation::Skipped]);
    stage.edit("y", json!({"spec": {"size": 4}})).await;
    stage.approve_plan(&plan).await;
    stage.wait_for(NAME, "x", Phase::Completed).await;
    assert_eq!(stage.spec("y").await["size"], 4);
    stage.finish(running).await;
}

/// W-28: a name that means nothing is said. An item is set aside for a time, with a reason; who
/// needs it is named; at the end it is planned again by itself, for a review.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skipped_item_names_who_needs_it_and_comes_back_by_itself() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let mut first = item("x", 0, json!({"size": 1}));
    first["feature"] = json!("swap");
    let mut second = item("y", 1, json!({"size": 1}));
    second["needs"] = json!(["swap"]);
    // The server's clock tells when that is.
    stage.create(&object("Widget", "clock", json!({}))).await;
    let created = stage.widgets().get("clock").await.unwrap().metadata.creation_timestamp.unwrap().0;
    let until = created + jiff::SignedDuration::from_secs(4);
    let skipped = json!([
        {"name": "swap", "mode": "Skip", "reason": "change freeze", "until": until},
        {"name": "nothing", "mode": "Skip"},
    ]);
    let options = json!({NAME: {"items": [first, second]}});
    let spec = json!({"action": "Apply", "options": options, "items": skipped, "approvalPolicy": "Automatic"});
    stage.configure_with(NAME, spec).await;
    let done = stage.wait_for(NAME, "without x", Phase::Completed).await;
    let x = of(&done, "x");
    assert_eq!(x.operation, Operation::Skipped);
    assert!(x.message.contains(&format!("spec.items names swap until {until} (change freeze)")), "{}", x.message);
    assert!(x.message.contains("Item y depends on it: skip both, or change the options."), "{}", x.message);
    assert!(stage.widgets().get_opt("x").await.unwrap().is_none());
    assert!(
        serde_json::to_string(&done)
            .unwrap()
            .contains("spec.items names nothing, which is not an item or feature of this plan"),
        "{done:#?}"
    );
    let plan = stage.reviewed("the end of it", Operation::Create).await;
    stage.rest().await;
    assert!(stage.widgets().get_opt("x").await.unwrap().is_none(), "its end is no approval");
    stage.approve_plan(&plan).await;
    stage.wait_for(NAME, "x too", Phase::Completed).await;
    assert_eq!(stage.spec("x").await["size"], 1);
    stage.finish(running).await;
}

/// A value that nobody has changed is not told as changed, because the plan before could not show
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_blocked_and_is_not_any_more_has_not_changed() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "x", json!({"size": 9}))).await;
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    stage.reviewed("a plan", Operation::Update).await;
    let target = json!({"kind": "Widget", "namespace": "default", "name": "x"});
    let nonsense = json!([{"op": "test", "path": "/spec/size", "value": 7}]);
    stage.patch(NAME, json!({"overrides": [{"target": target, "patch": nonsense}]})).await;
    stage.reviewed("blocked", Operation::Blocked).await;
    stage.patch(NAME, json!({"overrides": null})).await;
    let plan = stage.reviewed("a plan again", Operation::Update).await;
    let text = plan.summary.unwrap().text;
    assert!(text.contains("The spec has been edited since the last plan.") && !text.contains("absent"), "{text}");

    // The same by an annotation, which no edit of spec explains.
    stage.annotate("x", MODE, "nonsense").await;
    stage.reviewed("blocked by the annotation", Operation::Blocked).await;
    stage.annotate("x", MODE, Value::Null).await;
    let text = stage.reviewed("a plan once more", Operation::Update).await.summary.unwrap().text;
    assert!(!text.contains("/spec/size from absent"), "{text}");
    stage.finish(running).await;
}
