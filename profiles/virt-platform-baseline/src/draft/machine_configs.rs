//! The MachineConfig of a feature for the machines of a role.

use profile_sdk::{Body, Draft, DraftError};

use super::planned::PlannedFeature;
use crate::feature::{Brings, Feature, Masters, WAVE_OF_MACHINES};
use crate::machine_config::machine_config;
use crate::options::PlatformBaseline;

/// The draft of the MachineConfig that `feature` brings for `role`. None if it brings none, or none
/// for the control plane.
pub(super) fn machine_config_draft(
    options: &PlatformBaseline,
    role: &str,
    feature: &PlannedFeature,
    planned: &[PlannedFeature],
) -> Result<Option<Draft>, DraftError> {
    let PlannedFeature { feature: Feature { name, does, brings, .. }, notes, explicitly_enabled } = feature;
    let Brings::Machines(configs) = brings else { return Ok(None) };
    let note_for_role = match &configs.masters {
        Masters::OnlyIfEnabledExplicitly { .. } if role == "master" && !explicitly_enabled => return Ok(None),
        Masters::OnlyIfEnabledExplicitly { note, .. } if role == "master" => Some((*note).to_owned()),
        Masters::OnlyIfEnabledExplicitly { .. } | Masters::AsWorkers => None,
    };
    let object = machine_config(&(configs.name)(role), role, &(configs.payload)(options))?;
    let missing = feature
        .missing_needs(planned)
        .map(|needed| format!("it has no effect without the feature {needed}, unless the machines are already set up for that: otherwise enable that feature too"));
    let notes = notes.iter().cloned().chain(note_for_role).chain(missing).collect();
    let draft = Draft::new(format!("{}-{role}", kebab_case(name)), Body::Ensure(object), *does);
    Ok(Some(Draft { wave: WAVE_OF_MACHINES, notes, ..feature.assign(draft) }))
}

/// `camelCase` as `camel-case`.
fn kebab_case(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
