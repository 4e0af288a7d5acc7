//! Kubelets that carry more pods, and reserve memory for the system by the size of the machine.

use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity};

/// With `autoSizingReserved` the reserve grows with the machine. It is a field of spec, next to
/// `kubeletConfig` and not inside it.
pub(crate) static FEATURE: Feature = Feature {
    name: "kubeletPerformance",
    choice: |features| features.kubelet_performance,
    does: "lets kubelets run up to 500 pods and report all images, and reserves memory for the system according to the size of the machine",
    maturity: Maturity::TechnologyPreview,
    asked_by: AskedBy::Annotation("enable-kubelet-performance-settings"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Kubelet(
        || json!({"autoSizingReserved": true, "kubeletConfig": {"maxPods": 500, "nodeStatusMaxImages": -1}}),
    ),
};
