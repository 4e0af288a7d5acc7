//! Reports parts of applied objects that machines do not have because something else overrides
//! them, unless the approved plan announced it.

use std::collections::BTreeSet;

use crate::api::{Item, ItemState, VirtPlatformConfigStatus as Status};
use crate::plan::Plan;
use crate::plan::items::PlanItem;
use crate::plan::items::health::Rollout;
use crate::plan::items::message::listed;
use crate::plan::wire::cut_text;
use object::limits::within_line;

/// The beginning of the message of such an item.
pub(in crate::plan) const MARK: &str = "Overridden:";
/// The beginning of its message when the override is gone but the machines do not all have the part
/// again.
const BACK: &str = "Overridden: no longer, but not yet back on all machines:";
/// The remedy, for the summary and the condition.
pub(in crate::plan) const REMEDY: &str = "To get it onto the machines, change or delete what overrides it; to accept the override, skip the item in spec.items.";

/// The most parts of an item that are remembered, and the longest one, as in the CRD.
const PARTS: usize = 100;
const PART: usize = 1200;

/// The parts of an item that are expected to be overridden, because a plan that was approved, or is
/// about to be, announced it. If it `is_done`, only those that are still overridden.
pub(in crate::plan) fn expected(fresh: &PlanItem, before: Option<&Item>, is_done: bool) -> Vec<String> {
    let known = before.filter(|_| !fresh.prune).into_iter().flat_map(|item| &item.overridden);
    let parts: BTreeSet<_> = match is_done {
        true => {
            known.filter(|part| fresh.live.overridden.keys().any(|now| remembered(now) == **part)).cloned().collect()
        }
        false => known.cloned().chain(fresh.review.effect.overridden.iter().map(|part| remembered(part))).collect(),
    };
    parts.into_iter().take(PARTS).collect()
}

fn remembered(part: &str) -> String {
    cut_text(&within_line(part), PART)
}

/// The overridden parts of `fresh` that were not `expected`, as text.
pub(in crate::plan) fn of_item(fresh: &PlanItem, expected: &[String]) -> Option<String> {
    let news = fresh.live.overridden.iter().filter(|(part, _)| !expected.contains(&remembered(part)));
    let told: Vec<_> = news.map(|(part, by)| format!("{part} (by {by})")).collect();
    (!told.is_empty()).then(|| listed(&told))
}

/// Whether the status reports that machines do not have all of the item: then its pools are
/// followed until they do.
pub fn is_told(item: &Item) -> bool {
    item.message.starts_with(MARK)
}

/// The message of an item whose override is gone, but whose machines do not all have it again.
/// `message` is its last message.
pub(in crate::plan) fn comes_back(fresh: &PlanItem, message: &str) -> Option<String> {
    match &fresh.live.rollout {
        Rollout::Waiting { text, .. } | Rollout::Failed(text) if message.starts_with(MARK) => {
            Some(format!("{BACK} {}.", text.trim_end_matches('.')))
        }
        Rollout::Waiting { .. } | Rollout::Failed(_) | Rollout::Done(_) => None,
    }
}

/// A sentence for each applied object that machines do not have completely.
pub(in crate::plan) fn unforeseen(plan: &Plan, status: &Status) -> Vec<String> {
    let done = status.items.iter().filter(|item| item.state == ItemState::Completed);
    let told = done.filter_map(|item| {
        let fresh = plan.item(&item.name)?;
        match (of_item(fresh, &item.overridden), item.message.strip_prefix(BACK)) {
            (Some(told), _) => Some(format!("{} is overridden on its machines: {told}.", fresh.target)),
            (None, Some(rest)) => {
                Some(format!("{} is no longer overridden, but not yet back on all machines:{rest}", fresh.target))
            }
            (None, None) => None,
        }
    });
    told.collect()
}

/// The sentences of [`unforeseen`] with the remedy, if there are any.
pub(in crate::plan) fn sentence(plan: &Plan, status: &Status) -> Option<String> {
    let told = unforeseen(plan, status);
    (!told.is_empty()).then(|| format!("{} {REMEDY}", told.join(" ")))
}
