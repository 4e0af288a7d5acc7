//! Writes to the API server. What it answers is known at once, before a watch brings it.

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams, Preconditions};
use serde_json::Value;

use super::watches::{Kind, read};
use super::world::names;
use super::{Shared, lock};

/// Who writes what KubeVirt writes.
const CONTROLLER: &str = "virt-controller";
/// Who writes claims.
const BINDER: &str = "kube-controller-manager";

impl Shared {
    fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        of_kind(&self.client, kind, namespace)
    }

    /// Creates an object.
    pub(crate) async fn create(&self, kind: Kind, object: &Value) -> Result<(), kube::Error> {
        let (namespace, _) = names(object);
        let created = self.api(kind, &namespace).create(&params(kind), &typed(object)?).await?;
        lock(&self.world).put(kind, read(kind, created));
        Ok(())
    }

    /// Replaces an object if nobody has written it in between.
    pub(crate) async fn replace(&self, kind: Kind, object: &Value) -> Result<(), kube::Error> {
        let (namespace, name) = names(object);
        let replaced = self.api(kind, &namespace).replace(&name, &params(kind), &typed(object)?).await;
        self.learn(kind, object, replaced)
    }

    /// Replaces the status of an object if nobody has written it in between.
    pub(crate) async fn replace_status(&self, kind: Kind, object: &Value) -> Result<(), kube::Error> {
        let (namespace, name) = names(object);
        let replaced = self.api(kind, &namespace).replace_status(&name, &params(kind), &typed(object)?).await;
        self.learn(kind, object, replaced)
    }

    /// Deletes this object, and none that has taken its name.
    pub(crate) async fn delete(&self, kind: Kind, object: &Value) -> Result<(), kube::Error> {
        let (namespace, name) = names(object);
        let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
        let params = DeleteParams::background().preconditions(Preconditions { uid, resource_version: None });
        let deleted = self.api(kind, &namespace).delete(&name, &params).await?;
        if let Some(object) = deleted.left() {
            lock(&self.world).put(kind, read(kind, object));
        }
        Ok(())
    }

    fn learn(&self, kind: Kind, object: &Value, answer: Result<DynamicObject, kube::Error>) -> Result<(), kube::Error> {
        match answer {
            Ok(new) => {
                lock(&self.world).put(kind, read(kind, new));
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                lock(&self.world).remove(kind, &names(object), object);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// The objects of this kind in a namespace.
pub(crate) fn of_kind(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind.resource())
}

fn params(kind: Kind) -> PostParams {
    let manager = if kind == Kind::Claim { BINDER } else { CONTROLLER };
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

fn typed(object: &Value) -> Result<DynamicObject, kube::Error> {
    serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)
}
