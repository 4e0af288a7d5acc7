//! Watches that are opened and closed while the operator runs.
//!
//! There is one watch for each kind, shared by all configurations that depend on it. Only metadata
//! is requested and none of it is kept: an event says which object is in which version, and
//! [`Triggers`] knows whether that matters. For built-in kinds, of which a cluster has many
//! objects, single objects are watched. The exception is the kind that shows the state of rollouts,
//! which is passed to [`Rollouts`] in full. CRDs are watched all the time, so that a kind is
//! noticed when it is installed.

mod content;
pub(super) mod health;
mod listened;
mod reopening;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::{DynamicResourceScope, PartialObjectMeta};
use kube::runtime::watcher::Event;
use kube::{Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use profile_sdk::is_talkative;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::health::Health;
use self::stream::{Object, StreamItem, events, is_forbidden, is_not_served, list_and_watch};
use super::triggers::{Causes, Triggers};
use advisor_cluster::{Cluster, Served, Subject};
use advisor_core::api::TargetRef;
use advisor_core::rollout::{Rollouts, Tracked};

/// How long a first list may take before planning continues without its watch.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of consecutive refusals after which an existing right counts as removed.
const REFUSALS: u32 = 2;

/// When to ask again after a change of a CRD, which discovery follows with a delay; each pause
/// starts after the previous one.
const DISCOVERY_LAG: [Duration; 3] = [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(2)];
/// When to ask again if the kind is still not served.
const LONG_LAG: [Duration; 3] = [Duration::from_secs(3), Duration::from_secs(7), Duration::from_secs(15)];

/// The objects that show the state of rollouts could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("{kind} could not be listed within {} s: is the right to list and watch them missing?", SYNC_TIMEOUT.as_secs())]
pub(super) struct NotListed {
    kind: &'static str,
}

/// What one watch is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct WatchKey {
    group: String,
    kind: String,
    /// If only that one is watched.
    namespace: Option<&'static str>,
    /// If only objects of that name are watched.
    name: Option<&'static str>,
}

/// A kind to watch: everywhere or in one namespace, all objects or those with one name.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) served: Served,
    pub(super) namespace: Option<&'static str>,
    pub(super) name: Option<&'static str>,
}

/// The state of a watch's first list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Awaited,
    Listed,
    /// It is requested again, with pauses: the right may be granted.
    Forbidden,
}

/// The open watches.
pub(super) struct Watches {
    cluster: Arc<Cluster>,
    triggers: Arc<Triggers>,
    rollouts: Arc<dyn Rollouts>,
    health: Health,
    /// Not shared with the tasks of the watches, so that these end when this is dropped.
    open: Mutex<BTreeMap<WatchKey, Open>>,
    state: Arc<Mutex<WatchTable>>,
}

#[derive(Default)]
struct WatchTable {
    /// CRDs of kinds that profiles declare, with the last reported version.
    crds: BTreeMap<String, String>,
    /// The objects whose rollouts matter to each configuration.
    rolling: BTreeMap<String, Vec<Interest>>,
}

