//! Owns the world of one test: a control plane, the running simulator, and a record of every state
//! the pools and machines went through.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use controlplane::Lease;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use mco_simulator::api::{Configuration, KubeletConfig, MachineConfig, MachineConfigPool};
use mco_simulator::{Cluster, Settings, Simulator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Ten times faster than observed.
pub(super) const SPEED: f64 = 10.0;
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) struct World {
    pub(super) client: Client,
    pub(super) simulator: Simulator,
    pub(super) lease: Lease,
    record: watch::Receiver<Record>,
    watches: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Record {
    pools: Vec<MachineConfigPool>,
    nodes: Vec<Node>,
    /// Hashes of rendered configurations in the order they were seen: A, B, C.
    hashes: Vec<String>,
}

/// The observed seconds, in the time of the tests.
pub(super) async fn seconds(observed: f64) {
    tokio::time::sleep(Duration::from_secs_f64(observed / SPEED)).await;
}

/// One of our reduced CRDs.
pub(super) fn reduced_crd(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crds/third-party").join(name)
}

/// Those of the three kinds the simulator works on.
pub(super) fn reduced_crds() -> Vec<PathBuf> {
    ["machineconfigs.yaml", "machineconfigpools.yaml", "kubeletconfigs.yaml"].map(reduced_crd).to_vec()
}

impl World {
    /// Three workers and a master, settled, with our reduced CRDs.
    pub(super) async fn new() -> anyhow::Result<World> {
        World::with(&reduced_crds(), Cluster { workers: 3, masters: 1 }, 0).await
    }

    pub(super) async fn with(crds: &[PathBuf], cluster: Cluster, padding: usize) -> anyhow::Result<World> {
        let lease = controlplane::lease().await;
        let client = lease.admin();
        controlplane::install_crds(&client, crds).await.context("CRDs")?;
        let settings = Settings { speed: SPEED, rendered_padding: padding, ..Settings::default() };
        mco_simulator::seed(&client, &cluster, &settings).await?;
        let (sender, record) = watch::channel(Record::default());
        let pools = follow::<MachineConfigPool>(&client, sender.clone(), |record, pool| {
            let status = pool.status.clone().unwrap_or_default();
            for name in [&status.configuration.name, &pool.spec.configuration.name] {
                record.see(name);
            }
            record.pools.push(pool);
        });
        let nodes = follow::<Node>(&client, sender, |record, node| record.nodes.push(node));
        let simulator = Simulator::start(client.clone(), settings);
        let world = World { client, simulator, lease, record, watches: vec![pools, nodes] };
        // The first look of the controllers is over, and found nothing to do.
        seconds(12.0).await;
        Ok(world)
    }

    /// Must be the end of a test: the next one expects nothing to come.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.simulator.stop().await;
        self.watches.iter().for_each(JoinHandle::abort);
        Ok(())
    }

    /// Waits until the newest state of a pool reads so: the text must be found in it.
    pub(super) async fn until(&self, pool: &str, text: &str) {
        self.until_line(pool, text, |line| line.contains(text)).await;
    }

    /// The same, but this must be the end of it: nothing is degraded any more, for instance.
    pub(super) async fn until_end(&self, pool: &str, text: &str) {
        self.until_line(pool, text, |line| line.ends_with(text)).await;
    }

    /// Waits until the newest state of a pool fits; `text` says what is waited for.
    pub(super) async fn until_line(&self, pool: &str, text: &str, fits: impl Fn(&str) -> bool) {
        let mut record = self.record.clone();
        let wait = record.wait_for(|record| record.lines(pool).last().is_some_and(|line| fits(line)));
        let reached = tokio::time::timeout(PATIENCE, wait).await.is_ok_and(|waited| waited.is_ok());
        assert!(reached, "pool {pool} does not come to {text:?}:\n{}", self.lines(pool).join("\n"));
    }

    /// The distinct states of a pool so far: generation/observed, spec and status (as letters: A is
    /// the first configuration ever seen), updated/ready/unavailable, Updated, Updating, and what
    /// is degraded.
    pub(super) fn lines(&self, pool: &str) -> Vec<String> {
        self.record.borrow().lines(pool)
    }

    /// Which machines were told which configuration, in order.
    pub(super) fn told(&self) -> Vec<String> {
        let record = self.record.borrow();
        let mut last: BTreeMap<String, String> = BTreeMap::new();
        let mut told = Vec::new();
        for node in &record.nodes {
            let desired = node.annotations().get(mco_simulator::api::DESIRED_CONFIG).cloned().unwrap_or_default();
            if let Some(before) = last.insert(node.name_any(), desired.clone())
                && before != desired
            {
                told.push(format!("{} {}", node.name_any(), record.letter(&desired)));
            }
        }
        told
    }

    /// Every state a machine went through, as this function reads it, without repetitions.
    pub(super) fn machine_states<T: PartialEq>(&self, node: &str, read: impl Fn(&Node) -> T) -> Vec<T> {
        let record = self.record.borrow();
        let mut states: Vec<T> = record.nodes.iter().filter(|state| state.name_any() == node).map(read).collect();
        states.dedup();
        states
    }

    pub(super) async fn pool(&self, name: &str) -> anyhow::Result<MachineConfigPool> {
        Ok(Api::all(self.client.clone()).get(name).await?)
    }

    /// The rendered MachineConfig a pool asks for.
    pub(super) async fn rendered(&self, pool: &str) -> anyhow::Result<MachineConfig> {
        let pool = self.pool(pool).await?;
        Ok(Api::all(self.client.clone()).get(&pool.spec.configuration.name).await?)
    }

    pub(super) async fn rendered_names(&self) -> anyhow::Result<Vec<String>> {
        let configs = Api::<MachineConfig>::all(self.client.clone()).list(&Default::default()).await?;
        let names = configs.into_iter().map(|config| config.name_any());
        Ok(names.filter(|name| name.starts_with("rendered-")).collect())
    }

    pub(super) async fn create_config(&self, name: &str, role: &str, spec: Value) -> anyhow::Result<()> {
        let mut config = MachineConfig::new(name, serde_json::from_value(spec)?);
        config.labels_mut().insert(mco_simulator::api::ROLE_LABEL.to_owned(), role.to_owned());
        Api::all(self.client.clone()).create(&PostParams::default(), &config).await?;
        Ok(())
    }

    pub(super) async fn arguments(&self, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
        self.create_config(name, "worker", json!({ "kernelArguments": arguments })).await
    }

    pub(super) async fn kernel_arguments(&self, pool: &str) -> anyhow::Result<Vec<String>> {
        let arguments = self.rendered(pool).await?.spec.kernel_arguments.unwrap_or_default();
        Ok(arguments.into_iter().filter(|argument| !argument.contains("cgroup")).collect())
    }

    pub(super) async fn delete<K>(&self, name: &str) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        Api::<K>::all(self.client.clone()).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(super) async fn patch<K>(&self, name: &str, body: Value) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let params = PatchParams { field_manager: Some("tester".to_owned()), ..PatchParams::default() };
        Api::<K>::all(self.client.clone()).patch(name, &params, &Patch::Merge(body)).await?;
        Ok(())
    }

    pub(super) async fn kubelet_config(&self, name: &str, pool: &str, spec: Value) -> anyhow::Result<()> {
        let mut spec = spec;
        let label = format!("{}{pool}", mco_simulator::api::POOL_LABEL_PREFIX);
        spec["machineConfigPoolSelector"] = json!({"matchLabels": {label: ""}});
        let config = KubeletConfig::new(name, serde_json::from_value(spec)?);
        Api::all(self.client.clone()).create(&PostParams::default(), &config).await?;
        Ok(())
    }
}

