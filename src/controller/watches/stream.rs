//! Lists and watches as streams: streamed lists if the server supports them, otherwise pages.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use kube::api::Api;
use kube::core::Status;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use super::health::WatchHandle;
use advisor_cluster::ClusterError;
use operator_kit::backoff::{Backoff, spread};

/// Objects in one page of a list: small pages limit the memory, whatever the cluster holds.
const PAGE_SIZE: u32 = 50;
/// How long a streamed list may be silent.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// The first and the longest pause after a failure; it doubles in between.
const AFTER_FAILURE: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
/// After this long without a failure, the next one counts as the first again.
const LASTING: Duration = Duration::from_secs(10);
/// Status codes with which a server refuses a streaming list: before Kubernetes 1.32, or with the
/// feature switched off.
const CANNOT_STREAM: [u16; 2] = [400, 422];

/// An event of a metadata watch.
pub(super) enum StreamItem {
    Began,
    Changed(Object),
    Listed,
    NotServed,
    /// The right to list or to watch is missing.
    Forbidden,
}

/// An object in a version, or deleted.
pub(super) struct Object {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// A hash of what matters of it, if known ([`super::content`]).
    pub(super) content: Option<u64>,
}

/// The events of the objects of a kind, or of the one called `only`; `content` computes the hash of
/// what matters of one.
pub(super) fn events<K>(
    api: Api<K>,
    kind: &str,
    only: Option<&str>,
    watched: WatchHandle,
    content: fn(&K) -> Option<u64>,
) -> impl Stream<Item = StreamItem> + Send + use<K>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let kind = kind.to_owned();
    watched.follow(list_and_watch(api, only)).filter_map(move |event| {
        let changed = |object: &K, version, content| {
            Some(StreamItem::Changed(Object {
                namespace: object.namespace(),
                name: object.name_any(),
                version,
                content,
            }))
        };
        let told = match event {
            Ok(Event::Init) => Some(StreamItem::Began),
            Ok(Event::InitDone) => Some(StreamItem::Listed),
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                changed(&object, object.resource_version(), content(&object))
            }
            Ok(Event::Delete(object)) => changed(&object, None, None),
            Err(error) if is_not_served(&error) => Some(StreamItem::NotServed),
            Err(error) if is_forbidden(&error) => Some(StreamItem::Forbidden),
            Err(error) => {
                tracing::debug!(kind, %error, "watch interrupted");
                None
            }
        };
        async move { told }
    })
}

/// Lists and watches with one request, or with a list in small pages if the server can't stream it.
/// With `only`, just the objects with that name: this works even for clients that may list and
/// watch only those. A forbidden request is repeated with pauses, and begins with a list.
///
/// A server that does not know streaming lists at all ignores the request for one and never ends
/// the list: after [`STREAM_TIMEOUT`] pages are used from then on.
pub(super) fn list_and_watch<K>(
    api: Api<K>,
    only: Option<&str>,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = watcher::Config {
        field_selector: only.map(|name| format!("metadata.name={name}")),
        ..watcher::Config::default()
    };
    let source = WatchSource {
        events: opened(&api, &config, false),
        api,
        config,
        paged: false,
        proven: false,
        failures: 0,
        resumed: Instant::now(),
        pause: None,
        anew: false,
    };
    stream::unfold(source, |mut source| async move {
        let next = source.next().await?;
        Some((next, source))
    })
}

/// The source of the events.
struct WatchSource<K> {
    api: Api<K>,
    config: watcher::Config,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    /// Whether it uses pages, because the server can't stream.
    paged: bool,
    /// Whether it has streamed a whole list.
    proven: bool,
    /// The number of consecutive failures. The beginning of a list does not count as a success:
    /// kube's own back-off treats it as one, and would list a kind that can't be listed every
    /// second forever (kube-runtime 5.0, utils/stream_backoff.rs: each `Ok` resets it).
    failures: u32,
    /// Since when it has been running.
    resumed: Instant,
    /// The pause before it continues.
    pause: Option<Duration>,
    /// Whether it continues with a list.
    anew: bool,
}

fn opened<K>(api: &Api<K>, config: &watcher::Config, paged: bool) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let config = if paged { config.clone().page_size(PAGE_SIZE) } else { config.clone().streaming_lists() };
    watcher(api.clone(), config).boxed()
}

impl<K> WatchSource<K>
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    async fn next(&mut self) -> Option<watcher::Result<Event<K>>> {
        if let Some(pause) = self.pause.take() {
            tokio::time::sleep(pause).await;
            self.resumed = Instant::now();
            if std::mem::take(&mut self.anew) {
                self.events = opened(&self.api, &self.config, self.paged);
            }
        }
        loop {
            let unproven = !self.paged && !self.proven;
            let next = if unproven {
                tokio::time::timeout(STREAM_TIMEOUT, self.events.next()).await.ok()
            } else {
                Some(self.events.next().await)
            };
            let can_not_stream = match &next {
                None => true,
                Some(Some(Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))))) => {
                    CANNOT_STREAM.contains(&status.code)
                }
                Some(_) => false,
            };
            if unproven && can_not_stream {
                self.paged = true;
                self.events = opened(&self.api, &self.config, true);
                continue;
            }
            let next = next??;
            match &next {
                Ok(Event::InitDone) => {
                    self.proven |= !self.paged;
                    self.failures = 0;
                }
                Ok(Event::Apply(_) | Event::Delete(_)) => self.failures = 0,
                Ok(Event::Init | Event::InitApply(_)) => {}
                Err(error) => {
                    self.pause = Some(self.after_failure(Instant::now()));
                    // kube would continue where it was, and nobody could see when it continues: a
                    // list shows that.
                    self.anew = is_forbidden(error);
                }
            }
            return Some(next);
        }
    }

    /// The pause after one more failure: it doubles, and is up to a quarter longer so that watches
    /// that fail together do not coincide.
    fn after_failure(&mut self, now: Instant) -> Duration {
        if now - self.resumed > LASTING {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        spread(AFTER_FAILURE.after(self.failures), self.api.resource_url(), self.failures)
    }
}

/// Whether the watch ended because the kind is no longer served.
pub(super) fn is_not_served(error: &watcher::Error) -> bool {
    answer(error).is_some_and(|status| matches!(ClusterError::from(kube::Error::Api(status)), ClusterError::NotServed))
}

/// Whether the right to list or to watch is missing.
pub(super) fn is_forbidden(error: &watcher::Error) -> bool {
    answer(error).is_some_and(|status| status.code == 403)
}

/// The server's answer instead of a list or a watch.
fn answer(error: &watcher::Error) -> Option<Box<Status>> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.clone()),
        watcher::Error::WatchError(status) => Some(status.clone()),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}
