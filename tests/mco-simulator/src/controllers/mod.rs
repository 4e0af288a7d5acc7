//! The loop: it takes in changes, queues pools, machines and KubeletConfigs for as long as the real
//! controllers do, and syncs those that are due. The syncs are in the `sync_*` files.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed): the event handlers
//! of pkg/controller/render/render_controller.go, pkg/controller/node/node_controller.go,
//! pkg/controller/kubelet-config/kubelet_config_controller.go and
//! pkg/controller/drain/drain_controller.go.

pub(crate) mod clock;
mod mirror;
pub(crate) mod queue;
mod sync_kubelet;
mod sync_machine;
mod sync_node;
mod sync_policy;
pub(crate) mod sync_render;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::api::{CURRENT_CONFIG, KubeletConfig, MachineConfig, MachineConfigPool, MachineConfiguration};
use crate::controllers::mirror::{Change, Mirror, watch};
use crate::controllers::queue::{Pace, Queue};
use crate::rules::daemon;
use crate::rules::node;
use crate::rules::policy;
use crate::rules::release::Release;
use crate::rules::render::RenderError;
use crate::rules::select;

/// Machines whose updates fail, with the reason.
pub(crate) type Faults = Arc<Mutex<BTreeMap<String, String>>>;

/// Why a sync failed and is repeated.
#[derive(Debug, Error)]
pub(crate) enum SyncError {
    /// A request failed; conflicts are common.
    #[error("request failed")]
    Request(#[from] kube::Error),
    /// The pool cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A KubeletConfig blocks the rendering of the pool.
    #[error("{0}")]
    Blocked(String),
    /// A KubeletConfig selects a pool that has not been rendered yet.
    #[error("pool {0} is unconfigured")]
    Unconfigured(String),
}

/// One event of one of the watches.
pub(crate) enum Seen {
    /// Of a MachineConfig.
    Config(Box<Event<MachineConfig>>),
    /// Of a pool.
    Pool(Box<Event<MachineConfigPool>>),
    /// Of a machine.
    Node(Box<Event<Node>>),
    /// Of a KubeletConfig.
    Kubelet(Box<Event<KubeletConfig>>),
    /// Of the MachineConfiguration.
    Configuration(Box<Event<MachineConfiguration>>),
}

/// All controllers and daemons.
pub(crate) struct Controllers {
    pub(crate) client: Client,
    pub(crate) configs: Mirror<MachineConfig>,
    pub(crate) pools: Mirror<MachineConfigPool>,
    pub(crate) nodes: Mirror<Node>,
    pub(crate) kubelets: Mirror<KubeletConfig>,
    pub(crate) configurations: Mirror<MachineConfiguration>,
    pub(crate) release: Release,
    /// uid and generation of the KubeletConfigs that have been synced.
    pub(crate) seen: Mutex<BTreeMap<String, (String, i64)>>,
    pace: Pace,
    faults: Faults,
    node_queue: Queue,
    render_queue: Queue,
    kubelet_queue: Queue,
    drain_queue: Queue,
    daemon_queue: Queue,
    operator_queue: Queue,
}

impl Controllers {
    /// With empty copies and queues.
    pub(crate) fn new(client: Client, pace: Pace, faults: Faults, release: Release) -> Controllers {
        Controllers {
            client,
            configs: Mirror::default(),
            pools: Mirror::default(),
            nodes: Mirror::default(),
            kubelets: Mirror::default(),
            configurations: Mirror::default(),
            release,
            seen: Mutex::default(),
            pace,
            faults,
            node_queue: Queue::default(),
            render_queue: Queue::default(),
            kubelet_queue: Queue::default(),
            drain_queue: Queue::default(),
            daemon_queue: Queue::default(),
            operator_queue: Queue::default(),
        }
    }

    /// Runs until stopped. A message on `pokes` says that the faults have changed.
    pub(crate) async fn run(mut self, stop: CancellationToken, mut pokes: mpsc::UnboundedReceiver<()>) {
        let mut events = watch_all(&self.client);
        loop {
            let due = self.next_due();
            let wake = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(seen) = events.next() => self.observe(seen, Instant::now()),
                Some(()) = pokes.recv() => self.look_at_daemons(Instant::now()),
                () = wake => self.work(Instant::now()).await,
            }
        }
    }

    fn queues(&self) -> [&Queue; 6] {
        [
            &self.node_queue,
            &self.render_queue,
            &self.kubelet_queue,
            &self.drain_queue,
            &self.daemon_queue,
            &self.operator_queue,
        ]
    }

