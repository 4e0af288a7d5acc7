//! Makes the status that follows from a decision: one function from old to new.
//!
//! ```text
//!   Observed, Decision, what was written ─► compose ─► the next status
//!                                             ├─ summary      one text for people
//!                                             ├─ conditions   the same for programs
//!                                             ├─ overridden   what machines have instead
//!                                             └─ size, cut_diffs   so that it can be stored
//! ```

pub mod conditions;
pub mod cut_diffs;
pub mod overridden;
pub mod size;
pub mod summary;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use self::conditions::PhaseReport;
use self::summary::PlanContext;
use crate::api::{
    Action, Applied, ApprovedBy, HistoryEntry, Item, ItemState, LeftOut, Operation, Phase, PlannedSpec, SupersededPlan,
    TargetRef, VirtPlatformConfigStatus as Status,
};
use crate::plan::Plan;
use crate::plan::decision::Outcome;
use crate::plan::decision::approval::THRASHING;
use crate::plan::decision::changes::{drifted_inputs, is_trace, with_earlier_values};
use crate::plan::decision::observed::is_made_anew;
use crate::plan::decision::observed::{Observed, World};
use crate::plan::decision::reason::{self, condition};
use crate::plan::decision::{Decision, Execution, Failure, Publication, Step};
use crate::plan::figures;
use crate::plan::guard::{Guard, stops};
use crate::plan::hash;
use crate::plan::items::PlanItem;
use crate::plan::items::health::Rollout;
use crate::plan::items::message;
use crate::plan::wire::{SUMMARY_LIMIT, time};
use object::limits::{cut_text, within_line};

/// The most earlier plans that are remembered, separately for those that were carried out and those
/// that were not.
const HISTORY_LIMIT: usize = 10;
/// The number of executions for which the replaced values are remembered.
const REPLACED_IN: usize = 3;
/// The longest message of an item, in bytes.
const MESSAGE_LIMIT: usize = 4096;

/// The longest lists of an item, as in the CRD; the digest covers all of them.
const CONFLICT_LIMIT: usize = 200;
const POOL_LIMIT: usize = 100;
const FIELD_LIMIT: usize = 1000;
const OVERRIDE_LIMIT: usize = 100;
const NOTE_LIMIT: usize = 1200;
const LEFT_OUT_LIMIT: usize = 100;

/// The result of writing an item just now.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// The server accepted it and answered with these values.
    Applied(Applied),
    /// The server accepted it, but the result differs from the preview: its values, and a sentence.
    Differs(Applied, String),
    /// The object is deleted, or our fields are removed from it.
    Removed,
    /// The server refuses it permanently.
    Refused(String),
}

/// The status after `decision` and the writes that it caused; `None` if there is nothing to report.
#[must_use]
pub fn compose(
    seen: &Observed<'_>,
    decision: &Decision,
    written: &BTreeMap<String, Written>,
    now: Timestamp,
) -> Option<Status> {
    let mut status = seen.status.clone();
    let generation = seen.wanted.generation;
    let mut changed = String::new();
    let (phase, reason, text) = match decision {
        Decision::Leave | Decision::Hold => return None,
        Decision::StandAside => {
            end(&mut status, seen, Some(Outcome::Withdrawn), now);
            if let Some(planned) = &mut status.planned_spec {
                planned.used_plan_hash = still_named(planned.used_plan_hash.take(), seen);
            }
            (Phase::Ignored, reason::IGNORED, summary::ignored(seen.description))
        }
        Decision::Reject(problem) => {
            end(&mut status, seen, Some(Outcome::Failed), now);
            (Phase::Failed, reason::INVALID, problem.clone())
        }
        Decision::AwaitPrerequisites(missing) => {
            end(&mut status, seen, Some(Outcome::Stale), now);
            (Phase::PrerequisiteFailed, reason::PREREQUISITES_FAILED, missing.join("\n"))
        }
        Decision::Publish(publication) => publish(&mut status, seen, publication, &mut changed, now),
        Decision::Execute(execution) => execute(&mut status, seen, execution, written, now),
        Decision::Fail(Failure { phase, message, steps }) => {
            advance(&mut status, steps, now);
            recognise(&mut status, seen, now);
            // A request for a new plan that came before the failure is no reason to leave the
            // failure.
            if let Some(planned) = &mut status.planned_spec {
                planned.replan.clone_from(&seen.wanted.replan);
            }
            let outcome = if *phase == Phase::Failed { Outcome::Failed } else { Outcome::CompletedWithErrors };
            end(&mut status, seen, Some(outcome), now);
            (*phase, reason::ITEM_FAILED, message.clone())
        }
    };
    if seen.made_anew && status.planned_spec.is_none() {
        // Remembered until there is a plan, also for the next process.
        status.planned_spec = Some(PlannedSpec { revised_at: Some(time(now)), ..PlannedSpec::default() });
    }
    status.phase = Some(phase);
    status.observed_generation = Some(generation);
    if status.items.is_empty() {
        status.impact_severity = Some(seen.declared_impact);
    }
    let text = cut_text(&within_line(&text), SUMMARY_LIMIT);
    let summary = status.summary.get_or_insert_default();
    summary.text.clone_from(&text);
    summary.changed = cut_text(&within_line(&changed), SUMMARY_LIMIT);
    let input_drift = input_drift(seen, &status);
    let trouble = trouble(seen, &status);
    let overridden = match planned(seen) {
        Some(plan) => overridden::sentence(plan, &status),
        None => told_before(seen, &status, condition::OVERRIDDEN),
    };
    let verdict = PhaseReport { phase, reason, message: &text, input_drift, trouble, overridden, generation };
    status.conditions = conditions::derive(&seen.status.conditions, &verdict, now);
    size::bound(&mut status);
    Some(status)
}

