//! What the process remembers of a configuration between two looks. All of it can be lost at any moment: it only saves
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use profile_sdk::{Draft, LeftOutFeature, Remembered};
use serde_json::Value;
use tokio::time::Instant;

use super::pacing::Pacing;
use super::triggers::News;
use advisor_core::api::{Input, Item, Operation, Override, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::Plan;
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::drift::{self, Glimpse};
use advisor_core::plan::overrides::Exclusions;

/// First and longest pause after an error; it doubles in between.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Trouble of an owner that lasts for so long is told.
const TROUBLED: Duration = Duration::from_secs(30);

/// What is remembered of one configuration.
#[derive(Default)]
pub(super) struct Memory {
    /// The object that all this is about.
    pub(super) uid: Option<String>,
    /// The configuration as it was when the last look ended.
    pub(super) settled: Option<Settled>,
    /// The version that our last status write replaced: a cache that still shows it is behind.
    pub(super) replaced_version: Option<String>,
    /// What the profile drafted last.
    pub(super) drafted: Option<Arc<Drafted>>,
    /// The items as they were planned last, by name.
    pub(super) items: BTreeMap<String, CachedItem>,
    /// Of the items that the status shows: their hash, and the fields that they were made from.
    pub(super) shown: BTreeMap<String, (String, BTreeMap<String, Glimpse>)>,
    /// When to look without an event.
    pub(super) due: Option<Instant>,
    /// Since when an item can't be planned for a reason that may pass by itself.
    pub(super) passing_since: Option<Instant>,
    /// Since when the owners of objects that are as wanted have said that something is wrong with them, by item.
    pub(super) troubles: BTreeMap<String, Instant>,
    /// Since when the objects of items that are waited for have been in effect.
    pub(super) in_effect: BTreeMap<String, Timestamp>,
    /// Items under way that have come no further, by name.
    pub(super) slow: BTreeMap<String, Slow>,
    /// Whether all that belongs into the audit trail is there.
    pub(super) recorded: bool,
    /// Whether it was said that the CRD is too old.
    pub(super) told_of_crd: bool,
    /// When the status was written last.
    pub(super) written_at: Option<Timestamp>,
    /// Whether a status that is known waits for its time to be written.
    pub(super) deferred: bool,
    /// The configuration as it was when a look at it failed, until one succeeds.
    pub(super) failed: Option<Settled>,
    /// The looks that only events caused.
    pub(super) pacing: Pacing,
    errors: u32,
    /// How many looks failed, one after the other, because something moved meanwhile.
    races: u32,
    /// Since when looks have failed.
    failing_since: Option<Instant>,
}

/// An item that has come no further.
pub(super) struct Slow {
    /// What was said of it.
    pub(super) text: String,
    /// Since when.
    pub(super) since: Instant,
    /// When it was asked what holds it up.
    pub(super) asked: Option<Instant>,
    /// What was found.
    pub(super) found: String,
}

/// The part of a configuration that, unchanged, needs no look.
#[derive(Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) generation: Option<i64>,
    pub(super) uid: Option<String>,
    pub(super) replan: Option<String>,
    pub(super) deleting: bool,
    pub(super) status: VirtPlatformConfigStatus,
}

/// Whether a configuration is to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    Now,
    /// Something has happened, which may wait for so long.
    After(Duration),
    /// Nothing has happened.
    Rest,
}

impl Settled {
    /// Whether `other` says the same, whatever became of it.
    fn says_as(&self, other: &Self) -> bool {
        let said = |settled: &Self| (settled.generation, settled.uid.clone(), settled.replan.clone(), settled.deleting);
        said(self) == said(other)
    }

    /// An approved plan is being executed.
    fn is_executing(&self) -> bool {
        self.status.phase == Some(Phase::InProgress) && self.status.approval.is_some()
    }
}

/// Drafts, and the inputs that they were made from.
#[derive(Clone)]
pub(super) struct Drafted {
    pub(super) generation: i64,
    pub(super) drafts: Vec<Draft>,
    pub(super) inputs: Vec<Input>,
    /// What administrators have excluded.
    pub(super) exclusions: Exclusions,
    /// The parts of the profile of which nothing is wanted here.
    pub(super) left_out: Vec<LeftOutFeature>,
    /// What the profile used of the objects that it read.
    pub(super) used: Remembered,
    /// The drafts whose objects may not be watched, with what to do for that.
    pub(super) unwatched: BTreeMap<String, String>,
}

/// A planned item, and what it was planned from.
#[derive(Clone)]
pub(super) struct CachedItem {
    pub(super) item: PlanItem,
    /// Name, labels and spec of the object, where its rollout is followed.
    pub(super) followed: Option<Value>,
    /// What the plan depends on beside draft and object, as it was then.
    pub(super) circumstances: Circumstances,
    /// The draft.
    pub(super) draft: Draft,
}

