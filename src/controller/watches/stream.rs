//! Lists and watches as streams: streamed lists where the server can, pages where it can't.

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

/// Objects in one page of a list: small pages keep the memory small, whatever the cluster holds.
const PAGE_SIZE: u32 = 50;
/// How long a streamed list may be silent.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after a failure it is asked again: longer each time.
const AFTER_FAILURE: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
/// What fails after it has gone on for so long fails for the first time again.
const LASTING: Duration = Duration::from_secs(10);
/// Answers to a streaming list from a server that can't: before Kubernetes 1.32, or with the feature switched off.
const CANNOT_STREAM: [u16; 2] = [400, 422];

/// What a metadata watch tells.
pub(super) enum StreamItem {
    Began,
    Changed(Object),
    Listed,
    NotServed,
    /// The right to list or to watch is missing.
    Forbidden,
}

/// An object in a version, or gone.
pub(super) struct Object {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// What matters of it, where that can be told ([`super::content`]).
    pub(super) content: Option<u64>,
}

/// What happens to the objects of a kind, or to the one of that name; `content` tells what matters of one.
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

/// Lists and watches with one request, or with a list in small pages where the server can't stream it. With `only`, the objects of that
/// name: whoever may list and watch only those may do it this way. What is forbidden is asked for again, with pauses, and begins with a list.
///
/// A server that does not know streaming lists at all ignores the wish and never ends the list: after
/// [`STREAM_TIMEOUT`] pages are used for good.
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

/// Where the events come from.
struct WatchSource<K> {
    api: Api<K>,
    config: watcher::Config,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    /// In pages, since the server can't stream.
    paged: bool,
    /// It has streamed a whole list.
    proven: bool,
    /// How often it has failed, one time after the other. That a list begins is no success: kube's own back-off takes it for one, and
    /// lists a kind that can't be listed every second for ever (kube-runtime 5.0, utils/stream_backoff.rs: each `Ok` resets it).
    failures: u32,
    /// Since when it goes on.
    resumed: Instant,
    /// Goes on after this.
    pause: Option<Duration>,
    /// Goes on with a list.
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
                    // kube would go on where it was, and nobody could tell when it goes on: a list says so.
                    self.anew = is_forbidden(error);
                }
            }
            return Some(next);
        }
    }

    /// The pause after one more failure: doubling, and up to a quarter longer so that watches that fail together do not meet.
    fn after_failure(&mut self, now: Instant) -> Duration {
        if now - self.resumed > LASTING {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        spread(AFTER_FAILURE.after(self.failures), self.api.resource_url(), self.failures)
    }
}

/// Whether the watch ended because nothing is served there any more.
pub(super) fn is_not_served(error: &watcher::Error) -> bool {
    answer(error).is_some_and(|status| matches!(ClusterError::from(kube::Error::Api(status)), ClusterError::NotServed))
}

/// Whether the right to list or to watch is missing.
pub(super) fn is_forbidden(error: &watcher::Error) -> bool {
    answer(error).is_some_and(|status| status.code == 403)
}

/// What the server answered instead of a list or a watch.
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