fn planned<'a>(seen: &'a Observed<'_>) -> Option<&'a Plan> {
    match &seen.world {
        World::Planned(plan) => Some(plan),
        World::Unread | World::Invalid(_) | World::Missing(_) | World::Rollouts(_) => None,
    }
}

fn publish(
    status: &mut Status,
    seen: &Observed<'_>,
    publication: &Publication,
    changed: &mut String,
    now: Timestamp,
) -> (Phase, &'static str, String) {
    end(status, seen, publication.ended, now);
    let Publication { phase, reason, .. } = *publication;
    changed.clone_from(&publication.detail);
    let Some(plan) = planned(seen) else {
        return (phase, reason, publication.detail.clone());
    };
    let old = seen.status;
    supersede(status, seen, plan, now);
    show(status, seen, plan, now);
    if phase == Phase::CompletedWithUpgrade {
        status.operator_version.clone_from(&old.operator_version);
    }
    // Nothing new has changed: what was reported the first time is more complete. Figures and
    // remedies are always the latest.
    let unchanged = old.plan_hash == status.plan_hash
        && old.phase == Some(phase)
        && old.observed_generation == Some(seen.wanted.generation)
        && publication.ended.is_none()
        && !publication.news
        && old.conditions.iter().any(|condition| condition.reason == reason)
        && old.operator_version == status.operator_version;
    if let Some(summary) = old.summary.as_ref().filter(|summary| unchanged && !summary.changed.is_empty()) {
        changed.clone_from(&summary.changed);
    }
    let puts_back = plan.items.iter().filter(|item| !item.live.moved.is_empty()).all(|item| {
        let remembered = old.items.iter().find(|before| before.name == item.name);
        remembered.and_then(|before| before.applied.as_ref()).is_some_and(|applied| item.restores(applied))
    });
    let is_of_this = |hash: Option<&String>| hash == Some(&plan.digest);
    let before = status.planned_spec.as_ref().and_then(|planned| planned.approved_plan_hash.as_ref());
    let named_before = seen.wanted.action == Action::Apply
        && is_of_this(seen.wanted.approved_plan_hash.as_ref())
        && is_of_this(before);
    let overridden = overridden::unforeseen(plan, status);
    let written = |item: &&Item| item.operation.leaves_alone() && item.wait_started_at.is_some();
    let begun = status.items.iter().filter(|item| item.state == ItemState::InProgress).filter(written);
    let under_way: Vec<_> = begun
        .map(|item| format!("Still under way: {}: {}.", item.target_ref, item.message.trim_end_matches('.')))
        .collect();
    let told = PlanContext { detail: changed, overridden: &overridden, under_way: &under_way, puts_back, named_before };
    (phase, reason, summary::of_publication(plan, publication, &told))
}

