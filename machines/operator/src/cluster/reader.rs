//! Reading objects: from the mirror, or from the API server where there is no mirror.

use std::sync::Arc;

use advisor_cluster::{Cluster, ClusterError};
use serde_json::Value;

use super::kinds::{self, Kind};
use super::mirror::{Mirror, text_at};
use super::watches::WATCHED;

/// Where objects are read.
#[derive(Clone)]
pub struct Reader {
    cluster: Arc<Cluster>,
    mirror: Option<Arc<Mirror>>,
    is_direct: bool,
}

impl Reader {
    /// Reads what is watched from `mirror`, and everything else from the API server.
    #[must_use]
    pub fn mirrored(cluster: Arc<Cluster>, mirror: Arc<Mirror>) -> Self {
        Self { cluster, mirror: Some(mirror), is_direct: false }
    }

    /// Reads everything from the API server.
    #[must_use]
    pub fn direct(cluster: Arc<Cluster>) -> Self {
        Self { cluster, mirror: None, is_direct: true }
    }

    /// The same, past the mirror.
    #[must_use]
    pub fn past_the_mirror(&self) -> Self {
        Self { is_direct: true, ..self.clone() }
    }

    /// The mirror, if there is one.
    #[must_use]
    pub fn mirror(&self) -> Option<&Mirror> {
        self.mirror.as_deref().filter(|_| !self.is_direct)
    }

    fn mirror_of(&self, kind: Kind) -> Option<&Mirror> {
        self.mirror().filter(|_| WATCHED.contains(&kind))
    }

    /// An object, or `None` if it or its kind does not exist.
    ///
    /// # Errors
    /// The API server did not answer, or refused.
    pub async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>, ClusterError> {
        if let Some(mirror) = self.mirror_of(kind) {
            return Ok(mirror.get(kind, namespace, name));
        }
        let namespace = Some(namespace).filter(|_| kind.is_namespaced());
        match self.cluster.get(&kind.served(), namespace, name).await {
            // An API server that has just started may not serve yet what is defined.
            Err(ClusterError::NotServed) if self.is_defined(kind) => Err(ClusterError::NotServed),
            Err(ClusterError::NotServed) => Ok(None),
            found => found,
        }
    }

    /// Whether a definition of the kind has been seen.
    fn is_defined(&self, kind: Kind) -> bool {
        self.mirror.as_ref().is_some_and(|mirror| mirror.serves(kind))
    }

    /// All objects of a kind that is watched.
    ///
    /// # Errors
    /// The API server did not answer, or refused.
    pub async fn list(&self, kind: Kind) -> Result<Vec<Value>, ClusterError> {
        if let Some(mirror) = self.mirror_of(kind) {
            return Ok(mirror.list(kind));
        }
        match self.cluster.list(&kind.served()).await {
            Err(ClusterError::NotServed | ClusterError::NotFound { .. }) => Ok(Vec::new()),
            found => found,
        }
    }

    /// Whether a kind is served.
    ///
    /// # Errors
    /// The API server did not answer, or refused.
    pub async fn serves(&self, kind: Kind) -> Result<bool, ClusterError> {
        match (&self.mirror, kind.definition()) {
            (Some(mirror), _) => Ok(mirror.serves(kind)),
            (None, Some(name)) => Ok(self.get(kinds::DEFINITION, "", &name).await?.is_some()),
            (None, None) => Ok(true),
        }
    }

    /// The virtual machines in a namespace that use a claim.
    ///
    /// # Errors
    /// The API server did not answer, or refused.
    pub async fn virtual_machines_with(&self, namespace: &str, claim: &str) -> Result<Vec<String>, ClusterError> {
        if let Some(mirror) = self.mirror() {
            return Ok(mirror.users(namespace, claim));
        }
        let all = self.list(kinds::VM).await?;
        let in_namespace = all.iter().filter(|vm| text_at(vm, "/metadata/namespace") == namespace);
        let using =
            in_namespace.filter(|vm| machines_core::plan::attached(Some(vm)).values().any(|used| used == claim));
        Ok(using.map(|vm| text_at(vm, "/metadata/name").to_owned()).collect())
    }

    /// The Pods in a namespace that use a claim and have not ended: those that stay, and those that
    /// are about to go. Without those of the virtual machine called `own`, if it is given.
    ///
    /// # Errors
    /// The API server did not answer, or refused.
    pub async fn pods_with(
        &self,
        namespace: &str,
        claim: &str,
        own: Option<&str>,
    ) -> Result<(Vec<String>, Vec<String>), ClusterError> {
        let pods = self.cluster.list_in(&kinds::POD.served(), namespace).await?;
        let is_over = |pod: &Value| matches!(text_at(pod, "/status/phase"), "Succeeded" | "Failed");
        let uses = |pod: &&Value| {
            let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
            volumes.into_iter().any(|volume| text_at(volume, "/persistentVolumeClaim/claimName") == claim)
        };
        // virt-launcher's Pod belongs to the instance, and Pods of hot-plugged disks belong to that
        // Pod.
        let is_own = |pod: &&Value| {
            let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
            owners.into_iter().any(|owner| {
                let name = text_at(owner, "/name");
                own.is_some_and(|own| match text_at(owner, "/kind") {
                    "VirtualMachineInstance" => name == own,
                    "Pod" => name.starts_with(&format!("virt-launcher-{own}-")),
                    _ => false,
                })
            })
        };
        let using = pods.iter().filter(|pod| !is_over(pod) && !is_own(pod)).filter(uses);
        let (leaving, staying): (Vec<_>, Vec<_>) =
            using.partition(|pod| !text_at(pod, "/metadata/deletionTimestamp").is_empty());
        let names = |pods: Vec<&Value>| pods.iter().map(|pod| text_at(pod, "/metadata/name").to_owned()).collect();
        Ok((names(staying), names(leaving)))
    }
}
