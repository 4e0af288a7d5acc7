//! How the operator is: its watches, each with what became of its last request, and the configurations as it sees them.
//! Read by whoever displays it; trouble is logged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use tower::BoxError;

use crate::api::VirtPlatformConfig;
use crate::clock;

/// Failures in a row that are worth a warning: one or two are a server that restarts.
const WORTH_A_WARNING: u64 = 3;

/// A watch that has failed for longer is no restart of the server.
const FAILING: SignedDuration = SignedDuration::from_mins(5);

/// Whether events of a kind reach the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchState {
    /// Not answered yet.
    Opening,
    /// The server has answered the last request to watch.
    Open,
    /// The last request failed, or what it answered broke off; it is tried again with growing pauses.
    Failing,
}

/// A watch that is open, or that should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchHealth {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version that is watched.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Whether its events arrive.
    pub state: WatchState,
    /// Since when it has been in this state.
    pub since: Timestamp,
    /// How often it was opened: once, and again after each end.
    pub opened: u64,
    /// How many requests failed, those of its lists too.
    pub failures: u64,
}

/// What an operator knows of itself, shared between it and whoever displays it.
#[derive(Debug, Clone, Default)]
pub struct Health {
    watches: Arc<Mutex<BTreeMap<u64, Entry>>>,
    next: Arc<AtomicU64>,
    configs: Arc<OnceLock<Store<DeserializeGuard<VirtPlatformConfig>>>>,
}

#[derive(Debug)]
struct Entry {
    health: WatchHealth,
    failures_in_a_row: u64,
}

impl Health {
    /// Every watch, in the order in which they were asked for.
    #[must_use]
    pub fn watches(&self) -> Vec<WatchHealth> {
        self.entries().values().map(|entry| entry.health.clone()).collect()
    }

    /// The configurations as they were seen last, but for those that do not fit our types.
    #[must_use]
    pub fn configurations(&self) -> Vec<VirtPlatformConfig> {
        let known = self.configs.get().map(Store::state).unwrap_or_default();
        let mut configs: Vec<_> = known.iter().filter_map(|config| config.0.as_ref().ok().cloned()).collect();
        configs.sort_by_key(ResourceExt::name_any);
        configs
    }

    /// What keeps the operator from seeing what it must see; nothing if it is ready.
    ///
    /// Only its own kind and the CRDs: another kind that can't be watched is named in the status of whoever needs it.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let (watches, now) = (self.watches(), clock::now());
        let needed = [VirtPlatformConfig::kind(&()), CustomResourceDefinition::kind(&())];
        needed
            .iter()
            .filter_map(|kind| match watches.iter().find(|watch| watch.kind == **kind) {
                None => Some(format!("{kind} is not served or can't be listed yet; the log says why")),
                Some(watch) if watch.opened == 0 => Some(format!("{kind} is not watched yet")),
                Some(watch) if watch.state == WatchState::Failing && now.duration_since(watch.since) > FAILING => {
                    Some(format!("{kind} can't be watched any more since {}; the log says why", watch.since))
                }
                Some(_) => None,
            })
            .collect()
    }

    /// Configurations are seen in `store` from now on.
    pub(super) fn sees(&self, store: Store<DeserializeGuard<VirtPlatformConfig>>) {
        // An operator is run once; another one would have a health of its own.
        let _ = self.configs.set(store);
    }

    /// A watch of `kind` begins. It is listed until the answer is dropped.
    pub(super) fn begin(&self, kind: &ApiResource) -> Watched {
        let health = WatchHealth {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            state: WatchState::Opening,
            since: clock::now(),
            opened: 0,
            failures: 0,
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.entries().insert(id, Entry { health, failures_in_a_row: 0 });
        Watched { all: self.clone(), id }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch, as long as it is wanted.
pub(super) struct Watched {
    all: Health,
    id: u64,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.all.entries().remove(&self.id);
    }
}

impl Watched {
    /// `client`, for the requests of this watch alone: what becomes of them is noted.
    pub(super) fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let (all, id) = (self.all.clone(), self.id);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, all) = (client.clone(), all.clone());
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let answer = client.send(request).await;
                match &answer {
                    Ok(answer) if !answer.status().is_success() => all.failed(id, Some(answer.status()), ""),
                    Ok(_) if is_watch => all.opened(id),
                    Ok(_) => {}
                    Err(error) => all.failed(id, None, &error.to_string()),
                }
                Ok::<Response<Body>, BoxError>(answer?)
            }
        });
        Client::new(service, namespace)
    }

    /// `events`, those of this watch: one that breaks off is not open until its next request is answered.
    pub(super) fn follow<K, S>(self, events: S) -> impl Stream<Item = watcher::Result<Event<K>>> + use<K, S>
    where
        S: Stream<Item = watcher::Result<Event<K>>>,
    {
        events.inspect(move |event| {
            if event.is_err() {
                self.all.broke_off(self.id);
            }
        })
    }
}

impl Health {
    fn opened(&self, id: u64) {
        let mut entries = self.entries();
        let Some(Entry { health, failures_in_a_row }) = entries.get_mut(&id) else { return };
        if *failures_in_a_row >= WORTH_A_WARNING {
            tracing::info!(kind = health.kind, "the watch is open again");
        }
        *failures_in_a_row = 0;
        health.opened += 1;
        health.enter(WatchState::Open);
    }

    /// Not counted as a failure: a request that failed has been counted, and an old version is no failure.
    fn broke_off(&self, id: u64) {
        if let Some(entry) = self.entries().get_mut(&id) {
            entry.health.enter(WatchState::Failing);
        }
    }

    fn failed(&self, id: u64, answer: Option<StatusCode>, problem: &str) {
        let mut entries = self.entries();
        let Some(Entry { health, failures_in_a_row }) = entries.get_mut(&id) else { return };
        *failures_in_a_row += 1;
        health.failures += 1;
        health.enter(WatchState::Failing);
        let WatchHealth { group, version, kind, .. } = health;
        match answer {
            // Kinds that are not served are an ordinary state, and a list in pages follows a refused stream.
            Some(StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) => {}
            Some(code @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) if *failures_in_a_row == 1 => {
                tracing::warn!(
                    group,
                    version,
                    kind,
                    code = code.as_u16(),
                    "the right to list and watch is missing; changes are not seen"
                );
            }
            Some(code) if *failures_in_a_row == WORTH_A_WARNING => {
                tracing::warn!(group, version, kind, code = code.as_u16(), "the watch can't be opened; trying again");
            }
            None if *failures_in_a_row == WORTH_A_WARNING => {
                tracing::warn!(group, version, kind, problem, "the watch can't be opened; trying again");
            }
            Some(_) | None => {}
        }
    }
}

impl WatchHealth {
    fn enter(&mut self, state: WatchState) {
        if self.state != state {
            self.state = state;
            self.since = clock::now();
        }
    }
}
