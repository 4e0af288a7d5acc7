//! Quotas that count what virtual machines see.

use profile_sdk::DraftError;
use profile_sdk::kinds::hyper_converged;
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Feature, Maturity};
use crate::situation::Situation;

pub(crate) static FEATURE: Feature = Feature {
    name: "applicationAwareQuota",
    choice: |features| features.application_aware_quota,
    does: "enables quotas that count the resources that virtual machines see",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::HyperConverged(fields),
};

/// The switch has been in three places: a feature gate up to release 1.14, later a field of spec in
/// v1beta1, and a field of the configuration of the quota in v1.
fn fields(situation: &Situation<'_>) -> Result<Value, DraftError> {
    if situation.is_v1 {
        return Ok(json!({"deployment": {"applicationAwareConfig": {"enable": true}}}));
    }
    // Both have a default, so the one that is set is the one that this release has.
    let is_there = |value: Option<&Value>| Some(json!(value.is_some()));
    let gate =
        situation.inputs.derive(&hyper_converged(), "/spec/featureGates/enableApplicationAwareQuota", is_there)?;
    let field = situation.inputs.derive(&hyper_converged(), "/spec/enableApplicationAwareQuota", is_there)?;
    Ok(match (gate == Some(json!(true)), field == Some(json!(true))) {
        (true, false) => json!({"featureGates": {"enableApplicationAwareQuota": true}}),
        _ => json!({"enableApplicationAwareQuota": true}),
    })
}
