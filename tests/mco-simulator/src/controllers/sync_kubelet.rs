//! The sync of the kubelet-config controller: annotation, MachineConfig, finalizer, then the
//! status.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/kubelet-config/kubelet_config_controller.go: `syncKubeletConfig`,
//! `cascadeDelete`, `syncStatusOnly`.

use std::sync::PoisonError;

use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::api::{CONTROLLER, KubeletConfig, MachineConfig, MachineConfigPool, NAME_SUFFIX};
use crate::controllers::clock;
use crate::controllers::{Controllers, Part, SyncError};
use crate::rules::kubelet;

/// Prefix of the finalizers: each is the name of a generated MachineConfig.
const FINALIZER_PREFIX: &str = "99-";

impl Controllers {
    /// Reads the object itself instead of its copy: the sync writes it up to three times.
    pub(crate) async fn sync_kubelet(&self, name: String) -> Result<(), SyncError> {
        let api: Api<KubeletConfig> = Api::all(self.client.clone());
        let Some(config) = api.get_opt(&name).await? else {
            return Ok(());
        };
        if config.metadata.deletion_timestamp.is_some() {
            return self.delete_generated(&config).await;
        }
        if kubelet::is_settled(&config, self.observed(&config)) {
            return Ok(());
        }
        let pools: Vec<&MachineConfigPool> =
            self.pools.all().filter(|pool| kubelet::is_for(&config, pool.labels())).collect();
        let refusal = kubelet::refusal(&config.spec).or_else(|| {
            pools.is_empty().then(|| format!("KubeletConfig {name} does not match any MachineConfigPools"))
        });
        if let Some(refusal) = refusal {
            return self.report(&config, Some(&refusal)).await;
        }
        let mut number = None;
        for pool in pools {
            if pool.spec.configuration.name.is_empty() {
                return Err(SyncError::Unconfigured(pool.name_any()));
            }
            let all: Vec<&KubeletConfig> = self.kubelets.all().collect();
            // All pools get the same number: that of the first pool.
            let suffix = match number.take().map_or_else(|| kubelet::suffix(&config, &all, pool), Ok) {
                Ok(suffix) => suffix,
                Err(refusal) => return self.report(&config, Some(&refusal)).await,
            };
            self.generate_for(&config, pool, &suffix).await?;
            number = Some(suffix);
        }
        self.report(&config, None).await
    }

    async fn generate_for(
        &self,
        config: &KubeletConfig,
        pool: &MachineConfigPool,
        suffix: &str,
    ) -> Result<(), SyncError> {
        let name = config.name_any();
        let generated = kubelet::generate(config, &pool.name_any(), suffix);
        if !config.annotations().contains_key(NAME_SUFFIX) {
            self.patch_kubelet(&name, json!({"metadata": {"annotations": {NAME_SUFFIX: suffix}}})).await?;
        }
        let generated_name = generated.name_any();
        if self.configs.get(&generated_name).is_some() {
            let body =
                json!({"metadata": {"ownerReferences": generated.metadata.owner_references}, "spec": generated.spec});
            self.patch::<MachineConfig>(&generated_name, Part::Object, CONTROLLER, body).await?;
        } else {
            self.create_config(&generated).await?;
        }
        let api: Api<KubeletConfig> = Api::all(self.client.clone());
        let live = api.get(&name).await?;
        if live.finalizers().contains(&generated_name) {
            return Ok(());
        }
        let finalizers: Vec<&String> = live.finalizers().iter().chain([&generated_name]).collect();
        let version = &live.metadata.resource_version;
        self.patch_kubelet(&name, json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}})).await
    }

    /// Deletes the MachineConfigs that the finalizers name, and then removes the finalizers, which
    /// ends the KubeletConfig: at once, long before any machine is told.
    async fn delete_generated(&self, config: &KubeletConfig) -> Result<(), SyncError> {
        let api: Api<MachineConfig> = Api::all(self.client.clone());
        let (ours, others): (Vec<&String>, Vec<&String>) =
            config.finalizers().iter().partition(|finalizer| finalizer.starts_with(FINALIZER_PREFIX));
        if ours.is_empty() {
            return Ok(());
        }
        for generated in ours {
            match api.delete(generated, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                other => drop(other?),
            }
        }
        self.patch_kubelet(&config.name_any(), json!({"metadata": {"finalizers": others}})).await
    }

    async fn report(&self, config: &KubeletConfig, error: Option<&str>) -> Result<(), SyncError> {
        let seen = (config.uid().unwrap_or_default(), config.metadata.generation.unwrap_or_default());
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(config.name_any(), seen);
        let status = kubelet::outcome(config, error, &clock::timestamp(), self.release);
        let body = json!({ "status": status });
        Ok(self.patch::<KubeletConfig>(&config.name_any(), Part::Status, CONTROLLER, body).await?)
    }

    /// The generation of the KubeletConfig that was last synced: from its status, or from the
    /// memory of this process.
    pub(crate) fn observed(&self, config: &KubeletConfig) -> Option<i64> {
        if self.release.observes {
            return config.status.as_ref().and_then(|status| status.observed_generation);
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&config.name_any()).filter(|(uid, _)| Some(uid) == config.metadata.uid.as_ref()).map(|(_, seen)| *seen)
    }

    async fn patch_kubelet(&self, name: &str, body: Value) -> Result<(), SyncError> {
        Ok(self.patch::<KubeletConfig>(name, Part::Object, CONTROLLER, body).await?)
    }
}
