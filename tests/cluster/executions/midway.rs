//! What the world does while a plan is carried out.

use std::time::Duration;

use advisor_core::api::{ItemState, Phase, VirtPlatformConfigStatus};
use controlplane::install_crds;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, third_party};

fn pool() -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}})
}

fn machine_config() -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "99-worker-psi-karg"}})
}

/// An execution whose first item is written.
async fn under_way(speed: f64) -> (Fixture, VirtPlatformConfigStatus) {
    let fixture = Fixture::start(Setup { speed, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let status =
        fixture.wait("the first write", |status| status.items.first().is_some_and(|item| item.applied.is_some())).await;
    (fixture, status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_deleted_during_the_execution_is_not_made_again() {
    let (mut fixture, _) = under_way(2.0).await;
    let mark = fixture.mark();
    fixture.api(&machine_config()).delete("99-worker-psi-karg", &Default::default()).await.unwrap();
    let drifted = fixture.wait_for(Phase::Drifted).await;
    assert!(drifted.summary.unwrap().text.contains("was deleted"));
    assert_eq!(drifted.history[0].outcome, "Stale");
    fixture.stop_simulator().await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_goes_during_the_execution_is_missing_and_its_return_asks_for_a_review() {
    let (mut fixture, _) = under_way(2.0).await;
    let mark = fixture.mark();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let crds: Api<DynamicObject> = Api::all_with(fixture.admin.clone(), &kind);
    crds.delete("kubedeschedulers.operator.openshift.io", &Default::default()).await.unwrap();
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await;
    assert!(missing.summary.unwrap().text.contains("Kube Descheduler Operator"));
    assert_eq!(missing.history[0].outcome, "Stale");
    install_crds(&fixture.admin, &[third_party("kubedeschedulers")]).await.unwrap();
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.stop_simulator().await;
    // Discovery follows its CRDs with a lag, and is asked again for some seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty(), "what was approved is used up");
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_deleted_during_the_wait_is_said_to_be_gone() {
    let (mut fixture, _) = under_way(2.0).await;
    fixture.stop_simulator().await;
    fixture.api(&pool()).delete("worker", &Default::default()).await.unwrap();
    let waiting =
        fixture.wait("the pool's end", |status| status.items[0].message.contains("no MachineConfigPool")).await;
    assert_eq!((waiting.phase, waiting.items[0].state), (Some(Phase::InProgress), ItemState::InProgress));
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_fails_is_said_with_its_reason_and_is_no_failure_of_the_item() {
    let fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.fail_machine("worker-1", "disk full");
    fixture.patch(json!({"action": "Apply"})).await;
    let degraded = fixture
        .wait("the reason", |status| status.items.first().is_some_and(|item| item.message.contains("disk full")));
    let degraded = degraded.await;
    assert_eq!((degraded.phase, degraded.items[0].state), (Some(Phase::InProgress), ItemState::InProgress));
    fixture.repair_machine("worker-1");
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

/// Five hundred machines that report five times a second: the status is written once in ten
/// seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_hundreds_of_machines_costs_a_write_in_ten_seconds() {
    let (mut fixture, _) = under_way(25.0).await;
    let mark = fixture.mark();
    let rendered = async || {
        let live = fixture.get(&pool()).await.unwrap();
        let sources = live["spec"]["configuration"]["source"].as_array().cloned().unwrap_or_default();
        sources
            .iter()
            .any(|source| source["name"] == "99-worker-psi-karg")
            .then(|| live["spec"]["configuration"].clone())
    };
    let configuration = loop {
        if let Some(configuration) = rendered().await {
            break configuration;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    fixture.stop_simulator().await;
    let live = fixture.get(&pool()).await.unwrap();
    let report = async |updated: u32, more: Value| {
        let mut status = json!({"observedGeneration": live["metadata"]["generation"], "machineCount": 500, "updatedMachineCount": updated,
            "readyMachineCount": updated, "unavailableMachineCount": 500 - updated});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let patch = Patch::Merge(json!({"status": status}));
        fixture.api(&pool()).patch_status("worker", &PatchParams::default(), &patch).await.unwrap();
    };
    let seconds = 12;
    for step in 0..seconds * 5 {
        report(
            step * 8,
            json!({"conditions": [{"type": "Updating", "status": "True"}, {"type": "Updated", "status": "False"}]}),
        )
        .await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let writes = |requests: Vec<controlplane::Request>| {
        requests.iter().filter(|request| request.subresource == "status").count()
    };
    let during = writes(fixture.requests(&mark));
    assert!((1..=3).contains(&during), "{during} status writes in {seconds} s");
    let reads =
        fixture.requests(&mark).into_iter().filter(|request| !request.is_watch() && !request.is_write()).count();
    report(
        500,
        json!({"configuration": configuration, "unavailableMachineCount": 0,
        "conditions": [{"type": "Updating", "status": "False"}, {"type": "Updated", "status": "True"}]}),
    )
    .await;
    fixture.wait_for(Phase::Completed).await;
    let all = writes(fixture.requests(&mark));
    println!(
        "500 machines: {during} progress writes and {reads} reads in {seconds} s, {} writes to finish",
        all - during
    );
    // What is done of the first wave with the intent of the second, the second written, completed.
    assert_eq!(all - during, 3);
    fixture.finish().await;
}
