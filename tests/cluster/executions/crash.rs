//! Crashes and restarts: nothing is lost, nothing is done twice, a settled object is not touched.

use advisor_core::api::Phase;
use controlplane::faults::{Fault, Script, scripted};
use http::{Method, Request};
use kube::client::Body;
use serde_json::json;

use crate::fixture::{Fixture, PATIENCE, Setup, VERSION, descheduler};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_writes_nothing_to_settled_objects() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    for spec in [
        json!({"action": "Ignore"}),
        json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}}),
        json!({"action": "Apply"}),
    ] {
        let phase = match spec["action"].as_str() {
            Some("Ignore") => Phase::Ignored,
            Some("DryRun") => Phase::ReviewRequired,
            _ => Phase::Completed,
        };
        fixture.patch(spec).await;
        fixture.wait_for(phase).await;
        // An event that a crash keeps back is recorded after it: not of that is this.
        fixture.rest().await;
        fixture.kill_operator();
        let before = fixture.config().await;
        let mark = fixture.mark();
        fixture.start_operator();
        fixture.until_watching().await;
        fixture.rest().await;
        let writes: Vec<_> = fixture.requests(&mark).into_iter().filter(|request| request.is_write()).collect();
        assert!(writes.is_empty(), "{phase:?}: {writes:#?}");
        assert_eq!(before.metadata.resource_version, fixture.config().await.metadata.resource_version, "{phase:?}");
    }
    fixture.finish().await;
}

/// Whether it changes something, and is no event.
fn changes(request: &Request<Body>) -> bool {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let other = ["/events.k8s.io/", "/authorization.k8s.io/"].iter().any(|group| path.contains(group));
    request.method() != Method::GET && !query.contains("dryRun=All") && !other
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_step_the_end_is_the_same_and_every_item_is_written_once() {
    let mut fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    let began = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    let mut kills = 0;
    // Each life of the operator ends with its next request that changes a configuration or a
    // target, before it hears the answer: it does one thing after the other, so nothing else of
    // that kind is under way then.
    loop {
        fixture.kill_operator();
        let script = Script::among(Fault::KillAfter, 0, changes);
        fixture.start_with(scripted(fixture.client(), script.clone()), VERSION);
        let killed = tokio::time::timeout(PATIENCE, script.killed());
        let completed = fixture.wait_for(Phase::Completed);
        tokio::select! {
            killed = killed => killed.expect("the execution goes on"),
            _ = completed => break,
        }
        kills += 1;
    }
    assert!(kills >= 4, "killed {kills} times");
    fixture.kill_operator();
    fixture.start_operator();
    fixture.until_watching().await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(
        fixture.target_writes(&began),
        ["patch machineconfigs 99-worker-psi-karg", "patch kubedeschedulers cluster"]
    );
    assert_eq!(done.history.len(), 1);
    fixture.finish().await;
}

/// T3: a pool that lets more machines reboot at a time than was approved, after the approval and
/// before the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_a_pool_that_changes_between_intent_and_write_asks_for_another_review() {
    let mut fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.kill_operator();
    let script = Script::among(Fault::KillAfter, 0, changes);
    fixture.start_with(scripted(fixture.client(), script.clone()), VERSION);
    fixture.patch(json!({"action": "Apply"})).await;
    tokio::time::timeout(PATIENCE, script.killed()).await.expect("the intent is stored");
    fixture.kill_operator();
    let intent = fixture.wait_for(Phase::InProgress).await;
    assert!(intent.items.iter().all(|item| item.applied.is_none()), "nothing is written yet");
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    fixture.edit(&pool, json!({"spec": {"maxUnavailable": 3}}), "admin").await;
    let mark = fixture.mark();
    fixture.start_operator();
    let stale = fixture.wait_for(Phase::ReviewRequired).await;
    let text = stale.summary.unwrap().text;
    assert!(text.contains("maxUnavailable of pool worker from 1 to 3"), "{text}");
    assert_eq!(stale.history[0].outcome, "Stale");
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.patch(json!({"approvedPlanHash": stale.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_while_the_operator_was_away_is_found_at_start() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.stop_operator().await;
    fixture.edit(&descheduler(json!({})), json!({"spec": {"mode": "Predictive"}}), "somebody").await;
    fixture.start_operator();
    let drifted = fixture.wait_for(Phase::Drifted).await;
    assert!(
        drifted
            .summary
            .unwrap()
            .text
            .contains("/spec/mode is \"Predictive\" instead of \"Automatic\", changed by field manager somebody")
    );
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_the_status_alone_is_repaired() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let forged = kube::api::Patch::Merge(
        json!({"status": {"phase": "Completed", "planHash": format!("v1:{}", "0".repeat(64))}}),
    );
    fixture.configs().patch_status(crate::fixture::PROFILE, &Default::default(), &forged).await.unwrap();
    let repaired =
        fixture.wait("the repair", |status| status.plan_hash == plan.plan_hash && status.phase == plan.phase).await;
    assert_eq!(repaired.items, plan.items);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_version_that_plans_the_same_is_adopted_silently() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.stop_operator().await;
    fixture.start_version("v9.9.9");
    let adopted = fixture.wait("the new version", |status| status.operator_version.as_deref() == Some("v9.9.9")).await;
    assert_eq!(adopted.phase, Some(Phase::Completed));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_configuration_comes_back_with_ignore_and_writes_to_no_target() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    let mark = fixture.mark();
    fixture.configs().delete(crate::fixture::PROFILE, &Default::default()).await.unwrap();
    let back = fixture.wait_for(Phase::Ignored).await;
    assert!(back.items.is_empty());
    assert_eq!(fixture.config().await.spec.options, None);
    assert!(fixture.target_writes(&mark).is_empty());
    assert!(fixture.get(&descheduler(json!({}))).await.is_some());
    fixture.finish().await;
}
