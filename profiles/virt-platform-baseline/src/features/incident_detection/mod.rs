//! Alerts that belong together, as incidents.

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity};
use crate::kinds::UI_PLUGIN;

/// A field of the object that `observability` brings.
pub(crate) static FEATURE: Feature = Feature {
    name: "incidentDetection",
    choice: |features| features.incident_detection,
    does: "groups alerts that belong together into incidents, by an analyzer that the console's plugin for monitoring starts",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-incident-detection"),
    named_by: None,
    conditions: &[Condition::Planned(&super::observability::FEATURE)],
    needs: &[],
    brings: Brings::Objects { required_kinds: &[UI_PLUGIN], optional_kinds: &[], objects: |_| Ok(Vec::new()) },
};