struct Open {
    version: String,
    users: BTreeSet<String>,
    task: AbortHandle,
    listing: watch::Receiver<Listing>,
    /// Whether somebody has planned without its first list.
    given_up: Arc<AtomicBool>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why rollouts matter, and what was seen of them.
struct Interest {
    /// The object whose progress matters; `None` if a plan depends on what they look like.
    rolling: Option<Tracked>,
    fingerprint: String,
}

impl Watches {
    pub(super) fn new(
        cluster: Arc<Cluster>,
        triggers: Arc<Triggers>,
        rollouts: Arc<dyn Rollouts>,
        health: Health,
    ) -> Self {
        Self { cluster, triggers, rollouts, health, open: Mutex::default(), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, WatchTable> {
        lock(&self.state)
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<WatchKey, Open>> {
        lock(&self.open)
    }

    /// Watches `kinds` for `config` as well, and waits for their first lists, so that nothing that
    /// is read afterwards can change unnoticed. Returns those that may not be listed and watched.
    ///
    /// # Errors
    ///
    /// If the rollouts could not be listed in time: unknown pools must not be treated as absent.
    pub(super) async fn follow(&self, config: &str, kinds: &[Scope]) -> Result<Vec<Scope>, NotListed> {
        let mut waiting: Vec<watch::Receiver<Listing>> = Vec::new();
        {
            let mut watches = self.watches();
            for scope in kinds {
                let version = &scope.served.resource.version;
                let usable = |open: &Open| open.version == *version && !open.task.is_finished();
                let mut users = BTreeSet::from([config.to_owned()]);
                match watches.get_mut(&key(scope)) {
                    Some(open) if usable(open) => {
                        open.users.insert(config.to_owned());
                    }
                    found => {
                        users.extend(found.map(|open| std::mem::take(&mut open.users)).unwrap_or_default());
                        let open = self.open(scope, users);
                        watches.insert(key(scope), open);
                    }
                }
                // A list that was waited for once reports when it is complete after all.
                let awaited = watches.get(&key(scope)).filter(|open| !open.given_up.load(Ordering::SeqCst));
                waiting.extend(awaited.map(|open| open.listing.clone()));
            }
        }
        let told = |listing: &Listing| *listing != Listing::Awaited;
        let all = waiting.into_iter().map(|mut listing| async move { listing.wait_for(told).await.is_ok() });
        let in_time = tokio::time::timeout(SYNC_TIMEOUT, futures::future::join_all(all)).await.is_ok();
        let full = self.rollouts.watched_kind();
        let full_key =
            WatchKey { group: full.group.to_owned(), kind: full.kind.to_owned(), namespace: None, name: None };
        let watches = self.watches();
        let listing = |open: &Open| *open.listing.borrow();
        if !in_time {
            tracing::warn!(config, "a watch has not listed its objects in time; planning continues without it");
            // Nothing is planned without the pools, so they are waited for again.
            let asked = kinds.iter().map(key).filter(|key| *key != full_key).filter_map(|key| watches.get(&key));
            asked.for_each(|open| open.given_up.store(true, Ordering::SeqCst));
        }
        if watches.get(&full_key).is_some_and(|open| open.users.contains(config) && listing(open) != Listing::Listed) {
            return Err(NotListed { kind: full.plural });
        }
        let is_forbidden = |open: &Open| listing(open) == Listing::Forbidden;
        let forbidden = kinds.iter().filter(|scope| watches.get(&key(scope)).is_some_and(is_forbidden));
        Ok(forbidden.cloned().collect())
    }

    /// Closes the watches of `config` except those of `kinds`.
    pub(super) fn keep_only(&self, config: &str, kinds: &[Scope]) {
        let wanted: BTreeSet<_> = kinds.iter().map(key).collect();
        let mut watches = self.watches();
        for (_, open) in watches.iter_mut().filter(|(kind, _)| !wanted.contains(*kind)) {
            open.users.remove(config);
        }
        watches.retain(|_, open| !open.users.is_empty());
    }

    /// Closes every watch.
    pub(super) fn close(&self) {
        self.watches().clear();
    }

    /// Closes all watches of `config`.
    pub(super) fn leave(&self, config: &str) {
        self.state().rolling.remove(config);
        let mut watches = self.watches();
        for open in watches.values_mut() {
            open.users.remove(config);
        }
        watches.retain(|_, open| !open.users.is_empty());
    }

    /// Records that `config` depends on the rollouts of these objects, and on the progress of those
    /// with `true`.
    pub(super) fn follow_rollouts<'a>(&self, config: &str, objects: impl IntoIterator<Item = (&'a Tracked, bool)>) {
        let interests = objects.into_iter().map(|(tracked, is_rolling)| {
            let rolling = is_rolling.then(|| self.rollouts.outline(tracked));
            Interest { fingerprint: fingerprint(self.rollouts.as_ref(), rolling.as_ref()), rolling }
        });
        let interests = interests.collect();
        self.state().rolling.insert(config.to_owned(), interests);
    }

    /// The last reported version of the CRD; `None` if it does not exist.
    pub(super) fn crd_version(&self, name: &str) -> Option<String> {
        self.state().crds.get(name).cloned()
    }

    /// Follows the CRDs in `names`, which maps each CRD to its (group, kind), until the process
    /// ends.
    pub(super) fn follow_crds(&self, names: BTreeMap<String, (String, String)>) -> impl Future<Output = ()> + use<> {
        let resource = ApiResource::erase::<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        >(&());
        let watched = self.health.begin(&resource);
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::all_with(watched.client(self.cluster.client()), &resource);
        let (cluster, triggers, state) = (self.cluster.clone(), self.triggers.clone(), self.state.clone());
        async move {
            let mut listed = BTreeSet::new();
            let mut began = false;
            let mut events = pin!(events(api, &resource.kind, None, watched, |_| None));
            while let Some(event) = events.next().await {
                let changed = match event {
                    StreamItem::Changed(crd) if names.contains_key(&crd.name) => {
                        listed.insert(crd.name.clone());
                        vec![(crd.name, crd.version)]
                    }
                    StreamItem::Began => {
                        listed.clear();
                        Vec::new()
                    }
                    StreamItem::Listed => {
                        began = true;
                        let known: Vec<_> = lock(&state).crds.keys().cloned().collect();
                        known.into_iter().filter(|name| !listed.contains(name)).map(|name| (name, None)).collect()
                    }
                    StreamItem::Changed(_) | StreamItem::NotServed | StreamItem::Forbidden => Vec::new(),
                };
                for (name, version) in changed {
                    let Some((group, _)) = names.get(&name) else { continue };
                    cluster.forget_kinds(group);
                    match &version {
                        Some(version) => lock(&state).crds.insert(name.clone(), version.clone()),
                        None => lock(&state).crds.remove(&name),
                    };
                    triggers.changed(&crd_subject(&name), version.as_deref());
                    if !began {
                        continue;
                    }
                    // Discovery follows its CRDs after a moment: what was asked in between is asked
                    // again.
                    let (cluster, triggers, state) = (cluster.clone(), triggers.clone(), state.clone());
                    let group = group.clone();
                    let plural = name.split('.').next().unwrap_or_default().to_owned();
                    tokio::spawn(async move {
                        for lag in DISCOVERY_LAG {
                            tokio::time::sleep(lag).await;
                            cluster.forget_kinds(&group);
                            triggers.look_again(&crd_subject(&name));
                        }
                        for lag in LONG_LAG {
                            tokio::time::sleep(lag).await;
                            let is_last = version.is_some() && lock(&state).crds.get(&name) == version.as_ref();
                            if !is_last || cluster.is_known(&group, &plural) {
                                return;
                            }
                            cluster.forget_kinds(&group);
                            triggers.look_again(&crd_subject(&name));
                        }
                    });
                }
            }
        }
    }

    fn open(&self, scope: &Scope, users: BTreeSet<String>) -> Open {
        let served = &scope.served;
        let (told, listing) = watch::channel(Listing::Awaited);
        let given_up = Arc::new(AtomicBool::new(false));
        let full = self.rollouts.watched_kind();
        let task = if (full.group, full.kind) == (served.resource.group.as_str(), served.resource.kind.as_str()) {
            tokio::spawn(self.watch_rollouts(served.clone(), told)).abort_handle()
        } else {
            tokio::spawn(self.watch_metadata(scope.clone(), told, given_up.clone())).abort_handle()
        };
        tracing::debug!(kind = served.resource.kind, version = served.resource.version, "watch opened");
        Open { version: served.resource.version.clone(), users, task, listing, given_up }
    }

    fn watch_metadata(
        &self,
        scope: Scope,
        listing: watch::Sender<Listing>,
        given_up: Arc<AtomicBool>,
    ) -> impl Future<Output = ()> + use<> {
        let Scope { served, namespace, name } = scope;
        let watched = self.health.begin(&served.resource);
        let client = watched.client(self.cluster.client());
        let kind = served.resource.kind.as_str();
        let mut events = if is_talkative(&served.resource.group, &served.resource.kind) {
            let api = api_of::<DynamicObject>(client, namespace, &served.resource);
            events(api, kind, name, watched, content::content_hash).boxed()
        } else {
            let api = api_of::<PartialObjectMeta<DynamicObject>>(client, namespace, &served.resource);
            events(api, kind, name, watched, |_| None).boxed()
        };
        let (cluster, triggers) = (self.cluster.clone(), self.triggers.clone());
        async move {
            let (group, kind) = (&served.resource.group, &served.resource.kind);
            let mut refusals = 0;
            while let Some(event) = events.next().await {
                match event {
                    StreamItem::Changed(object) => {
                        let Object { namespace, name, version, content } = object;
                        let subject = Subject { group: group.clone(), kind: kind.clone(), namespace, name };
                        triggers.content_changed(&subject, version.as_deref(), content);
                    }
                    StreamItem::Began => {}
                    StreamItem::Listed => {
                        // No event reports an object that was deleted during a reconnect.
                        refusals = 0;
                        let before = listing.send_replace(Listing::Listed);
                        if before != Listing::Awaited || given_up.swap(false, Ordering::SeqCst) {
                            triggers.may_have_changed(group, kind);
                        }
                    }
                    StreamItem::Forbidden => {
                        refusals += 1;
                        let before = *listing.borrow();
                        // A server that is starting refuses for a moment what it does not know yet.
                        if before == Listing::Forbidden || (before == Listing::Listed && refusals < REFUSALS) {
                            continue;
                        }
                        listing.send_replace(Listing::Forbidden);
                        if before == Listing::Listed || given_up.swap(false, Ordering::SeqCst) {
                            triggers.may_have_changed(group, kind);
                        }
                    }
                    StreamItem::NotServed => {
                        cluster.forget_kinds(group);
                        triggers.may_have_changed(group, kind);
                        return;
                    }
                }
            }
        }
    }

    fn watch_rollouts(&self, served: Served, listing: watch::Sender<Listing>) -> impl Future<Output = ()> + use<> {
        let watched = self.health.begin(&served.resource);
        let api: Api<DynamicObject> = Api::all_with(watched.client(self.cluster.client()), &served.resource);
        let (triggers, rollouts, state) = (self.triggers.clone(), self.rollouts.clone(), self.state.clone());
        async move {
            let mut objects = Vec::new();
            let mut events = pin!(watched.follow(list_and_watch(api, None)));
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Init) => objects.clear(),
                    Ok(Event::InitApply(object)) => objects.extend(full(object)),
                    Ok(Event::InitDone) => {
                        rollouts.pools_listed(&std::mem::take(&mut objects));
                        listing.send_replace(Listing::Listed);
                    }
                    Ok(Event::Apply(object)) => full(object).iter().for_each(|object| rollouts.pool_seen(object)),
                    Ok(Event::Delete(object)) => rollouts.pool_gone(&object.name_any()),
                    Err(error) if is_not_served(&error) => {
                        rollouts.pools_listed(&[]);
                        listing.send_replace(Listing::Listed);
                        return;
                    }
                    Err(error) if is_forbidden(&error) && *listing.borrow() == Listing::Awaited => {
                        listing.send_replace(Listing::Forbidden);
                        continue;
                    }
                    Err(error) => {
                        tracing::debug!(kind = served.resource.kind, %error, "watch interrupted");
                        continue;
                    }
                }
                if *listing.borrow() == Listing::Listed {
                    tell_rollouts(&state, &triggers, rollouts.as_ref());
                }
            }
        }
    }
}

