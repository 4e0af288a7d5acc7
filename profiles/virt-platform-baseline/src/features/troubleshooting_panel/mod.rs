//! The objects, logs and events that an alert is related to, in the console.

use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::UI_PLUGIN;

pub(crate) static FEATURE: Feature = Feature {
    name: "troubleshootingPanel",
    choice: |features| features.troubleshooting_panel,
    does: "shows the objects, logs and events related to an alert in the console",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-korrel8r"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[UI_PLUGIN],
        optional_kinds: &[],
        objects: |_| Ok(vec![Part::parse("troubleshooting-panel", include_str!("ui-plugin.yaml"))?]),
    },
};
