//! Removals: objects that earlier plans applied and the profile no longer wants. They are reviewed
//! like any other change.

use profile_sdk::{Body, Draft, ObjectRef};
use serde_json::Value;

use crate::api::{Applied, Item, ItemState, Operation, TargetRef, VirtPlatformConfigStatus};
use crate::plan::target::target;
use crate::plan::wire;
use crate::plan::wire::LABEL_LIMIT;
use object::digest;

/// A removal for each object in which items of `status` own fields and that none of `drafts` is
/// about. Removals come after everything else, the last item first, so that what needed the object
/// is gone by then; if nothing comes after the wave of the objects, they are removed in that wave.
/// A finished removal stays visible in the plan until the `options` change: no other edit, least of
/// all an approval, makes another plan of it.
#[must_use]
pub fn departed(status: &VirtPlatformConfigStatus, drafts: &[Draft], options: Option<&Value>) -> Vec<Draft> {
    let last = drafts.iter().map(|draft| draft.wave + 1).max().unwrap_or_default();
    let wanted: Vec<_> = drafts.iter().map(target).collect();
    let leaves = |item: &&Item| {
        // An object that was about to be written may exist although no record says so.
        let begun = item.state == ItemState::InProgress && item.operation.writes();
        let taken = begun || [&item.applied, &item.applied_before].into_iter().flatten().any(owns);
        let open = item.state != ItemState::Completed || item.operation != Operation::NoChange;
        let stays = item.prune && (open || status.applied_options.as_ref() == options);
        (stays || (!item.prune && taken)) && !wanted.iter().any(|wanted| wanted.is_same_object(&item.target_ref))
    };
    // In the wave of their peers, so that machines reboot once, unless later items may need one of
    // them.
    let first = status.items.iter().filter(leaves).map(|item| item.wave).min().unwrap_or_default();
    let wave = if drafts.iter().any(|draft| draft.wave > first) { last } else { first };
    let removal = |item: &Item| {
        let taken = |name: &str| drafts.iter().any(|draft| draft.name == name);
        let name = match taken(&item.name) {
            // The item has another object now, and may have had several.
            true => {
                let mut object = digest::sha256(&item.target_ref);
                object.truncate(8);
                format!("{}-before-{object}", wire::cut_text(&item.name, LABEL_LIMIT))
            }
            false => item.name.clone(),
        };
        let TargetRef { api_version, kind, name: object, namespace } = item.target_ref.clone();
        let body = Body::Remove(ObjectRef { api_version, kind, namespace, name: object });
        Draft { wave, ..Draft::new(name, body, "it is no longer part of the plan") }
    };
    // In the order in which they were planned, whatever is added.
    let (planned, new): (Vec<_>, Vec<_>) = status.items.iter().filter(leaves).partition(|item| item.prune);
    planned.into_iter().chain(new.into_iter().rev()).map(removal).collect()
}

