//! Sections 4, 5 and 7 of the observations: what a change of content, or of nothing, does; and what
//! cannot be rendered.

use super::world::{World, lists, seconds};
use kube::ResourceExt;
use mco_simulator::api::MachineConfig;
use serde_json::json;

const SETTLED: &str = "2/2 B B 3/3/0 True False";

#[tokio::test]
async fn equal_content_is_a_step_of_the_generation_and_no_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.create_config("50-empty", "worker", json!({})).await?;
    world.until("worker", "3/3 B B").await;
    let pool = world.pool("worker").await?;
    let status = pool.status.unwrap_or_default();
    assert!(lists(&pool.spec.configuration, "50-empty") && lists(&status.configuration, "50-empty"));
    world.delete::<MachineConfig>("50-empty").await?;
    world.until("worker", "4/4 B B").await;
    assert_eq!(
        world.lines("worker"),
        [
            SETTLED,
            "3/2 B B 3/3/0 True False",
            "3/3 B B 3/3/0 True False",
            "4/3 B B 3/3/0 True False",
            "4/4 B B 3/3/0 True False",
        ]
    );
    assert!(world.told().is_empty());
    world.end().await
}

#[tokio::test]
async fn a_file_that_is_there_byte_for_byte_is_no_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    let rendered = world.rendered("worker").await?;
    let file = &rendered.spec.config["storage"]["files"][0];
    let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}});
    world.create_config("50-same", "worker", json!({ "config": config })).await?;
    world.until("worker", "3/3 B B").await;
    assert!(world.told().is_empty());
    assert_eq!(world.rendered_names().await?.len(), 2);
    world.end().await
}

#[tokio::test]
async fn the_same_kernel_argument_twice_stays_twice_and_reboots_everything() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    world.arguments("60-psi", &["psi=1"]).await?;
    world.until("worker", "D D").await;
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=1", "psi=1"]);
    assert_eq!(world.told().len(), 6);
    world.end().await
}

#[tokio::test]
async fn a_nonsense_kernel_degrades_rendering_and_everything_else_says_fine() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.create_config("50-kernel", "worker", json!({"kernelType": "nonsense"})).await?;
    world.until("worker", "True False RenderDegraded Degraded").await;
    let status = world.pool("worker").await?.status.unwrap_or_default();
    let message = |kind: &str| status.condition(kind).map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message("RenderDegraded").contains("kernelType=nonsense is invalid"), "{}", message("RenderDegraded"));
    assert_eq!(message("Degraded"), "");
    world.delete::<MachineConfig>("50-kernel").await?;
    world.until_end("worker", SETTLED).await;
    let lines = world.lines("worker");
    assert_eq!(
        lines,
        [
            SETTLED.to_owned(),
            format!("{SETTLED} RenderDegraded"),
            format!("{SETTLED} RenderDegraded Degraded"),
            format!("{SETTLED} Degraded"),
            SETTLED.to_owned(),
        ]
    );
    world.end().await
}

#[tokio::test]
async fn an_irreconcilable_change_is_named() -> anyhow::Result<()> {
    let world = World::new().await?;
    let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/var/d"}]}});
    world.create_config("50-directory", "worker", json!({ "config": config })).await?;
    world.until("worker", "True False RenderDegraded").await;
    let status = world.pool("worker").await?.status.unwrap_or_default();
    let message = status.condition("RenderDegraded").map(|condition| condition.message.clone()).unwrap_or_default();
    assert!(message.contains("\"50-directory\"") && message.contains("directories"), "{message}");
    assert!(world.told().is_empty());
    world.end().await
}

#[tokio::test]
async fn a_change_of_labels_is_noticed_only_with_the_next_event() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    seconds(6.0).await;
    let role = json!({"metadata": {"labels": {mco_simulator::api::ROLE_LABEL: "master"}}});
    world.patch::<MachineConfig>("50-psi", role).await?;
    seconds(15.0).await;
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=1"], "still there");
    assert!(world.kernel_arguments("master").await?.is_empty(), "not there yet");
    world.arguments("51-other", &["other=1"]).await?;
    world.until("worker", "D D").await;
    assert_eq!(world.kernel_arguments("worker").await?, ["other=1"]);
    world.end().await
}

#[tokio::test]
async fn nothing_is_written_while_nothing_happens_and_objects_are_as_large_as_real_ones() -> anyhow::Result<()> {
    let cluster = mco_simulator::Cluster { workers: 2, masters: 1 };
    let world = World::with(&super::world::reduced_crds(), cluster, 150_000).await?;
    let rendered = world.rendered("worker").await?;
    let size = serde_json::to_string(&rendered)?.len();
    assert!((150_000..200_000).contains(&size), "{size}");
    assert_eq!(rendered.owner_references()[0].kind, "MachineConfigPool");
    assert!(rendered.labels().is_empty());
    let audit = world.lease.audit();
    let mark = audit.mark();
    seconds(20.0).await;
    // The API server renews its own lease now and then.
    let of_others = |request: &controlplane::Request| request.is_write() && request.user != "system:apiserver";
    let writes: Vec<_> = audit.since(&mark).into_iter().filter(of_others).collect();
    assert!(writes.is_empty(), "{writes:?}");
    world.end().await
}
