//! Simulates what the Kube Descheduler Operator does with KubeDescheduler; README.md has each rule
//! with its source.
//!
//! After a write, its config observer puts values into the spec, and the operator writes its
//! conditions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const MANAGER: &str = "cluster-kube-descheduler-operator";
const NAMESPACE: &str = "openshift-kube-descheduler-operator";
const NAME: &str = "cluster";
/// Time from a write to the first answer.
const PASS: Duration = Duration::from_millis(40);

/// The running operator. It ends when this is dropped.
pub struct Simulator {
    problem: Arc<Mutex<Option<String>>>,
    api: Api<DynamicObject>,
    task: JoinHandle<()>,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Simulator {
    /// Starts on the current Tokio runtime. `problem` keeps the descheduler from running, in the
    /// words of its operator.
    #[must_use]
    pub fn start(client: Client, problem: Option<&str>) -> Self {
        let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
        let api =
            Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk_with_plural(&kind, "kubedeschedulers"));
        let problem = Arc::new(Mutex::new(problem.map(str::to_owned)));
        let task = tokio::spawn(run(api.clone(), Arc::clone(&problem)));
        Self { problem, api, task }
    }

    /// Sets the problem that keeps the descheduler from running, if any, and reports it at once.
    ///
    /// # Errors
    ///
    /// If the status cannot be written.
    pub async fn becomes(&self, problem: Option<&str>) -> Result<(), kube::Error> {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem.map(str::to_owned);
        match self.api.get_opt(NAME).await? {
            Some(object) => say(&self.api, &object, problem).await,
            None => Ok(()),
        }
    }
}

async fn run(api: Api<DynamicObject>, problem: Arc<Mutex<Option<String>>>) {
    let events = watcher(api.clone(), watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Ok(object) = event else { continue };
        if object.name_any() != NAME {
            continue;
        }
        tokio::time::sleep(PASS).await;
        let problem = problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answered = match observe(&api, &object).await {
            // Its own write is the next event.
            Ok(true) => Ok(()),
            Ok(false) => say(&api, &object, problem.as_deref()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            tracing::debug!(%error, "an answer of the descheduler operator is not written");
        }
    }
}

/// Writes what the config observer has found into the spec, if that is new. Returns whether it did.
async fn observe(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<bool, kube::Error> {
    let observed = json!({"servingInfo": {"minTLSVersion": "VersionTLS12"}});
    if object.data["spec"]["observedConfig"] == observed {
        return Ok(false);
    }
    let mut object = object.clone();
    let spec = &mut object.data["spec"];
    spec["observedConfig"] = observed;
    spec["unsupportedConfigOverrides"] = Value::Null;
    if spec["profileCustomizations"].is_object() && spec["profileCustomizations"]["namespaces"].is_null() {
        spec["profileCustomizations"]["namespaces"] = json!({});
    }
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    api.replace(NAME, &params, &object).await?;
    Ok(true)
}

/// Writes its conditions if they differ from the stored ones.
async fn say(api: &Api<DynamicObject>, object: &DynamicObject, problem: Option<&str>) -> Result<(), kube::Error> {
    let condition = |kind: &str, problem: Option<&str>, well: &str| {
        let (status, reason) = problem.map_or(("False", well), |problem| ("True", problem));
        json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = json!([
        condition("ConfigObservationDegraded", None, "AsExpected"),
        condition("ResourceSyncControllerDegraded", None, "AsExpected"),
        // Has the sentence in the reason, and an empty reason without a problem.
        condition("TargetConfigControllerDegraded", problem, ""),
    ]);
    if object.data["status"]["conditions"] == conditions {
        return Ok(());
    }
    let ready = i64::from(problem.is_none());
    let body = json!({"status": {"conditions": conditions, "readyReplicas": ready}});
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    api.patch_status(NAME, &params, &Patch::Merge(body)).await.map(drop)
}