    /// Nothing is due before the first lists are complete.
    fn next_due(&self) -> Option<Instant> {
        let synced = self.configs.is_synced() && self.pools.is_synced() && self.nodes.is_synced();
        self.queues().into_iter().filter_map(Queue::next).min().filter(|_| synced)
    }

    /// Syncs everything that is due. If two syncs are due at once, the node controller's comes
    /// first: a render at the same moment then has an outdated copy of the pool, fails and is
    /// repeated (seen with new pools).
    async fn work(&mut self, now: Instant) {
        let due = self.node_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_node(key).boxed()).await {
            settle(&mut self.node_queue, self.pace, "node", &key, result);
        }
        let due = self.render_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_render(key).boxed()).await {
            settle(&mut self.render_queue, self.pace, "render", &key, result);
        }
        let due = self.kubelet_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_kubelet(key).boxed()).await {
            settle(&mut self.kubelet_queue, self.pace, "kubelet-config", &key, result);
        }
        let due = self.drain_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_drain(key).boxed()).await {
            settle(&mut self.drain_queue, self.pace, "drain", &key, result);
        }
        let due = self.daemon_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_daemon(key).boxed()).await {
            settle(&mut self.daemon_queue, self.pace, "daemon", &key, result);
        }
        let due = self.operator_queue.take_due(now);
        for (key, result) in each(due, |key| self.sync_policies(key).boxed()).await {
            settle(&mut self.operator_queue, self.pace, "operator", &key, result);
        }
    }

    fn observe(&mut self, seen: Seen, now: Instant) {
        match seen {
            Seen::Config(event) => {
                for change in self.configs.take(*event) {
                    self.config_changed(&change, now);
                }
            }
            Seen::Pool(event) => {
                for change in self.pools.take(*event) {
                    let Some(pool) = change.new else { continue };
                    self.render_queue.add(&pool.name_any(), now + self.pace.render());
                    self.node_queue.add(&pool.name_any(), now + self.pace.node());
                    self.look_at_daemons(now);
                }
            }
            Seen::Node(event) => {
                for change in self.nodes.take(*event) {
                    self.node_changed(&change, now);
                }
            }
            Seen::Configuration(event) => {
                for change in self.configurations.take(*event) {
                    if let Some(configuration) = change.new.filter(|_| self.release.policies) {
                        self.operator_queue.add(&configuration.name_any(), now + self.pace.daemon());
                    }
                    self.look_at_daemons(now);
                }
            }
            Seen::Kubelet(event) => {
                for change in self.kubelets.take(*event) {
                    if let Some(config) = change.new {
                        self.kubelet_queue.add(&config.name_any(), now + self.pace.kubelet());
                    }
                }
            }
        }
    }

    /// A change that leaves the spec unchanged (labels, annotations) is ignored, even if another
    /// pool now selects the MachineConfig.
    fn config_changed(&mut self, change: &Change<MachineConfig>, now: Instant) {
        let Some(config) = change.new.as_ref().or(change.old.as_ref()) else {
            return;
        };
        if let (Some(old), Some(new)) = (&change.old, &change.new)
            && old.spec == new.spec
        {
            return;
        }
        for pool in self.pools_of_config(config) {
            self.render_queue.add(&pool, now + self.pace.render());
        }
    }

    fn pools_of_config(&self, config: &MachineConfig) -> Vec<String> {
        let owner = config.owner_references().iter().find(|owner| owner.controller == Some(true));
        let pool = owner.filter(|owner| owner.kind == "MachineConfigPool").and_then(|owner| {
            self.pools.get(&owner.name).filter(|pool| pool.metadata.uid.as_ref() == Some(&owner.uid))
        });
        if let Some(pool) = pool {
            return vec![pool.name_any()];
        }
        let selects =
            |pool: &&MachineConfigPool| select::selects(pool.spec.machine_config_selector.as_ref(), config.labels());
        self.pools.all().filter(selects).map(ResourceExt::name_any).collect()
    }

    fn node_changed(&mut self, change: &Change<Node>, now: Instant) {
        let pools_of = |node: Option<&Arc<Node>>| -> Vec<String> {
            node.map(|node| node::pools_of(node, self.pools.all()).into_iter().map(ResourceExt::name_any).collect())
                .unwrap_or_default()
        };
        let (before, after) = (pools_of(change.old.as_ref()), pools_of(change.new.as_ref()));
        let concerned: BTreeSet<String> = match (&change.old, &change.new) {
            (Some(old), Some(new)) if node::is_news(old, new) => {
                let left = before.into_iter().take(1).filter(|old| after.first().is_some_and(|new| new != old));
                left.chain(after.iter().cloned()).collect()
            }
            (Some(_), Some(_)) => BTreeSet::new(),
            _ => before.into_iter().chain(after).collect(),
        };
        for pool in concerned {
            self.node_queue.add(&pool, now + self.pace.node());
        }
        let Some(new) = &change.new else { return };
        if daemon::open_request(new).is_some() {
            self.drain_queue.add(&new.name_any(), now + self.pace.drain());
        }
        if self.next_step(new).is_some() {
            self.daemon_queue.add(&new.name_any(), now + self.pace.daemon());
        }
    }

    /// Queues the daemons that have something to do: faults, or the configuration that new machines
    /// start with, may have changed.
    fn look_at_daemons(&mut self, now: Instant) {
        let waiting = self.nodes.all().filter(|node| self.next_step(node).is_some());
        let waiting: Vec<String> = waiting.map(ResourceExt::name_any).collect();
        for name in waiting {
            self.daemon_queue.add(&name, now + self.pace.daemon());
        }
    }

    pub(crate) fn next_step(&self, node: &Node) -> Option<daemon::Step> {
        let pools = node::pools_of(node, self.pools.all());
        let config = |key| self.configs.get(node::annotation(node, key));
        let (current, desired) = (config(CURRENT_CONFIG), config(crate::api::DESIRED_CONFIG));
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let configuration = self.configurations.get(policy::CLUSTER).map(AsRef::as_ref);
        let disruption = match current.zip(desired) {
            // Without the kind, as in a reduced cluster, no policy can spare machines the reboot.
            _ if self.release.policies && configuration.is_none() => Some(policy::REBOOT),
            Some((current, desired)) => {
                policy::disruption(&current.spec, &desired.spec, configuration, self.release.policies)
            }
            None => Some(policy::REBOOT),
        };
        daemon::next_step(
            node,
            &daemon::Surroundings {
                pool_target: pools.first().map(|pool| pool.spec.configuration.name.clone()).unwrap_or_default(),
                same_content: current.zip(desired).is_some_and(|(current, desired)| current.spec == desired.spec),
                disruption,
                fault: faults.get(&node.name_any()).cloned(),
            },
        )
    }

    /// Changes an object or its status by a merge patch. With a `resourceVersion` in the body it
    /// fails on a conflict.
    pub(crate) async fn patch<K>(&self, name: &str, part: Part, manager: &str, body: Value) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        match part {
            Part::Object => api.patch(name, &params, &Patch::Merge(body)).await?,
            Part::Status => api.patch_status(name, &params, &Patch::Merge(body)).await?,
            Part::Conditions => api.patch_status(name, &params, &Patch::Strategic(body)).await?,
        };
        Ok(())
    }
}

