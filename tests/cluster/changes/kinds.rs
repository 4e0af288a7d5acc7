//! Kinds that come, go and change while the operator runs.

use std::time::Duration;

use advisor_core::api::{Operation, Phase};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::PATIENCE;
use crate::stage::Stage;
use crate::stage::profile::{NAME, WITH_GADGETS, following, item, object};

/// Connections that clients may have opened meanwhile, each of which is a task: fewer than a leak
/// in each of fifty rounds.
const CONNECTIONS: usize = 20;
/// The CRD of Gadget.
const GADGETS: &str = "gadgets.example.dev";

impl Stage {
    fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.admin.clone())
    }

    async fn uninstall(&self, name: &str) {
        self.crds().delete(name, &DeleteParams::default()).await.unwrap();
        let until = Instant::now() + PATIENCE;
        while self.crds().get_opt(name).await.unwrap().is_some() {
            assert!(Instant::now() < until, "{name} does not go");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Watches of that kind that the server has open now, as it counts them.
    async fn open_watches(&self, resource: &str) -> f64 {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = self.admin.request_text(request).await.unwrap();
        let of_kind = format!("resource=\"{resource}\"");
        let lines = text.lines().filter(|line| {
            line.starts_with("apiserver_longrunning_requests{") && line.contains("WATCH") && line.contains(&of_kind)
        });
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    async fn until_watches(&self, resource: &str, wanted: f64) {
        let until = Instant::now() + PATIENCE;
        loop {
            let open = self.open_watches(resource).await;
            if (open - wanted).abs() < 0.5 {
                return;
            }
            assert!(Instant::now() < until, "{open} watches of {resource} are open instead of {wanted}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// As [`Stage::rest`], after a change of a kind: discovery lags, and is asked again up to three
    /// seconds later.
    pub async fn rest_of_kinds(&self) {
        tokio::time::sleep(Duration::from_millis(3200)).await;
        self.rest().await;
    }

    /// Waits for the number of tasks: what was aborted ends a moment later.
    async fn until_tasks(&self, most: usize) {
        let until = Instant::now() + PATIENCE;
        while tokio::runtime::Handle::current().metrics().num_alive_tasks() > most {
            let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            assert!(Instant::now() < until, "{alive} tasks instead of {most}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// C1, C2, D67: a kind that comes and goes again and again. Each time it is seen, and nothing is
/// left open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_c2_a_kind_may_come_and_go_as_often_as_it_likes() {
    let rounds = if std::env::var("ADVISOR_TEST_FAULTS").is_ok_and(|which| which == "all") { 50 } else { 5 };
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    // A kind is watched as long as something is planned of it.
    let gadget = json!({"name": "g", "object": object("Gadget", "g", json!({"size": 1}))});
    stage.configure(WITH_GADGETS, "DryRun", &[item("x", 0, json!({"size": 1})), gadget]).await;
    let missing = stage.wait_for(WITH_GADGETS, "nothing yet", Phase::PrerequisiteFailed).await;
    assert!(missing.summary.unwrap().text.contains("Gadget (CRD gadgets.example.dev) is not installed"));
    let mut tasks = None;
    for round in 0..rounds {
        stage.install("Gadget").await;
        stage.wait_for(WITH_GADGETS, "a plan", Phase::ReviewRequired).await;
        stage.until_watches("gadgets", 1.0).await;
        stage.uninstall(GADGETS).await;
        stage.wait_for(WITH_GADGETS, "gone again", Phase::PrerequisiteFailed).await;
        stage.until_watches("gadgets", 0.0).await;
        match tasks {
            None => {
                stage.rest_of_kinds().await;
                tasks = Some(tokio::runtime::Handle::current().metrics().num_alive_tasks());
            }
            Some(most) if round + 1 == rounds => stage.until_tasks(most + CONNECTIONS).await,
            Some(_) => {}
        }
    }
    stage.rest_of_kinds().await;
    // No loop on what is not there.
    let mark = stage.mark();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(stage.requests(&mark).is_empty(), "{:#?}", stage.requests(&mark));
    stage.finish(running).await;
}

/// C5: a kind that comes and goes during an execution does not disturb it, as long as nobody needs
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_a_kind_that_nobody_needs_disturbs_nothing() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "one", json!({"size": 1}))).await;
    let ready = |is: &str| Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": is}]}}));
    stage.widgets().patch_status("one", &PatchParams::default(), &ready("False")).await.unwrap();
    let items = [item("one", 0, json!({"text": "a"})), item("two", 1, json!({"size": 2}))];
    stage.configure(NAME, "DryRun", &items).await;
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    stage.patch(NAME, json!({"action": "Apply"})).await;
    let first = stage.wait(NAME, "the first wave", |status| status.items[0].applied.is_some()).await;
    stage.install("Gadget").await;
    stage.uninstall(GADGETS).await;
    stage.rest().await;
    assert_eq!(stage.status(NAME).await.approval, first.approval, "the same execution");
    stage.widgets().patch_status("one", &PatchParams::default(), &ready("True")).await.unwrap();
    stage.wait_for(NAME, "the end", Phase::Completed).await;
    stage.finish(running).await;
}

/// An input whose kind changes its version, goes, and comes back: read in what is served, and never
/// taken for drift of a target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_may_change_its_version_under_a_running_operator() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    stage.create(&object("Gadget", "source", json!({"size": 1}))).await;
    let running = Stage::run(stage.client());
    let options = following("x", "Gadget", &[]);
    stage.configure_with(WITH_GADGETS, json!({"action": "Apply", "options": {WITH_GADGETS: options}})).await;
    let done = stage.wait_for(WITH_GADGETS, "applied", Phase::Completed).await;
    assert_eq!(
        (&done.inputs[0].value, done.inputs[0].target.api_version.as_str()),
        (&Some(json!(1)), "example.dev/v1")
    );

    // Another version is served beside it, and then alone. The first one is the one that the
    // profile likes best.
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    for (versions, phase) in [
        (json!([version("v1", true, true), version("v2", true, false)]), Phase::Completed),
        (json!([version("v1", false, true), version("v2", true, false)]), Phase::Completed),
    ] {
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        stage.crds().patch(GADGETS, &PatchParams::default(), &patch).await.unwrap();
        let seen = stage
            .wait(WITH_GADGETS, "the other version", |status| {
                status.inputs.first().is_some_and(|input| input.target.api_version == "example.dev/v2")
            })
            .await;
        assert!(matches!(seen.phase, Some(found) if found == phase), "{:?}", seen.phase);
        stage.rest_of_kinds().await;
    }
    let kind = kube::core::GroupVersionKind::gvk("example.dev", "v2", "Gadget");
    let gadgets: Api<kube::api::DynamicObject> =
        Api::namespaced_with(stage.admin.clone(), "default", &kube::core::ApiResource::from_gvk(&kind));
    gadgets.patch("source", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 5}}))).await.unwrap();
    let changed = stage.wait_for(WITH_GADGETS, "another input", Phase::ReviewRequired).await;
    let says = changed.conditions.iter().find(|condition| condition.type_ == "InputDependencyDrift").unwrap();
    assert!(says.status == "True" && says.message.contains("/spec/size from 1 to 5"), "{}", says.message);
    assert_eq!(changed.items[0].operation, Operation::Update);
    // Taken back, it is resolved.
    gadgets.patch("source", &PatchParams::default(), &Patch::Merge(json!({"spec": {"size": 1}}))).await.unwrap();
    stage.wait_for(WITH_GADGETS, "resolved", Phase::Completed).await;

    stage.uninstall(GADGETS).await;
    stage.wait_for(WITH_GADGETS, "gone", Phase::PrerequisiteFailed).await;
    stage.rest_of_kinds().await;
    assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["size"], 1);
    stage.finish(running).await;
}

