//! The differences between the plan that the status shows and the one that was made now.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::{FIELD_MANAGER, Input, InputBefore, Item, Operation, PoolTerms, VirtPlatformConfigStatus};
use crate::plan::Plan;
use crate::plan::items::PlanItem;
use crate::plan::items::drift;
use crate::plan::overrides;
use crate::plan::wire::INPUT_LIMIT;

/// Inputs whose values differ from those of the published plan, each with old and new value. An
/// input that the published plan did not read can't have changed: a feature that is switched on, or
/// a plan that is no longer blocked, reads more. An overriding annotation is an input only while it
/// exists.
#[must_use]
pub fn changed_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let changed = plan.basis.inputs.iter().filter_map(|input| match recorded(status, input) {
        Some(before) => (before.value != input.value).then(|| describe(input, before.value.as_ref())),
        None => overrides::is_override(input).then(|| describe(input, None)),
    });
    let gone = removed_inputs(status, plan).filter(|before| !is_trace(before));
    let gone = gone.map(|before| describe(&Input { value: None, ..before.clone() }, before.value.as_ref()));
    changed.chain(gone).collect()
}

/// Whether `input` stands for an override that was removed since a plan was carried out: no plan is
/// made from a missing one.
#[must_use]
pub(in crate::plan) fn is_trace(input: &Input) -> bool {
    overrides::is_override(input) && input.value.is_none()
}

/// The overrides that the published plan had and this one lacks: removing an override changes an
/// input. Values that a profile no longer reads do not matter.
fn removed_inputs<'a>(status: &'a VirtPlatformConfigStatus, plan: &Plan) -> impl Iterator<Item = &'a Input> {
    status.inputs.iter().filter(|before| {
        let same = |input: &Input| input.target.is_same_object(&before.target) && input.path == before.path;
        overrides::is_override(before) && !plan.basis.inputs.iter().any(same)
    })
}

/// Whether others caused something in `plan` since a plan was last carried out, by changing an
/// input, an overriding annotation or an applied field, or by no longer skipping an item, which
/// needs a review of its own.
#[must_use]
pub(in crate::plan) fn others_have_changed(status: &VirtPlatformConfigStatus, plan: &Plan) -> bool {
    with_earlier_values(status, plan).iter().any(|input| input.changed_from.is_some())
        || removed_inputs(status, plan).any(|before| !is_trace(before))
        || plan.items.iter().any(|item| !item.live.moved.is_empty() || (item.changes() && was_set_aside(status, item)))
}

/// Whether the published plan skipped the item.
fn was_set_aside(status: &VirtPlatformConfigStatus, item: &PlanItem) -> bool {
    status.items.iter().any(|shown| shown.name == item.name && shown.operation == Operation::Skipped)
}

/// Whether `plan` was made from the same input values as the published one.
#[must_use]
pub(in crate::plan) fn has_same_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> bool {
    let is_same = |input: &Input| recorded(status, input).is_some_and(|before| before.value == input.value);
    let before = status.inputs.iter().filter(|input| !is_trace(input)).count();
    before == plan.basis.inputs.len() && plan.basis.inputs.iter().all(is_same)
}

/// The inputs of `plan`, each with its value when a plan was last carried out. Overrides that were
/// in force then and were removed since are included without a value: removing them changed the
/// plan.
#[must_use]
pub(in crate::plan) fn with_earlier_values(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<Input> {
    let first = status.plan_hash.is_none();
    let with = |input: &Input| {
        let before = recorded(status, input);
        let earlier = match before {
            Some(Input { changed_from: Some(earlier), .. }) => earlier.clone(),
            Some(before) => InputBefore { value: before.value.clone() },
            None => InputBefore::default(),
        };
        let is_known = before.is_some() || overrides::is_override(input);
        let changed = !first && is_known && earlier.value != input.value;
        Input { changed_from: changed.then_some(earlier), ..input.clone() }
    };
    let taken_away = removed_inputs(status, plan).filter(|_| !first).filter_map(|before| {
        let earlier = before.changed_from.clone().unwrap_or_else(|| InputBefore { value: before.value.clone() });
        earlier.value.is_some().then(|| Input { value: None, changed_from: Some(earlier), ..before.clone() })
    });
    plan.basis.inputs.iter().map(with).chain(taken_away).take(INPUT_LIMIT).collect()
}

/// Inputs whose values differ from when a plan was last carried out, each with old and new value.
#[must_use]
pub(in crate::plan) fn drifted_inputs(inputs: &[Input]) -> Vec<String> {
    inputs.iter().filter_map(|input| Some(describe(input, input.changed_from.as_ref()?.value.as_ref()))).collect()
}

/// The published value of the same field of the same object, in whatever version it was read.
fn recorded<'a>(status: &'a VirtPlatformConfigStatus, input: &Input) -> Option<&'a Input> {
    status.inputs.iter().find(|old| old.target.is_same_object(&input.target) && old.path == input.path)
}

