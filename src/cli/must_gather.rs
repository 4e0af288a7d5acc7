//! `virt-advisor must-gather`: collects the data for a bug report, with the rights of the user that
//! runs it, without secret values.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, LogParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::VERSION;
use advisor_cluster::{Cluster, ClusterError};
use advisor_core::api::{FIELD_MANAGER, TargetRef, VirtPlatformConfig, VirtPlatformConfigStatus};
use advisor_core::plan::items::document;
use advisor_core::plan::items::redact::{self, Redactor};
use advisor_core::rollout;
use advisor_engine::registry;

/// The label selector of the operator's Pods and Deployment, in whatever namespace.
const OURS: &str = "app.kubernetes.io/name=virt-advisor-operator,control-plane=controller-manager";
/// Members with the name of a credential. A bundle leaves the cluster, so they are removed
/// everywhere.
const CREDENTIALS: [&str; 3] = ["passwordHash", "password", "keyFile"];
/// The most lines of a log.
const LOG_LINES: i64 = 20_000;

/// Collect the data for a bug report in a folder: configurations, events, the objects that they refer to, and the operator's
/// Pods and logs. Leaves out values of Secrets and of files that only their owner may read. Writes nothing to the cluster.
#[derive(Debug, Args)]
pub(super) struct MustGatherFlags {
    /// Folder to write to. It is created if needed, and must be empty.
    #[arg(long, value_name = "FOLDER", default_value = "must-gather")]
    dest_dir: PathBuf,

    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config, then the Pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Collects everything, and returns where it is. What can't be read is listed there too and is not
/// an error: it may be the bug.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn run(flags: MustGatherFlags) -> Result<String, String> {
    let folder = flags.dest_dir;
    let unusable = |error: std::io::Error| format!("{} can't be used: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(unusable)?;
    if std::fs::read_dir(&folder).map_err(unusable)?.next().is_some() {
        return Err(format!("{} is not empty: name another folder with --dest-dir", folder.display()));
    }
    let client =
        advisor_cluster::bounded(advisor_cluster::connect(flags.kubeconfig).await.map_err(|error| error.to_string())?);
    let mut bundle = Bundle { folder: &folder, problems: String::new(), files: 0 };
    collect(&client, &mut bundle).await?;
    let problems = std::mem::take(&mut bundle.problems);
    if !problems.is_empty() {
        bundle.write("problems.txt", &problems)?;
    }
    Ok(format!("Wrote {} files to {}. Review them before you share them.\n", bundle.files, folder.display()))
}

/// The folder that is being filled.
struct Bundle<'a> {
    folder: &'a Path,
    problems: String,
    files: usize,
}

impl Bundle<'_> {
    fn write(&mut self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        let parent = path.parent().unwrap_or(self.folder);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{} can't be written: {error}", path.display()))?;
        self.files += 1;
        Ok(())
    }

    /// Writes an object without its secrets.
    fn object(&mut self, name: &str, object: &impl Serialize) -> Result<(), String> {
        let mut object = serde_json::to_value(object).map_err(|error| error.to_string())?;
        hide_texts(&mut object);
        let target = TargetRef::of(&object);
        let document = registry::PROFILES.iter().find_map(|profile| document::declared_for(profile.kinds(), &target));
        let shown = Redactor::new(&[], &[&object]).closing(document).show(&object);
        let text = serde_saphyr::to_string(&shown).map_err(|error| error.to_string())?;
        self.write(name, &text)
    }

    fn problem(&mut self, what: &str, error: impl std::fmt::Display) {
        // Writing to a String can't fail.
        let _ = writeln!(self.problems, "{what}: {error}");
    }
}

