//! Puts objects written in YAML into a cluster, and waits until the kinds they define can be used.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt, discovery};
use serde_json::Value;

use crate::Error;
use crate::error::told;

/// How long a new kind may take to be served.
const SERVED: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(25);
const MANAGER: &str = "controlplane";

/// Applies every YAML document of these files, and of the `.yaml` and `.yml` files in these
/// folders, and waits until each kind that a CustomResourceDefinition among them defines is served
/// in every version.
///
/// # Errors
/// If a file cannot be read, the server refuses an object, or a kind is not served in time.
pub async fn install_crds(client: &Client, paths: &[PathBuf]) -> Result<(), Error> {
    let mut objects = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).map_err(Error::io(format!("read {}", file.display())))?;
            objects.extend(parse(&text, &file.display().to_string())?);
        }
    }
    apply(client, objects, MANAGER).await
}

/// Applies every YAML document of a text by server-side apply, with force: first the
/// CustomResourceDefinitions, until their kinds are served, then the rest in order. Namespaced
/// objects without a namespace go into `default`.
///
/// # Errors
/// If the text is not YAML, the server does not know a kind, or refuses an object.
pub async fn apply_yaml(client: &Client, text: &str, field_manager: &str) -> Result<(), Error> {
    apply(client, parse(text, "the text")?, field_manager).await
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut files: Vec<_> =
            path.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
        files.sort();
        Ok(files)
    };
    read().map_err(Error::io(format!("read the folder {}", path.display())))
}

fn parse(text: &str, origin: &str) -> Result<Vec<DynamicObject>, Error> {
    let wrong = |problem: String| Error::Yaml { origin: origin.to_owned(), problem };
    // Without limits: this reads our own files, and some definitions are larger than we accept from
    // strangers.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| wrong(error.to_string()))?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let object: DynamicObject = serde_json::from_value(document).map_err(|error| wrong(error.to_string()))?;
        if object.types.is_none() || object.metadata.name.is_none() {
            return Err(wrong("apiVersion, kind or metadata.name is missing".to_owned()));
        }
        objects.push(object);
    }
    Ok(objects)
}

async fn apply(client: &Client, objects: Vec<DynamicObject>, manager: &str) -> Result<(), Error> {
    let (definitions, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_definition);
    try_join_all(definitions.into_iter().map(|object| async move {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let applied = patch(&Api::all_with(client.clone(), &resource), &object, manager).await?;
        let problem = |error: serde_json::Error| Error::Yaml { origin: object.name_any(), problem: error.to_string() };
        let definition = serde_json::to_value(applied).and_then(serde_json::from_value).map_err(problem)?;
        served(client, &definition).await
    }))
    .await?;
    for object in others {
        let types = object.types.clone().unwrap_or_default();
        let action = format!("apply {} {}", types.kind, object.name_any());
        let kind = GroupVersionKind::try_from(&types)
            .map_err(|error| Error::Yaml { origin: action.clone(), problem: error.to_string() })?;
        let (resource, capabilities) = discovery::pinned_kind(client, &kind)
            .await
            .map_err(Error::api(format!("find the kind {}/{}", types.api_version, kind.kind)))?;
        let api = Api::dynamic(client.clone(), &resource, &capabilities.scope);
        let api = match object.namespace() {
            Some(namespace) => api.constrain(&namespace),
            None => api.constrain_default(),
        };
        patch(&api, &object, manager).await?;
    }
    Ok(())
}

fn is_definition(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| {
        types.kind == "CustomResourceDefinition" && types.api_version.starts_with("apiextensions.k8s.io/")
    })
}

async fn patch(api: &Api<DynamicObject>, object: &DynamicObject, manager: &str) -> Result<DynamicObject, Error> {
    let name = object.name_any();
    let action = format!("apply {} {name}", object.types.clone().unwrap_or_default().kind);
    api.patch(&name, &PatchParams::apply(manager).force(), &Patch::Apply(object)).await.map_err(Error::api(action))
}

/// Waits until a new kind can be used.
async fn served(client: &Client, definition: &CustomResourceDefinition) -> Result<(), Error> {
    let deadline = Instant::now() + SERVED;
    loop {
        let last = match not_served(client, definition).await {
            Ok(None) => return Ok(()),
            Ok(Some(reason)) => reason,
            Err(error) => told(&error),
        };
        if Instant::now() > deadline {
            let what = format!("{} is not served", definition.name_any());
            return Err(Error::Unsettled { what, within: SERVED, last });
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Why a kind is not served; `None` if it is.
///
/// The condition Established comes before lists are answered, and lists are answered before
/// discovery knows the kind. But right after an older definition with this name has been removed,
/// lists and discovery can still be about that one. So they count only after Established; before
/// that they only spare the server from sending large definitions repeatedly.
async fn not_served(client: &Client, definition: &CustomResourceDefinition) -> Result<Option<String>, kube::Error> {
    answers(client, definition).await?;
    let current = Api::<CustomResourceDefinition>::all(client.clone()).get_status(&definition.name_any()).await?;
    let conditions = current.status.and_then(|status| status.conditions).unwrap_or_default();
    if !conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
        let reasons: Vec<_> = conditions.into_iter().filter_map(|condition| condition.message).collect();
        return Ok(Some(format!("not established; {}", reasons.join("; "))));
    }
    answers(client, definition).await?;
    Ok(None)
}

/// Lists the objects of every version that is served, as discovery describes it.
async fn answers(client: &Client, definition: &CustomResourceDefinition) -> Result<(), kube::Error> {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        let (resource, _) = discovery::pinned_kind(client, &kind).await?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        api.list_metadata(&ListParams::default().limit(1)).await?;
    }
    Ok(())
}
