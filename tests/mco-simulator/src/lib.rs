//! Simulates, against a real API server, OpenShift's machine-config controllers (render, node,
//! kubelet-config, drain) and the daemons on the machines, with everything that can mislead a
//! client that waits for a rollout.
//!
//! The behavior was observed with openshift/machine-config-operator at commit 7ff337a4ffac;
//! README.md lists each behavior with its source, and what is not simulated. All objects are real,
//! so kubectl shows them.
//!
//! ```text
//! api.rs: the kinds -> rules/: what is decided, pure -> controllers/: what reads and writes
//! seed.rs: a cluster to begin with, and the hands of people
//! ```
//!
//! This file starts and stops the simulation; it decides nothing.

use std::sync::PoisonError;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

pub mod api;
mod controllers;
mod rules;
mod seed;

pub use rules::{base, policy, release, render};
pub use seed::{
    Cluster, Error, add_kernel_arguments, add_pool, cordon, pause, seed, set_policies, set_role, uncordon, unpause,
};

/// How the simulation runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// 1.0 takes as long as was observed; 10.0 is ten times faster. All delays keep their ratio.
    /// Above 20 the delays approach the duration of a request, and their order may suffer.
    pub speed: f64,
    /// Bytes of a filler file in the base MachineConfigs: 150000 makes rendered ones as large as in
    /// a real cluster.
    pub rendered_padding: usize,
    /// The release of the controllers.
    pub release: release::Release,
}

impl Default for Settings {
    /// The observed speed, with small objects.
    fn default() -> Self {
        Settings { speed: 1.0, rendered_padding: 0, release: release::MAIN }
    }
}

/// The running controllers and daemons. They end when this is dropped.
#[derive(Debug)]
pub struct Simulator {
    stop: DropGuard,
    task: JoinHandle<()>,
    faults: controllers::Faults,
    pokes: mpsc::UnboundedSender<()>,
}

impl Simulator {
    /// Starts on the current Tokio runtime. Waits for kinds that are not served yet.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(client: Client, settings: Settings) -> Simulator {
        let (stop, faults) = (CancellationToken::new(), controllers::Faults::default());
        let (pokes, poked) = mpsc::unbounded_channel();
        let pace = controllers::queue::Pace::new(settings.speed);
        let controllers = controllers::Controllers::new(client, pace, faults.clone(), settings.release);
        let task = tokio::spawn(controllers.run(stop.clone(), poked));
        Simulator { stop: stop.drop_guard(), task, faults, pokes }
    }

    /// Ends the simulation and returns after its last write.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the simulation had failed");
        }
    }

    /// Makes the daemon of this machine fail in its current or next update, once the machine is
    /// drained: state `Degraded` with this reason, and the machine stays cordoned.
    pub fn fail_machine(&self, node: &str, reason: &str) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.insert(node.to_owned(), reason.to_owned());
        drop(faults);
        self.poke();
    }

    /// Removes the fault: the daemon continues where it failed.
    pub fn repair_machine(&self, node: &str) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
        self.poke();
    }

    fn poke(&self) {
        if self.pokes.send(()).is_err() {
            tracing::debug!("the simulation has ended");
        }
    }
}
