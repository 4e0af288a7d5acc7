//! API groups that do not answer, while the API server does: what stands behind their APIService is
//! out.

use advisor_core::api::{Operation, Phase, REPLAN_ANNOTATION};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::PATIENCE;
use crate::stage::Stage;
use crate::stage::profile::{WITH_GIZMOS, item, object};

const SERVICE: &str = "v1.example.org";
const REMEDY: &str = "the API group example.org/v1 does not respond (retrying): check its APIService v1.example.org";

impl Stage {
    /// Through a client that asks once: the other one tries for minutes what is answered with 503.
    fn gizmos(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Gizmo"));
        Api::namespaced_with(self.client(), "default", &kind)
    }

    fn services(&self) -> Api<APIService> {
        Api::all(self.admin.clone())
    }

    /// Gives the group to a Service that does not exist.
    async fn silence(&self) {
        let spec = json!({
            "group": "example.org", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "nowhere", "namespace": "default"},
        });
        // That of a CRD is the server's own as long as it has this label.
        let taken = json!({"metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}}, "spec": spec});
        if self.services().get_opt(SERVICE).await.unwrap().is_some() {
            self.services().patch(SERVICE, &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
        } else {
            let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": SERVICE}, "spec": spec});
            controlplane::apply_yaml(&self.admin, &service.to_string(), "test").await.unwrap();
        }
        self.until_gizmos(false, 503).await;
    }

    /// Takes it away again: the group is that of the CRD, if there is one.
    async fn let_speak(&self) {
        self.services().delete(SERVICE, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until gizmos are served, or answered with that code.
    async fn until_gizmos(&self, served: bool, code: u16) {
        let until = Instant::now() + PATIENCE;
        let gizmos = self.gizmos();
        loop {
            let answer = gizmos.list(&ListParams::default()).await;
            match &answer {
                Ok(_) if served => return,
                Err(kube::Error::Api(status)) if !served && status.code == code => return,
                Ok(_) | Err(_) => {}
            }
            assert!(Instant::now() < until, "{answer:?}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    async fn install_gizmos(&self) {
        let widget = std::fs::read_to_string(crate::fixture::root().join("tests/cluster/plans/widget.yaml")).unwrap();
        let crd = widget.replace("Widget", "Gizmo").replace("widget", "gizmo").replace("example.dev", "example.org");
        controlplane::apply_yaml(&self.admin, &crd, "test").await.unwrap();
    }

    /// Asks for a look at everything, as an administrator does who does not want to wait two
    /// minutes.
    async fn replan(&self, value: &str) {
        let annotation = Patch::Merge(json!({"metadata": {"annotations": {REPLAN_ANNOTATION: value}}}));
        self.configs().patch(WITH_GIZMOS, &PatchParams::default(), &annotation).await.unwrap();
    }
}

fn gizmo() -> Value {
    let mut gizmo = object("Gizmo", "g", json!({"size": 1}));
    gizmo["apiVersion"] = json!("example.org/v1");
    json!({"name": "gizmo", "optional": true, "feature": "gizmos", "object": gizmo})
}

/// T12: an optional kind behind an APIService without a Service holds up nothing but its own item.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_a_group_that_does_not_answer_holds_up_its_own_items_alone() {
    let stage = Stage::set().await;
    stage.silence().await;
    let running = Stage::run(stage.client());
    stage.configure(WITH_GIZMOS, "DryRun", &[item("x", 0, json!({"size": 1})), gizmo()]).await;
    let plan = stage.wait_for(WITH_GIZMOS, "a plan", Phase::ReviewRequired).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    assert_eq!(operations, [Operation::Create, Operation::Blocked], "never taken for not served: {plan:#?}");
    assert!(plan.items[1].message.contains(REMEDY), "{}", plan.items[1].message);
    assert!(plan.left_out.is_empty(), "{:?}", plan.left_out);

    // Set aside, the rest is carried out.
    stage.patch(WITH_GIZMOS, json!({"items": [{"name": "gizmo", "mode": "Skip"}]})).await;
    let plan = stage.wait(WITH_GIZMOS, "the rest", |status| status.items[1].operation == Operation::Skipped).await;
    stage.patch(WITH_GIZMOS, json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    stage.wait_for(WITH_GIZMOS, "applied", Phase::Completed).await;
    stage.patch(WITH_GIZMOS, json!({"items": []})).await;
    stage.wait(WITH_GIZMOS, "blocked again", |status| status.items[1].operation == Operation::Blocked).await;

    // Without the APIService the kind is not served, and that is known.
    stage.let_speak().await;
    stage.until_gizmos(false, 404).await;
    stage.replan("not served").await;
    let left_out = stage.wait_for(WITH_GIZMOS, "the rest", Phase::Completed).await;
    assert!(left_out.items.len() == 1 && left_out.left_out[0].reason.contains("no kind Gizmo"), "{left_out:#?}");

    // With its CRD it is.
    stage.install_gizmos().await;
    let appears = |status: &advisor_core::api::VirtPlatformConfigStatus| {
        status.items.iter().any(|item| item.name == "gizmo" && item.operation == Operation::Create)
    };
    stage.wait(WITH_GIZMOS, "the item", appears).await;
    stage.rest_of_kinds().await;
    stage.finish(running).await;
}

/// T12: what was applied of it is neither taken back nor left out while the group does not answer,
/// whether it is known from before or not; and what is needed or read of it is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_what_was_applied_in_a_group_that_falls_silent_is_never_taken_back() {
    let stage = Stage::set().await;
    stage.install_gizmos().await;
    stage.until_gizmos(true, 0).await;
    let running = Stage::run(stage.client());
    stage.configure(WITH_GIZMOS, "Apply", &[item("x", 0, json!({"size": 1})), gizmo()]).await;
    stage.wait_for(WITH_GIZMOS, "applied", Phase::Completed).await;
    stage.silence().await;
    let blocked = |status: &advisor_core::api::VirtPlatformConfigStatus| {
        let gizmo = status.items.iter().find(|item| item.name == "gizmo");
        gizmo.is_some_and(|item| item.operation == Operation::Blocked && item.message.contains(REMEDY))
    };
    // Another spec is planned at once, although the kind is known to be served. What is known of an
    // object is believed until everything is read again.
    let items = |size: i64| json!({WITH_GIZMOS: {"items": [item("x", 0, json!({"size": size})), gizmo()]}});
    let patch = json!({"metadata": {"annotations": {REPLAN_ANNOTATION: "silent"}}, "spec": {"options": items(2)}});
    stage.configs().patch(WITH_GIZMOS, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let plan = stage.wait(WITH_GIZMOS, "the silent group", blocked).await;
    assert_eq!(plan.items[0].operation, Operation::Update, "{plan:#?}");
    drop(running);

    // So it is for a process that knows nothing.
    let running = Stage::run(stage.client());
    stage.patch(WITH_GIZMOS, json!({"options": items(3)})).await;
    let plan = stage
        .wait(WITH_GIZMOS, "the silent group", |status| blocked(status) && status.items[0].diff.contains("size: 3"));
    let plan = plan.await;
    assert!(plan.left_out.is_empty() && plan.items.iter().all(|item| !item.prune), "{plan:#?}");
    // An object of it that is read is not an absent one.
    let reads =
        json!({WITH_GIZMOS: {"items": [item("x", 0, json!({"size": 3}))], "reads": [{"kind": "Gizmo", "name": "g"}]}});
    stage.patch(WITH_GIZMOS, json!({"options": reads})).await;
    let failed = stage.reading_failed(WITH_GIZMOS, "True").await;
    assert!(failed.message.contains(REMEDY), "{}", failed.message);

    stage.let_speak().await;
    stage.until_gizmos(true, 0).await;
    stage.patch(WITH_GIZMOS, json!({"options": items(1)})).await;
    let done = stage.wait_for(WITH_GIZMOS, "as it was", Phase::Completed).await;
    assert!(done.items.iter().any(|item| item.name == "gizmo" && item.operation == Operation::NoChange), "{done:#?}");
    assert_eq!(stage.gizmos().get("g").await.unwrap().data["spec"]["size"], 1);
    stage.rest_of_kinds().await;
    stage.finish(running).await;
}
