//! Brings a cluster to the settled state at once, without any of the delays.
//!
//! Source: the state in which the observed controllers of openshift/machine-config-operator at
//! commit 7ff337a4ffac came to rest (pkg/controller/render/render_controller.go: `RunBootstrap`
//! does the same for a new cluster).

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use thiserror::Error;

use crate::Settings;
use crate::api::{CONTROLLER, MachineConfig, MachineConfigPool, MachineConfiguration, MachineConfigurationSpec};
use crate::controllers::clock;
use crate::controllers::sync_render::{configuration, rendered_config};
use crate::rules::release::Release;
use crate::rules::render::{RenderError, render};
use crate::rules::status::{self, RENDER_DEGRADED};
use crate::rules::{base, policy};

/// The number of machines in a seeded cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Machines of the pool worker: `worker-0` and so on.
    pub workers: usize,
    /// Machines of the pool master: `master-0` and so on.
    pub masters: usize,
}

/// Why a cluster could not be seeded or changed.
#[derive(Debug, Error)]
pub enum Error {
    /// A request failed.
    #[error("could not write {object}")]
    Request {
        /// Kind and name.
        object: String,
        /// The API server's error.
        #[source]
        source: kube::Error,
    },
    /// The base MachineConfigs cannot be rendered; only too much padding causes this.
    #[error("the base MachineConfigs do not render")]
    Render(#[from] RenderError),
}

/// Makes base MachineConfigs, the pools worker and master, and their machines, all settled:
/// rendered, `Updated`, done. Existing objects stay unchanged. Needs the CRDs; call it before
/// [`crate::Simulator::start`].
///
/// # Errors
/// If a request fails, or the padding is too much for a rendered MachineConfig.
pub async fn seed(client: &Client, cluster: &Cluster, settings: &Settings) -> Result<(), Error> {
    for (role, machines) in [("worker", cluster.workers), ("master", cluster.masters)] {
        let configs = base::machine_configs(role, settings.rendered_padding, settings.release);
        for config in &configs {
            create(client, config).await?;
        }
        let pool = create(client, &base::built_in_pool(role)).await?;
        let rendered = render(role, &configs.iter().collect::<Vec<_>>(), settings.release)?;
        let wanted = configuration(&rendered, configs.iter().map(ResourceExt::name_any));
        let target = wanted.name.clone();
        create(client, &rendered_config(&pool, rendered)).await?;
        for number in 0..machines {
            let node = base::machine(&format!("{role}-{number}"), role, &target);
            create(client, &node).await?;
            // The API server's admission taints new machines as not ready; the controller that
            // removes the taint does not run here.
            write(client, &node, Write::Object, json!({"spec": {"taints": null}})).await?;
        }
        if pool.spec.configuration.is_empty() {
            let pool = write(client, &pool, Write::Object, json!({"spec": {"configuration": wanted}})).await?;
            settle(client, pool, machines).await?;
        }
    }
    if settings.release.policies {
        settle_policies(client).await?;
    }
    Ok(())
}

/// Makes the MachineConfiguration with the policies of every cluster, if the kind is served.
async fn settle_policies(client: &Client) -> Result<(), Error> {
    let spec = MachineConfigurationSpec { management_state: "Managed".to_owned(), ..Default::default() };
    let api: Api<MachineConfiguration> = Api::all(client.clone());
    if api.list_metadata(&ListParams::default().limit(1)).await.is_err() {
        return Ok(());
    }
    let created = create(client, &MachineConfiguration::new(policy::CLUSTER, spec)).await?;
    let policies = json!({"clusterPolicies": policy::merged(&json!({}))});
    let status = json!({"observedGeneration": created.metadata.generation, "nodeDisruptionPolicyStatus": policies});
    write(client, &created, Write::Status, json!({"status": status})).await.map(drop)
}

/// Sets these node disruption policies, as an administrator would.
///
/// # Errors
/// If the request fails.
pub async fn set_policies(client: &Client, policies: serde_json::Value) -> Result<(), Error> {
    let configuration = MachineConfiguration::new(policy::CLUSTER, MachineConfigurationSpec::default());
    let body = json!({"spec": {"nodeDisruptionPolicy": policies}});
    write(client, &configuration, Write::Foreign, body).await.map(drop)
}

async fn settle(client: &Client, mut pool: MachineConfigPool, machines: usize) -> Result<(), Error> {
    let (now, role) = (clock::timestamp(), pool.name_any());
    let node = base::machine("", &role, &pool.spec.configuration.name);
    let mut before = pool.status.take().unwrap_or_default();
    status::set(&mut before, RENDER_DEGRADED, false, "", "", &now);
    pool.status = Some(before);
    let settled = status::calculate(&pool, &vec![&node; machines], &now, Release::default());
    write(client, &pool, Write::Status, json!({ "status": settled })).await.map(drop)
}

/// Cordons a machine, as an administrator would.
///
/// # Errors
/// If the request fails.
pub async fn cordon(client: &Client, node: &str) -> Result<(), Error> {
    write(client, &named::<Node>(node), Write::Foreign, json!({"spec": {"unschedulable": true}})).await.map(drop)
}

/// Uncordons a machine, as an administrator would.
///
/// # Errors
/// If the request fails.
pub async fn uncordon(client: &Client, node: &str) -> Result<(), Error> {
    write(client, &named::<Node>(node), Write::Foreign, json!({"spec": {"unschedulable": null}})).await.map(drop)
}

/// Pauses a pool.
///
/// # Errors
/// If the request fails.
pub async fn pause(client: &Client, pool: &str) -> Result<(), Error> {
    let pool = MachineConfigPool::new(pool, crate::api::PoolSpec::default());
    write(client, &pool, Write::Foreign, json!({"spec": {"paused": true}})).await.map(drop)
}

/// Unpauses a pool.
///
/// # Errors
/// If the request fails.
pub async fn unpause(client: &Client, pool: &str) -> Result<(), Error> {
    let pool = MachineConfigPool::new(pool, crate::api::PoolSpec::default());
    write(client, &pool, Write::Foreign, json!({"spec": {"paused": false}})).await.map(drop)
}

/// Makes a custom pool: it renders everything for workers and for its own name, has the machines
/// with the label `node-role.kubernetes.io/NAME`, and has no labels.
///
/// # Errors
/// If the request fails.
pub async fn add_pool(client: &Client, name: &str) -> Result<(), Error> {
    create(client, &base::custom_pool(name)).await.map(drop)
}

/// Adds a role to a machine or removes it, which moves the machine to a custom pool or back.
///
/// # Errors
/// If the request fails.
pub async fn set_role(client: &Client, node: &str, role: &str, wanted: bool) -> Result<(), Error> {
    let label = format!("{}{role}", crate::api::NODE_ROLE_PREFIX);
    let body = json!({"metadata": {"labels": {label: wanted.then_some("")}}});
    write(client, &named::<Node>(node), Write::Foreign, body).await.map(drop)
}

/// Makes a MachineConfig with these kernel arguments for a role.
///
/// # Errors
/// If the request fails.
pub async fn add_kernel_arguments(client: &Client, name: &str, role: &str, arguments: &[&str]) -> Result<(), Error> {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let spec = crate::api::MachineConfigSpec { kernel_arguments: Some(arguments), ..Default::default() };
    let mut config = MachineConfig::new(name, spec);
    config.metadata.labels = Some([(crate::api::ROLE_LABEL.to_owned(), role.to_owned())].into());
    create(client, &config).await.map(drop)
}

#[derive(Clone, Copy)]
enum Write {
    Object,
    Status,
    /// The object, as somebody other than a controller.
    Foreign,
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.to_owned());
    object
}

async fn create<K>(client: &Client, object: &K) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    let created = match api.create(&params, object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(&object.name_any()).await,
        other => other,
    };
    created.map_err(|source| failed(object, source))
}

async fn write<K>(client: &Client, object: &K, write: Write, body: serde_json::Value) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let manager = match write {
        Write::Object | Write::Status => CONTROLLER,
        Write::Foreign => "administrator",
    };
    let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let (name, patch) = (object.name_any(), Patch::Merge(body));
    let written = match write {
        Write::Object | Write::Foreign => api.patch(&name, &params, &patch).await,
        Write::Status => api.patch_status(&name, &params, &patch).await,
    };
    written.map_err(|source| failed(object, source))
}

fn failed<K: Resource<DynamicType = ()>>(object: &K, source: kube::Error) -> Error {
    Error::Request { object: format!("{} {}", K::kind(&()), object.name_any()), source }
}
