//! Discovery: which kinds are served, in which version, under which path.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::core::ApiResource;
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
    /// Whether its objects have a status subresource, which others can't write by accident.
    pub has_status: bool,
}

impl Served {
    /// The path of the kind's objects.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let ApiResource { group, version, plural, .. } = &self.resource;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }

    /// The object called `name`.
    #[must_use]
    pub fn subject(&self, namespace: Option<&str>, name: &str) -> Subject {
        Subject {
            group: self.resource.group.clone(),
            kind: self.resource.kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }
}

/// An object, independent of the version it is served in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace, for namespaced kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Subject {
    /// Whether it is a CustomResourceDefinition.
    #[must_use]
    pub fn is_definition(&self) -> bool {
        (self.group.as_str(), self.kind.as_str()) == (CRD.0, CRD.2)
    }
}

/// How long to wait for the answer about one version of a group: the server behind an APIService
/// may accept a connection and never answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A version of an API group that does not answer, although the API server does: the server behind
/// its APIService is down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SilentGroup {
    group: String,
    version: String,
}

impl SilentGroup {
    /// Whether this is the version in which `kind` is looked up first.
    #[must_use]
    pub fn has(&self, kind: &Kind) -> bool {
        self.group == kind.group && kind.versions.first().is_some_and(|version| *version == self.version)
    }
}

impl fmt::Display for SilentGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version } = self;
        write!(f, "the API group {group}/{version} does not respond (retrying): check its APIService {version}.{group}")
    }
}

/// A kind could not be looked up, so it is not known whether it is served.
#[derive(Debug, thiserror::Error)]
pub enum LookUpError {
    /// Only its group does not answer.
    #[error("{0}")]
    Group(SilentGroup),
    /// The server did not answer.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl From<LookUpError> for ClusterError {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Group(group) => Self::Transient { message: group.to_string() },
            LookUpError::Cluster(error) => error,
        }
    }
}

/// The kinds of each version of a group that was asked for: (group, version) to kinds. A version
/// that is not served is empty. When one of its CRDs changes, the whole group is forgotten.
#[derive(Debug, Default)]
pub(super) struct KindCache {
    versions: BTreeMap<(String, String), Vec<Served>>,
}

