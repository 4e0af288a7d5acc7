//! Rules that detect operations in progress, for all components beneath virtual machines.

use profile_sdk::{DraftError, Impact};
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::OPERATION_RULE_SET;
use crate::situation::Situation;

pub(crate) static FEATURE: Feature = Feature {
    name: "inFlightOperations",
    choice: |features| features.in_flight_operations,
    does: "reports which operations are in progress, by rules for each component",
    maturity: Maturity::TechnologyPreview,
    asked_by: AskedBy::Annotation("enable-in-flight-operations"),
    named_by: None,
    conditions: &[],
    needs: &[],
    brings: Brings::Objects { required_kinds: &[OPERATION_RULE_SET], optional_kinds: &[], objects },
};

/// The rules are data. Each expression checks that a field is there before it reads it, so that an
/// object without the field is not an error.
fn objects(situation: &Situation<'_>) -> Result<Vec<Part>, DraftError> {
    let parsed: Result<Vec<Value>, _> = serde_json::from_str(include_str!("rules.json"));
    let mut objects =
        parsed.map_err(|error| DraftError::Template { template: "rules.json", problem: error.to_string() })?;
    if !situation.is_v1 {
        // Where v1 is not served it can't be watched. The conditions have the same form in both
        // versions.
        let of_hyper_converged = objects.iter_mut().filter(|object| object["metadata"]["name"] == "hco-rules");
        of_hyper_converged.for_each(|object| object["spec"]["target"]["version"] = json!("v1beta1"));
    }
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(objects.into_iter().map(|object| Part::new(name(&object), Impact::Low, object)).collect())
}