/// Whether the source lists a MachineConfig.
pub(super) fn lists(configuration: &Configuration, name: &str) -> bool {
    configuration.source.iter().any(|source| source.name == name)
}

impl Record {
    fn see(&mut self, name: &str) {
        let hash = name.rsplit('-').next().unwrap_or_default();
        if !hash.is_empty() && !self.hashes.iter().any(|known| known == hash) {
            self.hashes.push(hash.to_owned());
        }
    }

    /// The letter of a configuration; masters and workers have different ones.
    fn letter(&self, name: &str) -> char {
        let hash = name.rsplit('-').next().unwrap_or_default();
        let at = self.hashes.iter().position(|known| known == hash).and_then(|at| u8::try_from(at).ok());
        at.map_or('-', |at| char::from(b'A' + at))
    }

    fn lines(&self, pool: &str) -> Vec<String> {
        let mut lines: Vec<String> =
            self.pools.iter().filter(|state| state.name_any() == pool).map(|state| self.line(state)).collect();
        lines.dedup();
        lines
    }

    fn line(&self, pool: &MachineConfigPool) -> String {
        let status = pool.status.clone().unwrap_or_default();
        let is = |kind: &str| status.condition(kind).map_or("-", |condition| &condition.status).to_owned();
        let degraded: String = ["RenderDegraded", "NodeDegraded", "Degraded"]
            .into_iter()
            .filter(|kind| status.is(kind, "True"))
            .fold(String::new(), |text, kind| text + " " + kind);
        format!(
            "{}/{} {} {} {}/{}/{} {} {}{degraded}",
            pool.metadata.generation.unwrap_or_default(),
            status.observed_generation.unwrap_or_default(),
            self.letter(&pool.spec.configuration.name),
            self.letter(&status.configuration.name),
            status.updated_machine_count,
            status.ready_machine_count,
            status.unavailable_machine_count,
            is("Updated"),
            is("Updating"),
        )
    }
}

fn follow<K>(client: &Client, sender: watch::Sender<Record>, note: fn(&mut Record, K)) -> JoinHandle<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let events = watcher(Api::<K>::all(client.clone()), watcher::Config::default()).applied_objects();
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            if let Ok(object) = event {
                sender.send_modify(|record| note(record, object));
            }
        }
    })
}
