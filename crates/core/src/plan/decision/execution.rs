//! The execution of an approved plan: wave by wave, intent before effect.
//!
//! An item goes through Pending, InProgress (intent stored), InProgress with `applied` (written)
//! and Completed (in effect). After a crash at any point the live object shows which of them is
//! true.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::{Approval, FailurePolicy, Item, ItemState, Operation, Phase, PoolTerms, Terms};
use crate::plan::Plan;
use crate::plan::decision::Outcome;
use crate::plan::decision::approval::Waiting;
use crate::plan::decision::changes::{changed_inputs, stale_items};
use crate::plan::decision::observed::Observed;
use crate::plan::decision::reason;
use crate::plan::decision::{Decision, Execution, Failure, LookAgain, Publication, Step};
use crate::plan::guard::{Guard, stops};
use crate::plan::items::PlanItem;
use crate::plan::items::health::Rollout;

/// How soon an item is tried again whose obstacle may disappear without a person, such as a webhook
/// that is down.
const PASSING: Duration = Duration::from_secs(10);

/// How long the conditions of an owner that has seen a change are not believed yet.
pub const SETTLING: SignedDuration = SignedDuration::from_secs(5);

/// The first step of a plan that was just approved: stores the intent of its first wave.
#[must_use]
pub(in crate::plan) fn begin(plan: &Plan, approval: Approval) -> Decision {
    let open = |item: &&PlanItem| item.changes() || !matches!(item.live.rollout, Rollout::Done(_));
    let first = plan.items.iter().filter(open).map(|item| item.wave).min();
    let steps = plan.items.iter().map(|item| match (item.changes(), &item.live.rollout) {
        (true, _) if Some(item.wave) == first => intent(&item.name),
        (true, _) => step(&item.name, ItemState::Pending, "Waiting for earlier items."),
        (false, _) if item.operation == Operation::Deferred => {
            step(&item.name, ItemState::Pending, &item.review.message)
        }
        (false, Rollout::Done(_)) => step(&item.name, ItemState::Completed, &item.review.message),
        // Unchanged, and not waited for: others decide what the machines have of it.
        (false, _) if !item.live.overridden.is_empty() => step(&item.name, ItemState::Completed, &item.review.message),
        // Unchanged, but not in effect yet: later waves wait for it all the same.
        (false, Rollout::Waiting { text, .. } | Rollout::Failed(text)) => step(&item.name, ItemState::InProgress, text),
    });
    let steps = steps.collect();
    let of_first = plan.items.iter().filter(|item| item.changes() && Some(item.wave) == first);
    let write = after_intent(of_first.map(|item| &item.name));
    Decision::Execute(Execution { approval, replaces: false, steps, write, look_again: LookAgain::AtOnce })
}

/// The next step, decided from a fresh plan.
#[must_use]
pub(in crate::plan) fn next(seen: &Observed<'_>, approval: &Approval, plan: &Plan, now: Timestamp) -> Decision {
    if let Some(end) = no_longer_approved(seen, approval, plan) {
        return Decision::Publish(end);
    }
    let open = |item: &Item| matches!(item.state, ItemState::Pending | ItemState::InProgress);
    let can_not_be_told = seen.status.items.iter().filter(|item| open(item)).find_map(|item| {
        plan.item(&item.name)
            .filter(|fresh| fresh.review.blocked_temporarily)
            .map(|fresh| format!("{}: {}", fresh.target, fresh.review.message))
    });
    // The plan was approved as a whole, so all of it is checked before anything more is written.
    let held_up = can_not_be_told.filter(|_| stops(Guard::Unknown, true));
    let standing = |item: &Item| match plan.item(&item.name) {
        Some(fresh) if fresh.review.blocked_temporarily => unknown(seen, item, &fresh.review.message, now),
        Some(fresh) if !is_written(item, fresh) && held_up.is_some() => {
            unknown(seen, item, held_up.as_deref().unwrap_or_default(), now)
        }
        Some(fresh) => match stand(seen, item, is_written(item, fresh), &fresh.live.rollout, now) {
            ItemProgress::Completed(text) => settled(seen.settling, item, fresh, text, now),
            other => other,
        },
        None => ItemProgress::Unwritten,
    };
    let next = walk(seen, approval, now, standing).unwrap_or_else(|| finish(seen, plan));
    match next {
        Decision::Execute(execution) if held_up.is_some() => {
            let soon = now.checked_add(PASSING).unwrap_or(now);
            let at = match execution.look_again {
                LookAgain::At(at) => at.min(soon),
                LookAgain::AtOnce | LookAgain::OnEvent => soon,
            };
            Decision::Execute(Execution { look_again: LookAgain::At(at), ..execution })
        }
        next => next,
    }
}

