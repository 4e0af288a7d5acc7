//! When to reconcile a configuration again if nothing happens.

use std::time::Duration;

use advisor_core::api::Phase;
use advisor_core::plan::decision::observed::{Observed, World};
use advisor_core::plan::decision::{Decision, LookAgain};
use jiff::Timestamp;

use operator_kit::backoff::spread;

/// How often a settled configuration is reconciled without any event.
pub(super) const RESYNC: Duration = Duration::from_secs(6 * 3600);
/// How often a plan with blocked items is reconciled: no event reports that their obstacle is gone.
const BLOCKED: Duration = Duration::from_secs(120);

/// Reasons for a reconcile that is earlier than the decision requires.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// Whether items are blocked.
    pub(super) blocked: bool,
    /// When the next item that is skipped for a limited time returns.
    pub(super) set_aside_until: Option<Timestamp>,
    /// The time until an owner has reported a problem for long enough to pass it on.
    pub(super) doubt: Option<Duration>,
    /// How long a rollout may make no progress, if one is followed.
    pub(super) patience: Option<Duration>,
}

impl Reasons {
    /// The reasons that are seen in `seen`. `doubt` is when an owner's trouble has lasted for long
    /// enough, `patience` how long the rollouts that are followed may come no further.
    pub(super) fn of(seen: &Observed<'_>, doubt: Option<Duration>, patience: Option<Duration>, now: Timestamp) -> Self {
        Self {
            blocked: matches!(&seen.world, World::Planned(plan) if plan.blocked().next().is_some()),
            set_aside_until: seen.wanted.choices.next_end(now),
            doubt,
            patience,
        }
    }
}

/// The time from `now` until the next reconcile of the configuration called `name`.
pub(super) fn pause(decision: &Decision, reasons: &Reasons, now: Timestamp, name: &str) -> Duration {
    let until = |at: Timestamp| at.duration_since(now).try_into().unwrap_or_default();
    let all = [
        Some(of_decision(decision, now, name)),
        reasons.blocked.then_some(BLOCKED),
        reasons.set_aside_until.map(until),
        reasons.doubt,
        reasons.patience,
    ];
    all.into_iter().flatten().min().unwrap_or(RESYNC)
}

fn of_decision(decision: &Decision, now: Timestamp, name: &str) -> Duration {
    match decision {
        Decision::Execute(execution) => match execution.look_again {
            LookAgain::AtOnce => Duration::ZERO,
            LookAgain::OnEvent => resync(name),
            LookAgain::At(at) => at.duration_since(now).try_into().unwrap_or_default(),
        },
        // What an execution has left is decided at once: it may continue without asking, be
        // satisfied, or have drifted.
        Decision::Publish(publication) if publication.ended.is_some() && publication.phase != Phase::Completed => {
            Duration::ZERO
        }
        Decision::Fail(_)
        | Decision::AwaitPrerequisites(_)
        | Decision::Leave
        | Decision::StandAside
        | Decision::Reject(_)
        | Decision::Hold
        | Decision::Publish(_) => resync(name),
    }
}

/// The regular interval, spread by name, so that configurations are not all reconciled at the same
/// moment.
fn resync(name: &str) -> Duration {
    spread(RESYNC, name, 0)
}

#[cfg(test)]
mod tests {
    use advisor_core::plan::decision::{Outcome, Publication};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn published(phase: Phase, ended: Option<Outcome>) -> Decision {
        let (reason, detail, remedy) = ("R", String::new(), String::new());
        Decision::Publish(Publication { phase, reason, detail, remedy, news: true, ended })
    }

    #[test]
    fn the_earliest_of_all_reasons_counts() {
        let (seconds, none) = (Duration::from_secs, Reasons::default);
        let regular = resync("a");
        for (case, decision, reasons, expected) in [
            ("settled", Decision::Hold, none(), regular),
            ("published", published(Phase::ReviewRequired, None), none(), regular),
            ("completed", published(Phase::Completed, Some(Outcome::Completed)), none(), regular),
            ("stale", published(Phase::ReviewRequired, Some(Outcome::Stale)), none(), seconds(0)),
            ("blocked", Decision::Hold, Reasons { blocked: true, ..none() }, BLOCKED),
            ("set aside", Decision::Hold, Reasons { set_aside_until: Some(at(130)), ..none() }, seconds(30)),
            ("back already", Decision::Hold, Reasons { set_aside_until: Some(at(90)), ..none() }, seconds(0)),
            ("an owner in trouble", Decision::Hold, Reasons { doubt: Some(seconds(7)), ..none() }, seconds(7)),
            ("a rollout", Decision::Hold, Reasons { patience: Some(seconds(600)), ..none() }, seconds(600)),
            (
                "the earliest",
                Decision::Hold,
                Reasons { blocked: true, doubt: Some(seconds(7)), patience: Some(seconds(600)), ..none() },
                seconds(7),
            ),
            (
                "what can't wait",
                published(Phase::Failed, Some(Outcome::Failed)),
                Reasons { blocked: true, ..none() },
                seconds(0),
            ),
        ] {
            assert_eq!(pause(&decision, &reasons, at(100), "a"), expected, "{case}");
        }
        let others: Vec<_> = ["a", "b", "c"].map(resync).into();
        assert!(others.iter().all(|pause| *pause <= RESYNC * 2) && others[0] != others[1], "{others:?}");
    }
}
