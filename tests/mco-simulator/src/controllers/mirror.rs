//! The local copy of one kind of object, kept by a watch like the controllers' listers. It may be a
//! moment behind the API server, as theirs is.
//!
//! Source: the informers of openshift/machine-config-operator at commit 7ff337a4ffac (observed by
//! their effects).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_objects};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

/// Pause between two checks whether a kind is served yet.
const SERVED_POLL: Duration = Duration::from_millis(500);

/// Copy of all objects of one kind.
#[derive(Debug)]
pub(crate) struct Mirror<K> {
    objects: BTreeMap<String, Arc<K>>,
    listing: Option<BTreeSet<String>>,
    synced: bool,
}

/// A change of one object: it was created, changed or removed.
#[derive(Debug)]
pub(crate) struct Change<K> {
    /// The object before; `None` if it is new.
    pub old: Option<Arc<K>>,
    /// The object now; `None` if it has been removed.
    pub new: Option<Arc<K>>,
}

impl<K> Default for Mirror<K> {
    fn default() -> Self {
        Mirror { objects: BTreeMap::new(), listing: None, synced: false }
    }
}

impl<K: ResourceExt> Mirror<K> {
    /// Whether the first list is complete.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// The object with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<K>> {
        self.objects.get(name)
    }

    /// All objects, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &K> {
        self.objects.values().map(AsRef::as_ref)
    }

    /// Takes in an event of the watch and returns the changes.
    pub(crate) fn take(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(object.name_any());
                }
                self.put(object).into_iter().collect()
            }
            Event::InitDone => {
                self.synced = true;
                let listed = self.listing.take().unwrap_or_default();
                let gone: Vec<String> = self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().filter_map(|name| self.remove(name)).collect()
            }
            Event::Apply(object) => self.put(object).into_iter().collect(),
            Event::Delete(object) => self.remove(&object.name_any()).into_iter().collect(),
        }
    }

    fn put(&mut self, object: K) -> Option<Change<K>> {
        let new = Arc::new(object);
        let old = self.objects.insert(new.name_any(), Arc::clone(&new));
        let known = old.as_ref().is_some_and(|old| old.resource_version() == new.resource_version());
        (!known).then_some(Change { old, new: Some(new) })
    }

    fn remove(&mut self, name: &str) -> Option<Change<K>> {
        self.objects.remove(name).map(|old| Change { old: Some(old), new: None })
    }
}

/// Watches all objects of a kind. Waits until the kind is served.
pub(crate) fn watch<K>(client: Client) -> BoxStream<'static, Event<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let api: Api<K> = Api::all(client);
    let events = {
        let api = api.clone();
        move |()| {
            let events = watch_objects(api.clone(), watcher::Config::default()).default_backoff();
            events.modify(|object| object.managed_fields_mut().clear()).filter_map(|event| async {
                event.inspect_err(|error| tracing::debug!(kind = %K::kind(&()), %error, "watch interrupted")).ok()
            })
        }
    };
    stream::once(wait_until_served(api)).flat_map(events).boxed()
}

async fn wait_until_served<K>(api: Api<K>)
where
    K: Clone + DeserializeOwned + Debug,
{
    while api.list_metadata(&ListParams::default().limit(1)).await.is_err() {
        tokio::time::sleep(SERVED_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Node;

    fn node(name: &str, version: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node.metadata.resource_version = Some(version.to_owned());
        node
    }

    #[test]
    fn a_second_list_tells_only_what_changed_meanwhile() {
        let mut mirror = Mirror::default();
        let mut changes = 0;
        for event in [Event::Init, Event::InitApply(node("a", "1")), Event::InitApply(node("b", "2")), Event::InitDone]
        {
            changes += mirror.take(event).len();
        }
        assert_eq!((changes, mirror.is_synced()), (2, true));
        mirror.take(Event::Init);
        assert!(mirror.take(Event::InitApply(node("a", "1"))).is_empty(), "known already");
        let gone = mirror.take(Event::InitDone);
        assert_eq!(gone.len(), 1);
        assert!(gone[0].new.is_none() && mirror.get("b").is_none());
    }
}