fn execute(
    status: &mut Status,
    seen: &Observed<'_>,
    execution: &Execution,
    written: &BTreeMap<String, Written>,
    now: Timestamp,
) -> (Phase, &'static str, String) {
    if execution.replaces {
        end(status, seen, Some(Outcome::Stale), now);
    }
    let begins = execution.replaces || seen.status.phase != Some(Phase::InProgress) || seen.status.approval.is_none();
    if let Some(plan) = planned(seen).filter(|_| begins) {
        show(status, seen, plan, now);
        settle_inputs(status);
        for item in &mut status.items {
            item.wait_started_at = None;
            item.paused_since = None;
        }
        for item in status.items.iter_mut().filter(|item| !item.operation.leaves_alone()) {
            item.applied_before = item.applied.take();
        }
    }
    if stops(Guard::HashUsedUp, begins)
        && let Some(planned) = &mut status.planned_spec
    {
        // The hash that is in spec now has approved this execution, and does not approve another.
        planned.approved_plan_hash.clone_from(&seen.wanted.approved_plan_hash);
    }
    let names_this = seen.wanted.approved_plan_hash.as_ref() == Some(&execution.approval.plan_hash);
    if let Some(planned) = status.planned_spec.as_mut().filter(|_| begins && names_this) {
        planned.used_plan_hash = Some(execution.approval.plan_hash.clone());
    }
    status.approval = Some(execution.approval.clone());
    advance(status, &execution.steps, now);
    for item in &mut status.items {
        if written.contains_key(&item.name) {
            item.applied_before = None;
        }
        match written.get(&item.name) {
            Some(Written::Applied(applied)) => {
                item.applied = Some(applied.clone());
                item.wait_started_at = Some(time(now));
                item.message = "Applied; waiting for it to take effect.".to_owned();
            }
            Some(Written::Differs(applied, problem)) => {
                // The present state is remembered: only another change of it ends the failure.
                item.applied = Some(applied.clone());
                set_state(item, ItemState::Failed, problem, now);
            }
            Some(Written::Removed) => {
                item.applied = None;
                item.wait_started_at = Some(time(now));
                item.message = "Removed; waiting for the removal to take effect.".to_owned();
            }
            Some(Written::Refused(problem)) => set_state(item, ItemState::Failed, problem, now),
            None => {}
        }
    }
    recognise(status, seen, now);
    (Phase::InProgress, reason::IN_PROGRESS, summary::of_execution(&status.items))
}

/// Starts the wait of items whose write is known only from their object: the answer to the write
/// was lost, or the object was as desired from the start.
fn recognise(status: &mut Status, seen: &Observed<'_>, now: Timestamp) {
    let Some(plan) = planned(seen) else {
        return;
    };
    let begun = |item: &&mut Item| item.state != ItemState::Pending && item.operation != Operation::Remove;
    for item in status.items.iter_mut().filter(begun) {
        if item.applied.is_none() {
            item.applied = plan.item(&item.name).and_then(|fresh| fresh.live.applied.clone());
        }
        if item.applied.is_some() && item.state == ItemState::InProgress {
            item.wait_started_at.get_or_insert_with(|| time(now));
        }
    }
}

/// Puts `plan` into the status, together with the spec that it was made from.
fn show(status: &mut Status, seen: &Observed<'_>, plan: &Plan, now: Timestamp) {
    let (old, wanted) = (seen.status, seen.wanted);
    let same = old.plan_hash.as_ref() == Some(&plan.digest);
    let before = old.planned_spec.as_ref();
    // Whatever led to another plan, be it an edit or another object with this name: somebody may
    // have read the earlier one.
    let replaces = old.plan_hash.is_some() || is_made_anew(seen);
    let revised_at = match same {
        true => before.and_then(|before| before.revised_at.clone()),
        false => replaces.then(|| time(now)),
    };
    // A hash that was set while this plan waited approves it, and is not remembered here. A hash
    // that was set before is remembered, even if the same plan was executed then.
    let waits = matches!(old.phase, Some(Phase::ReviewRequired | Phase::Drifted | Phase::CompletedWithUpgrade));
    let named = wanted.approved_plan_hash.as_ref() == Some(&plan.digest);
    let remembered = before.and_then(|before| before.approved_plan_hash.clone());
    let approved = if same && waits && named { remembered } else { wanted.approved_plan_hash.clone() };
    status.planned_spec = Some(PlannedSpec {
        hash: wanted.spec_hash.clone(),
        approved_plan_hash: approved,
        replan: wanted.replan.clone(),
        revised_at,
        used_plan_hash: still_named(before.and_then(|before| before.used_plan_hash.clone()), seen),
        terms: plan.basis.terms.clone(),
    });
    if !same {
        status.planned_at = Some(time(now));
    }
    status.source_snapshot_hash = Some(hash::hexadecimal(&plan.digest).to_owned());
    status.plan_hash = Some(plan.digest.clone());
    status.planned_generation = Some(wanted.generation);
    status.planned_action = Some(wanted.action);
    status.operator_version = Some(seen.version.to_owned());
    status.applied_options.clone_from(&wanted.options);
    status.inputs = with_earlier_values(old, plan);
    if plan.is_satisfied() || seen.status.phase == Some(Phase::Ignored) {
        settle_inputs(status);
    }
    status.impact_severity = Some(plan.severity());
    status.items = plan
        .items
        .iter()
        .map(|fresh| {
            // An item that has another object now starts without a past.
            let before = old.items.iter().find(|item| item.name == fresh.name);
            let before = before.filter(|item| item.target_ref.is_same_object(&fresh.target));
            status_item(fresh, before, same, now)
        })
        .collect();
    status.left_out = plan.left_out.iter().take(LEFT_OUT_LIMIT).map(left_out).collect();
    status.summary = Some(figures::figures(plan));
}

