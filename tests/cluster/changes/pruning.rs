//! What leaves a plan: taken back after a review, as far as it is ours.

use advisor_core::api::{ItemState, Operation, Phase};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::profile::{NAME, item, object};
use crate::stage::{Running, Stage};

/// The configuration has applied Widgets of these names.
async fn applied(names: &[&str]) -> (Stage, Running) {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    let items: Vec<_> = names.iter().map(|name| item(name, 0, json!({"size": 1}))).collect();
    stage.configure(NAME, "Apply", &items).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    (stage, running)
}

impl Stage {
    async fn want(&self, items: &[Value]) {
        // A list is replaced as a whole.
        self.patch(NAME, json!({"options": {NAME: {"items": items}}})).await;
    }

    async fn approve(&self) {
        let plan = self.status(NAME).await.plan_hash;
        self.patch(NAME, json!({"approvedPlanHash": plan})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_the_plan_is_removed_after_a_review_and_stays_to_be_seen() {
    let (stage, running) = applied(&["a", "b", "c"]).await;
    let kept = stage.widgets().get("a").await.unwrap().metadata.resource_version;
    stage.want(&[item("a", 0, json!({"size": 1}))]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let operations: Vec<_> = plan.items.iter().map(|item| (item.name.as_str(), item.operation, item.wave)).collect();
    let expected = [("a", Operation::NoChange, 0), ("c", Operation::Remove, 0), ("b", Operation::Remove, 0)];
    assert_eq!(operations, expected);
    assert!(plan.items[1].prune && plan.items[1].diff.contains("-  size: 1"), "{}", plan.items[1].diff);
    assert_eq!(plan.summary.as_ref().unwrap().remove, 2);
    stage.rest().await;
    assert!(stage.widgets().get_opt("b").await.unwrap().is_some(), "not without an approval");

    // A restart finds the same plan.
    drop(running);
    let running = Stage::run(stage.client());
    stage.rest().await;
    assert_eq!(stage.status(NAME).await.plan_hash, plan.plan_hash);

    stage.approve().await;
    let done = stage.wait_for(NAME, "removed", Phase::Completed).await;
    for gone in ["b", "c"] {
        assert!(stage.widgets().get_opt(gone).await.unwrap().is_none(), "{gone}");
    }
    assert_eq!(stage.widgets().get("a").await.unwrap().metadata.resource_version, kept);
    let states: Vec<_> = done.items.iter().map(|item| (item.state, item.operation)).collect();
    assert_eq!(states, [(ItemState::Completed, Operation::NoChange); 3]);
    assert!(done.items[1].message.contains("the object is already deleted"), "{}", done.items[1].message);
    assert_eq!(stage.events(NAME).await.get("ItemApplied Widget default/b"), Some(&2), "applied, and taken back");
    stage.rest().await;

    // What is done is no part of what the next approval is about: the edit that approves makes no
    // other plan.
    stage.edit("a", json!({"spec": {"size": 2}})).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.approve().await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    stage.rest().await;

    // Somebody makes an object of that name: that is none of ours.
    stage.create(&object("Widget", "b", json!({"size": 5}))).await;
    stage.rest().await;
    assert_eq!(stage.status(NAME).await.phase, Some(Phase::Completed));
    // The next edit clears what is history.
    stage.want(&[item("a", 0, json!({"size": 1, "text": "new"}))]).await;
    let plan = stage.wait_for(NAME, "another plan", Phase::ReviewRequired).await;
    assert_eq!(plan.items.len(), 1);
    stage.finish(running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_have_a_part_in_loses_only_ours() {
    let (stage, running) = applied(&["a", "b"]).await;
    stage.edit("b", json!({"metadata": {"labels": {"theirs": "1"}}, "spec": {"text": "theirs"}})).await;
    // What the kind's own controller leaves behind keeps nothing.
    let status = Patch::Merge(json!({"status": {"seen": true}}));
    stage.widgets().patch_status("a", &PatchParams::default(), &status).await.unwrap();
    stage.want(&[]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    assert!(
        plan.items[0].message.contains("other field managers own fields of it: kubectl-edit"),
        "{}",
        plan.items[0].message
    );
    assert!(plan.items[1].message.contains("The object is deleted"), "{}", plan.items[1].message);
    stage.approve().await;
    stage.wait_for(NAME, "taken back", Phase::Completed).await;
    let left = stage.widgets().get("b").await.unwrap();
    assert_eq!((left.data["spec"].get("size"), &left.data["spec"]["text"]), (None, &json!("theirs")));
    assert!(stage.widgets().get_opt("a").await.unwrap().is_none());
    stage.finish(running).await;
}

/// Never ours, or ours no more: left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_ours_is_left_alone() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "theirs", json!({"size": 1}))).await;
    stage.configure(NAME, "Apply", &[item("theirs", 0, json!({"size": 1})), item("a", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    // Somebody replaces the other one.
    stage.widgets().delete("a", &Default::default()).await.unwrap();
    stage.create(&object("Widget", "a", json!({"size": 9}))).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.want(&[]).await;
    let plan = stage.wait_for(NAME, "nothing to do", Phase::Completed).await;
    let names: Vec<_> = plan.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["a", "theirs"]);
    for item in &plan.items {
        assert!(item.message.contains("none of its fields are managed by this configuration"), "{}", item.message);
    }
    for name in ["a", "theirs"] {
        assert!(stage.widgets().get_opt(name).await.unwrap().is_some());
    }
    stage.finish(running).await;
}

/// An item that gets another object takes the first one back, after the second is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_moves_to_another_object_takes_the_first_one_back() {
    let (stage, running) = applied(&["a"]).await;
    let mut moved = item("b", 0, json!({"size": 1}));
    moved["name"] = json!("a");
    stage.want(&[moved]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let named: Vec<_> = plan.items.iter().map(|item| (item.name.as_str(), item.operation)).collect();
    let before = plan.items[1].name.clone();
    assert!(before.starts_with("a-before-"), "{before}");
    assert_eq!(named, [("a", Operation::Create), (before.as_str(), Operation::Remove)]);
    stage.approve().await;
    stage.wait_for(NAME, "moved", Phase::Completed).await;
    assert!(stage.widgets().get_opt("a").await.unwrap().is_none());
    assert!(stage.widgets().get_opt("b").await.unwrap().is_some());
    stage.finish(running).await;
}

/// W-19: an object that a finalizer keeps from going is not said to be gone; it is named with who
/// holds it, deleted once, and waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_19_what_a_finalizer_holds_is_not_gone() {
    let (stage, running) = applied(&["a", "b"]).await;
    stage.edit("b", json!({"metadata": {"finalizers": ["example.org/held"]}})).await;
    stage.want(&[item("a", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let mark = stage.mark();
    stage.approve().await;
    let is_held = |status: &advisor_core::api::VirtPlatformConfigStatus| {
        status.phase == Some(Phase::InProgress)
            && status.items.iter().any(|item| item.message.contains("example.org/held"))
    };
    let held = stage.wait(NAME, "it is held", is_held).await;
    assert_eq!(held.items[1].state, ItemState::InProgress);
    stage.rest().await;
    let deletions = stage.requests(&mark).into_iter().filter(|request| request.verb == "delete" && !request.dry_run);
    assert_eq!(deletions.count(), 1, "once");
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    stage.widgets().patch("b", &PatchParams::default(), &free).await.unwrap();
    let done = stage.wait_for(NAME, "gone", Phase::Completed).await;
    assert!(done.items[1].message.contains("the object is already deleted"), "{}", done.items[1].message);
    stage.finish(running).await;
}
