//! Sections 5 and 6 of the observations: KubeletConfigs.

use super::world::{World, lists, reduced_crd, seconds};
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use mco_simulator::Cluster;
use mco_simulator::api::{KubeletConfig, MachineConfig, NAME_SUFFIX};
use serde_json::{Value, json};

const GENERATED: &str = "99-worker-generated-kubelet";

fn api(world: &World) -> Api<KubeletConfig> {
    Api::all(world.client.clone())
}

/// Waits until the controller has given its verdict on this generation, and returns its conditions.
async fn verdict(world: &World, name: &str) -> anyhow::Result<Vec<String>> {
    loop {
        let config = api(world).get(name).await?;
        let status = config.status.unwrap_or_default();
        if status.observed_generation == config.metadata.generation {
            let conditions = status.conditions.iter();
            return Ok(conditions.map(|c| format!("{}={} {}", c.kind, c.status, c.message)).collect());
        }
        seconds(0.2).await;
    }
}

/// The kubelet's file in a MachineConfig, decoded.
fn kubelet_conf(config: &MachineConfig) -> anyhow::Result<Value> {
    let files = config.spec.config["storage"]["files"].as_array().cloned().unwrap_or_default();
    let file = files.iter().find(|file| file["path"] == "/etc/kubernetes/kubelet.conf").cloned().unwrap_or_default();
    let source = file["contents"]["source"].as_str().unwrap_or_default();
    let encoded = source.rsplit("base64,").next().unwrap_or_default();
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(encoded))?;
    Ok(serde_json::from_slice(&bytes.0)?)
}

#[tokio::test]
async fn a_kubelet_config_becomes_a_machine_config_and_rolls_out_edits_and_goes_at_once() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("pods", "worker", json!({"kubeletConfig": {"maxPods": 300}})).await?;
    assert_eq!(verdict(&world, "pods").await?, ["Accepted=True Success", "Success=True Success"]);
    let config = api(&world).get("pods").await?;
    assert_eq!(config.annotations()[NAME_SUFFIX], "");
    assert_eq!(config.finalizers(), [GENERATED]);
    let configs: Api<MachineConfig> = Api::all(world.client.clone());
    let generated = configs.get(GENERATED).await?;
    assert_eq!(generated.owner_references()[0].name, "pods");
    assert_eq!(kubelet_conf(&generated)?["maxPods"], 300);
    world.until("worker", "C C").await;
    assert_eq!(kubelet_conf(&world.rendered("worker").await?)?["maxPods"], 300);
    let lines = world.lines("worker");
    assert_eq!(lines[1], "3/2 C B 3/3/0 True False", "as any MachineConfig from here on: {lines:?}");

    let before = verdict(&world, "pods").await?;
    world.patch::<KubeletConfig>("pods", json!({"spec": {"kubeletConfig": {"maxPods": 400}}})).await?;
    assert_eq!(verdict(&world, "pods").await?, before, "current again, conditions unchanged");
    let pool = world.pool("worker").await?;
    assert!(lists(&pool.spec.configuration, GENERATED), "the MachineConfig keeps its name: no proof of anything");
    assert_eq!(kubelet_conf(&world.rendered("worker").await?)?["maxPods"], 300);
    world.until("worker", "D D").await;

    world.delete::<KubeletConfig>("pods").await?;
    while api(&world).get_opt("pods").await?.is_some() {
        seconds(0.2).await;
    }
    assert!(configs.get_opt(GENERATED).await?.is_none());
    assert!(
        world.lines("worker").last().is_some_and(|line| line.contains("D D 3/3/0 True False")),
        "gone, and the machines know nothing"
    );
    world.until("worker", "B B").await;
    world.end().await
}

#[tokio::test]
async fn a_second_kubelet_config_loses_the_settings_of_the_first() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("first", "worker", json!({"kubeletConfig": {"maxPods": 300}})).await?;
    verdict(&world, "first").await?;
    world.kubelet_config("second", "worker", json!({"kubeletConfig": {"podPidsLimit": 8192}})).await?;
    verdict(&world, "second").await?;
    let second = api(&world).get("second").await?;
    assert_eq!(
        (second.annotations()[NAME_SUFFIX].as_str(), second.finalizers()[0].as_str()),
        ("1", "99-worker-generated-kubelet-1")
    );
    world.until("worker", "C B").await;
    let content = kubelet_conf(&world.rendered("worker").await?)?;
    assert_eq!((&content["maxPods"], &content["podPidsLimit"]), (&json!(250), &json!(8192)));
    world.end().await
}

#[tokio::test]
async fn a_refused_kubelet_config_blocks_its_pool_without_a_sign() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("bad", "worker", json!({"kubeletConfig": {"cgroupDriver": "cgroupfs"}})).await?;
    let conditions = verdict(&world, "bad").await?;
    assert_eq!(conditions.len(), 2);
    assert!(
        conditions[0].starts_with("Accepted=False Error: ") && conditions[1].starts_with("Failure=True Error: "),
        "{conditions:?}"
    );
    let before = world.lines("worker");
    world.arguments("50-psi", &["psi=1"]).await?;
    seconds(40.0).await;
    assert_eq!(world.lines("worker"), before, "updated, not degraded, unchanged");
    world.delete::<KubeletConfig>("bad").await?;
    world.until("worker", "C C").await;
    assert_eq!(world.kernel_arguments("worker").await?, ["psi=1"]);
    world.end().await
}

#[tokio::test]
async fn a_refused_kubelet_config_can_be_corrected() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("config", "worker", json!({"kubeletConfig": {"failSwapOn": false, "maxPods": 300}})).await?;
    assert!(verdict(&world, "config").await?[1].starts_with("Failure=True"));
    world.patch::<KubeletConfig>("config", json!({"spec": {"kubeletConfig": {"failSwapOn": null}}})).await?;
    let conditions = verdict(&world, "config").await?;
    assert_eq!(conditions[1..], ["Accepted=True Success", "Success=True Success"], "newest last");
    world.until("worker", "C C").await;
    world.end().await
}

#[tokio::test]
async fn one_that_selects_no_pool_is_refused_and_blocks_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("lost", "nowhere", json!({"kubeletConfig": {"maxPods": 300}})).await?;
    assert!(verdict(&world, "lost").await?[0].starts_with("Accepted=False"));
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    world.end().await
}

#[tokio::test]
async fn together_with_a_machine_config_it_is_one_roll_out() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.kubelet_config("pods", "worker", json!({"kubeletConfig": {"maxPods": 300}})).await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    assert_eq!(world.told().len(), 3);
    assert_eq!(kubelet_conf(&world.rendered("worker").await?)?["maxPods"], 300);
    world.end().await
}

#[tokio::test]
async fn without_the_kind_the_rest_works_and_it_may_come_later() -> anyhow::Result<()> {
    let crds = ["machineconfigs.yaml", "machineconfigpools.yaml"].map(reduced_crd);
    let world = World::with(&crds, Cluster { workers: 1, masters: 1 }, 0).await?;
    world.arguments("50-psi", &["psi=1"]).await?;
    world.until("worker", "C C").await;
    controlplane::install_crds(&world.client, &[reduced_crd("kubeletconfigs.yaml")]).await?;
    let spec = json!({"kubeletConfig": {"maxPods": 300},
        "machineConfigPoolSelector": {"matchExpressions": [
            {"key": "pools.operator.machineconfiguration.openshift.io/worker", "operator": "Exists"}]}});
    let config = KubeletConfig::new("late", serde_json::from_value(spec)?);
    api(&world).create(&PostParams::default(), &config).await?;
    world.until("worker", "D D").await;
    world.end().await
}
