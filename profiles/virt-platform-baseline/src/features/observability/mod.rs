//! Dashboards and alerts for what the baseline sets up.

mod incident_detection;

use profile_sdk::kinds::KUBE_DESCHEDULER;
use profile_sdk::platform::namespace;
use profile_sdk::{DraftError, Impact};
use serde_json::json;

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity, Part};
use crate::feature_state::FeatureState;
use crate::kinds::{PERSES_DASHBOARD, PERSES_DATASOURCE, PROMETHEUS_RULE, UI_PLUGIN};
use crate::situation::Situation;

/// All kinds are optional: alerts are useful even where nothing shows dashboards.
pub(crate) static FEATURE: Feature = Feature {
    name: "observability",
    choice: |features| features.observability,
    does: "adds a console dashboard and alerts for the platform that virtual machines run on",
    maturity: Maturity::GeneralAvailability,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[],
        optional_kinds: &[UI_PLUGIN, PERSES_DATASOURCE, PERSES_DASHBOARD, PROMETHEUS_RULE],
        objects,
    },
};

/// Incidents are a field of the plugin of `observability`: the host alone knows both.
pub(crate) static INCIDENT_DETECTION: Feature =
    Feature { conditions: &[Condition::Planned(&FEATURE)], ..incident_detection::FEATURE };

fn objects(situation: &Situation<'_>) -> Result<Vec<Part>, DraftError> {
    let mut plugin = Part::parse("monitoring-plugin", include_str!("ui-plugin-monitoring.yaml"))?;
    if let FeatureState::On { explicitly_enabled, .. } = INCIDENT_DETECTION.state(situation)? {
        plugin.object["spec"]["monitoring"]["clusterHealthAnalyzer"] = json!({"enabled": true});
        plugin.explicitly_enabled = explicitly_enabled;
    }
    let namespace = namespace(situation.inputs)?;
    let here = |part: Part| Part { impact: Impact::Low, ..part.in_namespace(&namespace) };
    let mut parts = vec![
        plugin,
        here(Part::parse("platform-datasource", include_str!("datasource.yaml"))?),
        here(Part::parse("platform-dashboard", include_str!("dashboard.yaml"))?),
        here(Part::parse("platform-alerts", include_str!("alerts.yaml"))?),
    ];
    if situation.inputs.serves(&KUBE_DESCHEDULER) {
        parts.push(here(Part::parse("descheduler-dashboard", include_str!("descheduler-dashboard.yaml"))?));
    }
    Ok(parts)
}