impl Scope {
    /// Whether its watch reports events of the object.
    pub(super) fn covers(&self, target: &TargetRef) -> bool {
        let resource = &self.served.resource;
        (resource.group.as_str(), resource.kind.as_str()) == (target.group(), target.kind.as_str())
            && self.namespace.is_none_or(|namespace| target.namespace.as_deref() == Some(namespace))
            && self.name.is_none_or(|name| target.name == name)
    }

    /// The rule that an administrator must add to the rights of the operator if they are missing.
    pub(super) fn remedy(&self) -> String {
        let ApiResource { group, plural, .. } = &self.served.resource;
        let place = match self.namespace {
            Some(namespace) => format!("a Role in namespace {namespace}, or to a ClusterRole"),
            None => "a ClusterRole".to_owned(),
        };
        let only = self.name.map(|name| format!("resourceNames: [{name:?}], ")).unwrap_or_default();
        format!(
            "the operator may not watch this kind, so it would miss changes. Add this rule to {place} of the operator: \
             {{apiGroups: [{group:?}], resources: [{plural:?}], {only}verbs: [\"list\", \"watch\"]}}"
        )
    }
}

/// The objects of a kind, everywhere or in one namespace.
fn api_of<K>(client: Client, namespace: Option<&str>, resource: &ApiResource) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock()
}