/// What the plan of an item depends on beside its draft and its object.
#[derive(Clone, PartialEq)]
pub(super) struct Circumstances {
    /// Its object may not be watched.
    pub(super) unwatched: bool,
    /// The version of the CRD: defaults and rules come from there.
    pub(super) definition: Option<String>,
    /// What the rollouts look like, as far as the plan depends on them.
    pub(super) rollouts: String,
    /// What other configurations want of the object.
    pub(super) claims: Vec<Claim>,
    /// Why an administrator has set it aside, if one has.
    pub(super) set_aside: Result<Option<String>, String>,
    /// What spec wants of it otherwise.
    pub(super) overrides: Vec<Override>,
}

impl Memory {
    /// Nothing is remembered of the object with this uid.
    pub(super) fn of(uid: Option<String>) -> Self {
        Self { uid, ..Self::default() }
    }

    /// Whether to look at the configuration, which is `settled` now, after `news` of what it depends on.
    ///
    /// What somebody says in it, what is due and what an execution waits for is never delayed, and delays nothing afterwards; nor are
    /// kinds that come and go, which is rare, and told in several steps that follow each other closely.
    pub(super) fn call(&mut self, settled: &Settled, news: News, now: Instant) -> Call {
        let known = self.settled.as_ref().or(self.failed.as_ref());
        let Some(known) = known.filter(|known| known.says_as(settled)) else { return Call::Now };
        if news == News::Kinds {
            return Call::Now;
        }
        let moved = news == News::Objects || known.status != settled.status;
        let waits = !(self.is_due() || settled.is_executing() && self.errors == 0);
        if !moved {
            return if self.is_due() { Call::Now } else { Call::Rest };
        }
        // Its next move is told as well: a pause that each event cuts short is none.
        let pause =
            self.due.filter(|_| self.races > 1).map_or(Duration::ZERO, |due| due.saturating_duration_since(now));
        if waits {
            let gap = self.pacing.wait(now).max(pause);
            if !gap.is_zero() {
                return Call::After(gap);
            }
            self.pacing.begin(now);
        }
        Call::Now
    }

    /// A look at the configuration, which was `seen` at its beginning, has failed: nothing of the plan is trusted any more, and it is made
    /// again after the pause that is returned. `is_race` says that something has only moved meanwhile.
    pub(super) fn has_failed(&mut self, seen: Settled, name: &str, is_race: bool) -> Duration {
        let pause = self.pause_after_error(name);
        self.races = if is_race { self.races.saturating_add(1) } else { 0 };
        // It may have been written and only then have failed.
        self.failed = self.settled.take().filter(|written| written.says_as(&seen)).or(Some(seen));
        self.forget_plan();
        self.due = Some(Instant::now() + pause);
        pause
    }

