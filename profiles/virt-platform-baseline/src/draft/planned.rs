//! The features that are planned.

use profile_sdk::{Draft, DraftError};

use crate::feature::Feature;
use crate::feature_state::FeatureState;
use crate::features::FEATURES;
use crate::situation::Situation;

/// A feature that is planned.
pub(super) struct PlannedFeature {
    pub(super) feature: &'static Feature,
    /// Notes for the reviewer.
    pub(super) notes: Vec<String>,
    /// Whether the options ask for it.
    pub(super) explicitly_enabled: bool,
}

impl PlannedFeature {
    /// Assigns `draft` to this feature, so that it is skipped with it.
    pub(super) fn assign(&self, draft: Draft) -> Draft {
        let needs = self.feature.needs.iter().map(|&needed| needed.to_owned()).collect();
        Draft { feature: Some(self.feature.name.to_owned()), needs, ..draft }
    }

    /// The features that it needs and that are not among `planned`.
    pub(super) fn missing_needs<'a>(
        &self,
        planned: &'a [PlannedFeature],
    ) -> impl Iterator<Item = &'static str> + use<'a> {
        let needs = self.feature.needs.iter().copied();
        needs.filter(|needed| !planned.iter().any(|planned| planned.feature.name == *needed))
    }
}

/// The features that are planned in this situation, in the order of the table.
pub(super) fn planned_features(situation: &Situation<'_>) -> Result<Vec<PlannedFeature>, DraftError> {
    let mut planned = Vec::new();
    for &feature in FEATURES {
        if let FeatureState::On { notes, explicitly_enabled } = feature.state(situation)? {
            planned.push(PlannedFeature { feature, notes, explicitly_enabled });
        }
    }
    Ok(planned)
}
