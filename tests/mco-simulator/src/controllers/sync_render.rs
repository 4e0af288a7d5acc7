//! The sync of the render controller: rendered MachineConfig, the pool's spec, and RenderDegraded.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/render/render_controller.go: `syncMachineConfigPool`,
//! `syncGeneratedMachineConfig`, `syncAvailableStatus`, `syncFailingStatus`.

use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::api::{
    CONTROLLER, Configuration, GENERATED_BY, MachineConfig, MachineConfigPool, RELEASE_VERSION, SourceRef, VERSION,
};
use crate::controllers::clock;
use crate::controllers::{Controllers, Part, SyncError};
use crate::rules::kubelet;
use crate::rules::reconcilable;
use crate::rules::render::{RenderError, Rendered, render};
use crate::rules::select;
use crate::rules::status::{self, RENDER_DEGRADED};

impl Controllers {
    pub(crate) async fn sync_render(&self, name: String) -> Result<(), SyncError> {
        let Some(pool) = self.pools.get(&name).cloned() else {
            return Ok(());
        };
        if select::is_empty(pool.spec.machine_config_selector.as_ref()) {
            return Ok(());
        }
        // Neither a condition nor an event reports this, only the controller's log.
        if let Some(blocker) = kubelet::blocker(self.kubelets.all(), pool.labels(), |config| self.observed(config)) {
            return Err(SyncError::Blocked(blocker));
        }
        match self.render_pool(&pool).await {
            // With the copy of the pool from before the write of its spec: after such a write this
            // fails and is repeated.
            Ok(()) => self.set_render_degraded(&pool, None).await?,
            Err(SyncError::Render(error)) => {
                let message = format!("Failed to render configuration for pool {name}: {error}");
                if let Err(error) = self.set_render_degraded(&pool, Some(&message)).await {
                    tracing::debug!(pool = %name, %error, "RenderDegraded not written");
                }
                return Err(error.into());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn render_pool(&self, pool: &MachineConfigPool) -> Result<(), SyncError> {
        let selector = pool.spec.machine_config_selector.as_ref();
        let selected = |config: &&MachineConfig| select::selects(selector, config.labels());
        let configs: Vec<&MachineConfig> = self.configs.all().filter(selected).collect();
        if configs.is_empty() {
            let selector = serde_json::to_string(&selector).unwrap_or_default();
            return Err(RenderError::NoMachineConfigs(selector).into());
        }
        let rendered = render(&pool.name_any(), &configs, self.release)?;
        if let Some(current) = self.configs.get(&pool.spec.configuration.name) {
            reconcilable::check(current, &rendered, &configs)?;
        }
        let wanted = configuration(&rendered, configs.iter().map(|config| config.name_any()));
        if self.configs.get(&rendered.name).is_none() {
            self.create_config(&rendered_config(pool, rendered)).await?;
        }
        if pool.spec.configuration != wanted {
            let body = json!({
                "metadata": {"resourceVersion": pool.metadata.resource_version},
                "spec": {"configuration": wanted},
            });
            self.patch::<MachineConfigPool>(&pool.name_any(), Part::Object, CONTROLLER, body).await?;
        }
        Ok(())
    }

    pub(crate) async fn create_config(&self, config: &MachineConfig) -> Result<(), kube::Error> {
        let api: Api<MachineConfig> = Api::all(self.client.clone());
        let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
        match api.create(&params, config).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            other => other.map(drop),
        }
    }

    async fn set_render_degraded(&self, pool: &MachineConfigPool, message: Option<&str>) -> Result<(), kube::Error> {
        let before = pool.status.clone().unwrap_or_default();
        if message.is_none() && before.is(RENDER_DEGRADED, "False") {
            return Ok(());
        }
        let mut after = before.clone();
        status::set(
            &mut after,
            RENDER_DEGRADED,
            message.is_some(),
            "",
            message.unwrap_or_default(),
            &clock::timestamp(),
        );
        if after == before {
            return Ok(());
        }
        let body = json!({"metadata": {"resourceVersion": pool.metadata.resource_version}, "status": after});
        self.patch::<MachineConfigPool>(&pool.name_any(), Part::Status, CONTROLLER, body).await
    }
}

/// The reference in a pool's spec to a rendered configuration made of these MachineConfigs.
pub(crate) fn configuration(rendered: &Rendered, names: impl Iterator<Item = String>) -> Configuration {
    let mut names: Vec<String> = names.collect();
    names.sort();
    let source = |name| SourceRef {
        api_version: "machineconfiguration.openshift.io/v1".to_owned(),
        kind: "MachineConfig".to_owned(),
        name,
    };
    Configuration { name: rendered.name.clone(), source: names.into_iter().map(source).collect() }
}

/// The MachineConfig of a rendered configuration: owned by its pool, without labels.
pub(crate) fn rendered_config(pool: &MachineConfigPool, rendered: Rendered) -> MachineConfig {
    let mut config = MachineConfig::new(&rendered.name, rendered.spec);
    let annotations = [(GENERATED_BY, VERSION), (RELEASE_VERSION, "simulated")];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    config.metadata.annotations = Some(annotations.into());
    config.metadata.owner_references = pool.controller_owner_ref(&()).map(|owner| vec![owner]);
    config
}
