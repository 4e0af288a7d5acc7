//! Our own objects: creating advertised configurations, reading one, writing its status.

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DeserializeGuard, Request};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::events::already_exists;
use super::{Cluster, ClusterError, Refusal};
use advisor_core::api::{FIELD_MANAGER, VirtPlatformConfig, VirtPlatformConfigStatus};

/// A status as the server has stored it.
#[derive(Debug)]
pub struct StoredStatus {
    /// The version of the configuration from now on.
    pub version: String,
    /// The status: a CRD that is older than this program lacks fields, and the server leaves out what it does not know.
    pub status: VirtPlatformConfigStatus,
}

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

    /// All configurations that fit our types.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn all_configs(&self) -> Result<Vec<VirtPlatformConfig>, ClusterError> {
        let configs: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(self.client.clone());
        let list = configs.list(&ListParams::default()).await.map_err(ClusterError::from)?;
        Ok(list.items.into_iter().filter_map(|config| config.0.ok()).collect())
    }

    /// Creates a configuration unless one of that name exists. Returns whether it was created.
    ///
    /// # Errors
    ///
    /// If the server did not answer or refuses it.
    pub async fn create_config(&self, config: &VirtPlatformConfig) -> Result<bool, ClusterError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.configs().create(&params, config).await {
            Ok(_) => Ok(true),
            Err(error) if already_exists(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the status of `config` by `status`, if the object has not changed since it was read; returns what the server made of it.
    ///
    /// Replaced, not applied: fields that another manager has claimed too would stay, and could keep every later status from
    /// being accepted.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the object has changed: whatever was decided was decided about another object.
    pub async fn write_status(
        &self,
        config: &VirtPlatformConfig,
        status: &VirtPlatformConfigStatus,
    ) -> Result<StoredStatus, ClusterError> {
        let mut body = config.clone();
        body.metadata.managed_fields = None;
        body.status = Some(status.clone());
        let unfit = |error: serde_json::Error| {
            ClusterError::Refused(Refusal { message: error.to_string(), ..Refusal::default() })
        };
        let data = serde_json::to_vec(&body).map_err(unfit)?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let request = Request::new(VirtPlatformConfig::url_path(&(), None));
        let request = request.replace_subresource("status", &config.name_any(), &params, data);
        let mut answer = self.request(request).await?;
        let version = version(&answer);
        let stored = answer.get_mut("status").map(Value::take).unwrap_or_default();
        // It is stored, whatever it has become.
        Ok(StoredStatus { version, status: serde_json::from_value(stored).unwrap_or_default() })
    }

    /// Sets the members of `status` of an object that does not fit our types.
    ///
    /// # Errors
    ///
    /// As [`Cluster::write_status`].
    pub async fn patch_status(
        &self,
        name: &str,
        resource_version: &str,
        status: &Value,
    ) -> Result<String, ClusterError> {
        let body = json!({"metadata": {"resourceVersion": resource_version}, "status": status});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let request = Request::new(VirtPlatformConfig::url_path(&(), None));
        let request = request.patch_subresource("status", name, &params, &Patch::Merge(&body));
        Ok(version(&self.request(request).await?))
    }
}

fn version(answer: &Value) -> String {
    answer.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}
