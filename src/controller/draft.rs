//! Draft: the profile's own step. Pure: from inputs to drafts, with the inputs it used.

use profile_sdk::{Inputs, Planner, Recorded};

use super::memory::Drafted;
use crate::api::Input;

/// What the profile wants, or a sentence about the input that kept it from saying so.
pub(super) fn drafted(planner: &dyn Planner, inputs: &Inputs, generation: i64) -> Result<Drafted, String> {
    let drafts = planner.draft(inputs).map_err(|error| format!("The plan could not be made: {error}."))?;
    let inputs = inputs.recorded().into_iter().map(input).collect();
    Ok(Drafted { generation, drafts, inputs })
}

fn input(recorded: Recorded) -> Input {
    Input {
        target: recorded.target.into(),
        path: recorded.path,
        value: recorded.value.filter(|value| !value.is_null()),
    }
}
