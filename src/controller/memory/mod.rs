//! What the process remembers of a configuration between two reconciles. Everything can be lost at
//! any moment: it only saves requests.
//!
//! ```text
//!   timing     when to reconcile again: what is due, pauses after errors, gaps between events
//!   plan       what was drafted and previewed, to be used again
//!   report     the status as it was written last, and what of it is still to be recorded
//! ```

mod pacing;
mod plan_cache;
mod report;
#[cfg(test)]
mod tests;
mod timing;

use std::time::Duration;

use tokio::time::Instant;

use super::triggers::News;
pub(super) use plan_cache::{CachedItem, Circumstances, Drafted, PlanCache, Slow};
pub(super) use report::{LastReport, Settled, our_status};
pub(super) use timing::Timing;

/// The memory of one configuration.
#[derive(Default)]
pub(super) struct Memory {
    /// The uid of the object that all of this is about.
    pub(super) uid: Option<String>,
    /// When to reconcile again.
    pub(super) timing: Timing,
    /// What was planned last.
    pub(super) plan: PlanCache,
    /// What was reported last.
    pub(super) report: LastReport,
}

/// Whether a configuration is to be reconciled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Now,
    /// Something has happened, but the reconcile must wait for this long.
    After(Duration),
    /// Nothing has happened.
    Rest,
}

impl Memory {
    /// An empty memory of the object with this uid.
    pub(super) fn of(uid: Option<String>) -> Self {
        Self { uid, ..Self::default() }
    }

    /// Whether to reconcile the configuration, which is `settled` now, after `news` of what it
    /// depends on.
    ///
    /// An edit of it, what is due and what an execution waits for is never delayed, and delays
    /// nothing afterwards; nor are kinds that come and go, which is rare, and reported in several
    /// steps that follow each other closely.
    pub(super) fn call(&mut self, settled: &Settled, news: News, now: Instant) -> Call {
        let Some(known) = self.report.last_settled().filter(|known| known.says_as(settled)) else { return Call::Now };
        if news == News::Kinds {
            return Call::Now;
        }
        let is_due = self.timing.is_due();
        if news != News::Objects && known.status == settled.status {
            return if is_due { Call::Now } else { Call::Rest };
        }
        if is_due || settled.is_executing() && !self.timing.is_failing() {
            return Call::Now;
        }
        let gap = self.timing.gap(now);
        if gap.is_zero() { Call::Now } else { Call::After(gap) }
    }

    /// Whether nothing that is remembered may be used for a reconcile of the configuration, which
    /// is `settled` now: at the first reconcile, at the regular one, when a fresh plan was asked
    /// for, and before the first write of an execution.
    pub(super) fn needs_everything(&mut self, settled: &Settled) -> bool {
        let (asked, first_write) = (self.report.is_replan_asked(settled), settled.is_first_write());
        if first_write || asked {
            self.plan.forget();
        }
        first_write || asked || (self.timing.is_due() && !settled.is_applying() && !self.report.deferred)
    }

    /// Records that a reconcile failed, at whose beginning the configuration was `seen`. The plan
    /// is no longer trusted and is made again after the returned pause. `is_race` means that
    /// something merely changed in the meantime.
    pub(super) fn has_failed(&mut self, seen: Settled, name: &str, is_race: bool) -> Duration {
        self.report.has_failed(seen);
        self.plan.forget();
        self.timing.has_failed(name, is_race)
    }

    /// A reconcile ended without an error.
    pub(super) fn has_succeeded(&mut self) {
        self.timing.has_succeeded();
        self.report.failed = None;
    }
}