    /// The pause after one more error in a row: doubling, and up to a quarter longer so that many do not meet.
    pub(super) fn pause_after_error(&mut self, name: &str) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.errors.min(10));
        self.errors += 1;
        self.failing_since.get_or_insert_with(Instant::now);
        spread(doubled.min(LONGEST_PAUSE), name, self.errors)
    }

    /// `items` are what the status shows now, as far as they are in `plan`.
    pub(super) fn show(&mut self, items: &[Item], plan: &Plan) {
        for fresh in &plan.items {
            if items.iter().any(|item| item.name == fresh.name && item.item_hash == fresh.hash) {
                self.shown.insert(fresh.name.clone(), (fresh.hash.clone(), fresh.glimpses.clone()));
            }
        }
    }

    /// What has moved of `fresh` since it was shown as `item`.
    pub(super) fn since(&self, item: &Item, fresh: &PlanItem) -> Vec<String> {
        match self.shown.get(&fresh.name) {
            // Of what was not previewed no values are known.
            Some(_) if matches!(item.operation, Operation::Blocked | Operation::Skipped | Operation::Deferred) => {
                Vec::new()
            }
            Some((hash, before)) if *hash == item.item_hash && *hash != fresh.hash => {
                drift::between(before, &fresh.glimpses)
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Whether the owner of the item's object has had `trouble` for long enough to say so. Owners say that they are degraded while
    /// they do their work.
    pub(super) fn is_troubled(&mut self, item: &str, trouble: bool, patience: Duration) -> bool {
        if !trouble {
            self.troubles.remove(item);
            return false;
        }
        self.troubles.entry(item.to_owned()).or_insert_with(Instant::now).elapsed() >= TROUBLED.min(patience)
    }

    /// How long it takes until the next trouble has lasted for long enough.
    pub(super) fn doubt(&self, patience: Duration) -> Option<Duration> {
        let rests = self.troubles.values().map(|since| TROUBLED.min(patience).saturating_sub(since.elapsed()));
        rests.filter(|rest| !rest.is_zero()).min()
    }

    /// For how long looks have failed.
    pub(super) fn failing_for(&self) -> Duration {
        self.failing_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// A look ended without an error.
    pub(super) fn no_error(&mut self) {
        self.errors = 0;
        self.races = 0;
        self.failing_since = None;
        self.failed = None;
    }

    /// Nothing of the plan is trusted any more: everything is read and previewed again.
    pub(super) fn forget_plan(&mut self) {
        self.drafted = None;
        self.items.clear();
    }

    /// Whether it is time to look without an event.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }
}

/// `pause`, or up to a quarter longer, so that many configurations do not meet: the same for the same name and round.
pub(super) fn spread(pause: Duration, name: &str, round: u32) -> Duration {
    let percent = name.bytes().fold(round, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 100;
    pause + pause * percent / 400
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settled(generation: i64, phase: Option<Phase>) -> Settled {
        let status = VirtPlatformConfigStatus { phase, ..VirtPlatformConfigStatus::default() };
        Settled { generation: Some(generation), uid: None, replan: None, deleting: false, status }
    }

    /// A memory of a configuration at which events have caused looks that followed each other closely.
    fn hurried() -> (Memory, Instant) {
        let mut memory = Memory { settled: Some(settled(1, None)), ..Memory::default() };
        let now = Instant::now();
        while memory.call(&settled(1, None), News::Objects, now) == Call::Now {
            memory.pacing.end(now);
        }
        (memory, now)
    }

    #[test]
    fn t19_events_wait_for_their_time_and_nothing_else_does() {
        let (mut memory, now) = hurried();
        let waits = |call| matches!(call, Call::After(_));
        assert!(waits(memory.call(&settled(1, None), News::Objects, now)), "an event");
        assert!(
            waits(memory.call(&settled(1, Some(Phase::Drifted)), News::Nothing, now)),
            "a status that others have changed"
        );
        assert_eq!(memory.call(&settled(1, None), News::Nothing, now), Call::Rest);
        assert_eq!(memory.call(&settled(2, None), News::Nothing, now), Call::Now, "an edit");
        let edits: [fn(&mut Settled); 3] = [
            |config| config.deleting = true,
            |config| config.replan = Some("now".to_owned()),
            |config| {
                config.status.phase = Some(Phase::InProgress);
                let approval =
                    json!({"planHash": "", "how": "Hash", "by": "", "at": "2024-01-01T00:00:00Z", "generation": 1});
                config.status.approval = serde_json::from_value(approval).unwrap();
            },
        ];
        for edit in edits {
            let mut edited = settled(1, None);
            edit(&mut edited);
            assert_eq!(memory.call(&edited, News::Objects, now), Call::Now, "{edited:?}");
        }
        assert_eq!(memory.call(&settled(1, None), News::Kinds, now), Call::Now, "a kind");
        memory.due = Some(now);
        assert_eq!(memory.call(&settled(1, None), News::Nothing, now), Call::Now, "what is due");
    }

    #[test]
    fn t19_the_steps_of_an_execution_delay_nothing_after_it() {
        let mut executing = settled(1, Some(Phase::InProgress));
        let approval = json!({"planHash": "", "how": "Hash", "by": "", "at": "2024-01-01T00:00:00Z", "generation": 1});
        executing.status.approval = serde_json::from_value(approval).unwrap();
        let mut memory = Memory { settled: Some(settled(1, None)), ..Memory::default() };
        let now = Instant::now();
        for step in 0..1000 {
            let step = now + Duration::from_millis(20 * step);
            assert_eq!(memory.call(&executing, News::Objects, step), Call::Now);
            memory.pacing.end(step);
        }
        let drift = now + Duration::from_secs(21);
        assert_eq!(memory.call(&settled(1, None), News::Objects, drift), Call::Now);
    }

    #[test]
    fn t19_an_event_cuts_the_pause_after_a_race_short_once() {
        let mut memory = Memory { settled: Some(settled(1, None)), ..Memory::default() };
        let now = Instant::now();
        memory.has_failed(settled(1, None), "a", true);
        assert_eq!(
            memory.call(&settled(1, None), News::Nothing, now),
            Call::Rest,
            "without an event nothing cuts it short"
        );
        assert_eq!(memory.call(&settled(1, None), News::Objects, now), Call::Now);
        let pause = memory.has_failed(settled(1, None), "a", true);
        let Call::After(rest) = memory.call(&settled(1, None), News::Objects, now) else { panic!("cut short again") };
        assert!(rest >= pause && rest < pause + Duration::from_secs(1), "{rest:?} of {pause:?}");
        assert_eq!(memory.call(&settled(2, None), News::Objects, now), Call::Now, "an edit");
    }

    #[test]
    fn pauses_grow_and_have_an_end() {
        let mut memory = Memory::default();
        let pauses: Vec<_> = (0..20).map(|_| memory.pause_after_error("a")).collect();
        assert!(pauses[0] >= FIRST_PAUSE && pauses[0] < FIRST_PAUSE * 2, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= LONGEST_PAUSE * 5 / 4), "{pauses:?}");
        memory.no_error();
        assert!(memory.pause_after_error("a") < FIRST_PAUSE * 2);
    }
}