/// Whether something was written, or found to be ours.
fn owns(applied: &Applied) -> bool {
    !applied.paths.is_empty() || applied.paths_hash.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft(name: &str, object: &str, wave: u32) -> Draft {
        let object = json!({"apiVersion": "g/v2", "kind": "K", "metadata": {"name": object}});
        Draft { wave, ..Draft::new(name, Body::Ensure(object), "wanted") }
    }

    fn item(name: &str, object: &str, state: &str, more: serde_json::Value) -> Item {
        let mut item = json!({
            "name": name, "targetRef": {"apiVersion": "g/v1", "kind": "K", "name": object}, "operation": "NoChange", "wave": 0,
            "impactSeverity": "Low", "state": state,
        });
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(item).unwrap()
    }

    #[test]
    fn what_was_ours_and_is_wanted_no_more_is_taken_back_last_of_all() {
        let ours = json!({"applied": {"uid": "u", "paths": ["/f:spec"], "hash": "h"}});
        let not_ours = json!({"applied": {"uid": "u", "hash": "h"}});
        let before = json!({"appliedBefore": {"uid": "u", "paths": ["/f:spec"], "hash": "h"}});
        let status = VirtPlatformConfigStatus {
            applied_options: Some(json!(1)),
            items: vec![
                item("kept", "kept", "Completed", ours.clone()),
                item("first", "first", "Completed", ours.clone()),
                item("never-ours", "never-ours", "Completed", not_ours),
                item("unwritten", "unwritten", "Pending", json!({})),
                item("begun", "begun", "InProgress", json!({"operation": "Create"})),
                item("moved", "old", "Completed", before),
                item("removing", "removing", "InProgress", json!({"prune": true})),
                item("removed", "removed", "Completed", json!({"prune": true})),
            ],
            ..VirtPlatformConfigStatus::default()
        };
        let drafts = [draft("kept", "kept", 0), draft("moved", "new", 3)];
        let found = |options: i64| -> Vec<_> {
            let departed = departed(&status, &drafts, Some(&json!(options)));
            assert!(departed.iter().all(|draft| draft.wave == 4));
            departed.iter().map(|draft| (draft.name.clone(), target(draft).name)).collect()
        };
        let named = |all: &[(&str, &str)]| -> Vec<_> {
            all.iter().map(|(name, object)| ((*name).to_owned(), (*object).to_owned())).collect()
        };
        let (open, first) = (("removing", "removing"), ("first", "first"));
        let (moved, begun) = (("moved-before-87cd6aaf", "old"), ("begun", "begun"));
        assert_eq!(found(1), named(&[open, ("removed", "removed"), moved, begun, first]));
        assert_eq!(found(2), named(&[open, moved, begun, first]), "what is gone is history with other options");
    }

    /// Removals on machines share one rollout with what the machines get.
    #[test]
    fn what_nothing_comes_after_is_taken_back_with_its_peers() {
        let ours = json!({"wave": 1, "applied": {"uid": "u", "paths": ["/f:spec"], "hash": "h"}});
        let status = VirtPlatformConfigStatus {
            items: vec![item("first", "first", "Completed", ours)],
            ..VirtPlatformConfigStatus::default()
        };
        let wave = |drafts: &[Draft]| departed(&status, drafts, None)[0].wave;
        assert_eq!(wave(&[draft("a", "a", 0), draft("b", "b", 1)]), 1);
        assert_eq!(wave(&[draft("a", "a", 0), draft("b", "b", 2)]), 3);
        assert_eq!(wave(&[]), 1);
        // All of them in one wave, the last one first, whatever waves they came in.
        let more = VirtPlatformConfigStatus {
            items: [("a", 1), ("b", 2)]
                .map(|(name, wave)| {
                    item(
                        name,
                        name,
                        "Completed",
                        json!({"wave": wave, "applied": {"uid": "u", "paths": ["/f:spec"], "hash": "h"}}),
                    )
                })
                .to_vec(),
            ..VirtPlatformConfigStatus::default()
        };
        let of_all: Vec<_> = departed(&more, &[], None).into_iter().map(|draft| (draft.name, draft.wave)).collect();
        assert_eq!(of_all, [("b".to_owned(), 1), ("a".to_owned(), 1)]);
    }

    /// W-32: a kind of the same name in another group is another kind.
    #[test]
    fn objects_are_told_apart_by_their_group() {
        let ours = json!({"applied": {"uid": "u", "paths": ["/f:spec"], "hash": "h"}});
        let status = VirtPlatformConfigStatus {
            items: vec![item("x", "x", "Completed", ours)],
            ..VirtPlatformConfigStatus::default()
        };
        let of_group = |api_version: &str| {
            let object = json!({"apiVersion": api_version, "kind": "K", "metadata": {"name": "x"}});
            departed(&status, &[Draft::new("y", Body::Ensure(object), "wanted")], None).len()
        };
        assert_eq!((of_group("g/v7"), of_group("h/v1"), of_group("v1")), (0, 1, 1));
    }
}
