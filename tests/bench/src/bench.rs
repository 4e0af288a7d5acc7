//! The world that is measured, and the edits of its users.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use controlplane::ControlPlane;
use demo::{DESCHEDULER_NAMESPACE, PROFILE, Stage};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};

use crate::counts;
use crate::observer::{Observer, configs};

/// How much faster than real machines the simulated ones update. Nothing that depends on it is
/// measured.
const SPEED: f64 = 20.0;
/// How long the operator may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stage and its clients.
pub struct Bench {
    pub stage: Stage,
    pub admin: Client,
    pub operator: PathBuf,
}

impl Bench {
    pub async fn start(operator: &Path) -> Result<Self> {
        let operator = operator
            .canonicalize()
            .with_context(|| format!("there is no operator at {}: build it first", operator.display()))?;
        tell("starting a control plane");
        let stage = Stage::set(ControlPlane::start().await?, SPEED).await?;
        let admin = stage.admin();
        Ok(Self { stage, admin, operator })
    }

    /// Starts the operator anew, and returns when it has come to rest.
    pub async fn restart(&mut self) -> Result<()> {
        self.restart_with(&[]).await
    }

    /// The same, with these flags too.
    pub async fn restart_with(&mut self, flags: &[&str]) -> Result<()> {
        let mark = self.stage.plane().audit().mark();
        self.stage.start_operator_with(&self.operator, flags)?;
        let began = Instant::now();
        while counts::now(&self.stage, &mark).watches() == 0 {
            if began.elapsed() > PATIENCE {
                bail!("the operator has not opened a watch within {} s", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        counts::settled(&self.stage, &mark).await?;
        Ok(())
    }

    /// Watches the configuration from now on.
    pub fn observe(&self) -> Observer {
        Observer::start(&self.admin)
    }

    /// Edits the configuration as kubectl does. Returns when it was sent, and the generation it
    /// made.
    pub async fn patch(&self, spec: Value) -> Result<(Instant, i64)> {
        let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
        let body = Patch::Merge(json!({"spec": spec}));
        let sent = Instant::now();
        let config = configs(&self.admin).patch(PROFILE, &params, &body).await.context("the edit was refused")?;
        Ok((sent, config.metadata.generation.unwrap_or_default()))
    }

    /// Edits the KubeDescheduler as somebody else. Returns when it was sent.
    pub async fn edit_descheduler(&self, spec: Value) -> Result<Instant> {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        let body = Patch::Merge(json!({"spec": spec}));
        let sent = Instant::now();
        descheduler(&self.admin).patch("cluster", &params, &body).await.context("the edit was refused")?;
        Ok(sent)
    }
}

/// The KubeDeschedulers.
pub fn descheduler(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
    Api::namespaced_with(client.clone(), DESCHEDULER_NAMESPACE, &ApiResource::from_gvk(&kind))
}

/// A cluster-scoped kind of the machine-config operator.
pub fn machine_kind(client: &Client, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// The objects of the kind of `object`, in its namespace.
pub fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &kind),
        namespace => Api::namespaced_with(client.clone(), namespace, &kind),
    }
}

/// Says what is going on: all of it takes minutes.
pub fn tell(what: &str) {
    // Standard error may be closed; then there is nobody to tell.
    let _ = writeln!(io::stderr(), "bench: {what}");
}
