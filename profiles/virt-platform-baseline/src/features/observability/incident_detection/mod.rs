//! Alerts that belong together, as incidents: a part of the feature observability.

use crate::feature::{AskedBy, Brings, Feature, Maturity};
use crate::kinds::UI_PLUGIN;

/// All of the feature but its condition, which names the host. It is a field of an object that
/// `observability` brings.
pub(super) const FEATURE: Feature = Feature {
    name: "incidentDetection",
    choice: |features| features.incident_detection,
    does: "groups related alerts into incidents, with an analyzer that the monitoring plugin of the console starts",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-incident-detection"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects { required_kinds: &[UI_PLUGIN], optional_kinds: &[], objects: |_| Ok(Vec::new()) },
};
