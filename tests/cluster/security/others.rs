//! Whoever may write something else than configurations: targets, inputs, or what the operator's
//! own account may write.

use advisor_core::api::{Action, Item, Operation, Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use advisor_core::plan::overrides::{IGNORE, MODE, PATCH};
use kube::Error;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use object::limits;
use serde_json::{Value, json};

use super::Deed::Spec;
use super::{does, wants, widget, writes};
use crate::fixture::{PATIENCE, USER};
use crate::stage::Stage;
use crate::stage::profile::{NAME, following, item, object};

/// A user who may do `verbs` to Widgets.
async fn user_of_widgets(stage: &Stage, name: &str, verbs: &[&str]) -> Api<DynamicObject> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["example.dev"], "resources": ["widgets"], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    for object in [role, binding] {
        controlplane::apply_yaml(&stage.admin, &object.to_string(), "test").await.unwrap();
    }
    let client = stage.plane.client(name, &[]).unwrap();
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &widget());
    let until = tokio::time::Instant::now() + PATIENCE;
    while widgets.list(&ListParams::default()).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "{name} has no rights");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    widgets
}

fn of<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> &'a Item {
    status.items.iter().find(|item| item.name == name).unwrap()
}

/// Even where approval is automatic and the lock is bypassed, whoever may annotate a target only
/// blocks it or sets it aside, and each annotation and its end make another plan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotator_blocks_or_sets_aside_one_item_and_causes_no_write() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let annotator = user_of_widgets(&stage, "annotator", &["get", "list", "update", "patch"]).await;
    let spec =
        json!({"action": "Apply", "approvalPolicy": "Automatic", "bypassOptimisticLock": true, "options": wants(1)});
    stage.configure_with(NAME, spec).await;
    let applied = stage.wait_for(NAME, "applied", Phase::Completed).await;
    let mark = stage.mark();
    let annotate = async |name: &str, value: Value| {
        let patch = json!({"metadata": {"annotations": {name: value}}});
        annotator.patch("x", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    let one = |operation: Value| json!([operation]).to_string();
    for (annotation, value, becomes) in [
        (MODE, "unmanaged".to_owned(), Operation::Skipped),
        (MODE, "nonsense".to_owned(), Operation::Blocked),
        (IGNORE, "/spec/size".to_owned(), Operation::NoChange),
        (IGNORE, "nonsense".to_owned(), Operation::Blocked),
        (PATCH, one(json!({"op": "replace", "path": "/spec/size", "value": 7})), Operation::Update),
        (PATCH, one(json!({"op": "replace", "path": "/metadata/name", "value": "y"})), Operation::Blocked),
        (PATCH, one(json!({"op": "replace", "path": "/kind", "value": "Gadget"})), Operation::Blocked),
        (PATCH, "nonsense".to_owned(), Operation::Blocked),
    ] {
        annotate(annotation, json!(value)).await;
        let another = |status: &VirtPlatformConfigStatus| {
            of(status, "x").operation == becomes && status.plan_hash != applied.plan_hash
        };
        let shown = stage.wait(NAME, &value, another).await;
        assert_eq!(of(&shown, "y").operation, Operation::NoChange, "{annotation}: {value}");
        annotate(annotation, Value::Null).await;
        stage.wait(NAME, "its end", |status| status.plan_hash == applied.plan_hash).await;
    }
    stage.rest().await;
    assert_eq!(writes(&stage, &mark), [""; 0]);
    let configs: Api<VirtPlatformConfig> = Api::all(stage.plane.client("annotator", &[]).unwrap());
    assert!(configs.get(NAME).await.is_err() && !does(&configs, &Spec(json!({"action": "Apply"}))).await);
    stage.finish(running).await;
}

/// Whoever may write what a profile reads causes another plan, which waits whatever the approval
/// policy is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_inputs_causes_another_plan_and_no_write() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let writer = user_of_widgets(&stage, "writer", &["get", "list", "update", "patch"]).await;
    stage.create(&object("Widget", "source", json!({"size": 3}))).await;
    let options = json!({NAME: following("x", "Widget", &[])});
    for rule in [
        json!({"approvalPolicy": "Automatic", "bypassOptimisticLock": false}),
        json!({"approvalPolicy": "Review", "bypassOptimisticLock": true}),
        json!({"approvalPolicy": "Automatic", "bypassOptimisticLock": true}),
    ] {
        let mut spec = json!({"action": "Apply", "options": options});
        spec.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
        stage.configure_with(NAME, spec).await;
        let applied = stage.wait_for(NAME, "applied", Phase::Completed).await;
        let mark = stage.mark();
        let patch = Patch::Merge(json!({"spec": {"size": 8}}));
        writer.patch("source", &PatchParams::default(), &patch).await.unwrap();
        let shown = stage.wait(NAME, "another plan", |status| status.plan_hash != applied.plan_hash).await;
        assert_eq!(shown.phase, Some(Phase::ReviewRequired), "{rule}");
        stage.rest().await;
        assert_eq!(writes(&stage, &mark), [""; 0], "{rule}");
        stage.clear().await;
        stage.create(&object("Widget", "source", json!({"size": 3}))).await;
    }
    stage.finish(running).await;
}

