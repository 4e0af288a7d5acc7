//! Simulates what the Node Health Check Operator does with NodeHealthChecks; README.md has each
//! rule with its source.
//!
//! After a write, the operator writes the phase, its reason, and the condition Disabled.

use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const MANAGER: &str = "node-healthcheck-operator";
/// How often the operator looks for a missing template.
const LOOKS_FOR_TEMPLATE: Duration = Duration::from_secs(15);

/// The running operator, for all NodeHealthChecks. It ends when this is dropped.
pub struct Simulator {
    task: JoinHandle<()>,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Simulator {
    /// Starts on the current Tokio runtime, `speed` times as fast as the real one.
    #[must_use]
    pub fn start(client: Client, speed: f64) -> Self {
        Self { task: tokio::spawn(run(client, LOOKS_FOR_TEMPLATE.div_f64(speed))) }
    }
}

async fn run(client: Client, looks: Duration) {
    let kind = GroupVersionKind::gvk("remediation.medik8s.io", "v1alpha1", "NodeHealthCheck");
    let resource = ApiResource::from_gvk_with_plural(&kind, "nodehealthchecks");
    let all = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let events = watcher(all.clone(), watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    let mut ticks = tokio::time::interval(looks);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(object)) => answer(&client, &all, &object).await,
                Some(Err(_)) => {}
                None => return,
            },
            _ = ticks.tick() => {
                let Ok(objects) = all.list(&Default::default()).await else { continue };
                for object in objects.iter().filter(|object| is_disabled(object)) {
                    answer(&client, &all, object).await;
                }
            }
        }
    }
}

fn is_disabled(object: &DynamicObject) -> bool {
    object.data["status"]["phase"] == "Disabled"
}

/// Writes the status of `object` if its conditions differ from the stored ones.
async fn answer(client: &Client, all: &Api<DynamicObject>, object: &DynamicObject) {
    let status = match missing_template(client, object).await {
        Some(message) => said("Disabled", "True", "RemediationTemplateNotFound", &message),
        None => said("Enabled", "False", "NodeHealthCheckEnabled", "No issues found, NodeHealthCheck is enabled."),
    };
    if object.data["status"]["conditions"] == status["conditions"] {
        return;
    }
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let written = all.patch_status(&object.name_any(), &params, &Patch::Merge(json!({"status": status}))).await;
    if let Err(error) = written {
        tracing::debug!(%error, "the status of a NodeHealthCheck is not written");
    }
}

fn said(phase: &str, disabled: &str, reason: &str, message: &str) -> Value {
    let sentence = match phase {
        "Disabled" => format!("NHC is disabled: {reason}: {message}"),
        _ => "NHC is enabled, no ongoing remediation".to_owned(),
    };
    json!({
        "phase": phase, "reason": sentence,
        "conditions": [{"type": "Disabled", "status": disabled, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    })
}

/// The operator's message if the template that `object` names is missing.
async fn missing_template(client: &Client, object: &DynamicObject) -> Option<String> {
    let template = &object.data["spec"]["remediationTemplate"];
    let text = |key: &str| template[key].as_str().unwrap_or_default().to_owned();
    let (api_version, kind, name, namespace) = (text("apiVersion"), text("kind"), text("name"), text("namespace"));
    let (group, version) = api_version.split_once('/')?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    match api.get_opt(&name).await {
        Ok(Some(_)) => None,
        _ => {
            let found = format!("{}.{group} \"{name}\" not found", resource.plural);
            let error = format!("failed to get external remediation template {namespace}/{name}: {found}");
            Some(format!("Remediation template not found: {error:?}"))
        }
    }
}
