//! What is taken back is followed until no machine has it any more, whatever becomes of its
//! execution.

use advisor_core::api::{Item, ItemState, Phase, VirtPlatformConfigStatus};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup};

fn pool() -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}})
}

fn removal(status: &VirtPlatformConfigStatus) -> &Item {
    status.items.iter().find(|item| item.prune).expect("a removal")
}

/// Fault R3: withdrawn, or after a restart of the operator, a removal that no machine has carried
/// out read Completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r3_what_is_taken_back_is_followed_after_a_withdrawal_and_a_restart() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.patch(json!({"options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.edit(&pool(), json!({"spec": {"paused": true}}), "somebody").await;
    let mark = fixture.mark();
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    fixture
        .wait("the pause", |status| status.items.iter().any(|item| item.prune && item.message.contains("paused")))
        .await;
    assert_eq!(fixture.target_writes(&mark), ["delete machineconfigs 99-worker-psi-karg"]);

    fixture.patch(json!({"action": "DryRun"})).await;
    let withdrawn = fixture
        .wait("the withdrawal", |status| status.history.first().is_some_and(|entry| entry.outcome == "Withdrawn"));
    let withdrawn = withdrawn.await;
    assert_eq!(
        (withdrawn.phase, removal(&withdrawn).state),
        (Some(Phase::InProgress), ItemState::InProgress),
        "{withdrawn:#?}"
    );
    fixture.rest().await;
    fixture.stop_operator().await;
    fixture.start_operator();
    fixture.rest().await;
    let after = fixture.wait_for(Phase::InProgress).await;
    assert!(after.summary.as_ref().unwrap().text.contains("Not everything is in effect yet"), "{after:#?}");
    assert!(removal(&after).message.contains("worker"), "{}", removal(&after).message);

    fixture.edit(&pool(), json!({"spec": {"paused": false}}), "somebody").await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(removal(&done).state, ItemState::Completed);
    let live = fixture.get(&pool()).await.unwrap();
    assert_eq!(live["status"]["configuration"]["name"], live["spec"]["configuration"]["name"], "the machines are done");
    fixture.finish().await;
}
