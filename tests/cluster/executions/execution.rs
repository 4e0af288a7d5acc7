//! The execution: waves, waiting for pools, failure.

use advisor_core::api::{ItemState, Operation, Phase};
use serde_json::json;

use crate::fixture::{Fixture, Setup, descheduler};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_descheduler_waits_until_every_machine_has_psi() {
    let fixture = Fixture::start(Setup { speed: 10.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    // In the seconds after the write the pool still says Updated: that is not believed.
    while fixture.get(&descheduler(json!({}))).await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = fixture.get(&pool).await.unwrap();
    let rendered = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": pool["status"]["configuration"]["name"]}});
    let rendered = fixture.get(&rendered).await.unwrap();
    assert!(rendered["spec"]["kernelArguments"].as_array().unwrap().contains(&json!("psi=1")), "{rendered:#}");
    assert_eq!(pool["status"]["updatedMachineCount"], 3);
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_pool_is_said_before_and_during_and_is_no_failure() {
    let fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    mco_simulator::pause(&fixture.admin, "worker").await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "waitTimeout": "2s"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(plan.items[0].message.contains("worker is paused"), "{}", plan.items[0].message);
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait("the pause", |status| status.items[0].message.contains("unpause it")).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let waiting = fixture.wait_for(Phase::InProgress).await;
    assert_eq!(waiting.items[0].state, ItemState::InProgress, "the limit stands still while the pool is paused");
    fixture.patch(json!({"waitTimeout": null})).await;
    mco_simulator::unpause(&fixture.admin, "worker").await.unwrap();
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollout_that_outlasts_the_limit_fails_and_is_left_by_a_new_plan() {
    let mut fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.stop_simulator().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "waitTimeout": "1s"})).await;
    let failed = fixture.wait_for(Phase::Failed).await;
    assert_eq!(failed.items[0].state, ItemState::Failed);
    assert_eq!(failed.items[1].state, ItemState::Pending, "with Abort the later items stay");
    assert!(failed.items[0].message.contains("spec.waitTimeout"), "{}", failed.items[0].message);
    assert_eq!(failed.history[0].outcome, "Failed");
    fixture.rest().await;

    fixture.patch(json!({"waitTimeout": "1h"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(plan.items[0].operation, Operation::NoChange);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_continue_the_others_go_on_and_the_errors_stay_said() {
    let mut fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.stop_simulator().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "waitTimeout": "1s", "failurePolicy": "Continue"})).await;
    let ended = fixture.wait_for(Phase::CompletedWithErrors).await;
    let states: Vec<_> = ended.items.iter().map(|item| item.state).collect();
    assert_eq!(states, [ItemState::Failed, ItemState::Completed]);
    let completed = ended.conditions.iter().find(|condition| condition.type_ == "Completed").unwrap();
    assert_eq!(completed.status, "False");
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_no_machine_would_get_is_blocked_with_the_remedy() {
    let fixture = Fixture::start(Setup { workers: 0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    let blocked = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(blocked.items[0].operation, Operation::Blocked);
    assert!(blocked.items[0].message.contains("target pool master"), "{}", blocked.items[0].message);
    assert_eq!(blocked.items[1].operation, Operation::Create, "one blocked item hides no other");
    fixture.patch(json!({"approvedPlanHash": blocked.plan_hash})).await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty(), "a plan with a blocked item can't be approved");
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_pool_blocks_until_it_is_there() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    fixture.api(&pool).delete("worker", &Default::default()).await.unwrap();
    let mut fixture = fixture;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let blocked = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(blocked.items[0].message.contains("no MachineConfigPool selects"), "{}", blocked.items[0].message);
    // Somebody makes the pool: seen without an event of any object of the plan.
    let settings = mco_simulator::Settings { speed: 25.0, rendered_padding: 0, ..Default::default() };
    let machines = mco_simulator::Cluster { workers: 3, masters: 1 };
    mco_simulator::seed(&fixture.admin, &machines, &settings).await.unwrap();
    let plan = fixture
        .wait("the unblocked plan", |status| status.items.iter().all(|item| item.operation == Operation::Create));
    assert_eq!(plan.await.summary.unwrap().machines_to_reboot, 3);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_somebody_else_during_the_rollout_stops_it() {
    let mut fixture = Fixture::start(Setup { speed: 2.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait("the first write", |status| status.items.first().is_some_and(|item| item.applied.is_some())).await;
    let target = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "99-worker-psi-karg"}});
    fixture.edit(&target, json!({"spec": {"kernelArguments": []}}), "somebody").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    fixture.stop_simulator().await;
    assert!(drifted.summary.unwrap().text.contains("somebody"));
    fixture.rest().await;
    assert_eq!(
        fixture.target_writes(&mark),
        ["patch machineconfigs 99-worker-psi-karg"],
        "an emergency edit is never put back unasked"
    );
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_comes_between_review_and_approval_asks_for_another_review() {
    let fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "DryRun"})).await;
    let reviewed = fixture.wait_for(Phase::ReviewRequired).await;
    mco_simulator::add_pool(&fixture.admin, "infra").await.unwrap();
    mco_simulator::set_role(&fixture.admin, "worker-0", "infra", true).await.unwrap();
    let plan = fixture.wait("the other pool", |status| status.items[0].pools.len() == 2).await;
    assert_ne!(plan.plan_hash, reviewed.plan_hash, "the set of pools that reboot is part of what is approved");
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": reviewed.plan_hash})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.finish().await;
}

/// Fault T13: how many machines reboot at a time is read off the pool, also while a plan waits for
/// its review.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t13_a_plan_that_waits_says_how_many_machines_reboot_at_once_as_the_pool_has_it_now() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(plan.items[0].message.contains("3 machines of pool worker, one by one."), "{}", plan.items[0].message);
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    for (written, says) in [
        (json!(2), "3 machines of pool worker, at most 2 at a time."),
        (json!("100%"), "3 machines of pool worker, all at once."),
        (json!("two"), "The maxUnavailable of MachineConfigPool worker, \"two\", is not valid"),
        (json!(null), "3 machines of pool worker, one by one."),
    ] {
        fixture.edit(&pool, json!({"spec": {"maxUnavailable": written}}), "admin").await;
        fixture.wait(says, |status| status.items[0].message.contains(says)).await;
    }
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taking_something_out_again_is_not_done_before_the_machines_have_lost_it() {
    let fixture = Fixture::start(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    let target = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "99-worker-psi-karg"}});
    fixture.edit(&target, json!({"spec": {"kernelArguments": ["psi=1", "debug"]}}), "somebody").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    // The machines get it.
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let rendered = async || {
        let pool = fixture.get(&pool).await.unwrap();
        let name = pool["status"]["configuration"]["name"].clone();
        let rendered = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name}});
        fixture.get(&rendered).await.unwrap()["spec"]["kernelArguments"].as_array().unwrap().clone()
    };
    while !rendered().await.contains(&json!("debug")) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    fixture.patch(json!({"approvedPlanHash": drifted.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert!(!rendered().await.contains(&json!("debug")), "completed while the machines still had it");
    fixture.finish().await;
}

/// A machine that somebody cordoned holds everything up for ever, and no condition of the pool says
/// so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_somebody_cordoned_is_named() {
    let mut fixture = Fixture::without_operator(Setup { speed: 25.0, ..Setup::default() }).await;
    mco_simulator::cordon(&fixture.admin, "worker-1").await.unwrap();
    fixture.patience = std::time::Duration::from_millis(1500);
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let held_up =
        fixture.wait("the name", |status| status.items.iter().any(|item| item.message.contains("worker-1"))).await;
    assert!(
        held_up.items[0].message.contains("uncordon machines that should be updated"),
        "{}",
        held_up.items[0].message
    );
    assert!(held_up.summary.unwrap().text.contains("worker-1"));
    mco_simulator::uncordon(&fixture.admin, "worker-1").await.unwrap();
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

/// A refused KubeletConfig keeps the pool from rendering anything, and the pool shows no sign of
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_kubelet_config_that_blocks_the_pool_is_named() {
    let mut fixture = Fixture::without_operator(Setup { speed: 25.0, ..Setup::default() }).await;
    let refused = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "bad"},
        "spec": {
            "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
            "kubeletConfig": {"cgroupDriver": "cgroupfs"},
        },
    });
    fixture.create(&refused, "somebody").await;
    fixture.patience = std::time::Duration::from_millis(1500);
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let held_up = fixture
        .wait("the name", |status| status.items.iter().any(|item| item.message.contains("KubeletConfig bad")))
        .await;
    assert!(held_up.items[0].message.contains("delete it"), "{}", held_up.items[0].message);
    fixture.api(&refused).delete("bad", &Default::default()).await.unwrap();
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

