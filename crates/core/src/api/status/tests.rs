//! Statuses of other versions.

use serde_json::json;

use super::*;

/// T15: what the schema does not demand is read without it.
#[test]
fn t15_each_part_of_a_status_is_read_without_any_of_its_members() {
    let nothing = json!({
        "plannedSpec": {}, "approval": {}, "summary": {}, "items": [{"name": "i", "wave": 1, "truncated": {}, "conflicts": [{}], "applied": {}}],
        "inputs": [{}], "leftOut": [{"feature": "f"}], "history": [{}], "conditions": [{"type": "Theirs"}],
    });
    let status: VirtPlatformConfigStatus = serde_json::from_value(nothing).unwrap();
    assert_eq!(status.approval, None, "what is incomplete approves nothing");
    let item = &status.items[0];
    assert_eq!((item.operation, item.wave, item.state), (Operation::Blocked, 1, ItemState::Pending));
    assert_eq!((status.inputs.len(), status.history.len(), status.conditions.len()), (1, 1, 1));
}

#[test]
fn t15_what_is_remembered_of_an_item_is_never_dropped() {
    let applied = json!({"uid": "u", "paths": ["/f:spec"], "hash": "h"});
    let items = json!([{"name": "of-the-go-program", "state": "Completed"}, {"name": "ours", "applied": applied}]);
    let status: VirtPlatformConfigStatus = serde_json::from_value(json!({"items": items})).unwrap();
    assert_eq!(status.items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["ours"]);
    let wrong = json!({"items": [{"name": "ours", "operation": "Unheard"}]});
    assert!(serde_json::from_value::<VirtPlatformConfigStatus>(wrong).is_err());
}