/// Takes the current inputs as those of the last plan that was carried out.
fn settle_inputs(status: &mut Status) {
    status.inputs.retain(|input| !is_trace(input));
    status.inputs.iter_mut().for_each(|input| input.changed_from = None);
}

/// The hash that was carried out, if it is still in spec.
fn still_named(used: Option<String>, seen: &Observed<'_>) -> Option<String> {
    used.filter(|used| seen.wanted.approved_plan_hash.as_ref() == Some(used))
}

fn left_out(part: &profile_sdk::LeftOutFeature) -> LeftOut {
    LeftOut { feature: part.feature.clone(), reason: cut_text(&within_line(&part.reason), SUMMARY_LIMIT) }
}

/// An item as shown in the status.
fn status_item(fresh: &PlanItem, before: Option<&Item>, same: bool, now: Timestamp) -> Item {
    let satisfied = fresh.operation.leaves_alone();
    // The message of a finished item stays true; how its pools do later does not concern it.
    let is_set_aside = fresh.operation == Operation::Skipped;
    let finished = before.filter(|item| same && item.state == ItemState::Completed && satisfied && !is_set_aside);
    let state = match &fresh.live.rollout {
        _ if !satisfied => ItemState::Pending,
        Rollout::Waiting { .. } | Rollout::Failed(_) if finished.is_none() => ItemState::InProgress,
        Rollout::Waiting { .. } | Rollout::Failed(_) | Rollout::Done(_) => ItemState::Completed,
    };
    let is_done = satisfied && !is_set_aside && state == ItemState::Completed;
    let overridden = overridden::expected(fresh, before, is_done);
    let unforeseen = if is_done { overridden::of_item(fresh, &overridden) } else { None };
    // An owner may report later that the object is in effect, or that it is not.
    let is_told =
        (fresh.live.speaks || fresh.live.has_status) && !fresh.prune && matches!(fresh.live.rollout, Rollout::Done(_));
    let back = before.filter(|_| is_done && unforeseen.is_none());
    let back = back.and_then(|item| overridden::comes_back(fresh, &item.message));
    let kept = finished.filter(|item| !item.message.starts_with(overridden::MARK) && !is_told);
    let message = match (unforeseen, kept, &fresh.live.rollout) {
        (None, _, _) if back.is_some() => back.unwrap_or_default(),
        (Some(told), ..) => format!("{} {told}.", overridden::MARK),
        (None, Some(item), _) => item.message.clone(),
        // Its message says everything, and nothing is waited for.
        (None, None, _) if is_set_aside => fresh.review.message.clone(),
        (None, None, Rollout::Done(text) | Rollout::Waiting { text, .. } | Rollout::Failed(text)) if satisfied => {
            format!("{} {}.", fresh.review.message, message::capitalised(text.trim_end_matches('.')))
        }
        (None, None, _) => fresh.review.message.clone(),
    };
    let unmoved = before.filter(|item| item.state == state);
    Item {
        name: fresh.name.clone(),
        target_ref: short(&fresh.target),
        operation: fresh.operation,
        wave: fresh.wave,
        impact_severity: fresh.review.severity,
        diff: fresh.review.diff.clone(),
        truncated: None,
        desired_state: fresh.review.shown.is_object().then(|| fresh.review.shown.clone()),
        conflicts: fresh.review.conflicts.iter().take(CONFLICT_LIMIT).cloned().collect(),
        pools: pools(fresh, before, state),
        managed_fields: managed_fields(fresh),
        overrides: fresh
            .review
            .overrides
            .iter()
            .take(OVERRIDE_LIMIT)
            .map(|by| cut_text(&within_line(by), NOTE_LIMIT))
            .collect(),
        overridden,
        prune: fresh.prune,
        state,
        message: cut_text(&within_line(&message), MESSAGE_LIMIT),
        last_transition_time: unmoved.and_then(|item| item.last_transition_time.clone()).or_else(|| Some(time(now))),
        wait_started_at: before.filter(|_| satisfied).and_then(|item| item.wait_started_at.clone()),
        paused_since: None,
        item_hash: fresh.hash.clone(),
        // An object that is gone as planned is forgotten: if it is desired again, it is new.
        applied: fresh
            .live
            .applied
            .clone()
            .or_else(|| before.filter(|_| !(fresh.prune && satisfied)).and_then(record_of)),
        applied_before: None,
    }
}

