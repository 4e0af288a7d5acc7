//! The same with the real CRDs, where they are at hand: test data beside the repository, or where `ADVISOR_TEST_CRDS` says.

use std::path::{Path, PathBuf};

use super::world::World;
use mco_simulator::Cluster;
use serde_json::json;

const NAMES: [&str; 3] = ["machineconfigs.yaml", "machineconfigpools.yaml", "kubeletconfigs.yaml"];

fn real_crds() -> Option<Vec<PathBuf>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/crds");
    let folder = std::env::var_os("ADVISOR_TEST_CRDS").map_or_else(beside, PathBuf::from).join("openshift");
    let files: Vec<PathBuf> = NAMES.iter().map(|name| folder.join(name)).collect();
    files.iter().all(|file| file.exists()).then_some(files)
}

#[tokio::test]
async fn the_real_kinds_take_everything_the_simulator_writes() -> anyhow::Result<()> {
    let Some(crds) = real_crds() else {
        println!("skipped: no real CRDs");
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
