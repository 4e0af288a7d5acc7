//! Which kinds are served, in which version, under which path.

use std::collections::BTreeMap;

use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use profile_sdk::Kind;
use serde_json::Value;

use super::{Cluster, ClusterError};

/// A kind as the cluster serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Served {
    /// The path of the kind's objects.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let ApiResource {
            group, version, plural, ..
        } = &self.resource;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// Kinds that were found. A kind that was not found is asked for again each time: it may have been installed.
#[derive(Debug, Default)]
pub(super) struct KindCache {
    found: BTreeMap<(String, String, String), Served>,
}

impl Cluster {
    /// The kind in the first of its versions that is served; `None` if none is. One request for each version, once.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn resolve(&self, kind: &Kind) -> Result<Option<Served>, ClusterError> {
        for version in kind.versions {
            if let Some(served) = self.resolve_version(kind.group, version, kind.kind).await? {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }

    /// The kind that `object` names in `apiVersion` and `kind`; `None` if it is not served.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn resolve_object(&self, object: &Value) -> Result<Option<Served>, ClusterError> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        self.resolve_version(group, version, text("kind")).await
    }

    async fn resolve_version(&self, group: &str, version: &str, kind: &str) -> Result<Option<Served>, ClusterError> {
        let key = (group.to_owned(), version.to_owned(), kind.to_owned());
        if let Some(served) = self.cache().found.get(&key) {
            return Ok(Some(served.clone()));
        }
        match discovery::pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, kind)).await {
            Ok((resource, capabilities)) => {
                let served = Served {
                    resource,
                    namespaced: capabilities.scope == Scope::Namespaced,
                };
                self.cache().found.insert(key, served.clone());
                Ok(Some(served))
            }
            Err(error) => match ClusterError::from(error) {
                ClusterError::NotServed | ClusterError::NotFound { .. } => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Whether the kind was found to be served, without asking.
    #[must_use]
    pub fn is_known(&self, kind: &Kind) -> bool {
        let key = |version: &&str| (kind.group.to_owned(), (*version).to_owned(), kind.kind.to_owned());
        kind.versions
            .iter()
            .any(|version| self.cache().found.contains_key(&key(version)))
    }

    /// Forgets what is known of the kinds of `group`: its CRDs have changed.
    pub fn forget_kinds(&self, group: &str) {
        self.cache().found.retain(|(known, _, _), _| known != group);
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, KindCache> {
        self.kinds.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
