//! Two configurations and one object.

use advisor_core::api::{Operation, Phase};
use serde_json::json;

use crate::stage::Stage;
use crate::stage::profile::{NAME, OTHER, item};

/// Whoever wants another value of a field that nobody holds yet is told of the other, both ways,
/// and neither can be approved; the one that changes its mind frees both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_want_different_values_are_both_blocked_and_name_each_other() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "alone", Phase::ReviewRequired).await;
    stage.configure(OTHER, "DryRun", &[item("x", 0, json!({"size": 2, "text": "t"}))]).await;
    for (name, other) in [(NAME, OTHER), (OTHER, NAME)] {
        let blocked = stage.wait(name, "Blocked", |status| status.items[0].operation == Operation::Blocked).await;
        let says = format!("configuration {other} wants a different value at /spec/size");
        assert!(blocked.items[0].message.contains(&says), "{}", blocked.items[0].message);
    }
    for name in [NAME, OTHER] {
        stage.patch(name, json!({"action": "Apply"})).await;
    }
    stage.wait(NAME, "seen", |status| status.phase == Some(Phase::ReviewRequired)).await;
    stage.rest().await;
    assert!(stage.widgets().get_opt("x").await.unwrap().is_none(), "nobody may write it");

    // A restart finds everything as it is, and says nothing new.
    let before = [stage.status(NAME).await, stage.status(OTHER).await];
    drop(running);
    let running = Stage::run(stage.client());
    stage.rest().await;
    assert_eq!(before, [stage.status(NAME).await, stage.status(OTHER).await]);

    // What both want alike is no matter.
    let same = [item("x", 0, json!({"size": 1, "text": "t"}))];
    stage.patch(OTHER, json!({"action": "DryRun", "options": {OTHER: {"items": same}}})).await;
    for name in [NAME, OTHER] {
        stage.wait(name, "free", |status| status.items[0].operation == Operation::Create).await;
    }
    stage.finish(running).await;
}

/// Who has applied a value holds it: a wish of another configuration does not disturb it, and an
/// execution goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_who_holds_a_field_is_not_disturbed_by_what_another_one_wishes() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    let done = stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.configure(OTHER, "Apply", &[item("x", 0, json!({"size": 2})), item("y", 0, json!({"size": 2}))]).await;
    let blocked = stage.wait_for(OTHER, "refused", Phase::ReviewRequired).await;
    assert!(blocked.items[0].message.contains("configuration first wants a different value"), "{blocked:?}");
    stage.rest().await;
    assert_eq!(stage.status(NAME).await, done);
    // What somebody changes of it is drift, and can be put back.
    stage.edit("x", json!({"spec": {"size": 3}})).await;
    let drifted = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.patch(NAME, json!({"approvedPlanHash": drifted.plan_hash})).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    // It can change its mind, too.
    let items = [item("x", 0, json!({"size": 3}))];
    stage.patch(NAME, json!({"action": "DryRun", "options": {NAME: {"items": items}}})).await;
    let plan = stage.wait_for(NAME, "edited", Phase::ReviewRequired).await;
    assert_eq!(plan.items[0].operation, Operation::Update);
    // Standing aside frees the other.
    stage.patch(NAME, json!({"action": "Ignore"})).await;
    stage.wait_for(NAME, "aside", Phase::Ignored).await;
    let shown = stage.wait(OTHER, "still", |status| status.phase == Some(Phase::ReviewRequired)).await;
    assert_eq!(shown.items[0].operation, Operation::Blocked, "the server still says whose it is");
    stage.finish(running).await;
}

/// Where each has fields of its own, each takes its own back, and the other one's stay; what both
/// count on stays until both let go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_takes_its_own_fields_back_and_leaves_the_others() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1, "mode": "Fast"}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.configure(OTHER, "Apply", &[item("x", 0, json!({"text": "t", "mode": "Fast"}))]).await;
    stage.wait_for(OTHER, "applied beside it", Phase::Completed).await;
    let nothing = json!({"action": "DryRun", "options": {NAME: {"items": []}}});
    stage.patch(NAME, nothing).await;
    let plan = stage.wait(NAME, "a removal", |status| status.items[0].operation == Operation::Remove).await;
    assert!(plan.items[0].message.contains("stays"), "{}", plan.items[0].message);
    stage.patch(NAME, json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    stage.wait_for(NAME, "taken back", Phase::Completed).await;
    stage.rest().await;
    assert_eq!(stage.status(OTHER).await.phase, Some(Phase::Completed), "nothing of its own has changed");
    let left = stage.widgets().get("x").await.unwrap();
    assert_eq!(left.data["spec"], json!({"text": "t", "mode": "Fast"}));
    stage.finish(running).await;
}

/// An object that another configuration wants as well, and does not own since it was there as
/// wanted, is not removed under it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_configuration_wants_as_well_is_not_removed() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.configure(OTHER, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(OTHER, "as wanted", Phase::Completed).await;
    let nothing = json!({"approvalPolicy": "Automatic", "options": {NAME: {"items": []}}});
    stage.patch(NAME, nothing).await;
    let blocked = stage.wait_for(NAME, "no removal", Phase::ReviewRequired).await;
    assert_eq!(blocked.items[0].operation, Operation::Blocked);
    assert!(blocked.items[0].message.contains("configuration second also wants Widget default/x"), "{blocked:?}");
    stage.patch(OTHER, json!({"action": "Ignore"})).await;
    stage.wait(NAME, "free", |status| status.items[0].operation == Operation::Remove).await;
    assert!(stage.widgets().get_opt("x").await.unwrap().is_some());
    stage.finish(running).await;
}
