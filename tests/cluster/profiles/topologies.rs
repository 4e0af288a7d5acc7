//! The shapes that clusters have, and what every profile plans on each: a golden text for a shape.

use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PATIENCE, Setup, third_party};

const GROUP: &str = "machineconfiguration.openshift.io/v1";
const PROFILES: [(&str, &str); 3] = [
    ("load-aware-rebalancing", "loadAware"),
    ("virt-higher-density", "virtHigherDensity"),
    ("virt-platform-baseline", "platformBaseline"),
];

/// What is planned, without what depends on the profile alone.
fn told(profile: &str, status: &VirtPlatformConfigStatus) -> String {
    let summary = status.summary.as_ref().map(|summary| summary.text.clone()).unwrap_or_default();
    let mut lines = vec![format!("{profile}: {:?}: {summary}", status.phase.unwrap())];
    for item in &status.items {
        lines.push(format!(
            "- {} {:?} {}, pools {:?}: {}",
            item.name, item.operation, item.target_ref, item.pools, item.message
        ));
    }
    for part in status.left_out.iter().filter(|part| part.feature == "swap") {
        lines.push(format!("- not planned: {}: {}", part.feature, part.reason));
    }
    lines.join("\n")
}

impl Fixture {
    async fn all_plans(&mut self, shape: &str) {
        self.start_operator();
        let mut text = Vec::new();
        for (profile, _) in PROFILES {
            let until = tokio::time::Instant::now() + PATIENCE;
            while self.configs().get_opt(profile).await.unwrap().is_none() {
                assert!(tokio::time::Instant::now() < until, "{profile} is not advertised");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.profile = profile;
            self.patch(json!({"action": "DryRun"})).await;
            let is_told = |status: &VirtPlatformConfigStatus| {
                matches!(status.phase, Some(Phase::ReviewRequired | Phase::PrerequisiteFailed | Phase::Completed))
            };
            let status = self.wait("a plan", is_told).await;
            text.push(told(profile, &status));
        }
        insta::assert_snapshot!(format!("topology_{shape}"), text.join("\n\n"));
    }

    async fn pool_has(&self, pool: &str, machines: u64) {
        let object = json!({"apiVersion": GROUP, "kind": "MachineConfigPool", "metadata": {"name": pool}});
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(&object).await.unwrap();
            let is_settled = found["status"]["machineCount"] == machines
                && found["status"]["updatedMachineCount"] == machines
                && found["spec"]["configuration"]["name"] == found["status"]["configuration"]["name"];
            if is_settled {
                return;
            }
            assert!(tokio::time::Instant::now() < until, "pool {pool} does not settle: {found:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn masters_work(&self, masters: usize) {
        for number in 0..masters {
            mco_simulator::set_role(&self.admin, &format!("master-{number}"), "worker", true).await.unwrap();
        }
    }
}

async fn cluster(workers: usize, masters: usize) -> Fixture {
    Fixture::without_operator(Setup { workers, masters, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_a_cluster_whose_masters_work_beside_workers() {
    let mut fixture = cluster(2, 3).await;
    fixture.masters_work(3).await;
    fixture.all_plans("masters_that_work").await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_a_compact_cluster_and_of_a_single_node() {
    for (shape, masters) in [("compact", 3), ("single_node", 1)] {
        let mut fixture = cluster(0, masters).await;
        fixture.masters_work(masters).await;
        fixture.all_plans(shape).await;
        fixture.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_a_cluster_with_pools_of_its_own() {
    let mut fixture = cluster(4, 3).await;
    mco_simulator::add_pool(&fixture.admin, "infra").await.unwrap();
    mco_simulator::set_role(&fixture.admin, "worker-2", "infra", true).await.unwrap();
    // It takes in nothing that is meant for workers.
    let of_its_own = |kind: &str, name: &str, spec: Value| json!({"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "gpu"}}, "spec": spec});
    let base = json!({"config": {"ignition": {"version": "3.2.0"}}});
    fixture.create(&of_its_own("MachineConfig", "00-gpu", base), "somebody").await;
    let selectors = json!({
        "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "gpu"}},
        "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/gpu": ""}},
    });
    fixture.create(&of_its_own("MachineConfigPool", "gpu", selectors), "somebody").await;
    mco_simulator::set_role(&fixture.admin, "worker-3", "gpu", true).await.unwrap();
    for (pool, machines) in [("infra", 1), ("gpu", 1), ("worker", 2)] {
        fixture.pool_has(pool, machines).await;
    }
    fixture.all_plans("pools_of_its_own").await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_a_cluster_with_a_layered_pool() {
    let mut fixture = cluster(2, 1).await;
    controlplane::install_crds(&fixture.admin, &[third_party("machineosconfigs")]).await.unwrap();
    let layered = json!({"apiVersion": GROUP, "kind": "MachineOSConfig", "metadata": {"name": "worker"},
        "spec": {"machineConfigPool": {"name": "worker"}}});
    fixture.create(&layered, "somebody").await;
    fixture.all_plans("layered").await;
    fixture.finish().await;
}

/// Machines of hosted control planes are set up by NodePools elsewhere: here are the kinds, and no
/// pools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_a_hosted_cluster_and_of_one_without_machine_configs() {
    for (shape, has_kinds) in [("hosted", true), ("no_machine_configs", false)] {
        let mut fixture = Fixture::without_operator(Setup { pools: false, ..Setup::default() }).await;
        if has_kinds {
            let kinds = ["machineconfigs", "machineconfigpools", "kubeletconfigs"].map(third_party);
            controlplane::install_crds(&fixture.admin, &kinds).await.unwrap();
        }
        fixture.all_plans(shape).await;
        fixture.finish().await;
    }
}
