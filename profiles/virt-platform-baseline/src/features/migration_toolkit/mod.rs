//! The migration toolkit for virtualization.

use serde_json::json;

use crate::FORKLIFT_CONTROLLER;
use crate::feature::{AskedBy, Brings, Feature, Maturity};

/// The switches are texts: the kind knows no others.
pub(crate) static FEATURE: Feature = Feature {
    name: "migrationToolkit",
    does: "brings the migration toolkit for virtualization, with its plugin for the console, validation and volume populators",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-mtv"),
    conditions: &[],
    needs: &[],
    brings: Brings::Object {
        kind: FORKLIFT_CONTROLLER,
        object: || {
            json!({
                "apiVersion": "forklift.konveyor.io/v1beta1",
                "kind": "ForkliftController",
                "metadata": {"name": "forklift-controller", "namespace": "openshift-mtv"},
                "spec": {"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "true"},
            })
        },
    },
};
