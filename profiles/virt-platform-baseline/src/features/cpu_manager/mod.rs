//! CPUs of their own for virtual machines that ask for them.

use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity};

/// Whole cores only, so that no two virtual machines share one. Two CPUs stay with the system: without a reserve a kubelet with
/// this policy does not start.
pub(crate) static FEATURE: Feature = Feature {
    name: "cpuManager",
    choice: |features| features.cpu_manager,
    does: "gives virtual machines that ask for dedicated CPUs whole cores, and keeps CPUs 0 and 1 for the system",
    maturity: Maturity::DeveloperPreview,
    // CPUManager is a gate of KubeVirt, which HyperConverged sets itself, and none of HyperConverged (its `featureGates`, 1.11 to main).
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Kubelet(|| {
        json!({"kubeletConfig": {
            "cpuManagerPolicy": "static",
            "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
            "cpuManagerReconcilePeriod": "5s",
            "reservedSystemCPUs": "0-1",
        }})
    }),
};
