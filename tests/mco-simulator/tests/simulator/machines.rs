//! Sections 4, 5 and 8 of the observations: cordoned, not ready and failing machines.

use super::world::{World, seconds};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use mco_simulator::api::MachineConfig;
use serde_json::json;

const SETTLED: &str = "2/2 B B 3/3/0 True False";

#[tokio::test]
async fn a_cordoned_machine_reads_as_updating_without_a_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    mco_simulator::cordon(&world.client, "worker-1").await?;
    world.until("worker", "False True").await;
    let pool = world.pool("worker").await?;
    let message = pool.status.clone().unwrap_or_default().condition("Updating").cloned().unwrap_or_default().message;
    assert!(message.ends_with(&pool.spec.configuration.name), "names the configuration that is there: {message}");
    mco_simulator::uncordon(&world.client, "worker-1").await?;
    world.until("worker", "True False").await;
    assert_eq!(world.lines("worker"), [SETTLED, "2/2 B B 3/2/1 False True", SETTLED]);
    world.end().await
}

#[tokio::test]
async fn a_machine_that_is_not_ready_reads_as_updating_too() -> anyhow::Result<()> {
    let world = World::new().await?;
    for (status, text) in [("False", "3/2/1 False True"), ("True", "3/3/0 True False")] {
        let condition = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let nodes: Api<Node> = Api::all(world.client.clone());
        nodes.patch_status("worker-1", &PatchParams::default(), &Patch::Strategic(condition)).await?;
        world.until("worker", text).await;
    }
    world.end().await
}

#[tokio::test]
async fn one_cordoned_machine_holds_a_roll_out_up_for_ever() -> anyhow::Result<()> {
    let world = World::new().await?;
    mco_simulator::cordon(&world.client, "worker-2").await?;
    world.until("worker", "3/2/1 False True").await;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "3/3 C B 0/0/1 False True").await;
    seconds(40.0).await;
    assert!(world.told().is_empty());
    assert_eq!(world.lines("worker").last().map(String::as_str), Some("3/3 C B 0/0/1 False True"));
    mco_simulator::uncordon(&world.client, "worker-2").await?;
    world.until("worker", "C C").await;
    world.end().await
}

#[tokio::test]
async fn a_failing_machine_degrades_the_pool_and_stops_the_others() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.simulator.fail_machine("worker-1", "disk is full");
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "NodeDegraded Degraded").await;
    seconds(15.0).await;
    assert_eq!(
        world.lines("worker").last().map(String::as_str),
        Some("3/3 C B 1/1/1 False True NodeDegraded Degraded")
    );
    let status = world.pool("worker").await?.status.unwrap_or_default();
    let report = r#"Node worker-1 is reporting: "disk is full""#;
    for kind in ["NodeDegraded", "Degraded"] {
        let message = status.condition(kind).map(|condition| condition.message.clone()).unwrap_or_default();
        assert_eq!(message, format!("{report}, {report}"), "{kind}");
    }
    assert_eq!(status.degraded_machine_count, 1);
    assert_eq!(world.told(), ["worker-0 C", "worker-1 C"]);
    world.simulator.repair_machine("worker-1");
    world.until("worker", "C B 2/2").await;
    world.until("worker", "C C 3/3/0 True False").await;
    world.end().await
}

#[tokio::test]
async fn deleting_the_config_does_not_reach_a_failing_machine() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.simulator.fail_machine("worker-0", "no");
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C B 0/0/1 False True NodeDegraded Degraded").await;
    world.delete::<MachineConfig>("50-psi").await?;
    world.until("worker", "4/4 B B 2/2/1 False True NodeDegraded Degraded").await;
    seconds(30.0).await;
    assert_eq!(world.told(), ["worker-0 C"], "it is cordoned, so there is no capacity to tell it the old one");
    world.simulator.repair_machine("worker-0");
    world.until("worker", "B B 3/3/0 True False").await;
    assert_eq!(world.told(), ["worker-0 C", "worker-0 B"], "it finishes the deleted one first");
    world.end().await
}

#[tokio::test]
async fn every_outdated_machine_is_tainted_until_the_sync_after_it_was_told() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    for node in ["worker-0", "worker-1", "worker-2"] {
        let states = world.machine_states(node, |node| {
            let taints = node.spec.clone().unwrap_or_default().taints.unwrap_or_default();
            taints.into_iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect::<Vec<_>>()
        });
        assert_eq!(states, [vec![], vec!["UpdateInProgress:PreferNoSchedule".to_owned()], vec![]], "{node}");
    }
    world.end().await
}

#[tokio::test]
async fn a_new_machine_has_its_pools_configuration_from_the_start() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut node = mco_simulator::base::machine("worker-9", "worker", "");
    node.metadata.annotations = None;
    Api::<Node>::all(world.client.clone()).create(&Default::default(), &node).await?;
    // The API server marks it as not ready; nothing here unmarks it, and the controllers do not
    // mind.
    world.until("worker", "B B 4/4/0 True False").await;
    world.end().await
}
