//! Previews: what an apply would do according to the API server.

use serde_json::Value;

use super::write::ApplyMode;
use super::{Cluster, ClusterError, Precondition, Served};
use object::fields::{self, FieldPath, Lookup};

/// The result of a dry run of an apply.
#[derive(Debug, Clone)]
pub struct Previewed {
    /// The object as it would be.
    pub result: Value,
    /// Fields that others own with another value, each with the manager.
    pub conflicts: Vec<(FieldPath, String)>,
}

impl Cluster {
    /// Previews applying `desired` as `manager`: a dry run without force, and one with force if
    /// others own fields. `live` is the object as it was read just before. At most two requests.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the dry run was not computed from `live`; otherwise the reason
    /// why there is no preview.
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
        let objects = [&result, live.unwrap_or(&Value::Null)].map(Lookup::of);
        let path = |field: &String| fields::from_cause(field, &objects);
        let conflicts = conflicts.iter().map(|(field, manager)| (path(field), manager.clone())).collect();
        belonging(live, Previewed { result, conflicts })
    }

    /// Like [`Cluster::preview`], but with one request: for objects in which others evidently own
    /// fields. The conflicts are determined from `live`.
    ///
    /// # Errors
    ///
    /// As for [`Cluster::preview`].
    pub async fn preview_by_force(
        &self,
        kind: &Served,
        desired: &Value,
        live: Option<&Value>,
        manager: &str,
    ) -> Result<Previewed, ClusterError> {
        let result = self.apply(kind, desired, manager, ApplyMode::ForcedDryRun, &Precondition::None).await?;
        let conflicts = live.map(|live| fields::conflicting(live, &result, manager)).unwrap_or_default();
        belonging(live, Previewed { result, conflicts })
    }
}

/// Checks that live object and result belong together: the dry run names the version that it was
/// computed from.
fn belonging(live: Option<&Value>, previewed: Previewed) -> Result<Previewed, ClusterError> {
    let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
    if live.and_then(version) == version(&previewed.result) { Ok(previewed) } else { Err(ClusterError::Moved) }
}