/// The part of an object that a patch changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Everything but the status.
    Object,
    /// The status.
    Status,
    /// Single conditions of a machine, merged by type.
    Conditions,
}

async fn each<'a>(
    keys: Vec<String>,
    sync: impl Fn(String) -> futures::future::BoxFuture<'a, Result<(), SyncError>>,
) -> Vec<(String, Result<(), SyncError>)> {
    stream::iter(keys).then(|key| sync(key.clone()).map(|result| (key, result))).collect().await
}

fn settle(queue: &mut Queue, pace: Pace, controller: &str, key: &str, result: Result<(), SyncError>) {
    match result {
        Ok(()) => queue.forget(key),
        Err(error) => {
            tracing::debug!(controller, key, %error, "comes up again");
            queue.retry(key, Instant::now(), pace);
        }
    }
}

fn watch_all(client: &Client) -> BoxStream<'static, Seen> {
    let streams = [
        watch(client.clone()).map(|event| Seen::Config(Box::new(event))).boxed(),
        watch(client.clone()).map(|event| Seen::Pool(Box::new(event))).boxed(),
        watch(client.clone()).map(|event| Seen::Node(Box::new(event))).boxed(),
        watch(client.clone()).map(|event| Seen::Kubelet(Box::new(event))).boxed(),
        watch(client.clone()).map(|event| Seen::Configuration(Box::new(event))).boxed(),
    ];
    stream::select_all(streams).boxed()
}