impl Cluster {
    /// The kind in the first of its versions that is served; `None` if none is. Sends one request
    /// for each version of a group, once.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn resolve(&self, kind: &Kind) -> Result<Option<Served>, ClusterError> {
        Ok(self.look_up(kind).await?)
    }

    /// Like [`Cluster::resolve`], for callers to whom it matters whether only the kind's group does
    /// not answer.
    ///
    /// # Errors
    ///
    /// If that is so, or the server did not answer.
    pub async fn look_up(&self, kind: &Kind) -> Result<Option<Served>, LookUpError> {
        for version in kind.versions {
            if let Some(served) = self.look_up_in(kind, version).await? {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }

    /// `kind` in version `version`; `None` if it is not served.
    ///
    /// # Errors
    ///
    /// If the kind's group or the server did not answer.
    pub async fn look_up_in(&self, kind: &Kind, version: &str) -> Result<Option<Served>, LookUpError> {
        let served = self.resolve_version(kind.group, version, kind.kind).await?;
        // Another CRD may use the same kind: its objects are not the ones we mean, nor do our
        // rights cover them.
        Ok(served.filter(|served| served.resource.plural == kind.plural))
    }

    /// The kind that `object` names in `apiVersion` and `kind`; `None` if it is not served.
    ///
    /// # Errors
    ///
    /// If the server did not answer.
    pub async fn resolve_object(&self, object: &Value) -> Result<Option<Served>, ClusterError> {
        Ok(self.look_up_object(object).await?)
    }

    /// Like [`Cluster::resolve_object`], for callers to whom it matters whether only the kind's
    /// group does not answer.
    ///
    /// # Errors
    ///
    /// If that is so, or the server did not answer.
    pub async fn look_up_object(&self, object: &Value) -> Result<Option<Served>, LookUpError> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        self.resolve_version(group, version, text("kind")).await
    }

    async fn resolve_version(&self, group: &str, version: &str, kind: &str) -> Result<Option<Served>, LookUpError> {
        if (group, version, kind) == CRD {
            return Ok(Some(crd()));
        }
        let find = |served: &[Served]| served.iter().find(|served| served.resource.kind == kind).cloned();
        let key = (group.to_owned(), version.to_owned());
        if let Some(known) = self.cache().versions.get(&key) {
            return Ok(find(known));
        }
        // One task asks; others that need the same wait for its answer.
        let _asking = self.resolving.lock().await;
        if let Some(known) = self.cache().versions.get(&key) {
            return Ok(find(known));
        }
        let served = self.discover(group, version).await?;
        let found = find(&served);
        self.cache().versions.insert(key, served);
        Ok(found)
    }

    /// The kinds that this version of the group serves now; none if there is no such version. A
    /// failure is not cached: the next caller asks again.
    async fn discover(&self, group: &str, version: &str) -> Result<Vec<Served>, LookUpError> {
        let asked = async {
            match group {
                "" => self.client.list_core_api_resources(version).await,
                group => self.client.list_api_group_resources(&format!("{group}/{version}")).await,
            }
        };
        let (error, may_be_alone) = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(list)) => return Ok(kinds(group, version, &list)),
            Ok(Err(error)) => {
                let of_server = matches!(&error, kube::Error::Api(status) if status.code >= 500);
                (ClusterError::from(error), of_server)
            }
            Err(_) => (ClusterError::Transient { message: format!("no answer about {group}/{version}") }, true),
        };
        match error {
            ClusterError::NotServed | ClusterError::NotFound { .. } => Ok(Vec::new()),
            error if may_be_alone && !group.is_empty() && self.answers().await => {
                tracing::debug!(group, version, %error, "an API group does not answer");
                Err(LookUpError::Group(SilentGroup { group: group.to_owned(), version: version.to_owned() }))
            }
            error => Err(error.into()),
        }
    }

    /// Whether the API server itself answers, regardless of the servers behind it.
    async fn answers(&self) -> bool {
        matches!(tokio::time::timeout(PATIENCE, self.client.apiserver_version()).await, Ok(Ok(_)))
    }

    /// The group of `kind`, if the group is what does not answer. For use after a request about
    /// `kind` was not answered.
    pub async fn silence_of(&self, kind: &Served) -> Option<SilentGroup> {
        let ApiResource { group, version, .. } = &kind.resource;
        if group.is_empty() {
            return None;
        }
        match self.discover(group, version).await {
            Err(LookUpError::Group(silent)) => Some(silent),
            Ok(_) | Err(LookUpError::Cluster(_)) => None,
        }
    }

    /// Forgets what is known about the kinds of `group`, because its CRDs have changed.
    pub fn forget_kinds(&self, group: &str) {
        self.cache().versions.retain(|(known, _), _| known != group);
    }

    /// Whether the resource was served when it was last looked up.
    pub fn is_known(&self, group: &str, plural: &str) -> bool {
        let cache = self.cache();
        let mut versions = cache.versions.iter().filter(|((known, _), _)| known == group);
        versions.any(|(_, served)| served.iter().any(|served| served.resource.plural == plural))
    }

    /// Whether the kind has a status subresource, if it was looked up.
    pub fn has_status(&self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let cache = self.cache();
        let served = cache.versions.get(&(group.to_owned(), version.to_owned()));
        served.into_iter().flatten().any(|served| served.resource.kind == kind && served.has_status)
    }

    fn cache(&self) -> parking_lot::MutexGuard<'_, KindCache> {
        self.kinds.lock()
    }
}

/// Served by every API server that this operator runs on, so it is not looked up.
const CRD: (&str, &str, &str) = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition");

fn crd() -> Served {
    Served { resource: ApiResource::erase::<CustomResourceDefinition>(&()), namespaced: false, has_status: true }
}

fn kinds(group: &str, version: &str, list: &APIResourceList) -> Vec<Served> {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    // Subresources are listed too, with a slash in their names.
    let resources = list.resources.iter().filter(|resource| !resource.name.contains('/'));
    resources
        .map(|resource| Served {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: api_version.clone(),
                kind: resource.kind.clone(),
                plural: resource.name.clone(),
            },
            namespaced: resource.namespaced,
            has_status: list.resources.iter().any(|other| other.name == format!("{}/status", resource.name)),
        })
        .collect()
}
