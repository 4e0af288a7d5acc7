//! The decision: from what was observed to what happens next. One exhaustive `match`, readable in
//! one sitting.
//!
//! **Invariants**, held by the tests here and by the model check (`plan::model`): targets are
//! written only by [`Decision::Execute`] with a non-empty `write`, which needs action Apply, an
//! approval of exactly this plan, an object that is not being deleted, and an intent that was
//! stored before.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::api::{Action, Approval, ApprovedBy, Item, ItemState, Operation, Phase, VirtPlatformConfigStatus};
use crate::plan::Plan;
use crate::plan::decision::Outcome;
use crate::plan::decision::approval;
use crate::plan::decision::changes::{changed_inputs, has_same_inputs, stale_items};
use crate::plan::decision::execution;
use crate::plan::decision::observed::{Observed, World};
use crate::plan::decision::reason;
use crate::plan::decision::{Decision, Execution, Publication};
use crate::plan::guard::{Guard, stops};
use crate::plan::items::health::Rollout;
use approval::Waiting;

/// Decides what happens next.
#[must_use]
pub fn decide(seen: &Observed<'_>, now: Timestamp) -> Decision {
    if stops(Guard::BeingDeleted, seen.wanted.deleting) {
        return Decision::Leave;
    }
    if stops(Guard::Ignored, seen.wanted.action == Action::Ignore) {
        return Decision::StandAside;
    }
    let executing = seen.status.approval.as_ref().filter(|_| seen.status.phase == Some(Phase::InProgress));
    match (&seen.world, executing) {
        (World::Unread, _) => Decision::Hold,
        (World::Invalid(problem), _) => Decision::Reject(problem.clone()),
        (World::Missing(missing), _) => Decision::AwaitPrerequisites(missing.clone()),
        (World::Planned(plan), None) => settle(seen, plan, now),
        (World::Planned(plan), Some(approval)) if is_withdrawn(seen, approval) => withdrawn(seen, plan),
        (World::Planned(plan), Some(approval)) => match execution::next(seen, approval, plan, now) {
            Decision::Publish(end) if end.reason == reason::OPTIONS_CHANGED => replaced(seen, plan, end, now),
            next => next,
        },
        (World::Rollouts(rollouts), Some(approval)) if !is_withdrawn(seen, approval) => {
            execution::progress(seen, approval, rollouts, now)
        }
        (World::Rollouts(_), Some(_) | None) => Decision::Hold,
    }
}

/// Whether the user has withdrawn the approval of what is being executed: the action is no longer
/// Apply, the hash that approved it is no longer in spec, or the bypass that approved it was
/// switched off. Only the hash proves that the user gave the approval: a status can be forged.
fn is_withdrawn(seen: &Observed<'_>, approval: &Approval) -> bool {
    let wanted = seen.wanted;
    let names_another = wanted.approved_plan_hash.as_ref() != Some(&approval.plan_hash);
    stops(Guard::ActionWithdrawn, wanted.action != Action::Apply)
        || stops(Guard::HashWithdrawn, approval.how == ApprovedBy::Hash && names_another)
        || stops(Guard::BypassWithdrawn, approval.how == ApprovedBy::Bypass && !wanted.bypass)
}

/// The next step if an edit of the options ended the execution: with an automatic policy, the
/// edited plan is carried out instead.
fn replaced(seen: &Observed<'_>, plan: &Plan, end: Publication, now: Timestamp) -> Decision {
    let can_begin = plan.blocked().next().is_none() && !plan.is_satisfied();
    match approval::granted(seen, plan, now) {
        Ok(approval) if can_begin && approval.how == ApprovedBy::Policy => match execution::begin(plan, approval) {
            Decision::Execute(execution) => Decision::Execute(Execution { replaces: true, ..execution }),
            other => other,
        },
        Ok(_) | Err(_) => Decision::Publish(end),
    }
}

