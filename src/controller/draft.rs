//! Draft: the profile's own step. Pure: from inputs to drafts, with the inputs it used.

use profile_sdk::{Inputs, Planner, Recorded};
use serde_json::Value;

use super::memory::Drafted;
use crate::api::{Input, TargetRef};
use crate::plan::{digest, wire};

/// What the profile wants, or a sentence about the input that kept it from saying so.
pub(super) fn drafted(planner: &dyn Planner, inputs: &Inputs, generation: i64) -> Result<Drafted, String> {
    let drafts = planner.draft(inputs).map_err(|error| format!("The plan could not be made: {error}."))?;
    let inputs = inputs.recorded().into_iter().map(input).collect();
    Ok(Drafted { generation, drafts, inputs })
}

/// The longest value that is shown as it is; of longer ones only the digest is, which tells a change as well.
const VALUE_LIMIT: usize = 1024;
/// The longest path, as in the CRD.
const PATH_LIMIT: usize = 1024;

fn input(recorded: Recorded) -> Input {
    let target: TargetRef = recorded.target.into();
    let secret = target.kind == "Secret" && target.api_version == "v1";
    let value = recorded.value.filter(|value| !value.is_null()).map(|value| {
        let size = value.to_string().len();
        let hidden = || Value::from(format!("sha256 {}", digest::sha256(&value)));
        if secret || size > VALUE_LIMIT { hidden() } else { value }
    });
    Input { target, path: wire::cut_text(&recorded.path, PATH_LIMIT), value }
}