/// The next step while rollouts are in progress. It never writes.
#[must_use]
pub(in crate::plan) fn progress(
    seen: &Observed<'_>,
    approval: &Approval,
    rollouts: &BTreeMap<String, Rollout>,
    now: Timestamp,
) -> Decision {
    let standing = |item: &Item| match rollouts.get(&item.name) {
        Some(rollout) => stand(seen, item, true, rollout, now),
        None => unlooked(item),
    };
    match walk(seen, approval, now, standing) {
        Some(Decision::Execute(mut execution)) => {
            execution.write.clear();
            Decision::Execute(execution)
        }
        Some(decision) => decision,
        None => Decision::Hold,
    }
}

/// The progress of an item.
enum ItemProgress {
    Pending,
    Unwritten,
    Waiting {
        text: String,
        paused: bool,
    },
    /// In effect according to its owner, which is believed once `until` has passed.
    Settling {
        text: String,
        until: Timestamp,
    },
    Completed(String),
    Failed(String),
}

fn stand(seen: &Observed<'_>, item: &Item, written: bool, rollout: &Rollout, now: Timestamp) -> ItemProgress {
    if !written {
        return unlooked(item);
    }
    match (item.state, rollout) {
        (ItemState::Completed, _) => ItemProgress::Completed(item.message.clone()),
        (ItemState::Failed, _) => ItemProgress::Failed(item.message.clone()),
        (ItemState::Pending | ItemState::InProgress, Rollout::Done(text)) => ItemProgress::Completed(text.clone()),
        (ItemState::Pending | ItemState::InProgress, Rollout::Failed(text)) => ItemProgress::Failed(text.clone()),
        (ItemState::Pending | ItemState::InProgress, Rollout::Waiting { text, paused }) => {
            let overdue = deadline(seen, item, now).is_some_and(|deadline| deadline <= now);
            if stops(Guard::TimeIsUp, overdue && !stops(Guard::Paused, *paused)) {
                ItemProgress::Failed(format!("Did not take effect within spec.waitTimeout: {text}"))
            } else {
                ItemProgress::Waiting { text: text.clone(), paused: *paused }
            }
        }
    }
}

/// The progress of an item that is in effect: Settling until its owner has had the time to see the
/// change. HyperConverged first publishes that all is well, and the truth up to three seconds later
/// (observed with kubevirt/hyperconverged-cluster-operator at 03da3cff7325).
fn settled(settling: SignedDuration, item: &Item, fresh: &PlanItem, text: String, now: Timestamp) -> ItemProgress {
    let may_speak = fresh.live.speaks || fresh.live.has_status;
    let written = item.wait_started_at.as_ref().filter(|_| may_speak && item.state == ItemState::InProgress);
    // A controller that was away sees the change long after it was written.
    let since = written.map(|written| fresh.live.in_effect_since.map_or(written.0, |since| since.max(written.0)));
    match since.and_then(|since| since.checked_add(settling).ok()).filter(|until| *until > now) {
        Some(until) => ItemProgress::Settling {
            text: "Applied; giving its owner a moment to observe the change".to_owned(),
            until,
        },
        None => ItemProgress::Completed(text),
    }
}