/// The message that the condition had before, if only rollouts were examined.
fn told_before(seen: &Observed<'_>, status: &Status, name: &str) -> Option<String> {
    let known = status.conditions.iter().find(|found| found.type_ == name && found.status == "True");
    known.filter(|_| matches!(seen.world, World::Rollouts(_))).map(|found| found.message.clone())
}

/// The pools whose machines reboot. Once a removal is written, the plan no longer names its pools,
/// but their machines are still waited for.
fn pools(fresh: &PlanItem, before: Option<&Item>, state: ItemState) -> Vec<String> {
    let under_way = |item: &&Item| item.state == ItemState::InProgress && state == ItemState::InProgress;
    match before.filter(under_way).filter(|_| fresh.prune && fresh.operation == Operation::NoChange) {
        Some(item) => item.pools.clone(),
        None => fresh.review.effect.pools.keys().take(POOL_LIMIT).cloned().collect(),
    }
}

/// The record of what was written of `item`, by the current execution or before it.
fn record_of(item: &Item) -> Option<Applied> {
    item.applied.clone().or_else(|| item.applied_before.clone())
}

/// The reference within the limits of the CRD, so that even names that no server accepts can be
/// shown.
fn short(target: &TargetRef) -> TargetRef {
    TargetRef {
        api_version: cut_text(&target.api_version, 253),
        kind: cut_text(&target.kind, 63),
        name: cut_text(&target.name, 253),
        namespace: target.namespace.as_deref().map(|namespace| cut_text(namespace, 63)),
    }
}

/// Our fields. Names of list entries contain values, which may be secret.
fn managed_fields(fresh: &PlanItem) -> Vec<String> {
    let open = |path: &&object::fields::FieldPath| fresh.fields.sensitive.is_empty() || !path.names_values();
    let shown = |path: &object::fields::FieldPath| within_line(&path.dotted()).into_owned();
    fresh.fields.owned.iter().filter(open).take(FIELD_LIMIT).map(shown).collect()
}

fn advance(status: &mut Status, steps: &[Step], now: Timestamp) {
    for step in steps {
        if let Some(item) = status.items.iter_mut().find(|item| item.name == step.item) {
            set_state(item, step.state, &step.message, now);
            set_paused(item, step.paused, now);
        }
    }
}

fn set_state(item: &mut Item, state: ItemState, message: &str, now: Timestamp) {
    if item.state != state {
        item.state = state;
        item.last_transition_time = Some(time(now));
    }
    item.message = cut_text(&within_line(message), MESSAGE_LIMIT);
}

/// Records the beginning of a pause, or moves the start of the wait by the length of a pause that
/// has ended. A beginning in the future, which only an edit of the status can cause, adds nothing.
fn set_paused(item: &mut Item, paused: bool, now: Timestamp) {
    match (&item.paused_since, paused) {
        (None, true) => item.paused_since = Some(time(now)),
        (Some(since), false) => {
            let lasted = now.duration_since(since.0).max(SignedDuration::ZERO);
            let start = item.wait_started_at.as_ref().and_then(|start| start.0.checked_add(lasted).ok());
            item.wait_started_at = start.map(time);
            item.paused_since = None;
        }
        (None, false) | (Some(_), true) => {}
    }
}

