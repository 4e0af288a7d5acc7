//! What differs between the plan that the status shows and the one that was made now.

use serde_json::Value;

use super::{Plan, moved, overrides};
use crate::api::{FIELD_MANAGER, Input, InputBefore, Operation, VirtPlatformConfigStatus};

/// Inputs whose values differ from those that the published plan was made from, each with old and new value.
#[must_use]
pub fn changed_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let changed = plan.basis.inputs.iter().filter_map(|input| {
        let before = known(status, input);
        let from = before.and_then(|before| before.value.as_ref());
        before.is_none_or(|before| before.value != input.value).then(|| told(input, from))
    });
    // Whoever takes an override away changes an input; what a profile reads no more has no part in its plan.
    let gone = status.inputs.iter().filter(|before| overrides::is_override(before));
    let gone = gone.filter(|before| {
        let same = |input: &Input| input.target.is_same_object(&before.target) && input.path == before.path;
        !plan.basis.inputs.iter().any(same)
    });
    let gone = gone.map(|before| told(&Input { value: None, ..before.clone() }, before.value.as_ref()));
    changed.chain(gone).collect()
}

/// Whether `plan` was made from the values that the published one was made from.
#[must_use]
pub(super) fn has_same_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> bool {
    status.inputs.len() == plan.basis.inputs.len() && changed_inputs(status, plan).is_empty()
}

/// The inputs of `plan`, each with what it was when a plan was last carried out.
#[must_use]
pub(super) fn with_earlier_values(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<Input> {
    let first = status.plan_hash.is_none();
    let with = |input: &Input| {
        let before = known(status, input);
        let earlier = match before {
            Some(Input { changed_from: Some(earlier), .. }) => earlier.clone(),
            Some(before) => InputBefore { value: before.value.clone() },
            None => InputBefore::default(),
        };
        let changed = !first && (before.is_none() || earlier.value != input.value);
        Input { changed_from: changed.then_some(earlier), ..input.clone() }
    };
    plan.basis.inputs.iter().map(with).collect()
}

/// Inputs that are not what they were when a plan was last carried out, each with old and new value.
#[must_use]
pub(super) fn drifted_inputs(inputs: &[Input]) -> Vec<String> {
    inputs.iter().filter_map(|input| Some(told(input, input.changed_from.as_ref()?.value.as_ref()))).collect()
}

/// The same value of the same object, in whatever version that was read.
fn known<'a>(status: &'a VirtPlatformConfigStatus, input: &Input) -> Option<&'a Input> {
    status.inputs.iter().find(|old| old.target.is_same_object(&input.target) && old.path == input.path)
}

fn told(input: &Input, from: Option<&Value>) -> String {
    let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), ToString::to_string);
    format!("{} {} from {} to {}", input.target, input.path, show(from), show(input.value.as_ref()))
}

/// As many fields of an object as a sentence names.
const NAMED: usize = 5;

/// Which items of the published plan are not as they were shown: object, path, from, to and by whom, as far as that is known.
#[must_use]
pub(super) fn stale_items(status: &VirtPlatformConfigStatus, plan: &Plan) -> String {
    let moved = plan.items.iter().filter(|fresh| {
        status.items.iter().find(|item| item.name == fresh.name).is_none_or(|item| item.item_hash != fresh.hash)
    });
    let shown_at = status.planned_at.as_ref().map(|at| at.0.to_string()).unwrap_or_default();
    let names: Vec<_> = moved
        .map(|item| {
            let mut what = item.since.clone();
            if what.is_empty() {
                what = moved::later_than(&shown_at, FIELD_MANAGER, &item.glimpses);
            }
            let more = what.len().saturating_sub(NAMED);
            what.truncate(NAMED);
            if more > 0 {
                what.push(format!("and {more} more"));
            }
            let what = if what.is_empty() { String::new() } else { format!(" ({})", what.join("; ")) };
            format!("{}{what}", item.target)
        })
        .collect();
    if names.is_empty() {
        "The plan has changed since it was shown.".to_owned()
    } else {
        format!("Changed since the plan was shown: {}.", names.join(", "))
    }
}

/// Whether an item changes anything when the plan is executed.
pub(super) fn writes(operation: Operation) -> bool {
    matches!(operation, Operation::Create | Operation::Update | Operation::Remove)
}