/// The next step if the approval was withdrawn in the middle of an execution: stop, report what was
/// written, show what is left.
fn withdrawn(seen: &Observed<'_>, plan: &Plan) -> Decision {
    let status = seen.status;
    let is_written = |item: &&Item| {
        item.applied.is_some() || (item.operation == Operation::Remove && item.wait_started_at.is_some())
    };
    let written = status.items.iter().filter(|item| item.operation.writes()).filter(is_written);
    let done: Vec<_> = written.map(|item| item.name.as_str()).collect();
    let detail = match done.as_slice() {
        [] => "Execution was stopped before anything was written.".to_owned(),
        done => format!("Execution was stopped; already written: {}.", done.join(", ")),
    };
    let (phase, reason, detail, remedy) = if plan.is_satisfied() {
        let (phase, reason, detail) = satisfied(status, plan);
        (phase, reason, detail, String::new())
    } else {
        let named = seen.wanted.approved_plan_hash.as_ref();
        let names_another = named.is_some_and(|named| *named != plan.digest);
        let waiting = match seen.wanted.action {
            Action::Apply => Waiting::NotApproved,
            Action::DryRun | Action::Ignore => Waiting::NotAsked { names_another },
        };
        (Phase::ReviewRequired, reason::WITHDRAWN, detail, waiting.remedy().into_owned())
    };
    Decision::Publish(Publication { phase, reason, detail, remedy, news: true, ended: Some(Outcome::Withdrawn) })
}

/// The next step if nothing is being executed: show the plan, or begin if it is approved.
fn settle(seen: &Observed<'_>, plan: &Plan, now: Timestamp) -> Decision {
    let failed = matches!(seen.status.phase, Some(Phase::Failed | Phase::CompletedWithErrors));
    if stops(Guard::CauseRemains, failed && !cause_is_gone(seen, plan)) {
        return Decision::Hold;
    }
    let publish = |phase, reason, detail| {
        Decision::Publish(Publication { phase, reason, detail, remedy: String::new(), news: false, ended: None })
    };
    if stops(Guard::BlockedItem, plan.blocked().next().is_some()) {
        return publish(Phase::ReviewRequired, reason::BLOCKED, String::new());
    }
    if plan.is_satisfied() {
        let (phase, reason, detail) = satisfied(seen.status, plan);
        return publish(phase, reason, detail);
    }
    match approval::granted(seen, plan, now) {
        Ok(approval) => execution::begin(plan, approval),
        Err(waiting) => {
            let (phase, reason, detail) = why_waiting(seen, plan);
            // The other phases already say how to leave them.
            let says =
                phase == Phase::ReviewRequired || matches!(waiting, Waiting::Thrashing | Waiting::NamesAnother { .. });
            let how = if says { waiting.remedy() } else { Cow::Borrowed("") };
            let news = waiting == Waiting::Thrashing;
            let rivals = if news { rivals(plan) } else { String::new() };
            let remedy = [rivals.as_str(), &how].join(" ").trim().to_owned();
            Decision::Publish(Publication { phase, reason, detail, remedy, news, ended: None })
        }
    }
}

/// The phase of a plan that changes nothing: Completed once everything is in effect, and it stays
/// so whatever the pools do later for other reasons. Nothing must be approved or written.
fn satisfied(status: &VirtPlatformConfigStatus, plan: &Plan) -> (Phase, &'static str, String) {
    let was = matches!(status.phase, Some(Phase::Completed | Phase::CompletedWithUpgrade))
        && status.plan_hash.as_ref() == Some(&plan.digest);
    let unfinished: Vec<_> = plan
        .items
        .iter()
        .filter_map(|item| match &item.live.rollout {
            Rollout::Done(_) => None,
            Rollout::Waiting { text, .. } | Rollout::Failed(text) => {
                Some(format!("{}: {}.", item.target, text.trim_end_matches('.')))
            }
        })
        .collect();
    if was || unfinished.is_empty() {
        (Phase::Completed, reason::COMPLETED, String::new())
    } else {
        (Phase::InProgress, reason::IN_PROGRESS, unfinished.join(" "))
    }
}

/// Whether the cause of a failed execution may be gone: the spec, an input, or the target of a
/// failed item has changed.
fn cause_is_gone(seen: &Observed<'_>, plan: &Plan) -> bool {
    let (status, wanted) = (seen.status, seen.wanted);
    let planned = status.planned_spec.as_ref();
    let target_moved = status.items.iter().filter(|item| item.state == ItemState::Failed).any(|item| {
        plan.item(&item.name).is_none_or(|fresh| match item.applied {
            Some(_) => !fresh.live.moved.is_empty(),
            // If it can't be previewed, it does not count as changed.
            None => fresh.hash != item.item_hash && !fresh.review.blocked_temporarily,
        })
    });
    // A failure without failed items came from the spec or an input; that a plan could be made
    // shows that it is gone.
    let of_an_item = status.items.iter().any(|item| item.state == ItemState::Failed);
    !of_an_item
        || status.observed_generation != Some(wanted.generation)
        || planned.and_then(|planned| planned.replan.as_ref()) != wanted.replan.as_ref()
        || !has_same_inputs(status, plan)
        || target_moved
}