/// What the rollouts look like: for the progress of what is `rolling`, or else for plans.
fn fingerprint(rollouts: &dyn Rollouts, rolling: Option<&Tracked>) -> String {
    rolling.map_or_else(|| rollouts.plan_fingerprint(), |tracked| rollouts.progress_fingerprint(tracked))
}

/// Marks the configurations for which the state of the rollouts has changed.
fn tell_rollouts(state: &Mutex<WatchTable>, triggers: &Triggers, rollouts: &dyn Rollouts) {
    let mut concerned = Vec::new();
    for (config, interests) in &mut lock(state).rolling {
        let mut causes = Causes::default();
        for interest in interests {
            let fingerprint = fingerprint(rollouts, interest.rolling.as_ref());
            if fingerprint != interest.fingerprint {
                interest.fingerprint = fingerprint;
                causes.rollouts |= interest.rolling.is_some();
                causes.objects |= interest.rolling.is_none();
            }
        }
        if causes.any() {
            concerned.push((config.clone(), causes));
        }
    }
    for (config, causes) in concerned {
        triggers.happened(&config, &causes);
    }
}

/// The subject of a CRD.
pub(super) fn crd_subject(name: &str) -> Subject {
    Subject {
        group: "apiextensions.k8s.io".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        namespace: None,
        name: name.to_owned(),
    }
}

fn key(scope: &Scope) -> WatchKey {
    let resource = &scope.served.resource;
    WatchKey {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        namespace: scope.namespace,
        name: scope.name,
    }
}

/// The object as JSON, without managedFields, which are half of it and never needed.
fn full(mut object: DynamicObject) -> Option<Value> {
    object.meta_mut().managed_fields = None;
    serde_json::to_value(object).ok()
}
