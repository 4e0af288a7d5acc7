//! The watches of all kinds, as one stream.

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;

/// The kinds that are played, or looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Machine,
    Instance,
    Claim,
    Class,
    KubeVirt,
    DataVolume,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Class, Kind::KubeVirt, Kind::Claim, Kind::DataVolume, Kind::Instance, Kind::Machine];

    /// How the API server calls it.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Kind::Machine => ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines"),
            Kind::Instance => ("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances"),
            Kind::Claim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Kind::Class => ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
            Kind::KubeVirt => ("kubevirt.io", "v1", "KubeVirt", "kubevirts"),
            Kind::DataVolume => ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }
}

/// What a watch has brought.
pub(crate) enum Event {
    /// The objects of this kind follow, all of them.
    Begins(Kind),
    /// An object as it is now.
    Is(Kind, Value),
    /// An object that is gone.
    Gone(Kind, Value),
    /// Those were all.
    Complete(Kind),
}

/// Watches every kind in every namespace.
pub(crate) fn start(client: &Client) -> SelectAll<BoxStream<'static, Event>> {
    futures::stream::select_all(Kind::ALL.map(|kind| watch(client, kind)))
}

fn watch(client: &Client, kind: Kind) -> BoxStream<'static, Event> {
    let all = Api::<DynamicObject>::all_with(client.clone(), &kind.resource());
    let events = watcher(all, watcher::Config::default()).default_backoff();
    let events = events.filter_map(move |event| async move {
        Some(match event {
            Ok(watcher::Event::Init) => Event::Begins(kind),
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                Event::Is(kind, read(kind, object))
            }
            Ok(watcher::Event::Delete(object)) => Event::Gone(kind, read(kind, object)),
            Ok(watcher::Event::InitDone) => Event::Complete(kind),
            Err(error) => {
                tracing::debug!(?kind, %error, "a watch of the simulation has ended");
                return None;
            }
        })
    });
    events.boxed()
}

/// The whole object, without the record of who has written what.
pub(crate) fn read(kind: Kind, mut object: DynamicObject) -> Value {
    let resource = kind.resource();
    object.types = Some(kube::api::TypeMeta { api_version: resource.api_version, kind: resource.kind });
    object.managed_fields_mut().clear();
    serde_json::to_value(object).unwrap_or_default()
}
