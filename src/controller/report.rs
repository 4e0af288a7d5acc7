//! Report: status, events and logs. One status write, none if nothing changed.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{Approval, Item, ItemState, Phase, VirtPlatformConfigStatus as Status};
use crate::cluster::Note;

/// Progress is written at most this often: a rollout of hundreds of machines reports every second.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// How long a change that only tells of progress must wait; `None` if it can be written, or must be.
pub(super) fn progress_pause(
    old: &Status,
    new: &Status,
    written_at: Option<Timestamp>,
    now: Timestamp,
) -> Option<Duration> {
    if without_texts(old) != without_texts(new) || new.phase != Some(Phase::InProgress) {
        return None;
    }
    let passed = now.duration_since(written_at?);
    PROGRESS_INTERVAL.checked_sub(passed.unsigned_abs()).filter(|rest| !rest.is_zero())
}

/// `status` without the texts that tell of progress.
fn without_texts(status: &Status) -> Status {
    let mut status = status.clone();
    status.items.iter_mut().for_each(|item| item.message.clear());
    status.conditions.iter_mut().for_each(|condition| condition.message.clear());
    status.summary.get_or_insert_default().text.clear();
    status
}

/// What belongs into the audit trail of the step from `old` to `new`.
pub(super) fn notes(old: &Status, new: &Status) -> Vec<Note> {
    let mut notes = Vec::new();
    let plan = new.plan_hash.clone().unwrap_or_default();
    // The stored time of the transition makes it this occurrence and no other, also after a crash.
    let key = |what: &str, since: Option<&Time>| {
        format!("{plan}/{what}/{}", since.map(|since| since.0.to_string()).unwrap_or_default())
    };
    for item in &new.items {
        let before = old.items.iter().find(|before| before.name == item.name);
        // Only an execution writes: what a plan finds as wanted was not our doing.
        if old.phase == Some(Phase::InProgress) && before.is_some_and(|before| before.state != item.state) {
            notes.extend(item_note(item, &key(&item.name, item.last_transition_time.as_ref())));
        }
    }
    let text = new.summary.as_ref().map(|summary| summary.text.clone()).unwrap_or_default();
    let planned = old.plan_hash != new.plan_hash;
    if old.phase != new.phase || (planned && new.phase != Some(Phase::Completed)) {
        let holds = new.phase.map(|phase| format!("{phase:?}"));
        let condition = new.conditions.iter().find(|condition| Some(&condition.type_) == holds.as_ref());
        let since = condition.map(|condition| &condition.last_transition_time);
        let note = |reason, action, warning| {
            Some(Note { reason, action, warning, text: text.clone(), key: key(reason, since) })
        };
        notes.extend(match new.phase {
            Some(Phase::ReviewRequired) => note("ReviewRequired", "Plan", false),
            // Without an approval nothing is executed: what is as wanted is only not in effect yet.
            Some(Phase::InProgress) => new.approval.as_ref().map(|approval| Note {
                reason: "Approved",
                action: "Approve",
                warning: false,
                text: approved(new, approval),
                key: key("Approved", since),
            }),
            Some(Phase::Completed) => note("Completed", "Report", false),
            Some(Phase::CompletedWithErrors) => note("CompletedWithErrors", "Report", true),
            Some(Phase::CompletedWithUpgrade) => note("UpgradeAvailable", "Plan", false),
            Some(Phase::Drifted) => note("Drifted", "Report", true),
            Some(Phase::Failed) => note("Failed", "Report", true),
            Some(Phase::PrerequisiteFailed) => note("PrerequisiteFailed", "Plan", true),
            Some(Phase::Ignored) => old.phase.and_then(|_| note("Ignored", "Report", false)),
            Some(Phase::Pending | Phase::Drafting) | None => None,
        });
    }
    notes
}

fn item_note(item: &Item, key: &str) -> Option<Note> {
    let (reason, warning) = match item.state {
        ItemState::Completed => ("ItemApplied", false),
        ItemState::Failed => ("ItemFailed", true),
        ItemState::Pending | ItemState::InProgress => return None,
    };
    let text = format!("{}: {}.", item.target_ref, item.message.trim_end_matches('.'));
    Some(Note { reason, action: "Apply", warning, text, key: key.to_owned() })
}

fn approved(status: &Status, approval: &Approval) -> String {
    let plan = status.summary.as_ref().map(|summary| summary.plan.as_str()).unwrap_or_default();
    format!("Plan {plan} was approved by {} ({:?}).", approval.by, approval.how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Summary;

    fn status(phase: Phase, text: &str) -> Status {
        let summary = Summary { text: text.to_owned(), ..Summary::default() };
        Status { phase: Some(phase), summary: Some(summary), ..Status::default() }
    }

    #[test]
    fn only_texts_of_a_running_execution_wait() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (one, two) = (status(Phase::InProgress, "1 of 3"), status(Phase::InProgress, "2 of 3"));
        assert_eq!(progress_pause(&one, &two, Some(at(0)), at(4)), Some(Duration::from_secs(6)));
        assert_eq!(progress_pause(&one, &two, Some(at(0)), at(10)), None);
        assert_eq!(progress_pause(&one, &two, None, at(4)), None, "the first progress is told at once");
        assert_eq!(progress_pause(&one, &status(Phase::Completed, ""), Some(at(0)), at(1)), None);
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