/// A kind of the same name in another group, and an API whose server is down, hide nothing and
/// cause nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_groups_neither_disturb_nor_hide_ours() {
    let stage = Stage::set().await;
    let down = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.down.example.org"},
        "spec": {"group": "down.example.org", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "nowhere", "namespace": "default"}},
    });
    controlplane::apply_yaml(&stage.admin, &down.to_string(), "test").await.unwrap();
    let widget = std::fs::read_to_string(crate::fixture::root().join("tests/cluster/plans/widget.yaml")).unwrap();
    controlplane::apply_yaml(&stage.admin, &widget.replace("example.dev", "example.net"), "test").await.unwrap();
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    let done = stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.rest().await;
    let mark = stage.mark();
    let kind = kube::core::GroupVersionKind::gvk("example.net", "v1", "Widget");
    let theirs: Api<kube::api::DynamicObject> =
        Api::namespaced_with(stage.admin.clone(), "default", &kube::core::ApiResource::from_gvk(&kind));
    let mut other: Value = object("Widget", "x", json!({"size": 9}));
    other["apiVersion"] = json!("example.net/v1");
    let other: kube::api::DynamicObject = serde_json::from_value(other).unwrap();
    let until = Instant::now() + PATIENCE;
    while theirs.create(&Default::default(), &other).await.is_err() {
        assert!(Instant::now() < until, "the other kind is not served");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stage.rest().await;
    assert!(stage.requests(&mark).is_empty(), "{:#?}", stage.requests(&mark));
    assert_eq!(stage.status(NAME).await, done);
    let services = kube::core::GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let services: Api<kube::api::DynamicObject> =
        Api::all_with(stage.admin.clone(), &kube::core::ApiResource::from_gvk(&services));
    services.delete("v1.down.example.org", &DeleteParams::default()).await.unwrap();
    stage.finish(running).await;
}

