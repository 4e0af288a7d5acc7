//! How closely looks at one configuration may follow each other when nothing but events causes them. Pure: time is an argument.
//!
//! An event that leaves the operator time to breathe is looked at without delay. Looks that follow close upon each other, since
//! something changes all the time, are spaced by gaps that grow. In the long run there is one look each [`REFILL`], whatever the
//! rhythm of the events.

use std::time::Duration;

use operator_kit::backoff::Backoff;
use tokio::time::Instant;

/// An event that comes so soon after a look follows it closely.
const CLOSE: Duration = Duration::from_millis(300);
/// The gap after the second look in a row; it doubles from look to look.
const GAP: Backoff = Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(30) };
/// Looks that events may cause before they are counted one by one.
const CREDIT: u32 = 256;
/// How long it takes until one of them is given back.
const REFILL: Duration = Duration::from_secs(10);

/// The looks at one configuration that only events caused.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// How many have followed each other closely.
    row: u32,
    /// When the last look ended, whatever caused it.
    ended: Option<Instant>,
    /// When the first event came that no look has followed yet.
    asked: Option<Instant>,
    /// How many were made that have not been given back, and up to when that was reckoned.
    spent: u32,
    reckoned: Option<Instant>,
}

impl Pacing {
    /// An event has come, or waits: how long it has to wait.
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

    /// The look that the event waited for begins.
    pub(super) fn begin(&mut self, now: Instant) {
        let asked = self.asked.unwrap_or(now);
        let close = self.ended.is_some_and(|ended| asked - ended < CLOSE);
        self.row = if close { self.row.saturating_add(1) } else { 0 };
        let (spent, reckoned) = self.reckon(now);
        (self.spent, self.reckoned) = (CREDIT.min(spent + 1), Some(reckoned));
    }

    /// A look has ended, whatever caused it.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = Some(now);
        self.asked = None;
    }

    /// The gap that belongs between the last look and one that follows it closely.
    fn gap(&self) -> Duration {
        match self.row {
            0 => Duration::ZERO,
            row => GAP.after(row),
        }
    }

    /// What is spent, and since when nothing has been given back.
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

    /// When looks of ten milliseconds begin, in seconds, while something happens `every` so often for so long.
    fn looks(pacing: &mut Pacing, start: Instant, every: Duration, lasting: Duration) -> Vec<f64> {
        let (mut now, mut begun) = (start, Vec::new());
        let mut next_event = start;
        loop {
            now = now.max(next_event);
            now += pacing.wait(now);
            if now >= start + lasting {
                return begun;
            }
            // Whatever has happened up to now is seen by this look.
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
        // An event in the middle of the changes waits, and is no calm for having waited.
        pacing.asked = None;
        assert!(pacing.wait(ended) > Duration::from_secs(29), "{pacing:?}");
        assert!(pacing.wait(ended + CLOSE) > Duration::from_secs(29), "{pacing:?}");
        // The changes have ended with the look; somebody edits half a second later.
        pacing.asked = None;
        let edit = ended + 500 * MILLISECOND;
        assert_eq!(pacing.wait(edit), Duration::ZERO);
        pacing.begin(edit);
        pacing.end(edit);
        assert_eq!(pacing.wait(edit), Duration::ZERO, "the changes begin anew: {pacing:?}");
    }

    /// Somebody who edits, looks at what came of it and edits again is never kept waiting.
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
