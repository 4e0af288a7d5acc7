//! The same with the real CRDs, as [`controlplane::real_crds`] finds them.

use super::world::World;
use mco_simulator::Cluster;
use serde_json::json;

const FILES: [&str; 3] =
    ["openshift/machineconfigs.yaml", "openshift/machineconfigpools.yaml", "openshift/kubeletconfigs.yaml"];

#[tokio::test]
async fn the_real_kinds_take_everything_the_simulator_writes() -> anyhow::Result<()> {
    let Some(crds) = controlplane::real_crds(FILES) else {
        return Ok(());
    };
    let world = World::with(&crds, Cluster { workers: 1, masters: 1 }, 0).await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.kubelet_config("pods", "worker", json!({"kubeletConfig": {"maxPods": 300}, "logLevel": 4})).await?;
    world.until("worker", "C C").await;
    assert_eq!(
        world.lines("worker"),
        [
            "2/2 B B 1/1/0 True False",
            "3/2 C B 1/1/0 True False",
            "3/3 C B 0/0/0 False True",
            "3/3 C B 0/0/1 False True",
            "3/3 C C 1/1/0 True False",
        ]
    );
    world.create_config("60-kernel", "worker", json!({"kernelType": "nonsense"})).await?;
    world.until("worker", "True False RenderDegraded Degraded").await;
    world.end().await
}
