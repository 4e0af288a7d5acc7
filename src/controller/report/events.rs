//! Events: what belongs into the audit trail, and what of a new status may wait. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use advisor_cluster::Note;
use advisor_core::api::{Approval, Item, ItemState, Operation, Phase, VirtPlatformConfigStatus as Status};
use advisor_core::plan::decision::reason::{condition, event};
use advisor_core::plan::items::message;

/// The shortest time between two writes that only report progress: a rollout of hundreds of
/// machines reports every second.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// The shortest time between two versions of a waiting plan, however many objects change at once.
const REVISION_INTERVAL: Duration = Duration::from_secs(1);

/// Events of changes that are older than this are not missing: a process is back by then. Much
/// shorter than the hour for which events are kept, so that none is recorded a second time.
const LOST_AT_MOST: Duration = Duration::from_secs(300);

/// How long a change must wait that only reports progress, or shows a plan that keeps changing by
/// itself. `None` if it can, or must, be written now.
pub(super) fn pause(old: &Status, new: &Status, written_at: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let waits = matches!(new.phase, Some(Phase::ReviewRequired | Phase::Drifted));
    let interval = if new.phase == Some(Phase::InProgress) && without_texts(old) == without_texts(new) {
        PROGRESS_INTERVAL
    } else if waits && old.phase == new.phase && old.observed_generation == new.observed_generation {
        REVISION_INTERVAL
    } else {
        return None;
    };
    let passed = now.duration_since(written_at?);
    interval.checked_sub(passed.unsigned_abs()).filter(|rest| !rest.is_zero())
}

/// `status` without the texts that report progress.
fn without_texts(status: &Status) -> Status {
    let mut status = status.clone();
    status.items.iter_mut().for_each(|item| item.message.clear());
    status.conditions.iter_mut().for_each(|condition| condition.message.clear());
    status.summary.get_or_insert_default().text.clear();
    status
}

/// The events of the change from `old` to `new`, for the audit trail.
pub(super) fn notes(old: &Status, new: &Status) -> Vec<Note> {
    let mut notes = Vec::new();
    let plan = new.plan_hash.clone().unwrap_or_default();
    for item in &new.items {
        let before = old.items.iter().find(|before| before.name == item.name);
        // Only an execution writes: an item that a plan finds unchanged was not written by us.
        if old.phase == Some(Phase::InProgress) && before.is_some_and(|before| before.state != item.state) {
            notes.extend(item_note(item));
        }
    }
    for name in [condition::OWNER_UNHEALTHY, condition::OVERRIDDEN] {
        match (condition_note(old, name), condition_note(new, name)) {
            (None, Some(begins)) => notes.push(begins),
            (Some(_), None) if is_looked_at(old, new, name) => notes.extend(over_note(new, name)),
            (Some(_), Some(_) | None) | (None, None) => {}
        }
    }
    let planned = old.plan_hash != new.plan_hash;
    if old.phase != new.phase || (planned && new.phase != Some(Phase::Completed)) {
        // Advertising a profile is not an event.
        notes.extend(phase_note(&plan, new).filter(|note| note.reason != Phase::Ignored.name() || old.phase.is_some()));
    }
    notes
}

/// The events that a crash between `status` and its events may have lost: those from just before
/// `now`. Recorded again, each is the same event.
pub(super) fn latest_notes(status: &Status, now: Timestamp) -> Vec<Note> {
    let plan = status.plan_hash.clone().unwrap_or_default();
    let is_recent = |at: &Time| now.duration_since(at.0).unsigned_abs() <= LOST_AT_MOST;
    let changed = status.items.iter().filter(|item| {
        // Written by an execution, rather than found unchanged.
        let by_us = item.wait_started_at.is_some() || item.state == ItemState::Failed;
        by_us && item.last_transition_time.as_ref().is_some_and(is_recent)
    });
    let mut notes: Vec<_> = changed.filter_map(item_note).collect();
    let of_plan = status.planned_at.as_ref().filter(|_| status.phase != Some(Phase::Completed));
    if phase_since(status).is_some_and(is_recent) || of_plan.is_some_and(is_recent) {
        notes.extend(phase_note(&plan, status).filter(|note| note.reason != Phase::Ignored.name()));
    }
    notes
}

