//! The operator: watches configurations, reconciles them, and carries out what was decided.
//!
//! ```text
//!   run ─► watches ─► triggers ─► reconcile: gather ─► decide ─► act ─► report
//!             │           ▲                    │        (core)    │        │
//!             │           └── seen versions ───┴──────────────────┘        │
//!             └─ health ─► state (metrics)     memory ◄────────────────────┘
//! ```

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

/// The most configurations that are reconciled at the same time.
pub const CONCURRENCY: u16 = 2;

/// What every reconcile needs.
struct Context {
    cluster: Arc<Cluster>,
    triggers: Arc<Triggers>,
    watches: Watches,
    rollouts: Arc<dyn Rollouts>,
    claims: Claims,
    memories: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Memory>>>>,
    /// By name, the uid of the object whose plan was last on display: that plan may have been read
    /// and its object deleted.
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

    /// Records that a plan of `config` is on display.
    fn displays(&self, config: &VirtPlatformConfig) {
        let mut displayed = self.displayed.lock();
        displayed.insert(config.name_any(), config.uid().unwrap_or_default());
    }

    /// Whether the plan last on display under the name of `config` belonged to another object.
    fn is_made_anew(&self, config: &VirtPlatformConfig) -> bool {
        let displayed = self.displayed.lock();
        displayed.get(&config.name_any()).is_some_and(|before| Some(before) != config.uid().as_ref())
    }

    /// Makes `config` depend on nothing: closes its watches, ignores events, and forgets what is no
    /// longer watched.
    fn stand_aside(&self, config: &str, memory: &mut Memory) {
        memory.plan.forget();
        self.leave(config);
    }

    fn leave(&self, config: &str) {
        self.triggers.forget(config);
        self.watches.leave(config);
    }

    /// Records that `name` is `config` now, or gone: others that want something of the same objects
    /// are reconciled.
    fn tell_others(&self, name: &str, config: Option<&VirtPlatformConfig>) {
        for other in self.claims.note(name, config) {
            self.triggers.happened(&other, &Causes { objects: true, ..Causes::default() });
        }
    }

    /// Forgets `config`, because it was deleted.
    fn forget(&self, config: &str) {
        self.leave(config);
        self.tell_others(config, None);
        self.memories.lock().remove(config);
    }
}

/// The settings of an operator.
#[derive(Clone)]
pub struct Settings {
    /// The profiles that it serves.
    pub profiles: Profiles,
    /// The version that plans name.
    pub version: &'static str,
    /// How long a rollout may make no progress before the operator searches for what holds it up.
    pub patience: Duration,
    /// How long an owner's conditions are not believed after it has seen a change.
    pub settling: SignedDuration,
    /// Receives the state of its watches.
    pub health: Health,
    /// Whether it leads. While it does not, it keeps its watches open, but plans and writes
    /// nothing.
    pub fence: Fence,
    /// Counts what it does.
    pub metrics: Metrics,
    /// Receives its traces.
    pub traces: Traces,
}

impl Settings {
    /// The registered profiles, and enough patience for a machine to be drained and reboot.
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
