//! Empties a control plane for the next test, in passes until nothing is left; kinds that can block
//! deletions come first.
//!
//! No controller manager runs here, so the finalizers of namespaces and objects, which wait for
//! one, are removed by this file.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Deserialize;
use serde_json::json;

use crate::error::told;
use crate::{ControlPlane, Error};

/// How long emptying may take; it needs a fraction of a second.
const WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(25);
/// How many requests run at once.
const PARALLEL: usize = 16;

/// Kinds that can refuse the deletion of everything else, but not their own.
const ADMISSION: &[(&str, &str, &str)] = &[
    ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    // Served since 1.36; older servers answer 404.
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"),
];

/// The built-in kinds of which a test may leave objects behind, without namespaces: these come
/// last.
const KINDS: &[(&str, &str, &str)] = &[
    ("", "v1", "ConfigMap"),
    ("", "v1", "Secret"),
    ("", "v1", "Event"),
    ("", "v1", "Node"),
    ("", "v1", "Pod"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "LimitRange"),
    ("", "v1", "ResourceQuota"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "ReplicaSet"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "v1", "PriorityClass"),
    ("storage.k8s.io", "v1", "StorageClass"),
];

impl ControlPlane {
    /// Deletes what tests left behind: all custom resources and their definitions, nodes,
    /// namespaces with their content, events, RBAC objects, admission policies and webhooks, and so
    /// on. Objects that the server itself made stay.
    ///
    /// # Errors
    /// If something is still there after half a minute, for example because something keeps making
    /// it.
    pub async fn wipe(&self) -> Result<(), Error> {
        let mut config = self.client_config("admin", &["system:masters"])?;
        // A kind that is new or about to be removed answers 429: the next pass asks again.
        config.default_retry = false;
        let client = Client::try_from(config).map_err(Error::api("make a client"))?;
        let definitions = Mutex::new(BTreeMap::new());
        let work = async {
            until_empty(|| delete_kinds(&client, ADMISSION)).await?;
            let kinds = until_empty(|| delete_kinds(&client, KINDS));
            futures::try_join!(kinds, until_empty(|| delete_definitions(&client, &definitions)))?;
            until_empty(|| delete_namespaces(&client)).await
        };
        // Each stage has its own deadline; this one is for a server that does not answer at all.
        tokio::time::timeout(4 * WITHIN, work).await.unwrap_or_else(|_| Err(not_empty("no answer".to_owned())))
    }
}

/// Repeats a pass, which deletes what it finds and returns that, until it finds nothing.
async fn until_empty<F: Future<Output = Vec<String>>>(pass: impl Fn() -> F) -> Result<(), Error> {
    let deadline = Instant::now() + WITHIN;
    loop {
        let left = pass().await;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(not_empty(left.into_iter().take(5).collect::<Vec<_>>().join("; ")));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn not_empty(last: String) -> Error {
    Error::Unsettled { what: "the control plane is not empty".to_owned(), within: WITHIN, last }
}

async fn delete_kinds(client: &Client, kinds: &[(&str, &str, &str)]) -> Vec<String> {
    let found = kinds.iter().map(|(group, version, kind)| async move {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        delete_objects(client, &resource).await
    });
    join_all(found).await.concat()
}

/// Deletes the objects of one kind in all namespaces.
async fn delete_objects(client: &Client, resource: &ApiResource) -> Vec<String> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let objects = match all.list_metadata(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) if is_missing(&error) => return Vec::new(),
        Err(error) => return vec![format!("{}: {}", resource.kind, told(&error))],
    };
    let objects = objects.into_iter().filter(|object| !belongs_to_server(&resource.kind, object));
    stream::iter(objects)
        .map(|object| async move {
            let name = format!("{} {}", resource.kind, object.name_any());
            match delete(client, resource, &object).await {
                Ok(()) => name,
                Err(error) => format!("{name}: {}", told(&error)),
            }
        })
        .buffer_unordered(PARALLEL)
        .collect()
        .await
}