/// The progress of an item whose state can't be determined at the moment: it is waited for.
fn unknown(seen: &Observed<'_>, item: &Item, why: &str, now: Timestamp) -> ItemProgress {
    match item.state {
        ItemState::InProgress if deadline(seen, item, now).is_some_and(|deadline| deadline <= now) => {
            ItemProgress::Failed(format!("Could not be confirmed to be in effect within spec.waitTimeout: {why}"))
        }
        ItemState::InProgress => ItemProgress::Waiting { text: why.to_owned(), paused: false },
        ItemState::Pending | ItemState::Completed | ItemState::Failed => unlooked(item),
    }
}

/// The progress of an item as recorded in the status, without looking at its object.
fn unlooked(item: &Item) -> ItemProgress {
    match item.state {
        ItemState::Pending if item.operation.writes() => ItemProgress::Pending,
        ItemState::Pending | ItemState::Completed => ItemProgress::Completed(item.message.clone()),
        ItemState::InProgress => ItemProgress::Unwritten,
        ItemState::Failed => ItemProgress::Failed(item.message.clone()),
    }
}

/// The time when the item's time limit ends. A pause that is going on, or has just ended, is not
/// counted.
fn deadline(seen: &Observed<'_>, item: &Item, now: Timestamp) -> Option<Timestamp> {
    let limit = seen.wanted.wait_timeout?;
    // Before it is written, the time runs from its intent.
    let start = item.wait_started_at.as_ref().or(item.last_transition_time.as_ref())?.0;
    let paused = item.paused_since.as_ref().map(|since| now.duration_since(since.0)).unwrap_or_default();
    let paused = paused.max(SignedDuration::ZERO);
    start.checked_add(limit).ok()?.checked_add(paused).ok()
}