/// Removes members that hold values as text: copies of the whole object, environment variables,
/// such as the headers for a collector, and members with the name of a credential.
fn hide_texts(object: &mut Value) {
    match object {
        Value::Array(items) => items.iter_mut().for_each(hide_texts),
        Value::Object(fields) => {
            fields.remove("managedFields");
            fields.remove("kubectl.kubernetes.io/last-applied-configuration");
            for (name, value) in fields {
                if name == "env" {
                    let variables =
                        value.as_array_mut().into_iter().flatten().filter_map(|variable| variable.get_mut("value"));
                    variables.for_each(|value| *value = json!("(left out)"));
                }
                let says_something = !value.is_null() && !value.is_boolean() && value.as_str() != Some("");
                if CREDENTIALS.contains(&name.as_str()) && says_something {
                    *value = json!("(left out)");
                }
                hide_texts(value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn collect(client: &Client, bundle: &mut Bundle<'_>) -> Result<(), String> {
    let mut versions = json!({"program": VERSION});
    match client.apiserver_version().await {
        Ok(version) => versions["server"] = json!(version.git_version),
        Err(error) => bundle.problem("version of the server", error),
    }
    bundle.object("versions.yaml", &versions)?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    match crds.get("virtplatformconfigs.advisor.kubevirt.io").await {
        Ok(crd) => bundle.object("crd.yaml", &crd)?,
        Err(error) => bundle.problem("CRD of VirtPlatformConfig", error),
    }
    configurations(client, bundle).await?;
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let about = ListParams::default().fields("regarding.kind=VirtPlatformConfig");
    objects(events, &about, "events", bundle).await?;
    operator(client, bundle).await
}

/// The configurations, and every object in their plans except Secrets.
async fn configurations(client: &Client, bundle: &mut Bundle<'_>) -> Result<(), String> {
    let kind = kube::api::ApiResource::erase::<VirtPlatformConfig>(&());
    let configs: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let found = match configs.list(&ListParams::default()).await {
        Ok(found) => found.items,
        Err(error) => {
            bundle.problem("VirtPlatformConfigs", error);
            return Ok(());
        }
    };
    let cluster = Cluster::new(client.clone(), FIELD_MANAGER);
    let mut wanted = Vec::new();
    for config in &found {
        bundle.object(&format!("configurations/{}.yaml", config.name_any()), config)?;
        let status = config.data.get("status").cloned().unwrap_or_default();
        let Ok(status) = serde_json::from_value::<VirtPlatformConfigStatus>(status) else { continue };
        wanted.extend(status.items.into_iter().map(|item| item.target_ref));
    }
    wanted.sort_by_key(ToString::to_string);
    wanted.dedup();
    for target in wanted {
        let namespace = target.namespace.as_deref();
        let named = json!({"apiVersion": target.api_version, "kind": target.kind});
        let read = async {
            match cluster.resolve_object(&named).await? {
                Some(served) => cluster.get(&served, namespace, &target.name).await,
                None => Err(ClusterError::NotServed),
            }
        };
        match read.await {
            Ok(Some(object)) if redact::is_secret(&object) => {}
            Ok(Some(object)) => {
                let place = namespace.unwrap_or("cluster");
                bundle.object(&format!("targets/{}/{place}/{}.yaml", target.kind, target.name), &object)?;
            }
            Ok(None) => bundle.problem(&target.to_string(), "does not exist"),
            Err(error) => bundle.problem(&target.to_string(), error),
        }
    }
    match cluster.resolve(&rollout::POOL).await {
        Ok(Some(pools)) => match cluster.list(&pools).await {
            Ok(pools) => bundle.object("machineconfigpools.yaml", &Value::Array(pools))?,
            Err(error) => bundle.problem("MachineConfigPools", error),
        },
        Ok(None) => {}
        Err(error) => bundle.problem("MachineConfigPools", error),
    }
    Ok(())
}

/// The operator itself: its deployment, the leader, and its logs.
async fn operator(client: &Client, bundle: &mut Bundle<'_>) -> Result<(), String> {
    let ours = ListParams::default().labels(OURS);
    objects::<Deployment>(Api::all(client.clone()), &ours, "operator/deployments", bundle).await?;
    let lease = ListParams::default().fields(&format!("metadata.name={}", crate::LEASE_NAME));
    objects::<Lease>(Api::all(client.clone()), &lease, "operator/leases", bundle).await?;
    let pods = objects::<Pod>(Api::all(client.clone()), &ours, "operator/pods", bundle).await?;
    for pod in pods {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let of: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        for (previous, suffix) in [(false, "log"), (true, "previous.log")] {
            let params = LogParams { previous, tail_lines: Some(LOG_LINES), timestamps: true, ..LogParams::default() };
            match of.logs(&name, &params).await {
                Ok(text) => bundle.write(&format!("operator/pods/{namespace}/{name}.{suffix}"), &text)?,
                // Most Pods have never been restarted.
                Err(_) if previous => {}
                Err(error) => bundle.problem(&format!("log of Pod {namespace}/{name}"), error),
            }
        }
    }
    Ok(())
}

/// Writes the objects in a list, each into its own file.
async fn objects<K>(api: Api<K>, params: &ListParams, place: &str, bundle: &mut Bundle<'_>) -> Result<Vec<K>, String>
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    match api.list(params).await {
        Ok(found) => {
            for object in &found.items {
                let namespace = object.namespace().unwrap_or_else(|| "cluster".to_owned());
                bundle.object(&format!("{place}/{namespace}/{}.yaml", object.name_any()), object)?;
            }
            Ok(found.items)
        }
        Err(error) => {
            bundle.problem(place, error);
            Ok(Vec::new())
        }
    }
}
