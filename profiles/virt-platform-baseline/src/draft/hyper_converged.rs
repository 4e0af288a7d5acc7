//! The HyperConverged object, with the fields of all features that have some.

use profile_sdk::kinds::HYPER_CONVERGED_NAME;
use profile_sdk::platform::namespace;
use profile_sdk::{Draft, DraftError, Impact};
use serde_json::json;

use super::planned::PlannedFeature;
use super::shared_object::SharedObject;
use crate::feature::Brings;
use crate::situation::Situation;

/// The draft of HyperConverged, in the first wave. None if no feature has fields in it.
pub(super) fn hyper_converged_draft(
    situation: &Situation<'_>,
    planned: &[PlannedFeature],
) -> Result<Option<Draft>, DraftError> {
    let mut shared = SharedObject::new(json!({}));
    for planned in planned {
        if let Brings::HyperConverged(fields) = &planned.feature.brings {
            shared.add(planned, fields(situation)?);
        }
    }
    let version = if situation.is_v1 { "v1" } else { "v1beta1" };
    let object = json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": HYPER_CONVERGED_NAME, "namespace": namespace(situation.inputs)?},
    });
    let draft = shared.draft("hyper-converged", object);
    Ok(draft.map(|draft| Draft { impact: Impact::Medium, ..draft }))
}
