//! Approvals that are given twice, too early, or for something else; memories that are forged;
//! reads that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::api::{ItemState, Phase};
use controlplane::faults::{ruled, status};
use serde_json::json;

use crate::fixture::{Fixture, PROFILE, Setup, VERSION, descheduler, hyper_converged};

fn quick(action: &str) -> serde_json::Value {
    json!({"action": action, "options": {"loadAware": {"enablePSIMetrics": false}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_what_left_the_plan_before_the_approval_is_not_written() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait("two items", |status| status.items.len() == 2).await;
    let mark = fixture.mark();
    fixture.patch(quick("DryRun")).await;
    let shown = fixture.wait("one item", |status| status.items.len() == 1).await;
    fixture.stop_operator().await;
    fixture.start_operator();
    // The action alone would be too soon after the edit.
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": shown.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.target_writes(&mark), ["patch kubedeschedulers cluster"]);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_a_toggle_after_the_end_does_nothing_again() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("Apply")).await;
    let done = fixture.wait_for(Phase::Completed).await;
    let mark = fixture.mark();
    for action in ["DryRun", "Apply"] {
        fixture.patch(json!({"action": action})).await;
        fixture.wait_for(Phase::Completed).await;
    }
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    let again = fixture.wait_for(Phase::Completed).await;
    assert_eq!((again.items, again.history), (done.items, done.history));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_apply_right_after_an_edit_does_not_hit_the_plan_before_it() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let reviewed = fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    fixture.stop_operator().await;
    fixture.patch(json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.start_operator();
    let shown = fixture.wait_for(Phase::ReviewRequired).await;
    assert_ne!(shown.plan_hash, reviewed.plan_hash);
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.finish().await;
}

/// `approvedPlanHash` of no plan, of an older one, and one that is malformed; the action changed
/// twice within a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hashes_of_other_plans_and_hasty_edits_approve_nothing() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let older = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    fixture.wait("another plan", |status| status.plan_hash != older.plan_hash).await;
    let mark = fixture.mark();
    for hash in [older.plan_hash.unwrap(), format!("v1:{}", "0".repeat(64))] {
        fixture.patch(json!({"approvedPlanHash": hash})).await;
        fixture.wait_for(Phase::ReviewRequired).await;
    }
    let malformed = json!({"spec": {"approvedPlanHash": "v1:nonsense"}});
    let refused = fixture.configs().patch(PROFILE, &Default::default(), &kube::api::Patch::Merge(malformed)).await;
    assert!(refused.unwrap_err().to_string().contains("approvedPlanHash"));
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.patch(json!({"action": "Ignore"})).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.rest().await;
    let writes = fixture.target_writes(&mark);
    assert!(writes.len() <= 1, "at most what was approved by the action before it was taken back: {writes:?}");
    fixture.finish().await;
}

/// Defect D23: what is written never comes from the status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d23_a_forged_plan_in_the_status_is_not_what_is_written() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let shown = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.stop_operator().await;
    let mark = fixture.mark();
    let mut items = serde_json::to_value(&shown.items).unwrap();
    items[0]["desiredState"] = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "99-evil", "labels": {"machineconfiguration.openshift.io/role": "master"}}, "spec": {"kernelArguments": ["init=/bin/sh"]}});
    items[0]["targetRef"]["name"] = json!("99-evil");
    let forged = kube::api::Patch::Merge(json!({"status": {"items": items}}));
    fixture.configs().patch_status(PROFILE, &Default::default(), &forged).await.unwrap();
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.start_operator();
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(
        fixture.target_writes(&mark),
        ["patch machineconfigs 99-worker-psi-karg", "patch kubedeschedulers cluster"]
    );
    fixture.finish().await;
}

/// Defects D21, D27, D28, D32: an error of reading fails nothing, and is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d27_d28_d32_reads_that_fail_are_made_again_and_are_no_verdict() {
    let mut fixture = Fixture::without_operator(Setup::default()).await;
    let left = Arc::new(AtomicUsize::new(0));
    let (failing, parts) = (left.clone(), ["kubedeschedulers", "hyperconvergeds", "machineconfig"]);
    let rule = move |request: &http::Request<kube::client::Body>| {
        let concerned = request.method() == "GET" && parts.iter().any(|part| request.uri().path().contains(part));
        let fails = concerned && failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        fails.then(|| status(503, "ServiceUnavailable", "a fault of the test"))
    };
    let client = ruled(fixture.client(), Arc::new(rule));
    fixture.start_with(client, VERSION);
    fixture.wait_for(Phase::Ignored).await;

    left.store(2, Ordering::SeqCst);
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;

    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait("the rollout", |status| status.items[0].applied.is_some()).await;
    left.store(3, Ordering::SeqCst);
    let done = fixture.wait("the end", |status| {
        assert!(status.items.iter().all(|item| item.state != ItemState::Failed), "{status:#?}");
        status.phase == Some(Phase::Completed)
    });
    let done = done.await;

    left.store(2, Ordering::SeqCst);
    let hco = hyper_converged("v1beta1", json!({}));
    fixture.edit(&hco, json!({"metadata": {"annotations": {"unrelated": "1"}}}), "somebody").await;
    // The look is made again after pauses that grow.
    while left.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    fixture.rest().await;
    let still = fixture.wait_for(Phase::Completed).await;
    assert_eq!((still.plan_hash, still.inputs), (done.plan_hash, done.inputs), "no input became a default");

    left.store(2, Ordering::SeqCst);
    fixture.edit(&descheduler(json!({})), json!({"spec": {"mode": "Predictive"}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    fixture.finish().await;
}

/// `bypassOptimisticLock`: drift is put back without asking, a few times; then a person is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d54_drift_is_put_back_without_asking_only_so_often() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let mut spec = quick("DryRun");
    spec["bypassOptimisticLock"] = json!(true);
    fixture.patch(spec).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    let mark = fixture.mark();
    let target = descheduler(json!({}));
    for round in 2..=4 {
        fixture.edit(&target, json!({"spec": {"mode": "Predictive"}}), "rival").await;
        fixture
            .wait("the correction", |status| status.phase == Some(Phase::Completed) && status.history.len() == round)
            .await;
        assert_eq!(fixture.get(&target).await.unwrap()["spec"]["mode"], "Automatic");
    }
    fixture.edit(&target, json!({"spec": {"mode": "Predictive"}}), "rival").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    let text = drifted.summary.unwrap().text;
    assert!(text.contains("Conflicting field managers") && text.contains("three times within the last hour"), "{text}");
    fixture.rest().await;
    assert_eq!(fixture.target_writes(&mark).len(), 3);
    fixture.finish().await;
}
