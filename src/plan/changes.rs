//! What differs between the plan that the status shows and the one that was made now.

use super::{Plan, moved};
use crate::api::{FIELD_MANAGER, Operation, VirtPlatformConfigStatus};

/// Inputs whose values differ from those that the published plan was made from, each with old and new value.
#[must_use]
pub fn changed_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let show = |value: Option<&serde_json::Value>| value.map_or_else(|| "absent".to_owned(), ToString::to_string);
    let mut changed = Vec::new();
    for input in &plan.basis.inputs {
        let before = status.inputs.iter().find(|old| old.target == input.target && old.path == input.path);
        if before.is_none_or(|before| before.value != input.value) {
            let from = show(before.and_then(|before| before.value.as_ref()));
            changed.push(format!("{} {} from {from} to {}", input.target, input.path, show(input.value.as_ref())));
        }
    }
    changed
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
