//! The operator: watches configurations, looks at them, does what was decided.

mod act;
mod advertise;
mod caught;
mod claims;
mod content;
mod followed;
mod gather;
mod health;
mod listened;
mod memory;
mod pacing;
mod progress;
mod reconcile;
mod reopening;
mod report;
mod schedule;
mod start;
mod state;
mod store;
mod stream;
mod triggers;
mod watches;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::unbounded;
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, ApiResource};
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt;
use kube::runtime::controller::{Config, Controller, Error};
use kube::runtime::reflector::{self, ObjectRef, reflector};
use kube::runtime::watcher::{self, Event, watcher};
use tokio_util::sync::CancellationToken;

use crate::telemetry::{Metrics, Traces};
use advisor_cluster::{Cluster, bounded};
use advisor_core::api::{FIELD_MANAGER, VirtPlatformConfig};
use advisor_core::plan::decision::execution::SETTLING;
use advisor_core::rollout::{MachineConfigPools, Rollouts};
use advisor_engine::registry::{self, Profiles};
use claims::Claims;
use jiff::SignedDuration;
use memory::Memory;
use operator_kit::leader::Fence;
use triggers::{Causes, Triggers};
use watches::Watches;

pub use caught::is_caught;
pub use health::{Health, WatchHealth, WatchState};
pub use state::Sources;

/// How long to wait before advertising is tried again after an error.
const ADVERTISE_PAUSE: Duration = Duration::from_secs(5);

/// Configurations that are looked at at the same time.
pub const CONCURRENCY: u16 = 2;

/// How long one try may take.
const ADVERTISE_LIMIT: Duration = Duration::from_secs(30);
/// How long a look that is under way may take after the signal to stop; the process has ten seconds.
const STOP_LIMIT: Duration = Duration::from_secs(6);

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
        let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        memories.entry(config.to_owned()).or_default().clone()
    }

    /// A plan of `config` is on display.
    fn displays(&self, config: &VirtPlatformConfig) {
        let mut displayed = self.displayed.lock().unwrap_or_else(PoisonError::into_inner);
        displayed.insert(config.name_any(), config.uid().unwrap_or_default());
    }

    /// Whether the plan that was on display last under the name of `config` was that of another object.
    fn is_made_anew(&self, config: &VirtPlatformConfig) -> bool {
        let displayed = self.displayed.lock().unwrap_or_else(PoisonError::into_inner);
        displayed.get(&config.name_any()).is_some_and(|before| Some(before) != config.uid().as_ref())
    }

    /// `config` depends on nothing: no watch is open for it, no event concerns it, and what is not watched is not remembered.
    fn stand_aside(&self, config: &str, memory: &mut Memory) {
        memory.forget_plan();
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
        self.memories.lock().unwrap_or_else(PoisonError::into_inner).remove(config);
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

/// Runs the operator on the cluster of `client` until `stop` is cancelled.
///
/// A cluster that does not answer, or lacks the CRD, is waited for: it is said once for each change of the reason.
pub async fn run(client: Client, settings: Settings, stop: CancellationToken) {
    let Settings { profiles, version, patience, settling, health, fence, metrics, traces } = settings;
    let client = metrics.count(fence.guard(bounded(client)));
    if stop.run_until_cancelled(start::wait_until_served(&client)).await.is_none() {
        return;
    }
    let watched = health.begin(&ApiResource::erase::<VirtPlatformConfig>(&()));
    let configs: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(watched.client(client.clone()));
    let cluster = Arc::new(Cluster::new(client, FIELD_MANAGER));
    let (triggers, woken) = Triggers::new();
    let triggers = Arc::new(triggers);
    let rollouts: Arc<dyn Rollouts> = Arc::new(MachineConfigPools::default());
    let ctx = Arc::new(Context {
        watches: Watches::new(cluster.clone(), triggers.clone(), rollouts.clone(), health.clone()),
        cluster,
        triggers,
        rollouts,
        claims: Claims::default(),
        memories: Mutex::default(),
        displayed: Mutex::default(),
        profiles,
        version,
        patience,
        settling,
        fence,
        metrics,
        traces,
        stop: stop.clone(),
    });
    let crds = ctx.watches.follow_crds(gather::declared_crds(profiles, ctx.rollouts.watched()));

    // The events themselves are needed too: the controller tells of no deletion.
    let (store, writer) = reflector::store();
    health.sees(store.clone());
    let (gone, deletions) = unbounded();
    let forgetting = ctx.clone();
    let events = watched.follow(watcher(configs, watcher::Config::default()));
    let events = reflector(writer, events).default_backoff();
    let events = events.inspect(move |event| {
        match event {
            Ok(Event::Delete(config)) => forgetting.forget(&config.name_any()),
            Ok(Event::InitDone) => {}
            Ok(Event::Apply(config) | Event::InitApply(config)) => {
                return forgetting.tell_others(&config.name_any(), config.0.as_ref().ok());
            }
            Ok(Event::Init) | Err(_) => return,
        }
        // The receiver ends with the process.
        let _ = gone.unbounded_send(());
    });
    let advertising = deletions.for_each(|()| async {
        ctx.fence.opened().await;
        advertise_until_done(&ctx, |name| store.get(&ObjectRef::new(name)).is_some()).await
    });
    let beginning = async {
        ctx.fence.opened().await;
        ctx.triggers.look_at_all();
        std::future::pending().await
    };
    let controller = Controller::for_stream(events.applied_objects(), store.clone())
        .with_config(Config::default().concurrency(CONCURRENCY))
        .reconcile_all_on(woken)
        .graceful_shutdown_on(stop.clone().cancelled_owned());
    let reconciles = controller.run(reconcile::reconcile, |_, never, _| match *never {}, ctx.clone());
    let reconciles = reconciles.for_each(|result| async {
        match result {
            Ok(_) => {}
            Err(Error::ObjectNotFound(object)) => tracing::debug!(%object, "gone before it was looked at"),
            Err(Error::QueueError(error)) => tracing::warn!(%error, "the watch of configurations was interrupted"),
            Err(error) => tracing::error!(%error, "the controller failed"),
        }
    });
    let hung = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_LIMIT).await;
        tracing::warn!("a look at a configuration did not end in time and is given up");
    };
    tokio::select! {
        () = reconciles => {}
        () = advertising => {}
        () = crds => {}
        () = beginning => {}
        () = hung => {}
    }
    ctx.watches.close();
    tracing::info!("the operator has stopped");
}

async fn advertise_until_done(ctx: &Context, exists: impl Fn(&str) -> bool) {
    let mut said = String::new();
    loop {
        let problem =
            match tokio::time::timeout(ADVERTISE_LIMIT, advertise::all(&ctx.cluster, ctx.profiles, &exists)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "the API server does not answer".to_owned(),
            };
        if problem != said {
            tracing::warn!(problem, "profiles can't be advertised yet");
            said = problem;
        }
        tokio::time::sleep(ADVERTISE_PAUSE).await;
    }
}
