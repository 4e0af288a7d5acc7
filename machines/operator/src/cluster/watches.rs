//! Watches that keep the mirror, and tell which Machines a change concerns. A kind whose definition
//! is not there is not asked for: its definition is watched.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use futures::{Stream, StreamExt, TryStreamExt};
use kube::api::{Api, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt};
use machines_api::{MACHINE_LABEL, MANAGED_BY, MANAGER, SOURCE_MACHINE_LABEL};
use operator_kit::backoff::{Backoff, spread};
use serde_json::Value;
use tokio::sync::watch;

use super::kinds::{self, Kind};
use super::mirror::{Key, Mirror, key};

/// The kinds that are watched, in the order in which they are first listed.
pub const WATCHED: [Kind; 11] = [
    kinds::STORAGE_CLASS,
    kinds::STORAGE_PROFILE,
    kinds::KUBEVIRT,
    kinds::MACHINE_CLASS,
    kinds::NETWORK_CONFIGURATION,
    kinds::NETWORK_NAMESPACE,
    kinds::NETWORK_ATTACHMENT,
    kinds::CLAIM,
    kinds::VM,
    kinds::VMI,
    kinds::MACHINE,
];

/// Objects in one page of a list: small pages bound the memory of a start.
const PAGE: u32 = 50;
/// Pauses after a watch has failed.
const AFTER_FAILURE: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// The watches of one cluster.
pub struct Watches {
    client: Client,
    mirror: Arc<Mirror>,
    /// Machines to look at.
    wake: UnboundedSender<Key>,
    /// Counts changes of definitions.
    definitions: watch::Sender<u64>,
}

impl Watches {
    /// Watches through `client`, and sends the Machines to look at to `wake`.
    #[must_use]
    pub fn new(client: Client, mirror: Arc<Mirror>, wake: UnboundedSender<Key>) -> Arc<Self> {
        Arc::new(Self { client, mirror, wake, definitions: watch::Sender::new(0) })
    }

