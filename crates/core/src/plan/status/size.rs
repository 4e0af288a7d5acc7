//! Limits the status to 256 KiB, whatever the plan holds.
//!
//! The same plan is always shortened in the same way, in this order: the ends of diffs, desired
//! objects, lists of fields, values of conflicts, remembered paths, the ends of messages, then
//! messages and lists of conflicts. States, hashes, counts, the summary and conditions are never
//! left out. The command line shows everything.

use serde::Serialize;

use crate::api::{Item, Truncated, VirtPlatformConfigStatus as Status};
use crate::plan::items::drift::without_paths;
use crate::plan::status::cut_diffs;
use crate::plan::wire::cut_text;

/// The most that a status may take, in bytes of JSON.
pub const STATUS_LIMIT: usize = 256 * 1024;
/// Bytes reserved for diffs before anything else is left out.
const DIFFS_AT_LEAST: usize = 64 * 1024;
/// Bytes that the counts of a cut diff take.
const COUNTS: usize = 80;
/// The beginning of the line that ends a cut diff, and the most bytes that the line takes.
const CUT: &str = "\\ Cut:";
const MARK: usize = 120;
/// The length to which a message is cut before it is left out.
const SHORT_MESSAGE: usize = 200;
/// The least bytes of an item, without its names.
const ITEM_AT_LEAST: usize = 440;
/// The most bytes of the rest of a status: conditions, history, summary.
const REST: usize = 28 * 1024;

/// Whether a status can hold this many items whose names take `names` bytes, and inputs of `inputs`
/// bytes.
#[must_use]
pub(in crate::plan) fn can_hold(items: usize, names: usize, inputs: usize) -> bool {
    items * ITEM_AT_LEAST + names + inputs + REST <= STATUS_LIMIT
}

/// Removes from `status` what does not fit. If [`can_hold`] allowed it, the rest fits.
pub(in crate::plan) fn bound(status: &mut Status) {
    const STEPS: [fn(&mut Item); 6] = [
        |item| item.desired_state = None,
        |item| item.managed_fields.clear(),
        |item| {
            for conflict in &mut item.conflicts {
                conflict.live = None;
                conflict.desired = None;
            }
        },
        |item| item.applied.iter_mut().chain(&mut item.applied_before).for_each(without_paths),
        |item| item.message = cut_text(&item.message, SHORT_MESSAGE),
        // With hundreds of items, only the summary still counts what is taken from others.
        |item| {
            item.message.clear();
            item.conflicts.clear();
            item.overridden.clear();
        },
    ];
    if bytes(status) <= STATUS_LIMIT {
        return;
    }
    // While diffs are shown, they also show what was replaced.
    status.history.iter_mut().for_each(|entry| entry.replaced.clear());
    status.approval.iter_mut().for_each(|approval| approval.replaced.clear());
    let diffs: usize = status.items.iter().map(|item| cut_diffs::cost(&item.diff)).sum();
    let needed = diffs.min(DIFFS_AT_LEAST);
    for step in STEPS {
        if without_diffs(status) + needed <= STATUS_LIMIT {
            break;
        }
        status.items.iter_mut().for_each(step);
    }
    status.items.iter_mut().for_each(unmark);
    let with_diff = || status.items.iter().filter(|item| !item.diff.is_empty());
    let counts = COUNTS * with_diff().filter(|item| item.truncated.is_none()).count();
    let marks = MARK * with_diff().count();
    let left = STATUS_LIMIT.saturating_sub(without_diffs(status) + counts);
    // If there is no room for marks, there is hardly any for diffs.
    let (budget, has_marks) = left.checked_sub(marks).map_or((left, false), |budget| (budget, true));
    let texts: Vec<_> = status.items.iter().map(|item| item.diff.as_str()).collect();
    let shown = cut_diffs::to_budget(&texts, budget);
    for (item, (diff, truncated)) in status.items.iter_mut().zip(shown) {
        item.diff = diff;
        item.truncated = match (item.truncated, truncated) {
            // It was cut before: its counts are those of the whole.
            (Some(before), Some(now)) => Some(Truncated { shown: now.shown, ..before }),
            (before, now) => now.or(before),
        };
        if has_marks {
            mark(item);
        }
    }
}

/// Marks the end of a cut diff, so that nobody who reads only the diff takes it for the whole. No
/// line of an object begins like this in a diff.
fn mark(item: &mut Item) {
    if let Some(Truncated { shown, total, .. }) = item.truncated {
        item.diff.push_str(&format!(
            "{CUT} {shown} of {total} lines are shown. \"virt-advisor diff\" prints all of them.\n"
        ));
    }
}

