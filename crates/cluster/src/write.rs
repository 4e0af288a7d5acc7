//! Server-side apply and removal, as a dry run and for real.

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::Request;
use serde_json::{Value, json};

use super::error::within_bounds;
use super::{Cluster, ClusterError, Served};

/// How an object is applied. Field validation is always strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// Nothing is stored; fields of others are conflicts.
    DryRun,
    /// Nothing is stored; fields of others are taken over.
    ForcedDryRun,
    /// Stored; fields of others are conflicts.
    Real,
    /// Stored; the reviewed conflicts are taken over.
    Forced,
}

/// The required state of the object for an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Any state; for dry runs only.
    None,
    /// It does not exist.
    Absent,
    /// It is this object in this version. Both are needed: with a version alone, the server might
    /// create a deleted object again.
    Exactly {
        /// `metadata.uid`.
        uid: String,
        /// `metadata.resourceVersion`.
        resource_version: String,
    },
}

/// A version that no object has: applying with it creates the object, or fails if it exists
/// (observed for every kind).
const NO_VERSION: &str = "1";

impl Cluster {
    /// Applies `object` as `manager`, and returns it as the server answers.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if the precondition does not hold, [`ClusterError::Conflicts`]
    /// without force, [`ClusterError::TooDeep`] or [`ClusterError::TooMany`] if the result can't be
    /// compared.
    pub async fn apply(
        &self,
        kind: &Served,
        object: &Value,
        manager: &str,
        mode: ApplyMode,
        precondition: &Precondition,
    ) -> Result<Value, ClusterError> {
        let mut body = object.clone();
        match precondition {
            Precondition::None => {}
            Precondition::Absent => body["metadata"]["resourceVersion"] = json!(NO_VERSION),
            Precondition::Exactly { uid, resource_version } => {
                body["metadata"]["uid"] = json!(uid);
                body["metadata"]["resourceVersion"] = json!(resource_version);
            }
        }
        let mut params = PatchParams::apply(manager).validation_strict();
        params.dry_run = matches!(mode, ApplyMode::DryRun | ApplyMode::ForcedDryRun);
        params.force = matches!(mode, ApplyMode::ForcedDryRun | ApplyMode::Forced);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let path = kind.path(text("/metadata/namespace"));
        let request =
            Request::new(path).patch(text("/metadata/name").unwrap_or_default(), &params, &Patch::Apply(&body));
        within_bounds(self.request(request).await?)
    }

    /// Merges `change` into the object called `name`, or into its status, and returns the object.
    /// For single fields that no list of ours covers: an apply would give up everything that it
    /// leaves out. `change` names the object's uid, so that no other one of its name is changed.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if it is another object, or in another version than `change` names.
    pub async fn merge(
        &self,
        kind: &Served,
        (namespace, name): (Option<&str>, &str),
        status: bool,
        change: &Value,
    ) -> Result<Value, ClusterError> {
        let params = PatchParams { field_manager: Some(self.field_manager.to_owned()), ..PatchParams::default() };
        let request = Request::new(kind.path(namespace));
        let patch = Patch::Merge(change);
        let request = match status {
            true => request.patch_subresource("status", name, &params, &patch),
            false => request.patch(name, &params, &patch),
        };
        self.request(request).await
    }

    /// Deletes the object called `name` if it is still the same object in the same version. With
    /// `dry_run`, only checks whether the server would.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Moved`] if it is not.
    pub async fn remove(
        &self,
        kind: &Served,
        (namespace, name): (Option<&str>, &str),
        uid: &str,
        resource_version: &str,
        dry_run: bool,
    ) -> Result<(), ClusterError> {
        let preconditions =
            Preconditions { uid: Some(uid.to_owned()), resource_version: Some(resource_version.to_owned()) };
        let params = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
        let request = Request::new(kind.path(namespace)).delete(name, &params);
        match self.request(request).await {
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