    /// Runs all watches until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let of_kinds = WATCHED.map(|kind| self.clone().follow(kind));
        futures::future::join(self.clone().follow_definitions(), futures::future::join_all(of_kinds)).await;
    }

    async fn follow_definitions(self: Arc<Self>) {
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::all_with(self.client.clone(), &kinds::DEFINITION.resource());
        let names: BTreeSet<_> =
            WATCHED.into_iter().chain([kinds::DATA_VOLUME]).filter_map(|kind| kind.definition()).collect();
        let mut failures = 0;
        let mut seen = BTreeSet::new();
        loop {
            let config = watcher::Config::default().page_size(PAGE);
            let mut events = watcher::watcher(api.clone(), config).boxed();
            while let Some(event) = events.next().await {
                let changed = match event {
                    Ok(Event::Init) => {
                        seen.clear();
                        false
                    }
                    Ok(Event::InitApply(object) | Event::Apply(object)) => {
                        failures = 0;
                        let name = object.name_any();
                        seen.insert(name.clone());
                        let is_news =
                            names.contains(&name) && self.mirror.set_definition(&name, object.resource_version());
                        // Until the first list has ended, a kind may be served that has not been
                        // seen.
                        is_news && *self.definitions.borrow() > 0
                    }
                    Ok(Event::Delete(object)) => self.mirror.set_definition(&object.name_any(), None),
                    Ok(Event::InitDone) => {
                        for gone in names.iter().filter(|name| !seen.contains(*name)) {
                            self.mirror.set_definition(gone, None);
                        }
                        self.mirror.definitions_are_listed();
                        true
                    }
                    Err(error) => {
                        tracing::warn!(%error, "definitions can't be watched; trying again");
                        break;
                    }
                };
                if changed {
                    self.definitions.send_modify(|count| *count += 1);
                }
            }
            failures += 1;
            tokio::time::sleep(spread(AFTER_FAILURE.after(failures), "definitions", failures)).await;
        }
    }

    /// Keeps the objects of a kind for as long as it is served.
    async fn follow(self: Arc<Self>, kind: Kind) {
        let mut changes = self.definitions.subscribe();
        let mut failures = 0;
        loop {
            while *changes.borrow_and_update() == 0 || !self.mirror.serves(kind) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
            let mut events = std::pin::pin!(self.events(kind));
            let problem = loop {
                tokio::select! {
                    event = events.next() => match event {
                        Some(Ok(event)) => {
                            // Each list begins with an event of its own, also one that fails.
                            if !matches!(event, Event::Init) {
                                failures = 0;
                            }
                            self.take(kind, event);
                        }
                        Some(Err(error)) => break Some(error),
                        None => break None,
                    },
                    changed = changes.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        if !self.mirror.serves(kind) {
                            break None;
                        }
                    }
                }
            };
            if !self.mirror.serves(kind) {
                tracing::info!(kind = kind.kind, "the kind is not served any more");
                self.mirror.forget(kind);
                self.wake_all();
                continue;
            }
            failures += 1;
            if let Some(error) = problem {
                tracing::warn!(kind = kind.kind, %error, "the kind can't be watched; trying again");
            }
            tokio::time::sleep(spread(AFTER_FAILURE.after(failures), kind.plural, failures)).await;
        }
    }

    fn events(&self, kind: Kind) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Send + use<> {
        let mut config = watcher::Config::default().page_size(PAGE);
        if kind == kinds::CLAIM {
            config = config.labels(&format!("{MANAGED_BY}={MANAGER}"));
        }
        let resource = kind.resource();
        if kind == kinds::NETWORK_ATTACHMENT {
            let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(self.client.clone(), &resource);
            let whole = move |object: PartialObjectMeta<DynamicObject>| DynamicObject {
                types: None,
                metadata: object.metadata,
                data: Value::Null,
            };
            return watcher::watcher(api, config)
                .map_ok(move |event| match event {
                    Event::Apply(object) => Event::Apply(whole(object)),
                    Event::Delete(object) => Event::Delete(whole(object)),
                    Event::InitApply(object) => Event::InitApply(whole(object)),
                    Event::Init => Event::Init,
                    Event::InitDone => Event::InitDone,
                })
                .boxed();
        }
        watcher::watcher(Api::<DynamicObject>::all_with(self.client.clone(), &resource), config).boxed()
    }

    fn take(&self, kind: Kind, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.mirror.began(kind),
            Event::InitDone => {
                let gone = self.mirror.listed(kind);
                for key in gone {
                    self.wake_for(kind, &key, None);
                }
                // Whatever waited for this kind to be listed can go on.
                self.wake_all();
            }
            Event::Apply(object) | Event::InitApply(object) => {
                let Ok(value) = serde_json::to_value(&object) else { return };
                if self.mirror.keep(kind, &value) {
                    self.wake_for(kind, &key(&value), Some(&value));
                }
            }
            Event::Delete(object) => {
                let Ok(value) = serde_json::to_value(&object) else { return };
                self.mirror.remove(kind, &key(&value));
                self.wake_for(kind, &key(&value), Some(&value));
            }
        }
    }

    /// Wakes the Machines that an object concerns.
    fn wake_for(&self, kind: Kind, (namespace, name): &Key, object: Option<&Value>) {
        match kind {
            kinds::MACHINE | kinds::VM | kinds::VMI => self.wake((namespace.clone(), name.clone())),
            kinds::CLAIM => {
                let labels = object.and_then(|object| object.pointer("/metadata/labels"));
                let owner = [MACHINE_LABEL, SOURCE_MACHINE_LABEL].iter().find_map(|label| labels?.get(label)?.as_str());
                match owner {
                    Some(machine) => self.wake((namespace.clone(), machine.to_owned())),
                    None => self.wake_namespace(namespace),
                }
            }
            kinds::NETWORK_ATTACHMENT | kinds::NETWORK_CONFIGURATION | kinds::NETWORK_NAMESPACE => {
                self.wake_namespace(namespace)
            }
            _ => self.wake_all(),
        }
    }

    fn wake(&self, machine: Key) {
        // The receiver ends with the process.
        let _ = self.wake.unbounded_send(machine);
    }

    fn wake_namespace(&self, namespace: &str) {
        for machine in self.mirror.keys(kinds::MACHINE).into_iter().filter(|(of, _)| of == namespace) {
            self.wake(machine);
        }
    }

    fn wake_all(&self) {
        for machine in self.mirror.keys(kinds::MACHINE) {
            self.wake(machine);
        }
    }
}
