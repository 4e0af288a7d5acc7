//! Simulates what the HyperConverged Cluster Operator does with HyperConverged; README.md has each
//! rule with its source.
//!
//! After a write, the operator first reports that all is well, and then the true state.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub mod convert;
mod webhook;

pub use webhook::Webhook;

const MANAGER: &str = "hyperconverged-cluster-operator";
/// Time from a write to the first status, and from that to the next one.
const PASS: Duration = Duration::from_millis(40);

/// The true state of the operands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Truth {
    /// All of them work.
    #[default]
    Well,
    /// KubeVirt is degraded, with this message.
    Degraded(String),
    /// The wanted settings could not be written to an operand, with this error.
    Refused(String),
}

impl Truth {
    fn conditions(&self) -> Value {
        let all = |values: [(&str, &str); 5]| {
            let names = ["ReconcileComplete", "Available", "Progressing", "Degraded", "Upgradeable"];
            let conditions = names.iter().zip(values).map(|(name, (status, message))| {
                json!({"type": name, "status": status, "reason": "Simulated", "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            });
            Value::from_iter(conditions)
        };
        match self {
            Self::Well => all([("True", "ok"), ("True", "ok"), ("False", "ok"), ("False", "ok"), ("True", "ok")]),
            Self::Degraded(why) => all([
                ("True", "ok"),
                ("False", "HCO is not available due to degraded components"),
                ("False", "ok"),
                ("True", why),
                ("False", why),
            ]),
            Self::Refused(why) => {
                let failed = format!("Error while reconciling: {why}");
                let unknown = ("Unknown", failed.as_str());
                all([("False", &failed), unknown, unknown, unknown, unknown])
            }
        }
    }
}

/// The running operator, for all HyperConvergeds. It ends when this is dropped.
pub struct Simulator {
    truth: Arc<Mutex<Truth>>,
    client: Client,
    resource: ApiResource,
    task: JoinHandle<()>,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Simulator {
    /// Starts on the current Tokio runtime, and works with HyperConverged in this version.
    #[must_use]
    pub fn start(client: Client, version: &str) -> Self {
        let kind = GroupVersionKind::gvk("hco.kubevirt.io", version, "HyperConverged");
        let resource = ApiResource::from_gvk_with_plural(&kind, "hyperconvergeds");
        let truth = Arc::new(Mutex::new(Truth::default()));
        let task = tokio::spawn(run(client.clone(), resource.clone(), Arc::clone(&truth)));
        Self { truth, client, resource, task }
    }

    /// Sets the true state for the next write, and reports it at once.
    ///
    /// # Errors
    ///
    /// If a status cannot be written.
    pub async fn becomes(&self, truth: Truth) -> Result<(), kube::Error> {
        *self.truth.lock().unwrap_or_else(PoisonError::into_inner) = truth.clone();
        let all = Api::<DynamicObject>::all_with(self.client.clone(), &self.resource).list(&Default::default()).await?;
        for object in &all {
            say(&self.client, &self.resource, object, &truth).await?;
        }
        Ok(())
    }
}

async fn run(client: Client, resource: ApiResource, truth: Arc<Mutex<Truth>>) {
    let all = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let mut events = std::pin::pin!(watcher(all, watcher::Config::default()).default_backoff().applied_objects());
    while let Some(event) = events.next().await {
        let Ok(object) = event else { continue };
        let observed = object.data.pointer("/status/observedGeneration").and_then(Value::as_i64);
        if observed == object.metadata.generation {
            continue;
        }
        for publishes_the_truth in [false, true] {
            tokio::time::sleep(PASS).await;
            let known = truth.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let says = if publishes_the_truth { known } else { Truth::Well };
            if let Err(error) = say(&client, &resource, &object, &says).await {
                tracing::debug!(%error, "a status of HyperConverged is not written");
            }
        }
    }
}

async fn say(
    client: &Client,
    resource: &ApiResource,
    object: &DynamicObject,
    truth: &Truth,
) -> Result<(), kube::Error> {
    let namespace = object.namespace().unwrap_or_default();
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, resource);
    let body = json!({"status": {"observedGeneration": object.metadata.generation, "conditions": truth.conditions()}});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch_status(&object.name_any(), &params, &Patch::Merge(body)).await.map(drop)
}
