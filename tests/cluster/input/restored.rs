//! Objects as others write them: statuses of other versions that somebody restores, times that no
//! clock shows.

use advisor_core::api::{Operation, Phase};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::stage::profile::{NAME, OTHER, item};

const TIME: &str = "2026-01-01T00:00:00Z";
/// Later than anything that the operator can count.
const FOR_EVER: &str = "9999-12-31T23:59:59Z";

impl Stage {
    /// Configurations as the server has them.
    fn raw(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
        Api::all_with(self.admin.clone(), &ApiResource::from_gvk(&kind))
    }

    /// Puts a status back, as a restored backup does.
    async fn restore(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let stored = self.raw().patch_status(name, &PatchParams::default(), &patch).await;
        let stored = stored.unwrap_or_else(|error| panic!("the status is not stored: {error}"));
        let lost = difference(&status, &stored.data["status"]);
        assert_eq!(lost, None, "the server leaves nothing out and fills nothing in");
    }
}

/// Where `stored` is not what was `sent`.
fn difference(sent: &Value, stored: &Value) -> Option<String> {
    (sent != stored).then(|| format!("{sent:#} is stored as {stored:#}"))
}

/// All that the Go program writes (by its API types): an item without operation and wave, of an
/// object of that name.
fn of_the_go_program(phase: &str) -> Value {
    let condition = |name: &str, status: &str| json!({"type": name, "status": status, "reason": name, "message": "m", "lastTransitionTime": TIME});
    json!({
        "phase": phase, "impactSeverity": "High", "observedGeneration": 1, "operatorVersion": "v0.1.31",
        "sourceSnapshotHash": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "appliedOptions": {"loadAware": {"deschedulingIntervalSeconds": 60, "mode": "Automatic"}},
        "conditions": [condition(phase, "True"), condition("Ignored", "False")],
        "items": [{"name": "x", "impactSeverity": "Medium", "state": "Completed", "message": "m".repeat(5000),
            "targetRef": {"apiVersion": "example.dev/v1", "kind": "Widget", "name": "x", "namespace": "default"},
            "diff": "--- a\n+++ b\n", "desiredState": {"kind": "Widget", "spec": {"size": 1}},
            "lastTransitionTime": TIME, "managedFields": ["spec.size"]}],
    })
}

/// T15: a status of the Go program that somebody restores is stored, and planned anew; an approval
/// of before approves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_a_status_of_the_go_program_can_be_restored() {
    let stage = Stage::set().await;
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.configure(OTHER, "DryRun", &[item("y", 0, json!({"size": 1}))]).await;
    for name in [NAME, OTHER] {
        for phase in ["Pending", "Drafting", "Failed", "InProgress", "Completed"] {
            stage.restore(name, of_the_go_program(phase)).await;
        }
    }
    let running = Stage::run(stage.client());
    let planned = stage.wait(OTHER, "a plan", |status| status.plan_hash.is_some()).await;
    assert_eq!((planned.items.len(), planned.items[0].operation), (1, Operation::Create), "{planned:#?}");
    let planned = stage.wait(NAME, "a plan", |status| status.plan_hash.is_some()).await;
    stage.patch(NAME, json!({"approvedPlanHash": planned.plan_hash})).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.finish(running).await;
}

/// T15: of a status of ours, as an earlier version wrote it, nothing is lost that is remembered:
/// what was applied is still ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_a_status_that_lacks_later_members_is_restored_with_what_was_applied() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1})), item("y", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    drop(running);
    let mut status = stage.raw().get(NAME).await.unwrap().data["status"].clone();
    for item in status["items"].as_array_mut().unwrap() {
        let item = item.as_object_mut().unwrap();
        for later in ["operation", "wave", "impactSeverity", "state"] {
            item.remove(later);
        }
    }
    let emptied = Patch::Merge(json!({"status": null}));
    stage.raw().patch_status(NAME, &PatchParams::default(), &emptied).await.unwrap();
    stage.restore(NAME, status).await;
    // The second item is not wanted any more: what was applied of it is taken back, after a review.
    stage.patch(NAME, json!({"options": {NAME: {"items": [item("x", 0, json!({"size": 1}))]}}})).await;
    let running = Stage::run(stage.client());
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let operations: Vec<_> = plan.items.iter().map(|item| (item.name.as_str(), item.operation)).collect();
    assert_eq!(operations, [("x", Operation::NoChange), ("y", Operation::Remove)]);
    stage.finish(running).await;
}

