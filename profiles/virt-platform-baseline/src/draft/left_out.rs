//! The features that are left out, wholly or in part, with the reason.

use profile_sdk::{DraftError, LeftOutFeature};

use crate::feature::{Brings, Feature, MachineConfigs, Masters};
use crate::feature_state::FeatureState;
use crate::features::FEATURES;
use crate::situation::Situation;

/// Every feature of which nothing, or only a part, is drafted.
pub(crate) fn left_out_features(situation: &Situation<'_>) -> Result<Vec<LeftOutFeature>, DraftError> {
    let mut left_out = vec![descheduler_note()];
    for &feature in FEATURES {
        let reason = match feature.state(situation)? {
            FeatureState::Off(reason) => Some(reason),
            FeatureState::On { explicitly_enabled: true, .. } => None,
            FeatureState::On { explicitly_enabled: false, .. } => {
                control_plane_exclusion(feature, situation).or_else(|| feature.reason_for_missing_parts(situation))
            }
        };
        left_out.extend(reason.map(|reason| LeftOutFeature { feature: feature.name.to_owned(), reason }));
    }
    Ok(left_out)
}

/// A note on load-aware rebalancing, which is a profile of its own.
fn descheduler_note() -> LeftOutFeature {
    let reason = "it is a separate profile, load-aware-rebalancing, so that only one configuration writes the descheduler: to plan it, set \
                  spec.action of VirtPlatformConfig load-aware-rebalancing to DryRun";
    LeftOutFeature { feature: "loadAwareRebalancing".to_owned(), reason: reason.to_owned() }
}

/// Why machines of the control plane that carry virtual machines do not get the MachineConfig that
/// workers get. None if they do, or if there are none.
fn control_plane_exclusion(feature: &Feature, situation: &Situation<'_>) -> Option<String> {
    let Brings::Machines(MachineConfigs { masters: Masters::OnlyIfEnabledExplicitly { because, .. }, .. }) =
        &feature.brings
    else {
        return None;
    };
    situation.roles().contains(&"master").then(|| {
        format!(
            "it is not planned for control-plane machines, although they can run virtual machines here: {because}. To plan it for \
             them too, set spec.options.platformBaseline.features.{} to Enabled",
            feature.name
        )
    })
}
