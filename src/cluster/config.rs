//! Our own objects: creating advertised configurations, reading one, writing its status.

use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{CustomResourceExt, Resource};
use serde_json::{Value, json};

use super::{Cluster, ClusterError};
use crate::api::{FIELD_MANAGER, VirtPlatformConfig, VirtPlatformConfigStatus};

impl Cluster {
    fn configs(&self) -> Api<VirtPlatformConfig> {
        Api::all(self.client.clone())
    }

    /// Reads a configuration past every cache; `None` if it is gone.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn config(&self, name: &str) -> Result<Option<VirtPlatformConfig>, ClusterError> {
        match self.configs().get(name).await.map_err(ClusterError::from) {
            Ok(config) => Ok(Some(config)),
            Err(ClusterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a configuration unless one of that name exists. Returns whether it was created.
    ///
    /// # Errors
    ///
    /// If the server did not answer or refuses it.
    pub async fn create_config(&self, config: &VirtPlatformConfig) -> Result<bool, ClusterError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.configs().create(&params, config).await.map_err(ClusterError::from) {
            Ok(_) => Ok(true),
            Err(ClusterError::Moved) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces what this operator says in the status of `name`, if the object is still in `resource_version`; returns
    /// the new version. Conditions of others stay.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the object has changed: whatever was decided was decided about another object.
    pub async fn write_status(
        &self,
        name: &str,
        resource_version: &str,
        status: &VirtPlatformConfigStatus,
    ) -> Result<String, ClusterError> {
        self.write_raw_status(name, resource_version, &json!(status)).await
    }

    /// As [`Cluster::write_status`], for an object that does not fit our types.
    ///
    /// # Errors
    ///
    /// As [`Cluster::write_status`].
    pub async fn write_raw_status(
        &self,
        name: &str,
        resource_version: &str,
        status: &Value,
    ) -> Result<String, ClusterError> {
        let resource = VirtPlatformConfig::api_resource();
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"resourceVersion": resource_version},
            "status": status,
        });
        let path = VirtPlatformConfig::url_path(&(), None);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let request = kube::core::Request::new(path).patch_subresource("status", name, &params, &Patch::Apply(&body));
        let answer = self.request(request).await?;
        Ok(answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}
