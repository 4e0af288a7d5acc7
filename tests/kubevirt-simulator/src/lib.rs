//! Simulates, against a real API server, KubeVirt's virt-controller and virt-handler, the guests in
//! the machines, and what binds and grows their claims. README.md lists each rule with its source,
//! and what is not simulated.
//!
//! ```text
//! rules/: what is decided, pure -> play/: what watches, reads and writes
//! admission/: the webhooks as policies; install.rs: kinds; hands.rs: what people and others do
//! ```
//!
//! This file starts and stops the simulation; it decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub mod admission;
mod hands;
mod install;
mod play;
mod rules;

pub use admission::admission;
pub use hands::{
    add_volume, configure, remove_volume, set_mac, storage_class, virtctl_restart, virtctl_start, virtctl_stop,
};
pub use install::{Error, crds, install};

/// When a claim of a storage class is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// As soon as it exists.
    Immediate,
    /// When a machine that names it is scheduled.
    WaitForFirstConsumer,
}

/// What happens to edits of a running machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutStrategy {
    /// Those that can be live reach the running machine.
    LiveUpdate,
    /// All of them wait for a restart.
    Stage,
}

/// How a change reaches a running machine that has to move for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMethod {
    /// By a live migration.
    LiveMigrate,
    /// By the end of the machine, which its run strategy may start anew.
    Evict,
}

/// How the simulation runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// 1.0 gives a phase of a start 50 ms, and a whole start a quarter of a second. 10.0 is ten
    /// times faster. Real clusters are about a hundred times slower than 1.0.
    pub speed: f64,
    /// Whether the guests have a guest agent.
    pub agent: bool,
    /// Used as long as there is no KubeVirt object, or it does not say.
    pub rollout: RolloutStrategy,
    /// Used as long as there is no KubeVirt object, or it does not say.
    pub methods: Vec<UpdateMethod>,
    /// How many requests may run side by side.
    pub concurrency: usize,
}

impl Default for Settings {
    /// KubeVirt's defaults: live updates, and no update methods.
    fn default() -> Self {
        Settings { speed: 1.0, agent: true, rollout: RolloutStrategy::LiveUpdate, methods: Vec::new(), concurrency: 8 }
    }
}

impl Settings {
    /// The time of one phase.
    pub(crate) fn step(&self) -> Duration {
        Duration::from_millis(50).div_f64(self.speed)
    }
}

/// What goes wrong with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// No node has room for it.
    Unschedulable,
    /// The guest reports no addresses, and the pod has none.
    NoAddresses,
    /// The guest never comes up: the instance fails before it runs.
    StartFailure,
    /// virt-controller never lets go of the VirtualMachine once it is deleted.
    HangsInDeletion,
}

type Faults = Arc<Mutex<BTreeMap<(String, String), Vec<Fault>>>>;

/// The running controllers, nodes and guests, in every namespace. They end when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    stop: DropGuard,
    task: JoinHandle<()>,
    faults: Faults,
    pokes: mpsc::UnboundedSender<(String, String)>,
}

impl Simulator {
    /// Starts on the current Tokio runtime. Waits for kinds that are not served yet.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn start(client: Client, settings: Settings) -> Simulator {
        let (stop, faults) = (CancellationToken::new(), Faults::default());
        let (pokes, poked) = mpsc::unbounded_channel();
        let task = tokio::spawn(play::run(client, settings, faults.clone(), stop.clone(), poked));
        Simulator { stop: stop.drop_guard(), task, faults, pokes }
    }

    /// Ends the simulation and returns after its last write.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the simulation had failed");
        }
    }

    /// Adds a fault to the machine of this name, whether it exists yet or not.
    pub fn fail(&self, namespace: &str, name: &str, fault: Fault) {
        self.change(namespace, name, |faults| faults.push(fault));
    }

    /// Removes all faults of this machine; it continues where it has stopped.
    pub fn repair(&self, namespace: &str, name: &str) {
        self.change(namespace, name, Vec::clear);
    }

    fn change(&self, namespace: &str, name: &str, change: impl FnOnce(&mut Vec<Fault>)) {
        let key = (namespace.to_owned(), name.to_owned());
        change(self.faults.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default());
        if self.pokes.send(key).is_err() {
            tracing::debug!("the simulation has ended");
        }
    }
}
