//! What differs between the plan that the status shows and the one that was made now.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::{FIELD_MANAGER, Input, InputBefore, Item, Operation, PoolTerms, VirtPlatformConfigStatus};
use crate::plan::Plan;
use crate::plan::items::PlanItem;
use crate::plan::items::drift;
use crate::plan::overrides;
use crate::plan::wire::INPUT_LIMIT;

/// Inputs whose values differ from those that the published plan was made from, each with old and new value. What it was not made from can't
/// have changed: a feature that is switched on, or a plan that is no longer blocked, reads more. An annotation that overrides something
/// is an input only where it is there.
#[must_use]
pub fn changed_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let changed = plan.basis.inputs.iter().filter_map(|input| match known(status, input) {
        Some(before) => (before.value != input.value).then(|| told(input, before.value.as_ref())),
        None => overrides::is_override(input).then(|| told(input, None)),
    });
    let gone = gone(status, plan).filter(|before| !is_trace(before));
    let gone = gone.map(|before| told(&Input { value: None, ..before.clone() }, before.value.as_ref()));
    changed.chain(gone).collect()
}

/// Whether `input` stands for an override that was taken away since a plan was carried out: no plan is made from one that is not there.
#[must_use]
pub(in crate::plan) fn is_trace(input: &Input) -> bool {
    overrides::is_override(input) && input.value.is_none()
}

/// The overrides that the published plan had and this one has not: whoever takes one away changes an input. What a profile reads no more has
/// no part in its plan.
fn gone<'a>(status: &'a VirtPlatformConfigStatus, plan: &Plan) -> impl Iterator<Item = &'a Input> {
    status.inputs.iter().filter(|before| {
        let same = |input: &Input| input.target.is_same_object(&before.target) && input.path == before.path;
        overrides::is_override(before) && !plan.basis.inputs.iter().any(same)
    })
}

/// Whether something in `plan` is there because others have changed it since a plan was last carried out: an input, an override by annotation,
/// a field that was applied, or an item that was set aside and is not any more: its review is one of its own.
#[must_use]
pub(in crate::plan) fn others_have_changed(status: &VirtPlatformConfigStatus, plan: &Plan) -> bool {
    with_earlier_values(status, plan).iter().any(|input| input.changed_from.is_some())
        || gone(status, plan).any(|before| !is_trace(before))
        || plan.items.iter().any(|item| !item.moved.is_empty() || (item.changes() && was_set_aside(status, item)))
}

/// Whether the published plan has left the item alone, as spec or an annotation said.
fn was_set_aside(status: &VirtPlatformConfigStatus, item: &PlanItem) -> bool {
    status.items.iter().any(|shown| shown.name == item.name && shown.operation == Operation::Skipped)
}

/// Whether `plan` was made from the values that the published one was made from.
#[must_use]
pub(in crate::plan) fn has_same_inputs(status: &VirtPlatformConfigStatus, plan: &Plan) -> bool {
    let is_same = |input: &Input| known(status, input).is_some_and(|before| before.value == input.value);
    let before = status.inputs.iter().filter(|input| !is_trace(input)).count();
    before == plan.basis.inputs.len() && plan.basis.inputs.iter().all(is_same)
}

/// The inputs of `plan`, each with what it was when a plan was last carried out; and, with nothing, the overrides that it was carried out
/// with and that were taken away since: whoever did so has changed the plan.
#[must_use]
pub(in crate::plan) fn with_earlier_values(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<Input> {
    let first = status.plan_hash.is_none();
    let with = |input: &Input| {
        let before = known(status, input);
        let earlier = match before {
            Some(Input { changed_from: Some(earlier), .. }) => earlier.clone(),
            Some(before) => InputBefore { value: before.value.clone() },
            None => InputBefore::default(),
        };
        let is_known = before.is_some() || overrides::is_override(input);
        let changed = !first && is_known && earlier.value != input.value;
        Input { changed_from: changed.then_some(earlier), ..input.clone() }
    };
    let taken_away = gone(status, plan).filter(|_| !first).filter_map(|before| {
        let earlier = before.changed_from.clone().unwrap_or_else(|| InputBefore { value: before.value.clone() });
        earlier.value.is_some().then(|| Input { value: None, changed_from: Some(earlier), ..before.clone() })
    });
    plan.basis.inputs.iter().map(with).chain(taken_away).take(INPUT_LIMIT).collect()
}

/// Inputs that are not what they were when a plan was last carried out, each with old and new value.
#[must_use]
pub(in crate::plan) fn drifted_inputs(inputs: &[Input]) -> Vec<String> {
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
pub(in crate::plan) fn stale_items(status: &VirtPlatformConfigStatus, plan: &Plan) -> String {
    let shown = |fresh: &PlanItem| status.items.iter().find(|item| item.name == fresh.name);
    // What was written of it is as it was to become, and no change of others.
    let is_ours = |fresh: &PlanItem, item: &Item| {
        fresh.operation == Operation::NoChange
            && item.operation.writes()
            && item.applied.is_some()
            && fresh.moved.is_empty()
    };
    let is_same = |fresh: &PlanItem, item: &Item| item.item_hash == fresh.hash || is_ours(fresh, item);
    let moved = plan.items.iter().filter(|fresh| shown(fresh).is_none_or(|item| !is_same(fresh, item)));
    let shown_at = status.planned_at.as_ref().map(|at| at.0.to_string()).unwrap_or_default();
    let names: Vec<_> = moved
        .map(|item| {
            let mut what = item.since.clone();
            what.splice(
                0..0,
                shown(item).and_then(|shown| moved_state(shown.operation, item.operation)).map(str::to_owned),
            );
            if what.is_empty() {
                what = drift::later_than(&shown_at, FIELD_MANAGER, &item.glimpses);
            }
            let pools: Vec<_> = item.effect.pools.keys().cloned().collect();
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

/// Why an item is there, or is left out, that was not before: nothing need have changed of its object for that.
fn moved_state(before: Operation, now: Operation) -> Option<&'static str> {
    match (before, now) {
        (Operation::Skipped, Operation::Skipped) | (Operation::Blocked, Operation::Blocked) => None,
        (Operation::Skipped, _) => Some("it is set aside no longer"),
        (_, Operation::Skipped) => Some("it is set aside"),
        (Operation::Blocked, _) => Some("it is blocked no longer"),
        (_, Operation::Blocked) => Some("it is blocked"),
        _ => None,
    }
}

/// What pools that were shown as rebooting let happen to their machines now, where it is something else.
fn moved_terms(status: &VirtPlatformConfigStatus, plan: &Plan) -> Vec<String> {
    let Some(planned) = &status.planned_spec else { return Vec::new() };
    let reboot: BTreeSet<_> = plan.items.iter().flat_map(|item| item.effect.pools.keys()).collect();
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
            (false, true) => Some(format!("pool {pool} is {word} now")),
            (true, false) => Some(format!("pool {pool} is {word} no longer")),
            _ => None,
        };
        let turned = [turned(|terms| terms.degraded, "degraded"), turned(|terms| terms.layered, "layered")];
        allows.into_iter().chain(has).chain(turned.into_iter().flatten())
    });
    moved.take(NAMED).collect()
}