/// Fault R9: a pool that can't be rendered is said beforehand, is another plan, and ends the
/// execution with the remedy after a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r9_a_pool_that_can_not_be_rendered_ends_the_execution_and_says_what_to_do() {
    let mut fixture = Fixture::without_operator(Setup { speed: 25.0, ..Setup::default() }).await;
    fixture.patience = std::time::Duration::from_millis(1500);
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let before = fixture.wait_for(Phase::ReviewRequired).await;
    let bad = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "50-bad", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelType": "none-of-these"},
    });
    fixture.create(&bad, "somebody").await;
    let degraded = fixture
        .wait("the degraded pool", |status| {
            status.plan_hash != before.plan_hash
                && status.items.iter().any(|item| item.message.contains("is degraded already"))
        })
        .await;
    assert!(degraded.summary.unwrap().text.contains("pool worker is now degraded"), "{:#?}", degraded.items);
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": degraded.plan_hash})).await;
    let failed = fixture.wait_for(Phase::Failed).await;
    let text = failed.summary.unwrap().text;
    assert!(
        text.contains("can't render it")
            && text.contains("none-of-these")
            && text.contains("correct or delete the faulty MachineConfig"),
        "{text}"
    );
    fixture.api(&bad).delete("50-bad", &Default::default()).await.unwrap();
    fixture.patch(json!({"waitTimeout": "1h"})).await;
    fixture
        .wait("the rest of it", |status| {
            matches!(status.phase, Some(Phase::ReviewRequired | Phase::InProgress | Phase::Completed))
        })
        .await;
    fixture.finish().await;
}