fn describe(input: &Input, from: Option<&Value>) -> String {
    let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), ToString::to_string);
    format!("{} {} from {} to {}", input.target, input.path, show(from), show(input.value.as_ref()))
}

/// The most fields of an object that a sentence names.
const NAMED: usize = 5;

/// The items that differ from the published plan, in a sentence: object, field, old and new value
/// and who changed it, as far as known.
#[must_use]
pub(in crate::plan) fn stale_items(status: &VirtPlatformConfigStatus, plan: &Plan) -> String {
    let shown = |fresh: &PlanItem| status.items.iter().find(|item| item.name == fresh.name);
    // Our own write brought it to the planned state: that is not a change by others.
    let is_ours = |fresh: &PlanItem, item: &Item| {
        fresh.operation == Operation::NoChange
            && item.operation.writes()
            && item.applied.is_some()
            && fresh.live.moved.is_empty()
    };
    let is_same = |fresh: &PlanItem, item: &Item| item.item_hash == fresh.hash || is_ours(fresh, item);
    let moved = plan.items.iter().filter(|fresh| shown(fresh).is_none_or(|item| !is_same(fresh, item)));
    let shown_at = status.planned_at.as_ref().map(|at| at.0.to_string()).unwrap_or_default();
    let names: Vec<_> = moved
        .map(|item| {
            let mut what = item.live.changed_since_shown.clone();
            what.splice(
                0..0,
                shown(item).and_then(|shown| moved_state(shown.operation, item.operation)).map(str::to_owned),
            );
            if what.is_empty() {
                what = drift::later_than(&shown_at, FIELD_MANAGER, &item.live.glimpses);
            }
            let pools: Vec<_> = item.review.effect.pools.keys().cloned().collect();
            if shown(item).is_some_and(|shown| shown.pools != pools && shown.operation.writes()) {
                let pools = if pools.is_empty() { "none".to_owned() } else { pools.join(", ") };
                what.insert(0, format!("pools whose machines reboot: {pools}"));
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
    let names: Vec<_> = names.into_iter().chain(moved_terms(status, plan)).collect();
    if names.is_empty() {
        "The plan has changed since it was shown.".to_owned()
    } else {
        format!("Changed since the plan was shown: {}.", names.join(", "))
    }
}

/// Why an item is now in the plan, or no longer is, although its object may be unchanged.
fn moved_state(before: Operation, now: Operation) -> Option<&'static str> {
    match (before, now) {
        (Operation::Skipped, Operation::Skipped) | (Operation::Blocked, Operation::Blocked) => None,
        (Operation::Skipped, _) => Some("it is no longer skipped"),
        (_, Operation::Skipped) => Some("it is skipped"),
        (Operation::Blocked, _) => Some("it is no longer blocked"),
        (_, Operation::Blocked) => Some("it is blocked"),
        _ => None,
    }
}

/// The changed terms of pools that were already shown as rebooting.
fn moved_terms(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let Some(planned) = &status.planned_spec else { return Vec::new() };
    let reboot: BTreeSet<_> = plan.items.iter().flat_map(|item| item.review.effect.pools.keys()).collect();
    let shown = status.items.iter().flat_map(|item| &item.pools).collect::<BTreeSet<_>>();
    let moved = reboot.intersection(&shown).flat_map(|pool| {
        let (before, now) = (planned.terms.pools.get(*pool), plan.basis.terms.pools.get(*pool));
        let unavailable = |terms: Option<&PoolTerms>| {
            terms.and_then(|terms| terms.max_unavailable.clone()).unwrap_or_else(|| "1".to_owned())
        };
        let machines = |terms: Option<&PoolTerms>| terms.and_then(|terms| terms.machines_at_least);
        let at_least =
            |number: Option<u32>| number.map_or_else(|| "fewer than 10".to_owned(), |least| format!("{least} or more"));
        let (allowed, allows) = (unavailable(before), unavailable(now));
        let (had, has) = (machines(before), machines(now));
        let allows = (allowed != allows).then(|| format!("maxUnavailable of pool {pool} from {allowed} to {allows}"));
        let has = (had != has).then(|| format!("machines of pool {pool} from {} to {}", at_least(had), at_least(has)));
        let is = |terms: Option<&PoolTerms>, what: fn(&PoolTerms) -> bool| terms.is_some_and(what);
        let turned = |what: fn(&PoolTerms) -> bool, word: &str| match (is(before, what), is(now, what)) {
            (false, true) => Some(format!("pool {pool} is now {word}")),
            (true, false) => Some(format!("pool {pool} is no longer {word}")),
            _ => None,
        };
        let turned = [turned(|terms| terms.degraded, "degraded"), turned(|terms| terms.layered, "layered")];
        allows.into_iter().chain(has).chain(turned.into_iter().flatten())
    });
    moved.take(NAMED).collect()
}
