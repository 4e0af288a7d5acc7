//! The operator: watches configurations, looks at them, does what was decided.

mod act;
mod advertise;
mod caught;
mod claims;
mod error;
mod gather;
mod memory;
mod reconcile;
mod report;
mod run;
mod schedule;
mod start;
mod state;
mod triggers;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::telemetry::{Metrics, Traces};
use advisor_cluster::Cluster;
use advisor_core::api::VirtPlatformConfig;
use advisor_core::plan::decision::execution::SETTLING;
use advisor_core::rollout::Rollouts;
use advisor_engine::registry::{self, Profiles};
use claims::Claims;
use memory::Memory;
use operator_kit::leader::Fence;
use triggers::{Causes, Triggers};
use watches::Watches;

pub use caught::is_caught;
pub use run::run;
pub use state::Sources;
pub use watches::health::{Health, WatchHealth, WatchState};

/// Configurations that are looked at at the same time.
pub const CONCURRENCY: u16 = 2;

/// What every look needs.
struct Context {
    cluster: Arc<Cluster>,
    triggers: Arc<Triggers>,
    watches: Watches,
    rollouts: Arc<dyn Rollouts>,
    claims: Claims,
    memories: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Memory>>>>,
    /// By name, the uid of the object whose plan was on display last: it may have been deleted, and read.
    displayed: Mutex<BTreeMap<String, String>>,
    profiles: Profiles,
    version: &'static str,
    patience: Duration,
    settling: SignedDuration,
    fence: Fence,
    metrics: Metrics,
    traces: Traces,
    stop: CancellationToken,
}

impl Context {
    fn memory(&self, config: &str) -> Arc<tokio::sync::Mutex<Memory>> {
        let mut memories = self.memories.lock();
        memories.entry(config.to_owned()).or_default().clone()
    }

    /// A plan of `config` is on display.
    fn displays(&self, config: &VirtPlatformConfig) {
        let mut displayed = self.displayed.lock();
        displayed.insert(config.name_any(), config.uid().unwrap_or_default());
    }

    /// Whether the plan that was on display last under the name of `config` was that of another object.
    fn is_made_anew(&self, config: &VirtPlatformConfig) -> bool {
        let displayed = self.displayed.lock();
        displayed.get(&config.name_any()).is_some_and(|before| Some(before) != config.uid().as_ref())
    }

    /// `config` depends on nothing: no watch is open for it, no event concerns it, and what is not watched is not remembered.
    fn stand_aside(&self, config: &str, memory: &mut Memory) {
        memory.plan.forget();
        self.leave(config);
    }

    fn leave(&self, config: &str) {
        self.triggers.forget(config);
        self.watches.leave(config);
    }

    /// `name` is `config` now, or gone: whoever wants something of the same objects looks again.
    fn tell_others(&self, name: &str, config: Option<&VirtPlatformConfig>) {
        for other in self.claims.note(name, config) {
            self.triggers.happened(&other, &Causes { objects: true, ..Causes::default() });
        }
    }

    /// `config` is gone.
    fn forget(&self, config: &str) {
        self.leave(config);
        self.tell_others(config, None);
        self.memories.lock().remove(config);
    }
}

/// What an operator is run with.
#[derive(Clone)]
pub struct Settings {
    /// The profiles that it knows.
    pub profiles: Profiles,
    /// The version that plans name.
    pub version: &'static str,
    /// How long a rollout may come no further before it is found out what holds it up.
    pub patience: Duration,
    /// How long an owner is given to see a change before it is believed to be in effect.
    pub settling: SignedDuration,
    /// Where it tells how its watches are.
    pub health: Health,
    /// Whether it leads. While it does not, it keeps its watches open, plans nothing and writes nothing.
    pub fence: Fence,
    /// Where it counts what it does.
    pub metrics: Metrics,
    /// Where it sends its traces.
    pub traces: Traces,
}

impl Settings {
    /// The registered profiles, and time for a machine to be drained and to reboot.
    #[must_use]
    pub fn new(version: &'static str) -> Self {
        Self {
            profiles: registry::PROFILES,
            version,
            patience: Duration::from_secs(600),
            settling: SETTLING,
            health: Health::default(),
            fence: Fence::open(),
            metrics: Metrics::default(),
            traces: Traces::default(),
        }
    }
}
