//! Metrics of kernel samepage merging, among the metrics of the nodes.

use profile_sdk::{Document, Impact};
use serde_json::json;

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity, Part};
use crate::kinds::CONFIG_MAP;

/// Settings in a document that administrators edit too: they are merged by key, and removed by key.
pub(crate) static SETTINGS: Document =
    Document { field: "/data/config.yaml", settings: "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n" };

pub(crate) static FEATURE: Feature = Feature {
    name: "ksmMetrics",
    choice: |features| features.ksm_metrics,
    does: "exports metrics of kernel samepage merging (KSM) on each machine to the monitoring of the cluster",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-ksm-zero-only"),
    named_by: None,
    conditions: &[Condition::Planned(&super::ksm_zero_pages::FEATURE)],
    needs: &["ksmZeroPages"],
    brings: Brings::Objects {
        required_kinds: &[],
        optional_kinds: &[CONFIG_MAP],
        objects: |_| {
            let object = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "cluster-monitoring-config", "namespace": "openshift-monitoring"},
                "data": {"config.yaml": SETTINGS.settings},
            });
            Ok(vec![Part::new("cluster-monitoring", Impact::Low, object)])
        },
    },
};
