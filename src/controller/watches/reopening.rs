//! When a watch may be requested again. Pure: time is an argument.
//!
//! kube pauses after an error. A watch that ends without one is opened again at once. That is right
//! after its regular end, but causes a flood of requests if a proxy ends each watch as soon as it
//! is opened. What counts is the time between two openings: a watch that lasted costs no pause when
//! it ends, a futile one costs a growing pause. Failed lists count too: kube resets its pauses with
//! each list that it begins.

use std::time::Duration;

use tokio::time::Instant;

use operator_kit::backoff::{Backoff, spread};

/// The time between two openings after the first futile one; it doubles.
const GAP: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
/// A watch that ends within this time was futile, whatever it reported.
const AT_ONCE: Duration = Duration::from_secs(1);
/// A watch that stays open for this long is healthy, even if it reported nothing. Not shorter than
/// the longest gap: proxies that end connections after half a minute of silence are common, and
/// lose no event.
pub(super) const LASTING: Duration = GAP.longest;

/// The history of the watches of one kind.
#[derive(Debug)]
pub(super) struct Reopening {
    /// The number of consecutive futile watches.
    futile: u32,
    /// The number of consecutive failed lists.
    failed_lists: u32,
    not_before: Option<Instant>,
    open: Option<Opened>,
    /// Varies the pauses, so that replicas and kinds do not coincide.
    seed: u32,
}

#[derive(Debug)]
struct Opened {
    at: Instant,
    /// Whether it begins with everything that exists: its first reports are not news.
    lists: bool,
    has_told: bool,
}

impl Reopening {
    /// Before the first request.
    pub(super) fn new(seed: u32) -> Self {
        Self { futile: 0, failed_lists: 0, not_before: None, open: None, seed }
    }

    /// The number of consecutive futile watches.
    pub(super) fn futile(&self) -> u32 {
        self.futile
    }

    /// How long the next request must wait.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.not_before.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Records that a watch is open; `lists` means that it begins with a list.
    pub(super) fn opened(&mut self, lists: bool, now: Instant) {
        self.failed_lists = 0;
        self.open = Some(Opened { at: now, lists, has_told: false });
    }

    /// Records a report of the watch. Returns whether it proves that the watch is healthy.
    pub(super) fn record_report(&mut self, now: Instant) -> bool {
        let Some(open) = &mut self.open else { return false };
        open.has_told = true;
        let is_well = !open.lists && now - open.at >= AT_ONCE;
        if is_well {
            self.futile = 0;
        }
        is_well
    }

    /// Records that the watch has been open for [`LASTING`].
    pub(super) fn lasted(&mut self) {
        self.futile = 0;
    }

    /// Records that the watch has ended. Returns whether it was futile.
    pub(super) fn ended(&mut self, now: Instant) -> bool {
        let Some(open) = self.open.take() else { return false };
        let lived = now - open.at;
        let has_told_news = open.has_told && !open.lists;
        let is_futile = lived < AT_ONCE || (lived < LASTING && !has_told_news);
        if is_futile {
            self.futile = self.futile.saturating_add(1);
            self.not_before = Some(open.at + self.gap(self.futile));
        } else {
            self.futile = 0;
            self.not_before = None;
        }
        is_futile
    }

    /// Records that a list was answered with an error, or not at all.
    pub(super) fn list_failed(&mut self, now: Instant) {
        self.failed_lists = self.failed_lists.saturating_add(1);
        self.not_before = Some(now + self.gap(self.failed_lists));
    }

    fn gap(&self, row: u32) -> Duration {
        spread(GAP.after(row), "", self.seed.wrapping_add(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// The times at which watches that live for `lives` are opened `within` so many seconds.
    fn openings(reopening: &mut Reopening, lives: Duration, tells: bool, lists: bool, within: f64) -> Vec<f64> {
        let start = Instant::now();
        let (mut now, mut openings) = (start, Vec::new());
        while now < start + seconds(within) {
            now += reopening.wait(now);
            openings.push((now - start).as_secs_f64());
            reopening.opened(lists, now);
            if tells {
                reopening.record_report(now + lives / 2);
            }
            if lives >= LASTING {
                reopening.lasted();
            }
            now += lives + Duration::from_millis(1);
            reopening.ended(now);
        }
        openings
    }

    #[test]
    fn t17_watches_that_end_at_once_are_opened_with_growing_pauses() {
        for (tells, lists) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut reopening = Reopening::new(7);
            let openings = openings(&mut reopening, Duration::ZERO, tells, lists, 3600.0);
            assert!(openings[1] >= 1.0 && openings[1] <= 1.25, "{openings:?}");
            let in_fifteen_seconds = openings.iter().filter(|at| **at <= 15.0).count();
            assert!(in_fifteen_seconds <= 5, "{openings:?}");
            assert!(openings.len() <= 125, "{} in an hour", openings.len());
            assert!(openings.windows(2).all(|pair| pair[1] - pair[0] <= 37.6), "{openings:?}");
        }
    }

    #[test]
    fn t17_a_watch_that_ends_in_its_time_is_opened_again_at_once() {
        for lives in [30.0, 60.0, 290.0] {
            let mut reopening = Reopening::new(7);
            let openings = openings(&mut reopening, seconds(lives), false, false, 3600.0);
            assert!(openings.windows(2).all(|pair| pair[1] - pair[0] < lives + 0.01), "{openings:?}");
        }
    }

    #[test]
    fn t17_a_watch_that_tells_something_and_is_cut_is_opened_again_at_once() {
        let mut reopening = Reopening::new(7);
        let openings = openings(&mut reopening, seconds(2.5), true, false, 60.0);
        assert!(openings.windows(2).all(|pair| pair[1] - pair[0] < 2.6), "{openings:?}");
    }

    /// If a streamed list never ends properly, each opening costs a list.
    #[test]
    fn t17_lists_that_are_streamed_again_and_again_are_spaced() {
        let mut reopening = Reopening::new(7);
        let openings = openings(&mut reopening, seconds(2.5), true, true, 3600.0);
        assert!(openings.len() <= 125, "{} in an hour", openings.len());
    }

    #[test]
    fn t17_a_watch_that_is_well_ends_the_pauses() {
        let (mut reopening, start) = (Reopening::new(7), Instant::now());
        openings(&mut reopening, Duration::ZERO, false, false, 300.0);
        assert!(reopening.futile() > 5);
        let now = start + Duration::from_secs(3600);
        reopening.opened(false, now);
        assert!(!reopening.record_report(now), "what comes in the first moment shows nothing");
        assert!(reopening.record_report(now + AT_ONCE));
        assert_eq!(reopening.futile(), 0);
        assert!(!reopening.ended(now + 2 * AT_ONCE));
        assert_eq!(reopening.wait(now + 2 * AT_ONCE), Duration::ZERO);
    }

    #[test]
    fn t17_lists_that_fail_are_spaced_until_a_watch_is_open() {
        let (mut reopening, mut now) = (Reopening::new(7), Instant::now());
        let pauses: Vec<_> = (0..8)
            .map(|_| {
                reopening.list_failed(now);
                let pause = reopening.wait(now);
                now += pause;
                pause
            })
            .collect();
        assert!(pauses.windows(2).all(|pair| pair[1] >= pair[0] || pair[1] >= GAP.longest), "{pauses:?}");
        assert!(pauses[0] <= seconds(1.25) && pauses[7] >= GAP.longest, "{pauses:?}");
        reopening.opened(false, now);
        reopening.list_failed(now);
        assert!(reopening.wait(now) <= seconds(1.25));
    }
}