/// The key of an event. The stored time of the transition identifies the occurrence, even after a
/// crash.
fn key(plan: &str, what: &str, since: Option<&Time>) -> String {
    format!("{plan}/{what}/{}", since.map(|since| since.0.to_string()).unwrap_or_default())
}

/// When the present phase began.
fn phase_since(status: &Status) -> Option<&Time> {
    let holds = status.phase.map(Phase::name);
    let condition = status.conditions.iter().find(|condition| Some(condition.type_.as_str()) == holds);
    condition.map(|condition| &condition.last_transition_time)
}

fn phase_note(plan: &str, status: &Status) -> Option<Note> {
    let text = status.summary.as_ref().map(|summary| summary.text.clone()).unwrap_or_default();
    // Another plan with nothing left to do is not an event.
    let plan = if status.phase == Some(Phase::Completed) { "" } else { plan };
    let key = |what: &str| key(plan, what, phase_since(status));
    let note = |reason, action, warning| Some(Note { reason, action, warning, text: text.clone(), key: key(reason) });
    match status.phase? {
        Phase::ReviewRequired => note(Phase::ReviewRequired.name(), "Plan", false),
        // Without an approval nothing is executed: the plan is merely not in effect yet.
        Phase::InProgress => status.approval.as_ref().map(|approval| Note {
            reason: event::APPROVED,
            action: "Approve",
            warning: false,
            text: approved(status, approval),
            key: key(event::APPROVED),
        }),
        Phase::Completed => note(Phase::Completed.name(), "Report", false),
        Phase::CompletedWithErrors => note(Phase::CompletedWithErrors.name(), "Report", true),
        Phase::CompletedWithUpgrade => note(condition::UPGRADE_AVAILABLE, "Plan", false),
        Phase::Drifted => note(Phase::Drifted.name(), "Report", true),
        Phase::Failed => note(Phase::Failed.name(), "Report", true),
        Phase::PrerequisiteFailed => note(Phase::PrerequisiteFailed.name(), "Plan", true),
        Phase::Ignored => note(Phase::Ignored.name(), "Report", false),
        Phase::Pending | Phase::Drafting => None,
    }
}

/// Whether `new` still covers the objects for which `old` reported `name`. Skipped, blocked,
/// deferred and unfinished items report nothing; and what machines have is reported only for
/// finished ones.
fn is_looked_at(old: &Status, new: &Status, name: &str) -> bool {
    let is_done = matches!(new.phase, Some(Phase::Completed | Phase::CompletedWithUpgrade));
    let waits = matches!(new.phase, Some(Phase::ReviewRequired | Phase::Drifted)) && name == condition::OWNER_UNHEALTHY;
    let is_silent = |item: &Item| {
        matches!(item.operation, Operation::Skipped | Operation::Blocked | Operation::Deferred)
            || item.state == ItemState::InProgress
    };
    let says = |before: &Item| new.items.iter().any(|item| item.name == before.name && !is_silent(item));
    (is_done || waits) && old.items.iter().filter(|item| !is_silent(item)).all(says)
}

/// The event that such a condition has ended.
fn over_note(status: &Status, name: &'static str) -> Option<Note> {
    let found = status.conditions.iter().find(|found| found.type_ == name)?;
    let (reason, text) = match name {
        condition::OWNER_UNHEALTHY => (event::OWNER_HEALTHY, "Owners no longer report that something is wrong."),
        _ => (
            event::OVERRIDDEN_NO_MORE,
            "Machines have everything that was applied again, except for overrides that the approved plan announced.",
        ),
    };
    let key = key("", reason, Some(&found.last_transition_time));
    Some(Note { reason, action: "Report", warning: false, text: text.to_owned(), key })
}

