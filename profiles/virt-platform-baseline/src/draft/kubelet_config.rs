//! The KubeletConfig of a pool, with the fields of all features that have some.

use profile_sdk::Draft;
use serde_json::json;

use super::planned::PlannedFeature;
use super::shared_object::SharedObject;
use crate::feature::{Brings, WAVE_OF_MACHINES};

/// The draft of the only KubeletConfig for the machines of `role`: of two for one pool the machine
/// config controllers apply one. None if no feature has fields in it.
pub(super) fn kubelet_draft(role: &str, planned: &[PlannedFeature]) -> Option<Draft> {
    let mut shared = SharedObject::new(json!({
        "machineConfigPoolSelector": {"matchLabels": {format!("pools.operator.machineconfiguration.openshift.io/{role}"): ""}},
    }));
    let mut missing = Vec::new();
    for feature in planned {
        if let Brings::Kubelet(fields) = &feature.feature.brings {
            shared.add(feature, fields());
            missing.extend(feature.missing_needs(planned));
        }
    }
    let missing = missing.into_iter();
    shared.add_notes(
        missing.map(|needed| format!("part of it has no effect without the feature {needed}: enable that feature too")),
    );
    let name = if role == "worker" { "virt-perf-settings".to_owned() } else { format!("virt-perf-settings-{role}") };
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": name},
    });
    let draft = shared.draft(format!("kubelet-{role}"), object)?;
    Some(Draft { wave: WAVE_OF_MACHINES, ..draft })
}