async fn delete(
    client: &Client,
    resource: &ApiResource,
    object: &PartialObjectMeta<DynamicObject>,
) -> Result<(), kube::Error> {
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let name = object.name_any();
    let ended = async {
        if !object.finalizers().is_empty() {
            let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            api.patch_metadata(&name, &PatchParams::default(), &patch).await?;
        }
        if object.metadata.deletion_timestamp.is_none() || object.finalizers().is_empty() {
            api.delete(&name, &DeleteParams::background().grace_period(0)).await?;
        }
        Ok(())
    };
    match ended.await {
        Err(error) if is_missing(&error) => Ok(()),
        other => other,
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the server made an object itself, and needs it or would make it again.
fn belongs_to_server(kind: &str, object: &PartialObjectMeta<DynamicObject>) -> bool {
    let (name, namespace) = (object.name_any(), object.namespace().unwrap_or_default());
    object.labels().contains_key("kubernetes.io/bootstrapping")
        || match kind {
            "ConfigMap" | "Lease" => namespace == "kube-system",
            "Service" => namespace == "default" && name == "kubernetes",
            "PriorityClass" => name.starts_with("system-"),
            _ => false,
        }
}

fn is_system(namespace: &str) -> bool {
    namespace.starts_with("kube-")
}

/// The few fields of a CustomResourceDefinition that are needed here: the schemas, by far the
/// largest part, are not parsed.
#[derive(Clone, Debug, Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct DefinitionSpec {
    group: String,
    names: Names,
    versions: Vec<Version>,
}

#[derive(Clone, Debug, Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Version {
    name: String,
    served: bool,
    storage: bool,
}

impl Definition {
    /// The kind if it is served, in the version that is stored: any other may need a conversion
    /// webhook.
    fn resource(&self) -> Option<ApiResource> {
        let DefinitionSpec { group, names, versions } = &self.spec;
        let served = || versions.iter().filter(|version| version.served);
        let version = served().find(|version| version.storage).or_else(|| served().next())?;
        Some(ApiResource {
            group: group.clone(),
            version: version.name.clone(),
            api_version: format!("{group}/{}", version.name),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
        })
    }
}

/// Deletes the custom resources of all kinds, and then the kinds. `known` has the definitions that
/// were read before.
async fn delete_definitions(client: &Client, known: &Mutex<BTreeMap<String, Definition>>) -> Vec<String> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = match api.list_metadata(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => return vec![format!("CustomResourceDefinition: {}", told(&error))],
    };
    let deleted = found.into_iter().map(|metadata| async move {
        let name = metadata.name_any();
        match delete_definition(client, known, &metadata).await {
            Ok(mut objects) => {
                objects.push(format!("CustomResourceDefinition {name}"));
                objects
            }
            Err(error) => vec![format!("CustomResourceDefinition {name}: {}", told(&error))],
        }
    });
    join_all(deleted).await.concat()
}

async fn delete_definition(
    client: &Client,
    known: &Mutex<BTreeMap<String, Definition>>,
    metadata: &PartialObjectMeta<CustomResourceDefinition>,
) -> Result<Vec<String>, kube::Error> {
    let name = metadata.name_any();
    let remembered = known.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
    let definition = match remembered {
        Some(definition) => definition,
        None => {
            let path = format!("{}/{name}", CustomResourceDefinition::url_path(&(), None));
            let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            let definition: Definition = client.request(request).await?;
            known.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), definition.clone());
            definition
        }
    };
    let left = match definition.resource() {
        Some(resource) => delete_objects(client, &resource).await,
        None => Vec::new(),
    };
    // The server would delete the objects too, but checks only every five seconds whether the last
    // one is gone.
    if metadata.metadata.deletion_timestamp.is_none() {
        Api::<CustomResourceDefinition>::all(client.clone()).delete(&name, &DeleteParams::default()).await?;
    }
    Ok(left)
}

async fn delete_namespaces(client: &Client) -> Vec<String> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespaces = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => return vec![format!("Namespace: {}", told(&error))],
    };
    let left = namespaces.into_iter().filter(|namespace| {
        let name = namespace.name_any();
        name != "default" && !is_system(&name)
    });
    join_all(left.map(|namespace| delete_namespace(&api, namespace))).await
}

async fn delete_namespace(api: &Api<Namespace>, namespace: Namespace) -> String {
    let name = namespace.name_any();
    let ended = async {
        if !namespace.finalizers().is_empty() {
            let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            api.patch_metadata(&name, &PatchParams::default(), &patch).await?;
        }
        api.delete(&name, &DeleteParams::default()).await?;
        let mut current = api.get(&name).await?;
        current.spec.get_or_insert_default().finalizers = Some(Vec::new());
        api.replace_subresource("finalize", &name, &PostParams::default(), &current).await?;
        Ok(())
    };
    match ended.await {
        Err(error) if !is_missing(&error) => format!("Namespace {name}: {}", told(&error)),
        _ => format!("Namespace {name}"),
    }
}