/// The phase of a plan that holds changes and may not be executed yet, with its reason and detail.
fn why_waiting(seen: &Observed<'_>, plan: &Plan) -> (Phase, &'static str, String) {
    let status = seen.status;
    let drift: Vec<_> =
        plan.items.iter().flat_map(|item| item.live.moved.iter().map(move |moved| (item, moved))).collect();
    if seen.wanted.action == Action::Apply && !drift.is_empty() {
        let detail: Vec<_> = drift.iter().map(|(item, moved)| format!("{}: {}.", item.target, moved.text)).collect();
        return (Phase::Drifted, reason::DRIFT_DETECTED, detail.join(" "));
    }
    let known = status.plan_hash.is_some() && status.phase != Some(Phase::Ignored);
    let inputs = changed_inputs(status, plan);
    if status.plan_hash.as_ref() == Some(&plan.digest)
        && status.phase == Some(Phase::ReviewRequired)
        && let Some(reason) = remembered_reason(status)
    {
        return (Phase::ReviewRequired, reason, String::new());
    }
    if known && status.applied_options != seen.wanted.options {
        (Phase::ReviewRequired, reason::OPTIONS_CHANGED, "The options have changed since the last plan.".to_owned())
    } else if known && !inputs.is_empty() {
        (Phase::ReviewRequired, reason::INPUT_DEPENDENCY_DRIFT, format!("Inputs have changed: {}.", inputs.join("; ")))
    } else if known && status.planned_spec.as_ref().is_some_and(|planned| planned.hash != seen.wanted.spec_hash) {
        (Phase::ReviewRequired, reason::PLAN_STALE, "The spec has been edited since the last plan.".to_owned())
    } else if is_upgrade(seen) {
        let from = status.operator_version.as_deref().unwrap_or("unknown");
        let detail = format!("Version {} plans this differently than version {from} did.", seen.version);
        (Phase::CompletedWithUpgrade, reason::LOGIC_CHANGED, detail)
    } else if known && status.plan_hash.as_ref() != Some(&plan.digest) {
        (Phase::ReviewRequired, reason::PLAN_STALE, stale_items(status, plan))
    } else {
        (Phase::ReviewRequired, reason::PLAN_READY, String::new())
    }
}

/// The managers of the fields that would be restored, as far as the objects record them.
fn rivals(plan: &Plan) -> String {
    let moved = plan.items.iter().filter(|item| !item.live.moved.is_empty());
    let mut names: Vec<_> =
        moved.flat_map(|item| item.review.conflicts.iter().map(|conflict| conflict.manager.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { String::new() } else { format!("Conflicting field managers: {}.", names.join(", ")) }
}

/// Whether only a change of the operator's logic can explain that a finished plan is no longer
/// satisfied.
fn is_upgrade(seen: &Observed<'_>) -> bool {
    let finished = matches!(seen.status.phase, Some(Phase::Completed | Phase::CompletedWithUpgrade));
    finished && seen.status.operator_version.as_deref().is_some_and(|version| version != seen.version)
}

/// The current reason of ReviewRequired, as the constant.
fn remembered_reason(status: &VirtPlatformConfigStatus) -> Option<&'static str> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == Phase::ReviewRequired.name())?;
    [reason::PLAN_READY, reason::PLAN_STALE, reason::OPTIONS_CHANGED, reason::INPUT_DEPENDENCY_DRIFT, reason::WITHDRAWN]
        .into_iter()
        .find(|reason| *reason == condition.reason)
}

#[cfg(test)]
mod defects;
#[cfg(test)]
mod meanwhile;
#[cfg(test)]
mod recreated;
#[cfg(test)]
pub(in crate::plan) mod tests;
#[cfg(test)]
mod wording;
