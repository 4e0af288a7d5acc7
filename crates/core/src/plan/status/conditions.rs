//! Conditions, all derived from one report, in one place.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{Phase, VirtPlatformConfigStatus};
use crate::plan::decision::reason::{self, condition};
use crate::plan::wire::time;
use object::limits::{cut_text, within_line};

/// The types that are always present, each True only in its phase; automation waits for them by
/// name.
const PHASES: [Phase; 8] = [
    Phase::Ignored,
    Phase::Drafting,
    Phase::ReviewRequired,
    Phase::InProgress,
    Phase::Completed,
    Phase::Drifted,
    Phase::Failed,
    Phase::PrerequisiteFailed,
];
/// The types that are present only once they have been True.
const RARE_PHASES: [Phase; 2] = [Phase::CompletedWithErrors, Phase::CompletedWithUpgrade];

/// The longest message that a condition may have.
const MESSAGE_LIMIT: usize = 32_768;

/// The facts from which the conditions are derived.
#[derive(Debug, Clone)]
pub struct PhaseReport<'a> {
    /// The phase of the configuration.
    pub phase: Phase,
    /// The reason, a constant of [`reason`].
    pub reason: &'a str,
    /// What is happening and what to do next.
    pub message: &'a str,
    /// Old and new value of inputs that have changed.
    pub input_drift: Option<String>,
    /// Problems that the owners of applied objects report.
    pub trouble: Option<String>,
    /// Parts of applied objects that machines do not have because others override them.
    pub overridden: Option<String>,
    /// The generation of the spec that this describes.
    pub generation: i64,
}

/// Removes conditions that are not managed by the operator: they do not take part in comparisons.
pub fn retain_ours(conditions: &mut Vec<Condition>) {
    conditions.retain(is_ours);
}

/// The conditions of other writers, which our writes preserve.
pub fn of_others(status: Option<&VirtPlatformConfigStatus>) -> impl Iterator<Item = Condition> {
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    conditions.filter(|condition| !is_ours(condition)).cloned()
}

fn is_ours(found: &Condition) -> bool {
    let mut phases = PHASES.iter().chain(&RARE_PHASES).map(|phase| phase.name());
    let others = [
        condition::READY,
        condition::RECONCILING,
        condition::STALLED,
        condition::INPUT_DEPENDENCY_DRIFT,
        condition::OWNER_UNHEALTHY,
        condition::OVERRIDDEN,
        condition::UPGRADE_AVAILABLE,
        condition::READING_FAILED,
    ];
    phases.any(|name| name == found.type_) || others.contains(&found.type_.as_str())
}

/// The conditions for `verdict`. A condition keeps its `lastTransitionTime` from `old` if its
/// status has not changed.
#[must_use]
pub fn derive(old: &[Condition], verdict: &PhaseReport<'_>, now: Timestamp) -> Vec<Condition> {
    let mut new = Vec::new();
    for (phase, name) in PHASES.map(|phase| (phase, phase.name())) {
        // An upgrade that waits for review does not make completed work incomplete.
        let holds =
            phase == verdict.phase || (phase == Phase::Completed && verdict.phase == Phase::CompletedWithUpgrade);
        new.push(condition_for(name, holds, verdict));
    }
    for (phase, name) in RARE_PHASES.map(|phase| (phase, phase.name())) {
        let holds = phase == verdict.phase;
        if holds || old.iter().any(|condition| condition.type_ == name) {
            new.push(condition_for(name, holds, verdict));
        }
    }
    for (name, reason, text) in [
        (condition::INPUT_DEPENDENCY_DRIFT, "InputChanged", &verdict.input_drift),
        (condition::OWNER_UNHEALTHY, "OwnerReports", &verdict.trouble),
        (condition::OVERRIDDEN, reason::OVERRIDDEN, &verdict.overridden),
    ] {
        if text.is_some() || old.iter().any(|found| found.type_ == name) {
            let mut found = condition_for(name, text.is_some(), verdict);
            if let Some(text) = text {
                found.reason = reason.to_owned();
                found.message = cut(text);
            }
            new.push(found);
        }
    }
    let upgrade = verdict.phase == Phase::CompletedWithUpgrade;
    if upgrade || old.iter().any(|found| found.type_ == condition::UPGRADE_AVAILABLE) {
        new.push(condition_for(condition::UPGRADE_AVAILABLE, upgrade, verdict));
    }
    new.extend(old.iter().find(|found| found.type_ == condition::READING_FAILED).cloned());
    new.extend(readiness(verdict));
    for condition in &mut new {
        let before = old.iter().find(|before| before.type_ == condition.type_ && before.status == condition.status);
        condition.last_transition_time = before.map_or_else(|| time(now), |before| before.last_transition_time.clone());
    }
    new.sort_by(|a, b| a.type_.cmp(&b.type_));
    new
}

