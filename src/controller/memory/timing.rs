//! When to reconcile a configuration again: what is due, and the pauses after errors and between
//! events.

use std::time::Duration;

use operator_kit::backoff::{Backoff, spread};
use tokio::time::Instant;

use super::pacing::Pacing;
use crate::controller::schedule::RESYNC;

/// After a reconcile that failed.
pub(super) const AFTER_ERROR: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(60) };

/// When to reconcile one configuration again.
#[derive(Debug, Default)]
pub(in crate::controller) struct Timing {
    /// When to reconcile without an event.
    due: Option<Instant>,
    /// How closely reconciles that only events cause may follow each other.
    pacing: Pacing,
    /// How many reconciles failed, one after the other.
    errors: u32,
    /// How many of them because something moved meanwhile.
    races: u32,
    /// Since when reconciles have failed.
    failing_since: Option<Instant>,
}

impl Timing {
    /// Whether it is time to reconcile without an event.
    pub(in crate::controller) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// How long until then.
    pub(in crate::controller) fn until_due(&self) -> Duration {
        self.due.map_or(RESYNC, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Reconcile again after `pause`, whatever was said before.
    pub(in crate::controller) fn set(&mut self, pause: Duration) {
        self.due = Some(Instant::now() + pause);
    }

    /// Reconcile again after `pause` at the latest.
    pub(in crate::controller) fn set_at_latest(&mut self, pause: Duration) {
        let at_latest = Instant::now() + pause;
        self.due = Some(self.due.map_or(at_latest, |due| due.min(at_latest)));
    }

    /// Whether the last reconcile failed.
    pub(super) fn is_failing(&self) -> bool {
        self.errors > 0
    }

    /// How long reconciles have been failing.
    pub(in crate::controller) fn failing_for(&self) -> Duration {
        self.failing_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How long an event that has come by `now` has to wait. Where that is nothing, its reconcile
    /// begins.
    pub(super) fn gap(&mut self, now: Instant) -> Duration {
        // A pause after races that each event cuts short is none.
        let pause = self.due.filter(|_| self.races > 1).map(|due| due.saturating_duration_since(now));
        let gap = self.pacing.wait(now).max(pause.unwrap_or_default());
        if gap.is_zero() {
            self.pacing.begin(now);
        }
        gap
    }

    /// A reconcile has ended, however.
    pub(in crate::controller) fn reconcile_ended(&mut self, now: Instant) {
        self.pacing.end(now);
    }

    /// A reconcile failed. Returns the pause until the next one; `is_race` says that something has
    /// only moved meanwhile.
    pub(super) fn has_failed(&mut self, name: &str, is_race: bool) -> Duration {
        let pause = self.pause_after_error(name);
        self.races = if is_race { self.races.saturating_add(1) } else { 0 };
        self.set(pause);
        pause
    }

    /// The pause after one more consecutive error: it doubles, and is up to a quarter longer so
    /// that retries of many configurations do not coincide.
    pub(in crate::controller) fn pause_after_error(&mut self, name: &str) -> Duration {
        self.errors = self.errors.saturating_add(1);
        self.failing_since.get_or_insert_with(Instant::now);
        spread(AFTER_ERROR.after(self.errors), name, self.errors)
    }

    /// A reconcile ended without an error.
    pub(in crate::controller) fn has_succeeded(&mut self) {
        self.errors = 0;
        self.races = 0;
        self.failing_since = None;
    }
}