/// T12: "for ever", as people write it, sets an item aside for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_a_time_beyond_what_can_be_counted_is_for_ever() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let skip = |name: &str, until: &str| json!({"name": name, "mode": "Skip", "until": until});
    let options = json!({NAME: {"items": [item("x", 0, json!({"size": 1})), item("y", 0, json!({"size": 1}))]}});
    let items = json!([skip("x", FOR_EVER), skip("y", "0000-01-01T00:00:00Z")]);
    stage.configure_with(NAME, json!({"action": "DryRun", "options": options, "items": items})).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    assert_eq!(operations, [Operation::Skipped, Operation::Create]);
    // What is no time is refused with its place; what the server took before there was a rule is
    // told in our words.
    let (wrong, now) = ("2027-01-04T08:00:00+99:99", "2027-01-04T08:00:00x5Z");
    for until in [wrong, now, "soon"] {
        let spec = Patch::Merge(json!({"spec": {"items": [skip("x", until)]}}));
        let refused = stage.raw().patch(NAME, &PatchParams::default(), &spec).await.unwrap_err().to_string();
        assert!(refused.contains("spec.items[0].until"), "{refused}");
    }
    stage.finish(running).await;
}

/// T12: the same where the CRD is older, and in the conditions of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_what_is_no_time_is_told_with_its_place_and_the_remedy() {
    let stage = Stage::set().await;
    let mut crd = serde_json::to_value(advisor_core::api::crd(crate::stage::profile::PROFILES)).unwrap();
    let until = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/items/items/properties/until";
    crd.pointer_mut(until).unwrap().as_object_mut().unwrap().remove("pattern").unwrap();
    controlplane::apply_yaml(&stage.admin, &crd.to_string(), "test").await.unwrap();
    let object = |items: Value| {
        json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": NAME},
            "spec": {"profile": NAME, "options": {NAME: {"items": [item("x", 0, json!({"size": 1}))]}}, "items": items},
        })
    };
    let wrong =
        json!([{"name": "y", "mode": "Skip"}, {"name": "x", "mode": "Skip", "until": "2027-01-04T08:00:00+99:99"}]);
    let create = |object: Value| async {
        stage.raw().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
    };
    // The server takes a moment to use the older schema.
    let until = tokio::time::Instant::now() + crate::fixture::PATIENCE;
    while let Err(error) = create(object(wrong.clone())).await {
        assert!(tokio::time::Instant::now() < until, "{error}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let running = Stage::run(stage.client());
    let failed = stage.until_failed(NAME).await;
    let told = "spec.items[1].until: \"2027-01-04T08:00:00+99:99\" is not a valid time: write it in the form 2027-01-04T08:00:00Z. Correct it";
    assert!(failed.contains(told), "{failed}");
    let corrected = Patch::Merge(json!({"spec": {"items": null}}));
    stage.raw().patch(NAME, &PatchParams::default(), &corrected).await.unwrap();
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    // A condition of somebody else, who takes another clock for granted.
    let mut status = stage.raw().get(NAME).await.unwrap().data["status"].clone();
    let theirs =
        json!({"type": "Theirs", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": FOR_EVER});
    status["conditions"].as_array_mut().unwrap().push(theirs);
    status["plannedAt"] = json!(FOR_EVER);
    let theirs = Patch::Merge(json!({"status": status}));
    stage.raw().patch_status(NAME, &PatchParams::default(), &theirs).await.unwrap();
    stage.patch(NAME, json!({"waitTimeout": "1h"})).await;
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    stage.finish(running).await;
}

impl Stage {
    /// What is said of a configuration that can't be read, as soon as it is.
    async fn until_failed(&self, name: &str) -> String {
        let until = tokio::time::Instant::now() + crate::fixture::PATIENCE;
        loop {
            let status = self.raw().get(name).await.unwrap().data["status"].clone();
            if status["phase"] == "Failed" {
                return status["summary"]["text"].as_str().unwrap().to_owned();
            }
            assert!(tokio::time::Instant::now() < until, "{status:#}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}
