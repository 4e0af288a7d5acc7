//! The process of the operator: its watch of configurations, and what starts and ends with it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::unbounded;
use kube::api::{Api, ApiResource};
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt;
use kube::runtime::controller::{Config, Controller, Error};
use kube::runtime::reflector::{self, ObjectRef, reflector};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::claims::Claims;
use super::triggers::Triggers;
use super::watches::Watches;
use super::{CONCURRENCY, Context, Settings, advertise, gather, reconcile, start};
use advisor_cluster::{Cluster, bounded};
use advisor_core::api::{FIELD_MANAGER, VirtPlatformConfig};
use advisor_core::rollout::{MachineConfigPools, Rollouts};

/// How long a running reconcile may take after the signal to stop; the process has ten seconds.
const STOP_LIMIT: Duration = Duration::from_secs(6);

/// Runs the operator on the cluster of `client` until `stop` is cancelled.
///
/// If the cluster does not answer, or lacks the CRD, it waits and logs the reason once for each
/// change of it.
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
    let crds = ctx.watches.follow_crds(gather::declared_crds(profiles, ctx.rollouts.watched_kind()));

    // The events themselves are needed too: the controller does not report deletions.
    let (store, writer) = reflector::store();
    health.read_from(store.clone());
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
        advertise::until_done(&ctx, |name| store.get(&ObjectRef::new(name)).is_some()).await
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
            Err(Error::ObjectNotFound(object)) => tracing::debug!(%object, "deleted before it was reconciled"),
            Err(Error::QueueError(error)) => tracing::warn!(%error, "the watch of configurations was interrupted"),
            Err(error) => tracing::error!(%error, "the controller failed"),
        }
    });
    let hung = async {
        stop.cancelled().await;
        tokio::time::sleep(STOP_LIMIT).await;
        tracing::warn!("a reconcile did not end in time and is abandoned");
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
