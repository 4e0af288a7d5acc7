//! The write of the machine-config operator: the node disruption policies in force.
//!
//! Source: openshift/machine-config-operator, release-4.17 to 5.0, pkg/operator/sync.go
//! `syncMachineConfiguration` (read).

use serde_json::json;

use crate::api::{MachineConfiguration, OPERATOR};
use crate::controllers::{Controllers, Part, SyncError};
use crate::rules::policy;

impl Controllers {
    pub(crate) async fn sync_policies(&self, name: String) -> Result<(), SyncError> {
        let Some(configuration) = self.configurations.get(&name) else {
            return Ok(());
        };
        let policies = json!({"clusterPolicies": policy::merged(&configuration.spec.node_disruption_policy)});
        let (generation, before) =
            (configuration.metadata.generation, configuration.status.clone().unwrap_or_default());
        if before.observed_generation == generation && before.node_disruption_policy_status == policies {
            return Ok(());
        }
        let status = json!({"observedGeneration": generation, "nodeDisruptionPolicyStatus": policies});
        Ok(self.patch::<MachineConfiguration>(&name, Part::Status, OPERATOR, json!({"status": status})).await?)
    }
}
