//! What was planned last: drafts, items, and what is known of them over time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use profile_sdk::{Draft, LeftOutFeature, Remembered};
use tokio::time::Instant;

use advisor_core::api::{Input, Item, Operation, Override};
use advisor_core::plan::Plan;
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::drift::{self, Glimpse};
use advisor_core::plan::overrides::Exclusions;
use advisor_core::rollout::Tracked;

/// Trouble of an owner that lasts for so long is reported.
const TROUBLED: Duration = Duration::from_secs(30);

/// The plan of one configuration as it was made last.
#[derive(Default)]
pub(in crate::controller) struct PlanCache {
    /// What the profile drafted.
    pub(in crate::controller) drafted: Option<Arc<Drafted>>,
    /// The items, by name.
    pub(in crate::controller) items: BTreeMap<String, CachedItem>,
    /// Of the items that the status shows: their hash, and the fields that they were made from.
    shown: BTreeMap<String, (String, BTreeMap<String, Glimpse>)>,
    /// Since when an item can't be planned for a reason that may pass by itself.
    blocked_since: Option<Instant>,
    /// Since when the owners of unchanged objects have reported that something is wrong with them, by item.
    troubles: BTreeMap<String, Instant>,
    /// Since when the objects of items that are waited for have been in effect.
    in_effect: BTreeMap<String, Timestamp>,
    /// Items under way that have come no further, by name.
    pub(in crate::controller) slow: BTreeMap<String, Slow>,
}

/// An item that has come no further.
pub(in crate::controller) struct Slow {
    /// What was said of it.
    pub(in crate::controller) text: String,
    /// Since when.
    pub(in crate::controller) since: Instant,
    /// When it was asked what holds it up.
    pub(in crate::controller) asked: Option<Instant>,
    /// What was found.
    pub(in crate::controller) found: String,
}

/// Drafts, and the inputs that they were made from.
#[derive(Clone)]
pub(in crate::controller) struct Drafted {
    pub(in crate::controller) generation: i64,
    pub(in crate::controller) drafts: Vec<Draft>,
    pub(in crate::controller) inputs: Vec<Input>,
    /// What administrators have excluded.
    pub(in crate::controller) exclusions: Exclusions,
    /// The parts of the profile of which nothing is wanted here.
    pub(in crate::controller) left_out: Vec<LeftOutFeature>,
    /// What the profile used of the objects that it read.
    pub(in crate::controller) used: Remembered,
    /// The drafts whose objects may not be watched, with what to do for that.
    pub(in crate::controller) unwatched: BTreeMap<String, String>,
}

/// A planned item, and what it was planned from.
#[derive(Clone)]
pub(in crate::controller) struct CachedItem {
    pub(in crate::controller) item: PlanItem,
    /// Name, labels and spec of the object, where its rollout is followed.
    pub(in crate::controller) followed: Option<Tracked>,
    /// What the plan depends on beside draft and object, as it was then.
    pub(in crate::controller) circumstances: Circumstances,
    /// The draft.
    pub(in crate::controller) draft: Draft,
}

/// What the plan of an item depends on beside its draft and its object.
#[derive(Clone, PartialEq)]
pub(in crate::controller) struct Circumstances {
    /// Its object may not be watched.
    pub(in crate::controller) unwatched: bool,
    /// The version of the CRD: defaults and rules come from there.
    pub(in crate::controller) definition: Option<String>,
    /// What the rollouts look like, as far as the plan depends on them.
    pub(in crate::controller) rollouts: String,
    /// What other configurations want of the object.
    pub(in crate::controller) claims: Vec<Claim>,
    /// Why an administrator has set it aside, if one has.
    pub(in crate::controller) set_aside: Result<Option<String>, String>,
    /// What spec wants of it otherwise.
    pub(in crate::controller) overrides: Vec<Override>,
}

impl PlanCache {
    /// Nothing of the plan is trusted any more: everything is read and previewed again.
    pub(in crate::controller) fn forget(&mut self) {
        self.drafted = None;
        self.items.clear();
    }

    /// `items` are what the status shows now, as far as they are in `plan`.
    pub(in crate::controller) fn show(&mut self, items: &[Item], plan: &Plan) {
        for fresh in &plan.items {
            if items.iter().any(|item| item.name == fresh.name && item.item_hash == fresh.hash) {
                self.shown.insert(fresh.name.clone(), (fresh.hash.clone(), fresh.glimpses.clone()));
            }
        }
    }

    /// What has moved of `fresh` since it was shown as `item`.
    pub(in crate::controller) fn since(&self, item: &Item, fresh: &PlanItem) -> Vec<String> {
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

    /// For how long something that may pass by itself has kept a plan from being made, this time included.
    pub(in crate::controller) fn blocked_for(&mut self) -> Duration {
        self.blocked_since.get_or_insert_with(Instant::now).elapsed()
    }

    /// Nothing of that kind does.
    pub(in crate::controller) fn is_not_blocked(&mut self) {
        self.blocked_since = None;
    }

    /// Since when the item, which `is_in_effect` at `now` or is not, has been in effect.
    pub(in crate::controller) fn in_effect_since(
        &mut self,
        item: &str,
        is_in_effect: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if !is_in_effect {
            self.in_effect.remove(item);
            return None;
        }
        Some(*self.in_effect.entry(item.to_owned()).or_insert(now))
    }

    /// Forgets times of items that are no longer planned.
    pub(in crate::controller) fn retain_times(&mut self) {
        let items = &self.items;
        self.troubles.retain(|name, _| items.contains_key(name));
        self.in_effect.retain(|name, _| items.contains_key(name));
    }

    /// Whether the owner of the item's object has had `trouble` for long enough to say so. Owners say that they are degraded while
    /// they do their work.
    pub(in crate::controller) fn is_troubled(&mut self, item: &str, trouble: bool, patience: Duration) -> bool {
        if !trouble {
            self.troubles.remove(item);
            return false;
        }
        self.troubles.entry(item.to_owned()).or_insert_with(Instant::now).elapsed() >= TROUBLED.min(patience)
    }

    /// How long it takes until the next trouble has lasted for long enough.
    pub(in crate::controller) fn doubt(&self, patience: Duration) -> Option<Duration> {
        let rests = self.troubles.values().map(|since| TROUBLED.min(patience).saturating_sub(since.elapsed()));
        rests.filter(|rest| !rest.is_zero()).min()
    }
}