fn unmark(item: &mut Item) {
    if let Some(at) = item.diff.rfind(CUT).filter(|at| *at == 0 || item.diff[..*at].ends_with('\n')) {
        item.diff.truncate(at);
    }
}

fn without_diffs(status: &Status) -> usize {
    bytes(status).saturating_sub(status.items.iter().map(|item| cut_diffs::cost(&item.diff)).sum())
}

fn bytes(status: &impl Serialize) -> usize {
    serde_json::to_vec(status).map_or(usize::MAX, |json| json.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Applied, Conflict, ItemState, Operation, Severity, TargetRef};
    use proptest::prelude::*;
    use serde_json::json;

    fn item(name: &str, diff: &str, paths: usize) -> Item {
        Item {
            name: name.to_owned(),
            target_ref: TargetRef {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                name: name.to_owned(),
                namespace: Some("default".into()),
            },
            operation: Operation::Update,
            wave: 0,
            impact_severity: Severity::Low,
            diff: diff.to_owned(),
            truncated: None,
            desired_state: Some(json!({"data": "x".repeat(2000)})),
            overrides: Vec::new(),
            overridden: Vec::new(),
            conflicts: vec![Conflict {
                path: "/data".into(),
                manager: "them".into(),
                live: Some(json!("x".repeat(500))),
                desired: Some(json!("y".repeat(500))),
                controller: false,
            }],
            pools: Vec::new(),
            managed_fields: (0..paths).map(|index| format!("data.key{index}")).collect(),
            prune: false,
            state: ItemState::Pending,
            message: "m".repeat(1000),
            last_transition_time: None,
            wait_started_at: None,
            paused_since: None,
            item_hash: "0".repeat(64),
            applied_before: None,
            applied: Some(Applied {
                uid: "u".repeat(36),
                paths: (0..paths).map(|index| format!("/f:data/f:key{index}")).collect(),
                paths_hash: None,
                hash: "0".repeat(64),
            }),
        }
    }

    #[test]
    fn z2_five_hundred_items_fit() {
        let items = (0..500).map(|index| item(&format!("item-{index:03}"), &"+line\n".repeat(100), 20)).collect();
        let mut status = Status { items, ..Status::default() };
        bound(&mut status);
        assert!(bytes(&status) <= STATUS_LIMIT);
        assert_eq!(status.items.len(), 500);
        assert!(status.items.iter().all(|item| item.item_hash.len() == 64 && item.applied.is_some()));
        let again = status.clone();
        bound(&mut status);
        assert_eq!(status, again, "what fits is not cut again");
    }

    #[test]
    fn z2_one_item_of_a_mebibyte_is_cut_and_its_neighbour_is_not() {
        let large = format!("--- a\n+++ b\n@@ -1 +1 @@\n{}", "+a line of the object\n".repeat(50_000));
        let mut status =
            Status { items: vec![item("large", &large, 1), item("small", "+x\n", 1)], ..Status::default() };
        bound(&mut status);
        assert!(bytes(&status) <= STATUS_LIMIT && bytes(&status) > STATUS_LIMIT * 9 / 10);
        let truncated = status.items[0].truncated.unwrap();
        let says = format!(
            "\n\\ Cut: {} of 50003 lines are shown. \"virt-advisor diff\" prints all of them.\n",
            truncated.shown
        );
        assert!(status.items[0].diff.ends_with(&says), "who reads the diff alone knows");
        assert_eq!(status.items[0].diff.lines().count(), truncated.shown as usize + 1);
        assert_eq!((truncated.total, truncated.added), (50_003, 50_000));
        assert_eq!((status.items[1].diff.as_str(), status.items[1].truncated), ("+x\n", None));
        assert!(status.items[1].desired_state.is_some(), "diffs are cut before anything is left out");
        // Cut again, it reports the same totals and has one mark.
        status.items[1].message = "x".repeat(100_000);
        status.items[1].managed_fields = vec!["x".repeat(100_000)];
        bound(&mut status);
        assert!(bytes(&status) <= STATUS_LIMIT);
        assert_eq!(status.items[0].diff.matches("\\ Cut: ").count(), 1);
        assert!(status.items[0].diff.contains(" of 50003 lines are shown"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn z5_whatever_the_items_the_status_is_within_its_bound(
            sizes in prop::collection::vec((0_usize..3000, 0_usize..200, 0_usize..4000), 0..50)
        ) {
            let items = sizes.iter().enumerate().map(|(index, (lines, paths, message))| {
                let mut item = item(&format!("i{index}"), &"+\"quoted\"\n".repeat(*lines), *paths);
                item.message = "ä".repeat(message / 2);
                item
            });
            let mut status = Status { items: items.collect(), ..Status::default() };
            bound(&mut status);
            prop_assert!(bytes(&status) <= STATUS_LIMIT);
        }
    }
}