/// Removes the oldest executions beyond the limit. Corrections without a person are counted in the
/// history, so the latest of them stay, as many as the limit for such corrections, however many
/// other executions came since.
fn forget_oldest(history: &mut Vec<HistoryEntry>) {
    while history.len() > HISTORY_LIMIT {
        let by_bypass = history.iter().enumerate().filter(|(_, entry)| entry.how == Some(ApprovedBy::Bypass));
        let counted: Vec<_> = by_bypass.map(|(index, _)| index).take(THRASHING.0).collect();
        let oldest = (0..history.len()).rfind(|index| !counted.contains(index)).unwrap_or_default();
        history.remove(oldest);
    }
}

/// Ends the execution, if there is one: records it in the history and uses up its approval.
fn end(status: &mut Status, seen: &Observed<'_>, outcome: Option<Outcome>, now: Timestamp) {
    let executing = status.phase == Some(Phase::InProgress);
    if let (Some(approval), Some(outcome), true) = (&status.approval, outcome, executing) {
        let is_written = |name: &str| {
            let item = status.items.iter().find(|item| item.name == name);
            item.is_some_and(|item| item.applied.is_some() || item.wait_started_at.is_some())
        };
        let entry = HistoryEntry {
            plan_hash: approval.plan_hash.clone(),
            at: time(now),
            outcome: outcome.name().to_owned(),
            approved_by: Some(approval.by.clone()),
            how: Some(approval.how),
            approved_at: Some(approval.at.clone()),
            generation: Some(approval.generation),
            operator_version: status.operator_version.clone(),
            text: approval.text.clone(),
            machines: approval.machines,
            machines_updated: seen.machines_updated,
            // Items that it did not reach were not replaced.
            replaced: approval.replaced.iter().filter(|replaced| is_written(&replaced.item)).cloned().collect(),
        };
        status.history.insert(0, entry);
        forget_oldest(&mut status.history);
        status.history.iter_mut().skip(REPLACED_IN).for_each(|entry| entry.replaced.clear());
    }
    for item in &mut status.items {
        let is_open = matches!(item.state, ItemState::Pending | ItemState::InProgress);
        if executing && is_open && item.operation.writes() && item.applied.is_none() && item.wait_started_at.is_none() {
            set_state(item, ItemState::Pending, "Not applied: the execution ended before this item was written.", now);
        }
        // Items that this execution has not written are as they were before.
        item.applied = record_of(item);
        item.applied_before = None;
    }
    if stops(Guard::ApprovalUsedUp, true) {
        status.approval = None;
    }
}

/// Records that a plan that waited for approval was replaced because the spec was edited.
fn supersede(status: &mut Status, seen: &Observed<'_>, plan: &Plan, now: Timestamp) {
    let old = seen.status;
    let waited = matches!(old.phase, Some(Phase::ReviewRequired | Phase::Drifted | Phase::CompletedWithUpgrade));
    let edited = old.planned_generation != Some(seen.wanted.generation);
    if let Some(hash) = old.plan_hash.clone().filter(|hash| waited && edited && *hash != plan.digest) {
        // Apart from executions: however often somebody edits, no execution is pushed out.
        status.superseded.insert(0, SupersededPlan { plan_hash: hash, at: time(now) });
        status.superseded.truncate(HISTORY_LIMIT);
    }
}

/// Problems that the owners of objects report, before an item is written and after it is done. The
/// last report if only rollouts were examined.
fn trouble(seen: &Observed<'_>, status: &Status) -> Option<String> {
    let Some(plan) = planned(seen) else { return told_before(seen, status, condition::OWNER_UNHEALTHY) };
    // An item in progress reports problems itself.
    let rests = |item: &&Item| matches!(item.state, ItemState::Completed | ItemState::Pending);
    let told = status.items.iter().filter(rests).filter_map(|item| {
        let fresh = plan.item(&item.name)?;
        Some(format!("{}: {}.", fresh.target, fresh.live.trouble.as_ref()?.trim_end_matches('.')))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| told.join(" "))
}

/// The inputs that changed since a plan was last carried out, for as long as that makes a
/// difference.
fn input_drift(seen: &Observed<'_>, status: &Status) -> Option<String> {
    let told = matches!(status.phase, Some(Phase::InProgress | Phase::Ignored));
    if told || planned(seen)?.is_satisfied() {
        return None;
    }
    let changed = drifted_inputs(&status.inputs);
    (!changed.is_empty()).then(|| within_line(&format!("Inputs have changed: {}.", changed.join("; "))).into_owned())
}
