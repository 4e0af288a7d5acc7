//! The controller: watches, queue, and the end.

use std::sync::Arc;
use std::time::Duration;

use advisor_cluster::{Cluster, bounded};
use futures::channel::mpsc::unbounded;
use futures::{FutureExt, StreamExt};
use kube::Client;
use kube::core::{ObjectMeta, PartialObjectMeta, PartialObjectMetaExt};
use kube::runtime::controller::{Config, applier};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::Event;
use machines_api::{MANAGER, Machine};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::context::{Context, Settings};
use super::reconcile::{after_failure, reconcile};
use crate::cluster::kinds;
use crate::cluster::mirror::{Key, Mirror};
use crate::cluster::reader::Reader;
use crate::cluster::watches::{WATCHED, Watches};

/// How long changes of one Machine are collected before it is looked at: KubeVirt writes several
/// within a moment.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// What is not ready, for the probes.
pub type Readiness = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// The operator on one cluster, and what is not ready of it.
pub fn run(client: Client, settings: Settings, stop: CancellationToken) -> (impl Future<Output = ()>, Readiness) {
    let client = settings.fence.guard(bounded(client));
    let mirror = Arc::new(Mirror::default());
    let cluster = Arc::new(Cluster::new(client.clone(), MANAGER));
    let (wake, woken) = unbounded::<Key>();
    let watches = Watches::new(client, mirror.clone(), wake);
    let seen = mirror.clone();
    let readiness: Readiness = Arc::new(move || {
        let is_missing = |kind: &&kinds::Kind| !seen.is_complete(&[**kind]);
        WATCHED.iter().filter(is_missing).map(|kind| format!("{} have not been listed yet", kind.plural)).collect()
    });
    let concurrency = settings.concurrency;
    let ctx = Arc::new(Context {
        cluster: cluster.clone(),
        reader: Reader::mirrored(cluster, mirror.clone()),
        settings,
        failures: Mutex::default(),
        definition: Mutex::default(),
    });
    let run = async move {
        // The queue wants a store: it gets the names, and the objects are in the mirror.
        let (store, mut writer) = reflector::store::<PartialObjectMeta<Machine>>();
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitDone);
        let forgetting = ctx.clone();
        let queue = woken.map(move |key| {
            let (namespace, name) = &key;
            let reference = ObjectRef::<PartialObjectMeta<Machine>>::new(name).within(namespace);
            let metadata =
                ObjectMeta { name: Some(name.clone()), namespace: Some(namespace.clone()), ..ObjectMeta::default() };
            let object = metadata.into_response_partial();
            writer.apply_watcher_event(&if mirror.has(kinds::MACHINE, &key) {
                Event::Apply(object)
            } else {
                forgetting.forget(&key);
                Event::Delete(object)
            });
            Ok::<_, std::convert::Infallible>(reference)
        });
        let ended = stop.clone();
        let queue = queue.take_until(async move { ended.cancelled().await });
        let config = Config::default().debounce(DEBOUNCE).concurrency(concurrency);
        let outcomes =
            applier(|object, ctx| reconcile(object, ctx).boxed(), after_failure, ctx, store, queue.boxed(), config);
        tokio::select! {
            () = outcomes.for_each(|_| std::future::ready(())) => {}
            () = watches.run() => {}
            () = async { stop.cancelled().await; tokio::time::sleep(Duration::from_secs(6)).await } => {}
        }
    };
    (run, readiness)
}
