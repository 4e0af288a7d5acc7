//! How closely reconciles of one configuration may follow each other if only events cause them.
//! Pure: time is an argument.
//!
//! An event that comes after some quiet time is handled without delay. Reconciles in quick
//! succession, because something changes all the time, are spaced by growing gaps. In the long run
//! there is one reconcile each [`REFILL`], whatever the rhythm of the events.

use std::time::Duration;

use operator_kit::backoff::Backoff;
use tokio::time::Instant;

/// An event within this time after a reconcile follows it closely.
const CLOSE: Duration = Duration::from_millis(300);
/// The gap after the second reconcile in a row; it doubles from one to the next.
const GAP: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(30) };
/// The number of reconciles that events may cause before they are limited to one each [`REFILL`].
const CREDIT: u32 = 256;
/// The time until one of them is given back.
const REFILL: Duration = Duration::from_secs(10);

/// The reconciles of one configuration that only events caused.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// The number that have followed each other closely.
    row: u32,
    /// When the last reconcile ended, whatever caused it.
    ended: Option<Instant>,
    /// When the first event came that no reconcile has followed yet.
    asked: Option<Instant>,
    /// The number of reconciles that were made and not given back yet, as of `reckoned`.
    spent: u32,
    reckoned: Option<Instant>,
}

impl Pacing {
    /// How long an event that has come, or is waiting, must wait.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        let asked = *self.asked.get_or_insert(now);
        let gap = match self.ended.filter(|ended| asked - *ended < CLOSE) {
            Some(ended) => self.gap().saturating_sub(now - ended),
            None => Duration::ZERO,
        };
        let (spent, reckoned) = self.reckon(now);
        let refill = if spent < CREDIT { Duration::ZERO } else { REFILL.saturating_sub(now - reckoned) };
        gap.max(refill)
    }

    /// Records that the reconcile for the waiting event begins.
    pub(super) fn begin(&mut self, now: Instant) {
        let asked = self.asked.unwrap_or(now);
        let close = self.ended.is_some_and(|ended| asked - ended < CLOSE);
        self.row = if close { self.row.saturating_add(1) } else { 0 };
        let (spent, reckoned) = self.reckon(now);
        (self.spent, self.reckoned) = (CREDIT.min(spent + 1), Some(reckoned));
    }

    /// Records that a reconcile has ended, whatever caused it.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = Some(now);
        self.asked = None;
    }

    /// The gap between the last reconcile and one that follows it closely.
    fn gap(&self) -> Duration {
        match self.row {
            0 => Duration::ZERO,
            row => GAP.after(row),
        }
    }

    /// The number that is spent, and since when nothing has been given back.
    fn reckon(&self, now: Instant) -> (u32, Instant) {
        let Some(reckoned) = self.reckoned.filter(|_| self.spent > 0) else { return (0, now) };
        let back = u32::try_from((now - reckoned).as_secs() / REFILL.as_secs()).unwrap_or(u32::MAX);
        match self.spent.checked_sub(back) {
            Some(spent) if spent > 0 => (spent, reckoned + REFILL * back),
            Some(_) | None => (0, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// The times, in seconds, at which reconciles of ten milliseconds begin while an event comes
    /// `every` so often.
    fn looks(pacing: &mut Pacing, start: Instant, every: Duration, lasting: Duration) -> Vec<f64> {
        let (mut now, mut begun) = (start, Vec::new());
        let mut next_event = start;
        loop {
            now = now.max(next_event);
            now += pacing.wait(now);
            if now >= start + lasting {
                return begun;
            }
            // This reconcile sees everything that has happened up to now.
            while next_event <= now {
                next_event += every;
            }
            begun.push((now - start).as_secs_f64());
            pacing.begin(now);
            now += 10 * MILLISECOND;
            pacing.end(now);
        }
    }

    #[test]
    fn t19_looks_at_what_changes_all_the_time_are_spaced_and_growing() {
        let (mut pacing, start) = (Pacing::default(), Instant::now());
        let begun = looks(&mut pacing, start, 20 * MILLISECOND, Duration::from_secs(60));
        assert!(begun[0] == 0.0 && begun[1] < 0.1, "{begun:?}");
        let gaps: Vec<_> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|pair| pair[1] > pair[0] - 0.001), "{gaps:?}");
        assert!(begun.len() <= 10, "{begun:?}");
        let hour = looks(&mut pacing, start + Duration::from_secs(90), 20 * MILLISECOND, Duration::from_secs(3600));
        assert!(hour.len() <= 121, "{} looks in an hour", hour.len());
    }

    #[test]
    fn t19_what_comes_after_a_calm_moment_is_looked_at_at_once() {
        let (mut pacing, start) = (Pacing::default(), Instant::now());
        looks(&mut pacing, start, 20 * MILLISECOND, Duration::from_secs(120));
        let ended = pacing.ended.unwrap();
        // An event in the middle of the changes waits, and its waiting does not count as quiet
        // time.
        pacing.asked = None;
        assert!(pacing.wait(ended) > Duration::from_secs(29), "{pacing:?}");
        assert!(pacing.wait(ended + CLOSE) > Duration::from_secs(29), "{pacing:?}");
        // The changes end with the reconcile; somebody edits half a second later.
        pacing.asked = None;
        let edit = ended + 500 * MILLISECOND;
        assert_eq!(pacing.wait(edit), Duration::ZERO);
        pacing.begin(edit);
        pacing.end(edit);
        assert_eq!(pacing.wait(edit), Duration::ZERO, "the changes begin anew: {pacing:?}");
    }

    /// Somebody who edits, looks at the result and edits again is never kept waiting.
    #[test]
    fn t19_events_that_leave_time_between_them_are_followed_one_by_one() {
        let (mut pacing, start) = (Pacing::default(), Instant::now());
        let every = 450 * MILLISECOND;
        let begun = looks(&mut pacing, start, every, Duration::from_secs(90));
        for (number, at) in begun.iter().enumerate() {
            assert!((at - (every * u32::try_from(number).unwrap()).as_secs_f64()).abs() < 0.001, "{number}: {at}");
        }
    }

    #[test]
    fn t19_no_rhythm_of_events_causes_more_than_one_look_in_ten_seconds_for_long() {
        for every in [1, 20, 310, 320, 450, 600, 1000, 3000] {
            let (mut pacing, start) = (Pacing::default(), Instant::now());
            let hours = Duration::from_secs(2 * 3600);
            let begun = looks(&mut pacing, start, every * MILLISECOND, hours);
            assert!(begun.len() <= 256 + 721, "{} looks, an event every {every} ms", begun.len());
        }
    }

    #[test]
    fn t19_what_changes_every_now_and_then_is_looked_at_at_once_for_ever() {
        let (mut pacing, start) = (Pacing::default(), Instant::now());
        let every = Duration::from_secs(10);
        let begun = looks(&mut pacing, start, every, Duration::from_secs(24 * 3600));
        assert_eq!(begun.len(), 24 * 360);
        assert!(begun.iter().all(|at| at % 10.0 < 0.001 || at % 10.0 > 9.999));
    }
}
