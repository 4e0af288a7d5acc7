//! The health of the operator: its watches, each with the result of its last request, and the
//! configurations as it sees them. Read by whatever displays it; problems are logged.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::Either;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use tower::BoxError;

use super::listened::{Listened, Sign};
use super::reopening::{LASTING, Reopening};
use advisor_cluster::Unended;
use advisor_core::api::VirtPlatformConfig;
use operator_kit::clock;

/// The number of consecutive failures that causes a warning: one or two may be a restart of the
/// server.
const WORTH_A_WARNING: u64 = 3;

/// A watch that has failed for longer than this is not explained by a restart of the server.
const FAILING: SignedDuration = SignedDuration::from_mins(5);

/// Whether events of a kind reach the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchState {
    /// Not answered yet.
    Opening,
    /// The server has answered the last request to watch.
    Open,
    /// The last request failed, or its answer broke off or ended at once. It is retried with
    /// growing pauses.
    Failing,
}

/// A watch that is open or should be.
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
    /// When it entered this state.
    pub since: Timestamp,
    /// How many times it was opened: once, and again after each end.
    pub opened: u64,
    /// The number of requests that failed, including those of its lists, and of watches that ended
    /// before they reported anything.
    pub failures: u64,
}

/// What an operator knows about itself, shared with whatever displays it.
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
    reopening: Reopening,
}

impl Health {
    /// Every watch, in the order in which they were begun.
    #[must_use]
    pub fn watches(&self) -> Vec<WatchHealth> {
        self.entries().values().map(|entry| entry.health.clone()).collect()
    }

    /// The configurations as last seen, except those that do not match our types.
    #[must_use]
    pub fn configurations(&self) -> Vec<VirtPlatformConfig> {
        let known = self.configs.get().map(Store::state).unwrap_or_default();
        let mut configs: Vec<_> = known.iter().filter_map(|config| config.0.as_ref().ok().cloned()).collect();
        configs.sort_by_key(ResourceExt::name_any);
        configs
    }

    /// Problems that keep the operator from seeing what it must see; none if it is ready.
    ///
    /// Only its own kind and the CRDs count: if another kind can't be watched, the status of every
    /// configuration that needs it says so.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let (watches, now) = (self.watches(), clock::now());
        let needed = [VirtPlatformConfig::kind(&()), CustomResourceDefinition::kind(&())];
        needed
            .iter()
            .filter_map(|kind| match watches.iter().find(|watch| watch.kind == **kind) {
                None => Some(format!("{kind} is not served or can't be listed yet; see the log for the reason")),
                Some(watch) if watch.opened == 0 => Some(format!("{kind} is not watched yet")),
                Some(watch) if watch.state == WatchState::Failing && now.duration_since(watch.since) > FAILING => {
                    Some(format!("{kind} has not been watched since {}; see the log for the reason", watch.since))
                }
                Some(_) => None,
            })
            .collect()
    }

    /// Reads configurations from `store` from now on.
    pub(in crate::controller) fn read_from(&self, store: Store<DeserializeGuard<VirtPlatformConfig>>) {
        // An operator is run once; another one would have its own health.
        let _ = self.configs.set(store);
    }

    /// Begins a watch of `kind`. It is listed until the returned handle is dropped.
    pub(in crate::controller) fn begin(&self, kind: &ApiResource) -> WatchHandle {
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
        let reopening = Reopening::new(RandomState::new().hash_one(id) as u32);
        self.entries().insert(id, Entry { health, failures_in_a_row: 0, reopening });
        WatchHandle { all: self.clone(), id }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u64, Entry>> {
        self.watches.lock()
    }
}

/// One watch, while it is needed.
pub(in crate::controller) struct WatchHandle {
    all: Health,
    id: u64,
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.all.entries().remove(&self.id);
    }
}

impl WatchHandle {
    /// `client` for the requests of this watch only: their results are recorded, and they are
    /// delayed if they lead nowhere.
    pub(in crate::controller) fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let (all, id) = (self.all.clone(), self.id);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, all) = (client.clone(), all.clone());
            async move {
                let query = request.uri().query().unwrap_or_default();
                let is_watch = query.contains("watch=true");
                let lists = query.contains("sendInitialEvents=true");
                // The pages of a list follow each other without a pause.
                if !query.contains("continue=") {
                    tokio::time::sleep(all.pause(id)).await;
                }
                let answer = client.send(request).await;
                match &answer {
                    Ok(answer) if !answer.status().is_success() => all.failed(id, is_watch, Some(answer.status()), ""),
                    Ok(_) if is_watch => all.opened(id, lists),
                    Ok(_) => {}
                    Err(error) => all.failed(id, is_watch, None, &error.to_string()),
                }
                let (head, body) = answer?.into_parts();
                let body = match is_watch && head.status.is_success() {
                    true => Either::Left(Listened::new(body, LASTING, move |sign| all.hears(id, sign))),
                    false => Either::Right(body),
                };
                Ok::<_, BoxError>(Response::from_parts(head, body))
            }
        });
        Client::new(service, namespace)
    }

    /// `events` of this watch: after one that breaks off, the watch is not open until its next
    /// request is answered.
    pub(in crate::controller) fn follow<K, S>(
        self,
        events: S,
    ) -> impl Stream<Item = watcher::Result<Event<K>>> + use<K, S>
    where
        S: Stream<Item = watcher::Result<Event<K>>>,
    {
        events.inspect(move |event| {
            if let Err(error) = event {
                self.all.broke_off(self.id, error);
            }
        })
    }
}

