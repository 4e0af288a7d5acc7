//! Dedicated CPUs for virtual machines that ask for them.

use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity};

/// Only whole cores are given, so that no two virtual machines share one. Two CPUs are reserved for
/// the system: a kubelet with this policy does not start without a reserve.
pub(crate) static FEATURE: Feature = Feature {
    name: "cpuManager",
    choice: |features| features.cpu_manager,
    does: "gives whole cores to virtual machines that request dedicated CPUs, and reserves CPUs 0 and 1 for the system",
    maturity: Maturity::DeveloperPreview,
    // CPUManager is a feature gate of KubeVirt that HyperConverged sets itself. HyperConverged has
    // no gate of that name (its `featureGates`, 1.11 to main).
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