/// C9: a configuration that a foreign finalizer keeps from going is looked at no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c9_g8_a_configuration_under_deletion_is_left_alone() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    let held = Patch::Merge(json!({"metadata": {"finalizers": ["example.org/held"]}}));
    stage.configs().patch(NAME, &PatchParams::default(), &held).await.unwrap();
    stage.rest().await;
    stage.configs().delete(NAME, &DeleteParams::default()).await.unwrap();
    stage.rest().await;
    let mark = stage.mark();
    stage.edit("x", json!({"spec": {"size": 2}})).await;
    stage.rest().await;
    assert!(stage.requests(&mark).iter().all(controlplane::Request::is_watch), "{:#?}", stage.requests(&mark));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    stage.configs().patch(NAME, &PatchParams::default(), &free).await.unwrap();
    stage.rest().await;
    assert!(stage.configs().get_opt(NAME).await.unwrap().is_none());
    assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["size"], 2, "targets stay as they are");
    stage.until_watches("widgets", 0.0).await;
    stage.finish(running).await;
}

/// P19 in the operator: what a namespace of the same plan brings is planned anew as soon as it is
/// there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p19_what_waits_for_a_namespace_is_planned_anew_when_it_is_there() {
    let stage = Stage::set().await;
    stage.install("Gadget").await;
    let running = Stage::run(stage.client());
    let space = json!({"name": "space", "wave": 0, "object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "space"}}});
    let mut inside = item("inside", 1, json!({"size": 1}));
    inside["object"]["metadata"]["namespace"] = json!("space");
    stage.configure(WITH_GADGETS, "DryRun", &[space, inside]).await;
    let plan = stage.wait_for(WITH_GADGETS, "a plan", Phase::ReviewRequired).await;
    assert_eq!(plan.items[1].operation, Operation::Deferred);
    stage.patch(WITH_GADGETS, json!({"action": "Apply"})).await;
    let next = stage
        .wait(WITH_GADGETS, "the rest", |status| {
            status.phase == Some(Phase::ReviewRequired) && status.items[1].operation == Operation::Create
        })
        .await;
    stage.patch(WITH_GADGETS, json!({"approvedPlanHash": next.plan_hash})).await;
    stage.wait_for(WITH_GADGETS, "all of it", Phase::Completed).await;
    stage.finish(running).await;
}
