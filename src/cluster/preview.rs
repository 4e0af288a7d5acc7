//! Previews: what the API server says an apply would do.

use serde_json::Value;

use super::write::ApplyMode;
use super::{Cluster, ClusterError, Precondition, Served};
use crate::plan::item::Preview;

impl Cluster {
    /// Previews applying `desired` as `manager`: a dry run without force, and one with force if others own fields.
    /// `live` is the object as it was read just now; refusals of objects with `sensitive` values are not quoted. At most two
    /// requests.
    ///
    /// # Errors
    ///
    /// Only if the answer may be another one later; what the server refuses for good is [`Preview::Refused`].
    pub async fn preview(
        &self,
        kind: &Served,
        desired: &Value,
        live: Option<Value>,
        manager: &str,
        sensitive: &[String],
    ) -> Result<Preview, ClusterError> {
        let attempt = self.apply(kind, desired, manager, ApplyMode::DryRun, &Precondition::None).await;
        let (result, conflicts) = match attempt {
            Ok(result) => (result, Vec::new()),
            Err(ClusterError::Conflicts(conflicts)) => {
                match self.apply(kind, desired, manager, ApplyMode::ForcedDryRun, &Precondition::None).await {
                    Ok(result) => (result, conflicts),
                    Err(error) => return refusal(error, desired, sensitive),
                }
            }
            Err(error) => return refusal(error, desired, sensitive),
        };
        // The dry run names the version that it was computed from: only then do live and result belong together.
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        match live {
            Some(live) if version(&live) == version(&result) => {
                Ok(Preview::Known { live: Some(live), result, conflicts })
            }
            None if version(&result).is_none() => Ok(Preview::Known { live: None, result, conflicts }),
            Some(_) | None => Err(ClusterError::Moved),
        }
    }
}

fn refusal(error: ClusterError, desired: &Value, sensitive: &[String]) -> Result<Preview, ClusterError> {
    let name = |pointer: &str| desired.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let remedy = match error {
        ClusterError::NotServed => {
            format!("the cluster does not serve {} {}: install its operator", name("/apiVersion"), name("/kind"))
        }
        ClusterError::NotFound { namespace_missing: true, .. } => {
            format!(
                "namespace {} does not exist: create it, or install the operator that brings it",
                name("/metadata/namespace")
            )
        }
        ClusterError::NotFound { message, .. } => message,
        ClusterError::Refused { code, .. } if name("/kind") == "Secret" || !sensitive.is_empty() => {
            format!(
                "the API server refuses it with code {code}; its text is not shown because it may quote secret values"
            )
        }
        ClusterError::Refused { code: 403, message } => format!("the API server forbids it: {message}"),
        ClusterError::Refused { message, .. } => format!("the API server refuses it: {message}"),
        error @ (ClusterError::Transient { .. } | ClusterError::Conflicts(_) | ClusterError::Moved) => {
            return Err(error);
        }
    };
    Ok(Preview::Refused { remedy })
}