/// Whether the status may be out of date because objects can't be read.
#[must_use]
pub fn is_unreadable(conditions: &[Condition]) -> bool {
    conditions.iter().any(|found| found.type_ == condition::READING_FAILED && found.status == "True")
}

/// Adds to `status` that objects can't be read, for `reason`, and leaves everything else as it was.
/// Returns whether that is news: while the same object can't be read for the same reason, it is
/// reported once, however the server's answers vary.
pub fn unreadable(
    status: &mut VirtPlatformConfigStatus,
    reason: &str,
    problem: &str,
    generation: i64,
    now: Timestamp,
) -> bool {
    let before =
        status.conditions.iter().find(|found| found.type_ == condition::READING_FAILED && found.status == "True");
    let what = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    if before.is_some_and(|found| found.reason == reason && found.message.starts_with(&what(problem))) {
        return false;
    }
    let since = before.map_or_else(|| time(now), |found| found.last_transition_time.clone());
    let message = format!(
        "{}. The operator retries until it succeeds. Until then nothing is decided, and the rest of this status may be out of \
         date.",
        problem.trim_end_matches('.')
    );
    let verdict = PhaseReport {
        phase: Phase::Pending,
        reason,
        message: &message,
        input_drift: None,
        trouble: None,
        overridden: None,
        generation,
    };
    let mut said = vec![condition_for(condition::READING_FAILED, true, &verdict)];
    if status.phase.is_none() {
        // Nothing is known yet: without these conditions the configuration would look finished.
        said.extend(readiness(&verdict));
    }
    for mut fresh in said {
        fresh.last_transition_time = since.clone();
        status.conditions.retain(|found| found.type_ != fresh.type_);
        status.conditions.push(fresh);
    }
    status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    true
}

/// Records that everything could be read again.
pub fn readable(conditions: &mut [Condition], now: Timestamp) {
    for found in
        conditions.iter_mut().filter(|found| found.type_ == condition::READING_FAILED && found.status == "True")
    {
        found.status = "False".to_owned();
        found.reason = reason::NOT_APPLICABLE.to_owned();
        found.message = "All objects were read successfully.".to_owned();
        found.last_transition_time = time(now);
    }
}

/// Ready, Reconciling and Stalled, so that kstatus clients and `kubectl wait` interpret each phase
/// alike. Ready is absent while the next step needs a person, so that nothing takes the
/// configuration for failed or finished.
fn readiness(verdict: &PhaseReport<'_>) -> Vec<Condition> {
    let ready = |holds| condition_for(condition::READY, holds, verdict);
    match verdict.phase {
        Phase::Completed | Phase::CompletedWithUpgrade | Phase::Ignored => {
            let mut ready = ready(verdict.overridden.is_none());
            if let Some(overridden) = &verdict.overridden {
                // The objects are written, but machines do not have everything.
                (ready.reason, ready.message) = (reason::OVERRIDDEN.to_owned(), cut(overridden));
            }
            vec![ready]
        }
        Phase::ReviewRequired | Phase::Drifted => Vec::new(),
        Phase::Pending | Phase::Drafting | Phase::InProgress => {
            vec![ready(false), condition_for(condition::RECONCILING, true, verdict)]
        }
        Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed => {
            vec![ready(false), condition_for(condition::STALLED, true, verdict)]
        }
    }
}

fn condition_for(name: &str, holds: bool, verdict: &PhaseReport<'_>) -> Condition {
    // Ready=False carries the reason too: it is the condition that people look at first.
    let tells = holds || name == condition::READY;
    Condition {
        type_: name.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: if tells { verdict.reason } else { reason::NOT_APPLICABLE }.to_owned(),
        message: if tells {
            cut(verdict.message)
        } else {
            format!("Does not currently apply; the phase is {}.", verdict.phase)
        },
        observed_generation: Some(verdict.generation),
        last_transition_time: time(Timestamp::UNIX_EPOCH),
    }
}

