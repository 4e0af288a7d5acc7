//! The migration toolkit for virtualization.

use profile_sdk::Impact;
use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::FORKLIFT_CONTROLLER;

/// The switches are strings, because the kind has no booleans.
pub(crate) static FEATURE: Feature = Feature {
    name: "migrationToolkit",
    choice: |features| features.migration_toolkit,
    does: "deploys the Migration Toolkit for Virtualization, with its console plugin, validation and volume populators",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-mtv"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[FORKLIFT_CONTROLLER],
        optional_kinds: &[],
        objects: |_| {
            let object = json!({
                "apiVersion": "forklift.konveyor.io/v1beta1",
                "kind": "ForkliftController",
                "metadata": {"name": "forklift-controller", "namespace": "openshift-mtv"},
                "spec": {"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "true"},
            });
            Ok(vec![Part::new("migration-toolkit", Impact::Medium, object)])
        },
    },
};
