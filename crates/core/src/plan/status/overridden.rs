//! What machines do not have of applied objects, because something else overrides it: said unless the approved plan had said it.

use std::collections::BTreeSet;

use crate::api::{Item, ItemState, VirtPlatformConfigStatus as Status};
use crate::plan::Plan;
use crate::plan::items::PlanItem;
use crate::plan::items::health::Rollout;
use crate::plan::items::message::listed;
use crate::plan::wire::cut_text;
use object::limits::within_line;

/// How the message of such an item begins.
pub(in crate::plan) const MARK: &str = "Overridden:";
/// How it goes on while machines do not have it back.
const BACK: &str = "Overridden: no more, and not back on all machines:";
/// What becomes whole what others override.
pub(in crate::plan) const REMEDY: &str = "To have it on the machines, change or delete what overrides it; to leave it at that, set the item aside in spec.items.";

/// The most parts of an item that are remembered, and the longest one, as in the CRD.
const PARTS: usize = 100;
const PART: usize = 1200;

/// The parts of an item of which a plan that was approved, or is about to be, has said that others override them. If it `is_done`,
/// what is in force on it by now is expected to stay so.
pub(in crate::plan) fn expected(fresh: &PlanItem, before: Option<&Item>, is_done: bool) -> Vec<String> {
    let known = before.filter(|_| !fresh.prune).into_iter().flat_map(|item| &item.overridden);
    let parts: BTreeSet<_> = match is_done {
        true => known.filter(|part| fresh.overridden.keys().any(|now| remembered(now) == **part)).cloned().collect(),
        false => known.cloned().chain(fresh.effect.overridden.iter().map(|part| remembered(part))).collect(),
    };
    parts.into_iter().take(PARTS).collect()
}

fn remembered(part: &str) -> String {
    cut_text(&within_line(part), PART)
}

/// What others override of `fresh` beyond what was `expected`, in words.
pub(in crate::plan) fn of_item(fresh: &PlanItem, expected: &[String]) -> Option<String> {
    let news = fresh.overridden.iter().filter(|(part, _)| !expected.contains(&remembered(part)));
    let told: Vec<_> = news.map(|(part, by)| format!("{part} (by {by})")).collect();
    (!told.is_empty()).then(|| listed(&told))
}

/// Whether the status says of the item that machines do not have all of it: then its pools are followed until they do.
pub fn is_told(item: &Item) -> bool {
    item.message.starts_with(MARK)
}

/// What is said of an item that was overridden, is no more, and is not back on all machines; `message` is what was said of it.
pub(in crate::plan) fn comes_back(fresh: &PlanItem, message: &str) -> Option<String> {
    match &fresh.rollout {
        Rollout::Waiting { text, .. } | Rollout::Failed(text) if message.starts_with(MARK) => {
            Some(format!("{BACK} {}.", text.trim_end_matches('.')))
        }
        Rollout::Waiting { .. } | Rollout::Failed(_) | Rollout::Done(_) => None,
    }
}

/// A sentence for each applied object of which machines do not have all.
pub(in crate::plan) fn unforeseen(plan: &Plan, status: &Status) -> Vec<String> {
    let done = status.items.iter().filter(|item| item.state == ItemState::Completed);
    let told = done.filter_map(|item| {
        let fresh = plan.item(&item.name)?;
        match (of_item(fresh, &item.overridden), item.message.strip_prefix(BACK)) {
            (Some(told), _) => {
                Some(format!("{} is overridden in what its machines are to have: {told}.", fresh.target))
            }
            (None, Some(rest)) => {
                Some(format!("{} is overridden no more, and not back on all machines:{rest}", fresh.target))
            }
            (None, None) => None,
        }
    });
    told.collect()
}

/// The same with the remedy, if there is any.
pub(in crate::plan) fn told(plan: &Plan, status: &Status) -> Option<String> {
    let told = unforeseen(plan, status);
    (!told.is_empty()).then(|| format!("{} {REMEDY}", told.join(" ")))
}