/// The operator's own account approves nothing, and has none of the rights that would make it worth
/// stealing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_account_approves_nothing_and_grants_itself_nothing() {
    let stage = Stage::set().await;
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "more"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]});
    let config = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{NAME}");
    let client = stage.client();
    for (method, path, body) in [
        ("PATCH", config.as_str(), json!({"spec": {"action": "Apply"}})),
        ("DELETE", &config, Value::Null),
        ("GET", "/api/v1/secrets", Value::Null),
        ("GET", "/api/v1/namespaces/kube-system/secrets/x", Value::Null),
        ("GET", "/api/v1/configmaps", Value::Null),
        ("DELETE", "/api/v1/nodes/x", Value::Null),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding.clone()),
        (
            "PATCH",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
            json!({"metadata": {"labels": {"a": "b"}}}),
        ),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", json!({})),
        ("PATCH", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/x", json!({"metadata": {}})),
    ] {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("Content-Type", kind);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        match client.request_text(request.body(body).unwrap()).await {
            Err(Error::Api(status)) if status.code == 403 => {}
            other => panic!("{method} {path}: {other:?}"),
        }
    }
    assert_eq!(stage.configs().get(NAME).await.unwrap().spec.action, Action::DryRun);
}

/// What is too much blocks what it is about, and says how much may be: an item for its target's
/// annotation, all of them for the list of excluded objects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_of_what_others_annotate_block_and_say_so() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "platform", json!({}))).await;
    let mut options = wants(1);
    options[NAME]["exclusions"] = json!({"kind": "Widget", "name": "platform"});
    stage.configure_with(NAME, json!({"action": "Apply", "options": options})).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    let mark = stage.mark();
    let blocked = |status: &VirtPlatformConfigStatus, name: &str, says: &str| {
        of(status, name).operation == Operation::Blocked && of(status, name).message.contains(says)
    };
    let operations: Vec<_> =
        (0..=limits::OPERATIONS).map(|_| json!({"op": "test", "path": "/spec/size", "value": 1})).collect();
    stage.edit("x", json!({"metadata": {"annotations": {PATCH: json!(operations).to_string()}}})).await;
    let told = stage.wait(NAME, "operations", |status| {
        blocked(status, "x", "201 operations patch it, but at most 200 are allowed")
    });
    assert_eq!(of(&told.await, "y").operation, Operation::NoChange);
    stage.edit("x", json!({"metadata": {"annotations": {PATCH: null}}})).await;
    stage.wait_for(NAME, "corrected", Phase::Completed).await;

    let list = |count: usize| (0..count).map(|n| format!("- {{kind: W, name: n{n}}}\n")).collect::<String>();
    let annotated =
        |text: &str| json!({"metadata": {"annotations": {"platform.kubevirt.io/disabled-resources": text}}});
    stage.edit("platform", annotated(&list(limits::EXCLUSIONS + 1))).await;
    let says = "it names 1001 objects, but at most 1000 are allowed";
    stage.wait(NAME, "exclusions", |status| blocked(status, "x", says) && blocked(status, "y", says)).await;
    stage.edit("platform", annotated(&list(limits::EXCLUSIONS))).await;
    stage.wait_for(NAME, "corrected", Phase::Completed).await;
    stage.rest().await;
    assert_eq!(writes(&stage, &mark), [""; 0]);
    stage.finish(running).await;
}
