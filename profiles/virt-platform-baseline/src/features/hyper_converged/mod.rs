//! Settings of HyperConverged that keep virtual machines from being lost.

use profile_sdk::DraftError;
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Feature, Maturity};
use crate::situation::Situation;

pub(crate) static FEATURE: Feature = Feature {
    name: "hyperConverged",
    choice: |features| features.hyper_converged,
    does: "prevents HyperConverged from being uninstalled while virtual machines exist",
    maturity: Maturity::GeneralAvailability,
    asked_by: AskedBy::Nothing,
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::HyperConverged(fields),
};

fn fields(situation: &Situation<'_>) -> Result<Value, DraftError> {
    let fields = json!({"uninstallStrategy": "BlockUninstallIfWorkloadsExist"});
    Ok(if situation.is_v1 { json!({"deployment": fields}) } else { fields })
}
