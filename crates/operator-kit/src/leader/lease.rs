//! What a lease means. Pure: the holder is read from the object, and how long it has been unchanged
//! is measured by the reader. Clocks of two machines are never compared, so setting a clock does no
//! harm.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;

/// How often a lease is renewed, and when it is lost.
///
/// The defaults are those of OpenShift for components that survive a minute without an API server:
/// 137, 107 and 26 s (library-go, `LeaderElectionDefaulting`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease that is not renewed keeps others away.
    pub lease_duration: Duration,
    /// How long after its last renewal a leader stops writing.
    pub renew_deadline: Duration,
    /// The pause between two renewals, and between two attempts.
    pub retry_period: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(137),
            renew_deadline: Duration::from_secs(107),
            retry_period: Duration::from_secs(26),
        }
    }
}

impl Timing {
    /// The problems of these values, worded with the flags. The rules are those of client-go, which
    /// leave a leader time for a second attempt.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let Self { lease_duration, renew_deadline, retry_period } = *self;
        let mut problems = Vec::new();
        if retry_period < Duration::from_millis(100) {
            problems.push("--leader-election-retry-period must be at least 100ms".to_owned());
        }
        if lease_duration.subsec_nanos() != 0 || lease_duration.is_zero() {
            problems
                .push("--leader-election-lease-duration must be a whole number of seconds, as in a Lease".to_owned());
        }
        if renew_deadline <= retry_period.mul_f64(1.2) {
            problems.push(
                "--leader-election-renew-deadline must be more than 1.2 times --leader-election-retry-period: a leader \
                 must be able to try twice"
                    .to_owned(),
            );
        }
        if lease_duration <= renew_deadline {
            problems.push(
                "--leader-election-lease-duration must be longer than --leader-election-renew-deadline: otherwise another \
                 replica could start before this one has stopped"
                    .to_owned(),
            );
        }
        problems
    }
}

/// The next step with a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeaseStep {
    /// It does not exist: create it.
    Create,
    /// Nobody holds it any longer: take it, in the version that was read.
    Take,
    /// Somebody holds it for this long, unless it changes.
    Wait(Duration),
}

/// The duration in a lease that was released, as client-go writes it.
const RELEASED: Duration = Duration::from_secs(1);

/// How long a lease keeps others away.
pub(super) fn lasts(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// The next step with `lease`, which has been seen unchanged for `unchanged`.
pub(super) fn decide(lease: Option<&Lease>, unchanged: Duration) -> LeaseStep {
    let Some(lease) = lease else { return LeaseStep::Create };
    let lasts = lasts(lease);
    match holder(lease) {
        // A holder that releases it writes one second. If somebody else emptied it, its holder may
        // not know yet.
        None if lasts <= RELEASED => LeaseStep::Take,
        _ if unchanged >= lasts => LeaseStep::Take,
        _ => LeaseStep::Wait(lasts - unchanged),
    }
}

/// The holder of the lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// The lease as `me` holds it from `now` on, made from the existing one, `found`.
pub(super) fn claimed(found: Option<Lease>, name: &str, me: &str, timing: &Timing, now: Timestamp) -> Lease {
    let mut lease = found.unwrap_or_else(|| Lease {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Lease::default()
    });
    let before = lease.spec.take().unwrap_or_default();
    let is_mine = before.holder_identity.as_deref() == Some(me);
    let transitions = before.lease_transitions.unwrap_or_default();
    lease.metadata.managed_fields = None;
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(timing.lease_duration.as_secs()).ok(),
        acquire_time: before.acquire_time.clone().filter(|_| is_mine).or_else(|| Some(MicroTime(micros(now)))),
        renew_time: Some(MicroTime(micros(now))),
        lease_transitions: Some(if is_mine { transitions } else { transitions.saturating_add(1) }),
        ..before
    });
    lease
}

/// The lease without a holder: any replica takes it at once.
pub(super) fn released(mut lease: Lease, now: Timestamp) -> Lease {
    if let Some(spec) = lease.spec.as_mut() {
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(micros(now)));
    }
    lease.metadata.managed_fields = None;
    lease
}

/// The time in microseconds: the API server requires exactly six digits.
fn micros(now: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn of(holder: &str, seconds: i32) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_lease_is_taken_when_nobody_can_hold_it_any_more() {
        let seconds = Duration::from_secs;
        for (what, lease, unchanged, step) in [
            ("none", None, seconds(0), LeaseStep::Create),
            ("released", Some(of("", 1)), seconds(0), LeaseStep::Take),
            ("emptied by somebody", Some(of("", 137)), seconds(0), LeaseStep::Wait(seconds(137))),
            ("without a spec", Some(Lease::default()), seconds(0), LeaseStep::Take),
            ("just seen", Some(of("a", 137)), seconds(0), LeaseStep::Wait(seconds(137))),
            ("almost over", Some(of("a", 137)), seconds(136), LeaseStep::Wait(seconds(1))),
            ("over", Some(of("a", 137)), seconds(137), LeaseStep::Take),
            ("nonsense", Some(of("a", -5)), seconds(0), LeaseStep::Take),
        ] {
            assert_eq!(decide(lease.as_ref(), unchanged), step, "{what}");
        }
    }

    /// The times of the holder's clock are ignored.
    #[test]
    fn times_in_the_lease_decide_nothing() {
        for time in [at(0), at(4_000_000_000)] {
            let mut lease = of("a", 137);
            lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(time));
            assert_eq!(decide(Some(&lease), Duration::from_secs(10)), LeaseStep::Wait(Duration::from_secs(127)));
        }
    }

    #[test]
    fn taking_counts_and_renewing_does_not() {
        let timing = Timing::default();
        let taken = claimed(Some(of("a", 137)), "lease", "b", &timing, at(10)).spec.unwrap();
        assert_eq!((taken.holder_identity.as_deref(), taken.lease_transitions), (Some("b"), Some(5)));
        let renewed = claimed(Some(Lease { spec: Some(taken), ..Lease::default() }), "lease", "b", &timing, at(20));
        let spec = renewed.spec.clone().unwrap();
        assert_eq!((spec.lease_transitions, spec.acquire_time.unwrap().0), (Some(5), at(10)));
        assert_eq!(spec.renew_time.unwrap().0, at(20));
        let free = released(renewed, at(30));
        assert_eq!((holder(&free), decide(Some(&free), Duration::ZERO)), (None, LeaseStep::Take));
    }

    #[test]
    fn timings_that_can_not_work_are_refused_all_at_once() {
        assert_eq!(Timing::default().problems(), Vec::<String>::new());
        let seconds = Duration::from_secs;
        let timing = |lease, renew, retry| Timing { lease_duration: lease, renew_deadline: renew, retry_period: retry };
        let problems = timing(seconds(10), seconds(10), seconds(9)).problems().join("\n");
        assert!(problems.contains("1.2 times") && problems.contains("before this one has stopped"), "{problems}");
        let problems = timing(Duration::from_millis(1500), Duration::from_millis(50), Duration::ZERO).problems();
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
