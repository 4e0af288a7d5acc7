//! Events: the audit trail that `kubectl describe` and `kubectl get events` show.

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Resource, ResourceExt};

use super::{Cluster, ClusterError};
use object::{digest, limits};

/// The only namespace in which events about cluster-scoped objects are accepted. Those about other
/// objects are in the object's own.
const NAMESPACE: &str = "default";
/// The longest note that the API accepts, in bytes.
const NOTE_LIMIT: usize = 1024;

/// An event that a person would want in the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// A constant in CamelCase.
    pub reason: &'static str,
    /// The action of the operator that it is about.
    pub action: &'static str,
    /// Whether a person should look.
    pub warning: bool,
    /// One sentence.
    pub text: String,
    /// Identifies the occurrence: the same key, object and reason are one event, even after a
    /// crash.
    pub key: String,
}

/// Whether an object with this name exists. Any other 409 means that nothing was stored.
pub(super) fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

impl Cluster {
    /// Records `note` about `object`. An event that was recorded before is left as it is.
    ///
    /// # Errors
    ///
    /// If the server did not answer or refuses it.
    pub async fn record<K>(&self, object: &K, note: &Note, now: Timestamp) -> Result<(), ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        let uid = object.uid().unwrap_or_default();
        let namespace = object.namespace().unwrap_or_else(|| NAMESPACE.to_owned());
        let occurrence = digest::sha256(&[&uid, &note.key, note.reason]);
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{}", object.name_any(), &occurrence[..16])),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            action: Some(note.action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(limits::cut_text(&note.text, NOTE_LIMIT)),
            reason: Some(note.reason.to_owned()),
            regarding: Some(object.object_ref(&())),
            reporting_controller: Some(self.field_manager.to_owned()),
            reporting_instance: Some(self.field_manager.to_owned()),
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => Ok(()),
            Err(error) if already_exists(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