impl Health {
    /// How long the next request of the watch must wait.
    fn pause(&self, id: u64) -> Duration {
        self.entries().get(&id).map_or(Duration::ZERO, |entry| entry.reopening.wait(Instant::now()))
    }

    fn opened(&self, id: u64, lists: bool) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&id) else { return };
        entry.reopening.opened(lists, Instant::now());
        entry.health.opened += 1;
        // A watch that repeatedly ended at once must first show that it stays open this time.
        if u64::from(entry.reopening.futile()) < WORTH_A_WARNING {
            entry.is_well();
        }
    }

    /// Records a sign of life, or the end, of the open watch.
    fn hears(&self, id: u64, sign: Sign) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&id) else { return };
        match sign {
            Sign::Data if entry.reopening.record_report(Instant::now()) => entry.is_well(),
            Sign::Data => {}
            Sign::Lasted => {
                entry.reopening.lasted();
                entry.is_well();
            }
            Sign::Ended if entry.reopening.ended(Instant::now()) => entry.ended_at_once(),
            Sign::Ended => {}
        }
    }

    /// Not counted as a failure: a failed request has already been counted, and an expired version
    /// is not a failure.
    fn broke_off(&self, id: u64, error: &watcher::Error) {
        let mut entries = self.entries();
        let Some(Entry { health, .. }) = entries.get_mut(&id) else { return };
        health.enter(WatchState::Failing);
        if Unended::is_cause_of(error) {
            tracing::warn!(kind = health.kind, %error, "the server did not end the watch in time; reopening it");
        }
    }

    fn failed(&self, id: u64, is_watch: bool, answer: Option<StatusCode>, problem: &str) {
        let mut entries = self.entries();
        let Some(Entry { health, failures_in_a_row, reopening }) = entries.get_mut(&id) else { return };
        if !is_watch {
            reopening.list_failed(Instant::now());
        }
        *failures_in_a_row += 1;
        health.failures += 1;
        health.enter(WatchState::Failing);
        let WatchHealth { group, version, kind, .. } = health;
        match answer {
            // Kinds that are not served are a normal state, and after a refused stream a list in
            // pages is tried.
            Some(StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) => {}
            Some(code @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) if *failures_in_a_row == 1 => {
                tracing::warn!(
                    group,
                    version,
                    kind,
                    code = code.as_u16(),
                    "the right to list and watch is missing, so changes go unnoticed"
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

impl Entry {
    /// Events arrive again.
    fn is_well(&mut self) {
        if self.failures_in_a_row >= WORTH_A_WARNING {
            tracing::info!(kind = self.health.kind, "the watch is open again");
        }
        self.failures_in_a_row = 0;
        self.health.enter(WatchState::Open);
    }

    /// The watch ended before it reported anything. The number in a row counts only watches that
    /// were opened.
    fn ended_at_once(&mut self) {
        let futile = u64::from(self.reopening.futile());
        self.failures_in_a_row = futile;
        self.health.failures += 1;
        self.health.enter(WatchState::Failing);
        if futile == WORTH_A_WARNING {
            let WatchHealth { group, version, kind, .. } = &self.health;
            tracing::warn!(
                group,
                version,
                kind,
                "the watch ends as soon as it is opened: does a proxy in front of the API server cut it off? Trying again"
            );
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

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn begun() -> (Health, WatchHandle) {
        let health = Health::default();
        let watched = health.begin(&ApiResource::erase::<VirtPlatformConfig>(&()));
        (health, watched)
    }

    /// A watch that is opened and ends after `lived`.
    async fn one(health: &Health, id: u64, lived: Duration) -> WatchState {
        advance(health.pause(id)).await;
        health.opened(id, false);
        let open = health.watches()[0].state;
        advance(lived).await;
        health.hears(id, Sign::Ended);
        open
    }

    #[tokio::test(start_paused = true)]
    async fn t17_a_watch_that_keeps_ending_at_once_is_failing_although_it_is_answered() {
        let (health, watched) = begun();
        assert_eq!(one(&health, watched.id, Duration::ZERO).await, WatchState::Open);
        for _ in 0..WORTH_A_WARNING {
            one(&health, watched.id, Duration::ZERO).await;
        }
        for _ in 0..3 {
            assert_eq!(one(&health, watched.id, Duration::ZERO).await, WatchState::Failing);
        }
        assert_eq!((health.watches()[0].opened, health.watches()[0].failures), (7, 7));
        health.entries().get_mut(&watched.id).unwrap().health.since -= FAILING + SignedDuration::from_secs(1);
        one(&health, watched.id, Duration::ZERO).await;
        let problem =
            |health: &Health| health.problems().into_iter().find(|told| told.starts_with("VirtPlatformConfig"));
        assert!(problem(&health).is_some_and(|told| told.contains("has not been watched since")));

        advance(health.pause(watched.id)).await;
        health.opened(watched.id, false);
        health.hears(watched.id, Sign::Lasted);
        assert_eq!((health.watches()[0].state, problem(&health)), (WatchState::Open, None));
    }

    #[tokio::test(start_paused = true)]
    async fn t17_a_watch_that_ends_in_its_time_is_neither_failing_nor_delayed() {
        let (health, watched) = begun();
        for _ in 0..10 {
            health.opened(watched.id, false);
            advance(LASTING).await;
            health.hears(watched.id, Sign::Lasted);
            advance(Duration::from_secs(260)).await;
            health.hears(watched.id, Sign::Ended);
            assert_eq!(health.pause(watched.id), Duration::ZERO);
            assert_eq!((health.watches()[0].state, health.watches()[0].failures), (WatchState::Open, 0));
        }
    }
}
