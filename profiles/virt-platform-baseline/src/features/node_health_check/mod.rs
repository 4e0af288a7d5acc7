//! Machines that fail are fenced, and their virtual machines start elsewhere.

use profile_sdk::Impact;
use serde_json::json;

use crate::WAVE_AFTER_MACHINES;
use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::NODE_HEALTH_CHECK;

/// Of the two limits for how many may be unhealthy only `minHealthy` is set: the server sets none of them beside it.
pub(crate) static FEATURE: Feature = Feature {
    name: "nodeHealthCheck",
    does: "fences workers that are not ready for five minutes, as long as more than half of them are, so that their virtual machines start elsewhere",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-node-remediation"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        needs: &[NODE_HEALTH_CHECK],
        may_have: &[],
        objects: |situation| {
            let mut object = json!({
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
            });
            if situation.is_on(&super::storage_based_remediation::FEATURE)?
                && let Some(conditions) = object["spec"]["unhealthyConditions"].as_array_mut()
            {
                conditions.push(json!({"type": "SBRStorageUnhealthy", "status": "True", "duration": "300s"}));
            }
            let part = Part::new("node-health-check", Impact::Medium, object);
            Ok(vec![Part { wave: WAVE_AFTER_MACHINES, ..part }])
        },
    },
};
