//! What differs between the plan that the status shows and the one that was made now.

use super::Plan;
use crate::api::{Operation, VirtPlatformConfigStatus};

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

/// Which items of the published plan are not as they were shown.
#[must_use]
pub(super) fn stale_items(status: &VirtPlatformConfigStatus, plan: &Plan) -> String {
    let moved = plan.items.iter().filter(|fresh| {
        status.items.iter().find(|item| item.name == fresh.name).is_none_or(|item| item.item_hash != fresh.hash)
    });
    let names: Vec<_> = moved.map(|item| item.target.to_string()).collect();
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
