//! Typed objects of the kinds that a program owns: reading and creating them, and writing their
//! status.

use std::fmt::Debug;

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DeserializeGuard, Request};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::events::already_exists;
use super::{Cluster, ClusterError, Refusal};

/// A status as the server has stored it.
#[derive(Debug)]
pub struct Stored {
    /// The resourceVersion of the object after the write.
    pub version: String,
    /// The status. It may differ from the one sent: a CRD that is older than the program lacks
    /// fields, and the server drops what it does not know.
    pub status: Value,
}

impl Cluster {
    /// Reads the cluster-scoped object called `name`, bypassing every cache; `None` if it does not
    /// exist.
    ///
    /// # Errors
    ///
    /// If the server did not answer, or the object does not fit the type.
    pub async fn find<K>(&self, name: &str) -> Result<Option<K>, ClusterError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        match Api::<K>::all(self.client.clone()).get(name).await.map_err(ClusterError::from) {
            Ok(object) => Ok(Some(object)),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of the kind that fit the type.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn find_all<K>(&self) -> Result<Vec<K>, ClusterError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let all: Api<DeserializeGuard<K>> = Api::all(self.client.clone());
        let list = all.list(&ListParams::default()).await.map_err(ClusterError::from)?;
        Ok(list.items.into_iter().filter_map(|object| object.0.ok()).collect())
    }

    /// Creates a cluster-scoped object unless one with its name exists. Returns whether it was
    /// created.
    ///
    /// # Errors
    ///
    /// If the server did not answer or refuses it.
    pub async fn create<K>(&self, object: &K) -> Result<bool, ClusterError>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug,
    {
        let params = PostParams { field_manager: Some(self.field_manager.to_owned()), ..PostParams::default() };
        match Api::<K>::all(self.client.clone()).create(&params, object).await {
            Ok(_) => Ok(true),
            Err(error) if already_exists(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the status of a cluster-scoped object by that of `object`, if the object has not
    /// changed since it was read. Returns the status that the server stored.
    ///
    /// Replaced, not applied: fields that another manager has claimed too would stay, and could
    /// cause every later status to be rejected.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the object has changed: the decision was about another state of
    /// it.
    pub async fn replace_status<K>(&self, mut object: K) -> Result<Stored, ClusterError>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        object.meta_mut().managed_fields = None;
        let unfit = |error: serde_json::Error| {
            ClusterError::Refused(Refusal { message: error.to_string(), ..Refusal::default() })
        };
        let data = serde_json::to_vec(&object).map_err(unfit)?;
        let params = PostParams { field_manager: Some(self.field_manager.to_owned()), ..PostParams::default() };
        let request = Request::new(K::url_path(&(), None));
        let request = request.replace_subresource("status", &object.name_any(), &params, data);
        let mut answer = self.request(request).await?;
        let version = version(&answer);
        Ok(Stored { version, status: answer.get_mut("status").map(Value::take).unwrap_or_default() })
    }

    /// Sets the members of `status` of a cluster-scoped object that does not fit its type. Returns
    /// its new resourceVersion.
    ///
    /// # Errors
    ///
    /// As for [`Cluster::replace_status`].
    pub async fn patch_status<K>(
        &self,
        name: &str,
        resource_version: &str,
        status: &Value,
    ) -> Result<String, ClusterError>
    where
        K: Resource<DynamicType = ()>,
    {
        let body = json!({"metadata": {"resourceVersion": resource_version}, "status": status});
        let params = PatchParams { field_manager: Some(self.field_manager.to_owned()), ..PatchParams::default() };
        let request = Request::new(K::url_path(&(), None));
        let request = request.patch_subresource("status", name, &params, &Patch::Merge(&body));
        Ok(version(&self.request(request).await?))
    }
}

fn version(answer: &Value) -> String {
    answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}