/// Goes through the waves up to the first unfinished one. `None` if all are finished.
fn walk(
    seen: &Observed<'_>,
    approval: &Approval,
    now: Timestamp,
    standing: impl Fn(&Item) -> ItemProgress,
) -> Option<Decision> {
    let items = &seen.status.items;
    let waves: BTreeSet<u32> = items.iter().map(|item| item.wave).collect();
    let mut steps = Vec::new();
    let mut failed = Vec::new();
    for wave in waves {
        let (mut pending, mut unwritten, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        let mut settling = Vec::new();
        let of_wave: Vec<_> = items.iter().filter(|item| item.wave == wave).collect();
        for item in of_wave.iter().filter(|item| item.operation != Operation::Deferred) {
            match standing(item) {
                ItemProgress::Pending => pending.push(item),
                ItemProgress::Unwritten => unwritten.push(item),
                ItemProgress::Waiting { text, paused } => {
                    steps.push(Step { paused, ..step(&item.name, ItemState::InProgress, &text) });
                    waiting.push((item, paused));
                }
                ItemProgress::Settling { text, until } => {
                    steps.push(step(&item.name, ItemState::InProgress, &text));
                    settling.push(until);
                    waiting.push((item, false));
                }
                ItemProgress::Completed(text) => steps.push(step(&item.name, ItemState::Completed, &text)),
                ItemProgress::Failed(text) => {
                    failed.push(format!("{}: {}", item.target_ref, text.trim_end_matches('.')));
                    steps.push(step(&item.name, ItemState::Failed, &text));
                }
            }
        }
        let aborts = !failed.is_empty() && seen.wanted.failure_policy == FailurePolicy::Abort;
        if stops(Guard::Aborted, aborts) {
            return Some(fail(Phase::Failed, &failed, steps));
        }
        let execute = |steps, write, look_again| {
            Some(Decision::Execute(Execution { approval: approval.clone(), replaces: false, steps, write, look_again }))
        };
        if !pending.is_empty() {
            steps.extend(pending.iter().map(|item| intent(&item.name)));
            let write = after_intent(pending.iter().map(|item| &item.name));
            return execute(steps, write, LookAgain::AtOnce);
        }
        if !unwritten.is_empty() {
            // Items that reboot machines come last and together: pools wait for five seconds after
            // the first change before they render.
            unwritten.sort_by_key(|item| (!item.pools.is_empty(), item.operation == Operation::Remove));
            let write = unwritten.iter().map(|item| item.name.clone()).collect();
            return execute(steps, write, LookAgain::AtOnce);
        }
        if stops(Guard::WaveUnfinished, !waiting.is_empty()) {
            let running = waiting.iter().filter(|(_, paused)| !paused);
            let deadlines = running.filter_map(|(item, _)| deadline(seen, item, now));
            let earliest = deadlines.chain(settling).filter(|at| *at > now).min();
            return execute(steps, Vec::new(), earliest.map_or(LookAgain::OnEvent, LookAgain::At));
        }
        let deferred = of_wave.iter().any(|item| item.operation == Operation::Deferred);
        if stops(Guard::Deferred, deferred) {
            // Later waves must not start before it is applied.
            break;
        }
    }
    (!failed.is_empty()).then(|| fail(Phase::CompletedWithErrors, &failed, steps))
}

fn finish(seen: &Observed<'_>, plan: &Plan) -> Decision {
    let deferred: Vec<_> = seen.status.items.iter().filter(|item| item.operation == Operation::Deferred).collect();
    let (phase, reason, detail, remedy, ended) = if !deferred.is_empty() && !plan.is_satisfied() {
        let names: Vec<_> = deferred.iter().map(|item| item.target_ref.to_string()).collect();
        let detail = format!("Earlier items are applied, so {} can be previewed now.", names.join(", "));
        let remedy = Waiting::NotApproved.remedy().into_owned();
        (Phase::ReviewRequired, reason::PLAN_READY, detail, remedy, Outcome::Completed)
    } else if plan.is_satisfied() {
        (Phase::Completed, reason::COMPLETED, String::new(), String::new(), Outcome::Completed)
    } else {
        (Phase::ReviewRequired, reason::PLAN_STALE, stale_items(seen.status, plan), String::new(), Outcome::Stale)
    };
    Decision::Publish(Publication { phase, reason, detail, remedy, news: true, ended: Some(ended) })
}

fn fail(phase: Phase, failed: &[String], steps: Vec<Step>) -> Decision {
    let message = format!(
        "{}. Fix the cause, then edit the spec or set the annotation advisor.kubevirt.io/replan to a new value.",
        failed.join("; ")
    );
    Decision::Fail(Failure { phase, message, steps })
}

/// Why the approval no longer covers what is left to do, if it does not. Written items count as
/// reviewed; unwritten ones must be exactly as reviewed, and so must profile, options and inputs.
fn no_longer_approved(seen: &Observed<'_>, approval: &Approval, plan: &Plan) -> Option<Publication> {
    let items = &seen.status.items;
    let stale = |reason, detail: String| {
        let remedy = Waiting::NotApproved.remedy().into_owned();
        Some(Publication {
            phase: Phase::ReviewRequired,
            reason,
            detail,
            remedy,
            news: true,
            ended: Some(Outcome::Stale),
        })
    };
    let drift: Vec<_> = plan
        .items
        .iter()
        .filter(|fresh| items.iter().any(|item| item.name == fresh.name && item.applied.is_some()))
        .flat_map(|fresh| fresh.live.moved.iter().map(move |moved| format!("{}: {}.", fresh.target, moved.text)))
        .collect();
    if stops(Guard::WrittenMoved, !drift.is_empty()) {
        let (phase, reason) = (Phase::Drifted, reason::DRIFT_DETECTED);
        let (detail, remedy) = (drift.join(" "), String::new());
        return Some(Publication { phase, reason, detail, remedy, news: true, ended: Some(Outcome::Stale) });
    }
    let same_items = items.len() == plan.items.len() && items.iter().all(|item| plan.item(&item.name).is_some());
    let hashes = items.iter().map(|item| match plan.item(&item.name) {
        // An earlier item changes its preview; it is not written under this plan.
        Some(_) if item.operation == Operation::Deferred => item.item_hash.as_str(),
        // Nothing is written until it can be previewed.
        Some(fresh) if fresh.review.blocked_temporarily => item.item_hash.as_str(),
        Some(fresh) if stops(Guard::UnwrittenMoved, is_unwritten(item, fresh)) => fresh.hash.as_str(),
        _ => item.item_hash.as_str(),
    });
    let named = items.iter().zip(hashes).map(|(item, hash)| (item.name.as_str(), item.wave, hash));
    let named: Vec<_> = named.collect();
    // An edit of the terms is in force at once and makes no other plan of an execution. A CRD that
    // is older than this program does not store the terms: then the current ones are used.
    let approved_terms = seen.status.planned_spec.as_ref().map(|planned| in_force(&planned.terms, items, plan));
    let covers = |terms| plan.basis.digest_under(terms, named.iter().copied()) == approval.plan_hash;
    let approved = same_items && (approved_terms.as_ref().is_some_and(covers) || covers(&plan.basis.terms));
    if !stops(Guard::OtherDigest, !approved) {
        return None;
    }
    if seen.status.applied_options != seen.wanted.options {
        return stale(reason::OPTIONS_CHANGED, "Execution has stopped because the options were changed.".to_owned());
    }
    let inputs = changed_inputs(seen.status, plan);
    if inputs.is_empty() {
        stale(reason::PLAN_STALE, format!("Execution has stopped. {}", stale_items(seen.status, plan)))
    } else {
        let detail = format!("Execution has stopped because inputs have changed: {}.", inputs.join("; "));
        stale(reason::INPUT_DEPENDENCY_DRIFT, detail)
    }
}

/// The `approved` terms, but with the current ones of every pool whose machines an unwritten item
/// reboots or drains: somebody may have let more of them reboot at a time.
fn in_force(approved: &Terms, items: &[Item], plan: &Plan) -> Terms {
    let mut terms = approved.clone();
    let fresh = items.iter().filter_map(|item| Some((item, plan.item(&item.name)?)));
    let unwritten = fresh.filter(|(item, fresh)| is_unwritten(item, fresh));
    for pool in unwritten.flat_map(|(_, fresh)| fresh.review.effect.disturbed()).map(|(pool, _)| pool) {
        let mut now = plan.basis.terms.pools.get(pool).cloned().unwrap_or_default();
        // A machine that fails during the execution is waited for and makes no other plan of what
        // comes after it.
        now.degraded = approved.pools.get(pool).is_some_and(|approved| approved.degraded);
        match now == PoolTerms::default() {
            false => drop(terms.pools.insert(pool.clone(), now)),
            true => drop(terms.pools.remove(pool)),
        }
    }
    terms
}

/// Whether the item's object is as it should be: its write is recorded, or the object is unchanged,
/// either because the answer to the write was lost or from the start.
fn is_written(item: &Item, fresh: &PlanItem) -> bool {
    let as_wanted = item.state == ItemState::InProgress && fresh.operation == Operation::NoChange;
    // A removal records only that it is waited for.
    let is_removed = item.operation == Operation::Remove && item.wait_started_at.is_some();
    (item.operation.writes() && item.applied.is_some()) || is_removed || as_wanted
}

/// Whether the item must still be exactly as reviewed, because nothing of it has been written.
fn is_unwritten(item: &Item, fresh: &PlanItem) -> bool {
    !item.operation.writes() || (!is_written(item, fresh) && item.state != ItemState::Failed)
}

/// The items to write in the step that stores their intent: none.
fn after_intent<'a>(items: impl Iterator<Item = &'a String>) -> Vec<String> {
    if stops(Guard::NoIntent, true) { Vec::new() } else { items.cloned().collect() }
}

fn intent(item: &str) -> Step {
    step(item, ItemState::InProgress, "About to be written.")
}

fn step(item: &str, state: ItemState, message: &str) -> Step {
    Step { item: item.to_owned(), state, message: message.to_owned(), paused: false }
}

#[cfg(test)]
mod tests;
