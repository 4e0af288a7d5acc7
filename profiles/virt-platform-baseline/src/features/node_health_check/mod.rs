//! Fencing of failed machines, so that their virtual machines start elsewhere.

use profile_sdk::Impact;
use serde_json::json;

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity, Part, WAVE_AFTER_MACHINES};
use crate::kinds::{FENCE_AGENTS_REMEDIATION_TEMPLATE, NODE_HEALTH_CHECK};

/// The template by which machines are fenced. The administrator makes it: it holds the credentials
/// for the management controllers of the machines.
const TEMPLATE: &str = "fenceagentsremediationtemplate-default";

/// Of the two limits on unhealthy machines only `minHealthy` is set, and the server sets no default
/// for the other one then.
pub(crate) static FEATURE: Feature = Feature {
    name: "nodeHealthCheck",
    choice: |features| features.node_health_check,
    does: "fences worker machines that have not been ready for five minutes, as long as at least 51% of them are healthy, so that their virtual machines restart elsewhere",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-node-remediation"),
    named_by: None,
    conditions: &[Condition::Served(&FENCE_AGENTS_REMEDIATION_TEMPLATE)],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[NODE_HEALTH_CHECK],
        optional_kinds: &[],
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
                        "name": TEMPLATE,
                        "namespace": "openshift-workload-availability",
                    },
                    "selector": {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]},
                    "unhealthyConditions": [
                        {"type": "Ready", "status": "False", "duration": "300s"},
                        {"type": "Ready", "status": "Unknown", "duration": "300s"},
                    ],
                },
            });
            if super::storage_based_remediation::FEATURE.is_on(situation)?
                && let Some(conditions) = object["spec"]["unhealthyConditions"].as_array_mut()
            {
                conditions.push(json!({"type": "SBRStorageUnhealthy", "status": "True", "duration": "300s"}));
            }
            let mut notes = vec![
                format!("it fences with FenceAgentsRemediationTemplate openshift-workload-availability/{TEMPLATE}, which you must create"),
                "releases of the Node Health Check Operator from before February 2025 also fence a machine whose reboot takes more than five \
                 minutes (later releases wait while the configuration of a machine is being updated): with such an old release, add an entry \
                 to spec.pauseRequests of this object before you approve another plan that reboots machines"
                    .to_owned(),
            ];
            // One check for workers and the control plane would count them together, and its
            // operator advises against that.
            match situation.roles().as_slice() {
                ["master"] => notes.push(
                    "on this cluster the worker machines are the control-plane machines, so these are fenced too"
                        .to_owned(),
                ),
                ["worker"] => {}
                _ => {
                    let labels = ["control-plane", "master"].map(|role| format!("node-role.kubernetes.io/{role}"));
                    if let Some(chosen) = object["spec"]["selector"]["matchExpressions"].as_array_mut() {
                        chosen.extend(labels.map(|key| json!({"key": key, "operator": "DoesNotExist"})));
                    }
                }
            }
            let part = Part::new("node-health-check", Impact::Medium, object);
            Ok(vec![Part { wave: WAVE_AFTER_MACHINES, notes, unwanted: &["/spec/maxUnhealthy"], ..part }])
        },
    },
};
