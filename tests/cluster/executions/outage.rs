//! An API server that is away, at the start and in between.

use std::time::Duration;

use advisor_core::api::Phase;
use serde_json::json;

use crate::fixture::{Fixture, Setup, descheduler};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_at_the_start_is_waited_for() {
    let mut fixture = Fixture::without_operator(Setup::default()).await;
    fixture.stop_simulator().await;
    fixture.plane.stop_server().await.unwrap();
    fixture.start_operator();
    tokio::time::sleep(Duration::from_secs(2)).await;
    fixture.plane.start_server().await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    fixture.finish_after_outage().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_while_the_server_was_away_is_found() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.stop_simulator().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.plane.stop_server().await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    fixture.plane.start_server().await.unwrap();
    fixture.edit(&descheduler(json!({})), json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    // Watches come back with growing pauses: until then there may be requests.
    fixture.until_watching().await;
    fixture.finish_after_outage().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_told_from_one_that_answers() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.stop_simulator().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.plane.pause_server().unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    fixture.plane.resume_server().unwrap();
    fixture.patch(json!({"options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait("the new plan", |status| status.items.len() == 1).await;
    fixture.finish().await;
}