/// The event that an undesired condition holds, while it does.
fn condition_note(status: &Status, name: &'static str) -> Option<Note> {
    let found = status.conditions.iter().find(|found| found.type_ == name && found.status == "True")?;
    let key = key("", name, Some(&found.last_transition_time));
    Some(Note { reason: name, action: "Report", warning: true, text: found.message.clone(), key })
}

fn item_note(item: &Item) -> Option<Note> {
    if item.operation == Operation::Skipped {
        return None;
    }
    let (reason, warning) = match item.state {
        ItemState::Completed => (event::ITEM_APPLIED, false),
        ItemState::Failed => (event::ITEM_FAILED, true),
        ItemState::Pending | ItemState::InProgress => return None,
    };
    // After its execution there is nothing left to change, which is no news here.
    let message = item.message.strip_prefix(message::NO_CHANGE).map(|rest| rest.trim_start_matches([':', '.', ' ']));
    let text = format!("{}: {}.", item.target_ref, message.unwrap_or(&item.message).trim_end_matches('.'));
    // The same for every plan that may be on display by then.
    let key = key("", &item.name, item.last_transition_time.as_ref());
    Some(Note { reason, action: "Apply", warning, text, key })
}

fn approved(status: &Status, approval: &Approval) -> String {
    let plan = status.summary.as_ref().map(|summary| summary.plan.as_str()).unwrap_or_default();
    // Whoever edits the object chooses the name of the manager: it names a program, not a person.
    format!("Plan {plan} was approved by rule {}, in an edit of field manager {:?}.", approval.how, approval.by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::api::Summary;
    use advisor_core::plan::status::conditions::{self, PhaseReport};

    fn status(phase: Phase, text: &str) -> Status {
        let summary = Summary { text: text.to_owned(), ..Summary::default() };
        Status { phase: Some(phase), summary: Some(summary), ..Status::default() }
    }

    #[test]
    fn only_texts_of_a_running_execution_wait() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (one, two) = (status(Phase::InProgress, "1 of 3"), status(Phase::InProgress, "2 of 3"));
        assert_eq!(pause(&one, &two, Some(at(0)), at(4)), Some(Duration::from_secs(6)));
        assert_eq!(pause(&one, &two, Some(at(0)), at(10)), None);
        assert_eq!(pause(&one, &two, None, at(4)), None, "the first progress is told at once");
        assert_eq!(pause(&one, &status(Phase::Completed, ""), Some(at(0)), at(1)), None);
    }

    #[test]
    fn a_plan_that_changes_by_itself_is_shown_once_a_second() {
        let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
        let (one, two) = (status(Phase::Drifted, "a"), status(Phase::Drifted, "a and b"));
        assert_eq!(pause(&one, &two, Some(at(0)), at(400)), Some(Duration::from_millis(600)));
        assert_eq!(pause(&one, &two, Some(at(0)), at(1000)), None);
        assert_eq!(pause(&status(Phase::Completed, ""), &one, Some(at(0)), at(1)), None, "the first is told at once");
        let mut edited = two;
        edited.observed_generation = Some(2);
        assert_eq!(pause(&one, &edited, Some(at(0)), at(1)), None, "an edit is answered at once");
    }

    /// The end of a problem is reported only for objects that were examined: not if an item is
    /// skipped now, is blocked, or belongs to another plan.
    #[test]
    fn an_end_is_told_only_of_what_was_looked_at() {
        let item = |operation: Operation, state: ItemState| -> Item {
            serde_json::from_value(
                serde_json::json!({"name": "a", "targetRef": {}, "operation": operation, "state": state}),
            )
            .unwrap()
        };
        let of = |phase, name: Option<&str>, item: Item| {
            let condition = name.map(|name| {
                serde_json::from_value(
                    serde_json::json!({"type": name, "status": "True", "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}),
                )
                .unwrap()
            });
            Status { items: vec![item], conditions: condition.into_iter().collect(), ..status(phase, "") }
        };
        let done = || item(Operation::NoChange, ItemState::Completed);
        for (name, phase, now, told) in [
            ("Overridden", Phase::Completed, done(), true),
            ("Overridden", Phase::ReviewRequired, item(Operation::Update, ItemState::Pending), false),
            ("Overridden", Phase::Completed, item(Operation::Skipped, ItemState::Completed), false),
            ("OwnerUnhealthy", Phase::Completed, done(), true),
            ("OwnerUnhealthy", Phase::ReviewRequired, item(Operation::Update, ItemState::Pending), true),
            ("OwnerUnhealthy", Phase::ReviewRequired, item(Operation::Blocked, ItemState::Pending), false),
            ("OwnerUnhealthy", Phase::InProgress, item(Operation::Update, ItemState::InProgress), false),
            ("OwnerUnhealthy", Phase::Ignored, done(), false),
        ] {
            let (old, mut new) = (of(Phase::Completed, Some(name), done()), of(phase, Some(name), now));
            new.conditions[0].status = "False".into();
            let ends = ["OwnerHealthy", "OverriddenNoMore"];
            let found = notes(&old, &new).iter().any(|note| ends.contains(&note.reason));
            assert_eq!(found, told, "{name} {phase:?} {:?}", new.items[0].operation);
        }
    }

    /// A crash between a status and its events loses none of them, and duplicates none.
    #[test]
    fn what_a_crash_may_have_lost_is_recorded_under_the_same_names() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let since = |second| Some(Time(at(second)));
        let mut executing = status(Phase::InProgress, "under way");
        let verdict = |phase, second| {
            let verdict = PhaseReport {
                phase,
                reason: "R",
                message: "m",
                input_drift: None,
                trouble: None,
                overridden: None,
                generation: 1,
            };
            conditions::derive(&[], &verdict, at(second))
        };
        executing.items = vec![item("a", ItemState::InProgress, since(900)), item("b", ItemState::Pending, None)];
        let mut done = status(Phase::Completed, "done");
        done.conditions = verdict(Phase::Completed, 1000);
        done.items = vec![item("a", ItemState::Completed, since(1000)), item("b", ItemState::Failed, since(1000))];
        done.plan_hash = Some("v1:other".into());
        let at_once = notes(&executing, &done);
        assert_eq!(at_once.len(), 3, "{at_once:?}");
        assert_eq!(latest_notes(&done, at(1010)), at_once);
        done.plan_hash = Some("v1:another, as wanted too".into());
        assert_eq!(latest_notes(&done, at(1010)), at_once);
        assert!(latest_notes(&done, at(2000)).is_empty(), "a restart later tells nothing again");
        done.items[0].wait_started_at = None;
        done.items[1].state = ItemState::Pending;
        assert_eq!(latest_notes(&done, at(1010)).len(), 1, "what was found as wanted is not our doing");
    }

    fn item(name: &str, state: ItemState, since: Option<Time>) -> Item {
        let mut item: Item = serde_json::from_value(serde_json::json!({
            "name": name, "targetRef": {"apiVersion": "v1", "kind": "Widget", "name": name}, "operation": "Update", "wave": 0,
            "impactSeverity": "Low",
        }))
        .unwrap();
        item.state = state;
        item.wait_started_at = since.clone();
        item.last_transition_time = since;
        item
    }

    #[test]
    fn every_phase_that_a_person_would_want_to_know_of_is_noted_once() {
        let reasons = |old: &Status, new: &Status| notes(old, new).iter().map(|note| note.reason).collect::<Vec<_>>();
        let review = status(Phase::ReviewRequired, "read it");
        assert_eq!(reasons(&Status::default(), &review), ["ReviewRequired"]);
        assert!(reasons(&review, &review).is_empty());
        assert!(reasons(&Status::default(), &status(Phase::Ignored, "")).is_empty(), "advertising is no news");
        assert_eq!(reasons(&review, &status(Phase::Ignored, "")), ["Ignored"]);
        assert!(reasons(&review, &status(Phase::InProgress, "")).is_empty(), "nobody approved anything");
    }
}
