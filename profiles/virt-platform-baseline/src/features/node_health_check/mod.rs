//! Machines that fail are fenced, and their virtual machines start elsewhere.

use serde_json::json;

use crate::NODE_HEALTH_CHECK;
use crate::feature::{AskedBy, Brings, Feature, Maturity};

/// Of the two limits for how many may be unhealthy only `minHealthy` is set: the server sets none of them beside it.
pub(crate) static FEATURE: Feature = Feature {
    name: "nodeHealthCheck",
    does: "fences workers that are not ready for five minutes, as long as more than half of them are, so that their virtual machines start elsewhere",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-node-remediation"),
    conditions: &[],
    needs: &[],
    brings: Brings::Object {
        kind: NODE_HEALTH_CHECK,
        object: || {
            json!({
                "apiVersion": "remediation.medik8s.io/v1alpha1",
                "kind": "NodeHealthCheck",
                "metadata": {"name": "far"},
                "spec": {
                    "minHealthy": "51%",
                    "remediationTemplate": {
                        "apiVersion": "fence-agents-remediation.medik8s.io/v1alpha1",
                        "kind": "FenceAgentsRemediationTemplate",
                        "name": "fenceagentsremediationtemplate-default",
                        "namespace": "openshift-workload-availability",
                    },
                    "selector": {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]},
                    "unhealthyConditions": [
                        {"type": "Ready", "status": "False", "duration": "300s"},
                        {"type": "Ready", "status": "Unknown", "duration": "300s"},
                    ],
                },
            })
        },
    },
};
