//! Previews: what the API server says an apply, or a removal, would do.

use serde_json::Value;

use super::write::ApplyMode;
use super::{Cluster, ClusterError, Precondition, Served};

/// What a dry run of an apply answered.
#[derive(Debug, Clone)]
pub struct Previewed {
    /// The object as it would be.
    pub result: Value,
    /// Fields that others own with another value: the field as the server names it, and the manager.
    pub conflicts: Vec<(String, String)>,
}

impl Cluster {
    /// Previews applying `desired` as `manager`: a dry run without force, and one with force if others own fields.
    /// `live` is the object as it was read just now. At most two requests.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the dry run was not computed from `live`; else why the server does not tell.
    pub async fn preview(
        &self,
        kind: &Served,
        desired: &Value,
        live: Option<&Value>,
        manager: &str,
    ) -> Result<Previewed, ClusterError> {
        let dry_run = async |mode| self.apply(kind, desired, manager, mode, &Precondition::None).await;
        let (result, conflicts) = match dry_run(ApplyMode::DryRun).await {
            Ok(result) => (result, Vec::new()),
            Err(ClusterError::Conflicts(conflicts)) => (dry_run(ApplyMode::ForcedDryRun).await?, conflicts),
            Err(error) => return Err(error),
        };
        // The dry run names the version that it was computed from: only then do live and result belong together.
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        if live.and_then(version) == version(&result) {
            Ok(Previewed { result, conflicts })
        } else {
            Err(ClusterError::Moved)
        }
    }
}
