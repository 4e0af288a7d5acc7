//! Targets that are unlike others: without a record of who wrote what, or as large as the server
//! allows.

use advisor_core::api::{Operation, Phase};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::stage::Stage;
use crate::stage::profile::{NAME, item, object};

/// Somebody takes the record of managers away: nothing of ours has changed, so nothing is said.
/// What changes then is drift all the same, by somebody unknown, and can be put back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_managed_fields_hide_no_drift() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "Apply", &[item("x", 0, json!({"size": 1}))]).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    for (round, stripped) in [json!([{}]), json!([])].into_iter().enumerate() {
        stage.rest().await;
        let done = stage.status(NAME).await;
        let mut whole = stage.widgets().get("x").await.unwrap();
        whole.metadata.managed_fields = serde_json::from_value(stripped).unwrap();
        stage.widgets().replace("x", &PostParams::default(), &whole).await.unwrap();
        stage.rest().await;
        assert_eq!(stage.status(NAME).await, done, "round {round}");

        // Whoever changes it leaves no trace either.
        let size = 2 + round;
        let edit = Patch::Merge(json!({"spec": {"size": size}, "metadata": {"managedFields": [{}]}}));
        stage.widgets().patch("x", &PatchParams::default(), &edit).await.unwrap();
        let plan = stage.wait_for(NAME, "drift", Phase::Drifted).await;
        let text = plan.summary.unwrap().text;
        assert!(text.contains(&format!("/spec/size is {size} instead of 1")), "{text}");
        stage.patch(NAME, json!({"approvedPlanHash": plan.plan_hash})).await;
        stage.wait_for(NAME, "put back", Phase::Completed).await;
        assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["size"], 1);
    }
    stage.finish(running).await;
}

/// An object of almost the size that the server can store is planned, applied and followed like any
/// other, and its size is not that of the status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_a_megabyte_and_a_half_are_like_any_other() {
    let stage = Stage::set().await;
    let line = "a line of sixty-four characters, as many as fit into the object\n";
    let text = line.repeat(1_500_000 / line.len());
    stage.create(&object("Widget", "x", json!({"text": text, "size": 1}))).await;
    let running = Stage::run(stage.client());
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 2}))]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    assert_eq!(plan.items[0].operation, Operation::Update);
    assert!(plan.items[0].diff.contains("-  size: 1\n+  size: 2"), "{:.500}", plan.items[0].diff);
    stage.patch(NAME, json!({"action": "Apply"})).await;
    stage.wait_for(NAME, "applied", Phase::Completed).await;
    stage.edit("x", json!({"spec": {"size": 3}})).await;
    let drifted = stage.wait_for(NAME, "drift", Phase::Drifted).await;
    let bytes = serde_json::to_vec(&drifted).unwrap().len();
    assert!(bytes < 20_000, "the status has {bytes} bytes");
    stage.patch(NAME, json!({"approvedPlanHash": drifted.plan_hash})).await;
    stage.wait_for(NAME, "put back", Phase::Completed).await;
    assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["text"], text);
    stage.finish(running).await;
}
