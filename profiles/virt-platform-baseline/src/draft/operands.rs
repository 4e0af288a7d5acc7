//! The objects of other operators, and of Kubernetes itself, that a feature brings.

use profile_sdk::{Body, Draft, DraftError};

use super::planned::PlannedFeature;
use crate::feature::{Brings, Part};
use crate::situation::Situation;

/// The drafts of the objects that `planned` brings. Those of kinds that are not served are left out
/// unless the options ask for them.
pub(super) fn operand_drafts(planned: &PlannedFeature, situation: &Situation<'_>) -> Result<Vec<Draft>, DraftError> {
    let PlannedFeature { feature, notes, explicitly_enabled } = planned;
    let Brings::Objects { objects, .. } = &feature.brings else { return Ok(Vec::new()) };
    let is_drafted = |part: &Part| {
        let kind = part.kind(feature.required_kinds().iter().chain(feature.optional_kinds()));
        let is_served = kind.is_none_or(|kind| situation.inputs.serves(kind));
        *explicitly_enabled || part.explicitly_enabled || is_served
    };
    let draft = |part: Part| {
        let draft = planned.assign(Draft::new(part.item, Body::Ensure(part.object), feature.does));
        Draft {
            impact: part.impact,
            wave: part.wave,
            notes: notes.iter().cloned().chain(part.notes).collect(),
            unwanted: part.unwanted.iter().map(|&pointer| pointer.to_owned()).collect(),
            ..draft
        }
    };
    Ok(objects(situation)?.into_iter().filter(is_drafted).map(draft).collect())
}
