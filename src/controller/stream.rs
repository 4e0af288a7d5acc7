//! Lists and watches as streams: streamed lists where the server can, pages where it can't.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::api::{Api, DynamicObject};
use kube::core::{PartialObjectMeta, Status};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};

use super::health::Watched;
use crate::cluster::ClusterError;

/// Objects in one page of a list: small pages keep the memory small, whatever the cluster holds.
const PAGE_SIZE: u32 = 50;
/// How long a streamed list may be silent.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// Answers to a streaming list from a server that can't: before Kubernetes 1.32, or with the feature switched off.
const CANNOT_STREAM: [u16; 2] = [400, 422];

/// What a metadata watch tells.
pub(super) enum Told {
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
}

/// What happens to the objects of a kind, or to the one of that name, by their metadata.
pub(super) fn events(
    api: Api<PartialObjectMeta<DynamicObject>>,
    kind: &str,
    only: Option<&str>,
    watched: Watched,
) -> impl Stream<Item = Told> + use<> {
    let kind = kind.to_owned();
    watched.follow(list_and_watch(api, only)).filter_map(move |event| {
        let told = match event {
            Ok(Event::Init) => Some(Told::Began),
            Ok(Event::InitDone) => Some(Told::Listed),
            Ok(Event::Apply(object) | Event::InitApply(object)) => Some(Told::Changed(Object {
                namespace: object.namespace(),
                name: object.name_any(),
                version: object.resource_version(),
            })),
            Ok(Event::Delete(object)) => {
                Some(Told::Changed(Object { namespace: object.namespace(), name: object.name_any(), version: None }))
            }
            Err(error) if is_not_served(&error) => Some(Told::NotServed),
            Err(error) if is_forbidden(&error) => Some(Told::Forbidden),
            Err(error) => {
                tracing::debug!(kind, %error, "watch interrupted");
                None
            }
        };
        async move { told }
    })
}

/// Lists and watches with one request, or with a list in small pages where the server can't stream it. With `only`, the objects of that
/// name: whoever may list and watch only those may do it this way.
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
    let streamed = watcher(api.clone(), config.clone().streaming_lists()).default_backoff().boxed();
    stream::unfold((streamed, Some(api), config), |(mut events, mut unproven, config)| async move {
        loop {
            let next = match &unproven {
                Some(_) => tokio::time::timeout(STREAM_TIMEOUT, events.next()).await,
                None => Ok(events.next().await),
            };
            let can_not_stream = match &next {
                Err(_) => true,
                Ok(Some(Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))))) => {
                    CANNOT_STREAM.contains(&status.code)
                }
                Ok(_) => false,
            };
            match (unproven.take(), next) {
                (Some(api), _) if can_not_stream => {
                    let paged = config.clone().page_size(PAGE_SIZE);
                    events = watcher(api, paged).default_backoff().boxed();
                }
                (api, Ok(next)) => {
                    let proven = matches!(next, Some(Ok(Event::InitDone)));
                    return Some((next?, (events, api.filter(|_| !proven), config)));
                }
                (None, Err(_)) | (Some(_), Err(_)) => return None,
            }
        }
    })
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