fn cut(message: &str) -> String {
    cut_text(&within_line(message), MESSAGE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Phase; 11] = [
        Phase::Pending,
        Phase::Drafting,
        Phase::PrerequisiteFailed,
        Phase::ReviewRequired,
        Phase::InProgress,
        Phase::Completed,
        Phase::CompletedWithErrors,
        Phase::CompletedWithUpgrade,
        Phase::Failed,
        Phase::Drifted,
        Phase::Ignored,
    ];

    fn verdict(phase: Phase) -> PhaseReport<'static> {
        PhaseReport {
            phase,
            reason: "Because",
            message: "text",
            input_drift: None,
            trouble: None,
            overridden: None,
            generation: 3,
        }
    }

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn at_most_one_phase_is_true_and_every_field_is_filled() {
        for phase in ALL {
            let conditions = derive(&[], &verdict(phase), seconds(10));
            let names: Vec<_> = PHASES.iter().map(|phase| phase.name()).collect();
            let holding = conditions.iter().filter(|c| c.status == "True" && names.contains(&c.type_.as_str())).count();
            let exactly = !matches!(phase, Phase::Pending | Phase::CompletedWithErrors);
            assert_eq!(holding, usize::from(exactly), "{phase:?}");
            for condition in conditions {
                assert!(!condition.reason.is_empty() && !condition.message.is_empty(), "{condition:?}");
                assert_eq!(condition.observed_generation, Some(3));
            }
        }
    }

    #[test]
    fn times_move_only_with_the_status() {
        let first = derive(&[], &verdict(Phase::ReviewRequired), seconds(10));
        let same =
            derive(&first, &PhaseReport { message: "other text", ..verdict(Phase::ReviewRequired) }, seconds(20));
        assert!(same.iter().all(|condition| condition.last_transition_time == time(seconds(10))));
        let moved = derive(&same, &verdict(Phase::Completed), seconds(30));
        let changed: Vec<_> = moved
            .iter()
            .filter(|condition| condition.last_transition_time == time(seconds(30)))
            .map(|condition| condition.type_.as_str())
            .collect();
        assert_eq!(changed, ["Completed", "Ready", "ReviewRequired"]);
    }

    #[test]
    fn readiness_of_each_phase() {
        for phase in ALL {
            let conditions = derive(&[], &verdict(phase), seconds(10));
            let status = |name: &str| conditions.iter().find(|c| c.type_ == name).map(|c| c.status.clone());
            let want = match phase {
                Phase::Completed | Phase::CompletedWithUpgrade | Phase::Ignored => (Some("True"), None, None),
                Phase::ReviewRequired | Phase::Drifted => (None, None, None),
                Phase::Pending | Phase::Drafting | Phase::InProgress => (Some("False"), Some("True"), None),
                Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed => {
                    (Some("False"), None, Some("True"))
                }
            };
            let found = (status("Ready"), status("Reconciling"), status("Stalled"));
            assert_eq!((found.0.as_deref(), found.1.as_deref(), found.2.as_deref()), want, "{phase:?}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_said_once_and_changes_nothing_else() {
        let mut new = VirtPlatformConfigStatus::default();
        assert!(unreadable(&mut new, "Unavailable", "reading Widget a failed", 3, seconds(1)));
        let types = |status: &VirtPlatformConfigStatus| {
            let holding = status.conditions.iter().filter(|condition| condition.status == "True");
            holding.map(|condition| condition.type_.clone()).collect::<Vec<_>>()
        };
        assert_eq!((types(&new), new.phase), (vec!["ReadingFailed".into(), "Reconciling".into()], None));

        let mut done = VirtPlatformConfigStatus { phase: Some(Phase::Completed), ..Default::default() };
        done.conditions = derive(&[], &verdict(Phase::Completed), seconds(1));
        let before = done.clone();
        assert!(unreadable(&mut done, "Unavailable", "reading Widget a failed", 3, seconds(2)));
        assert!(
            !unreadable(&mut done, "Unavailable", "reading Widget a failed: once more", 3, seconds(3)),
            "said already"
        );
        assert!(unreadable(&mut done, "Unavailable", "reading Widget b failed", 3, seconds(3)), "another object");
        let said = done.conditions.iter().find(|condition| condition.type_ == "ReadingFailed").unwrap();
        assert!(said.message.contains("Widget b") && said.last_transition_time == time(seconds(2)), "{said:?}");
        assert_eq!(types(&done), ["Completed", "ReadingFailed", "Ready"]);
        let others = |status: &VirtPlatformConfigStatus| {
            let others = status.conditions.iter().filter(|condition| condition.type_ != "ReadingFailed");
            others.cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&done), before.conditions);

        // The next reconcile keeps it until everything was read, and then says so.
        let mut next = derive(&done.conditions, &verdict(Phase::Drifted), seconds(4));
        readable(&mut next, seconds(4));
        let over = next.iter().find(|condition| condition.type_ == "ReadingFailed").unwrap();
        assert_eq!((over.status.as_str(), &over.last_transition_time), ("False", &time(seconds(4))));
        let kept = next.clone();
        readable(&mut next, seconds(5));
        assert_eq!(next, kept);
    }

    #[test]
    fn what_was_true_once_is_said_to_be_over() {
        let upgrade = derive(&[], &verdict(Phase::CompletedWithUpgrade), seconds(1));
        let done = derive(&upgrade, &verdict(Phase::Completed), seconds(2));
        for name in ["CompletedWithUpgrade", "UpgradeAvailable"] {
            assert_eq!(done.iter().find(|c| c.type_ == name).unwrap().status, "False", "{name}");
        }
    }
}
