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
use advisor_core::plan::remedy::Remedy;
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
    /// For the items in the status: their hash, and the fields that they were made from.
    shown: BTreeMap<String, (String, BTreeMap<String, Glimpse>)>,
    /// Since when an item can't be planned because of an obstacle that may disappear without a
    /// person.
    blocked_since: Option<Instant>,
    /// Since when the owners of unchanged objects have reported that something is wrong with them,
    /// by item.
    troubles: BTreeMap<String, Instant>,
    /// Since when the objects of items that are waited for have been in effect.
    in_effect: BTreeMap<String, Timestamp>,
    /// Items in progress that do not advance, by name.
    pub(in crate::controller) slow: BTreeMap<String, Slow>,
}

/// An item that does not advance.
pub(in crate::controller) struct Slow {
    /// Its last message.
    pub(in crate::controller) text: String,
    /// Since when the message has been the same.
    pub(in crate::controller) since: Instant,
    /// When its holdup was last searched for.
    pub(in crate::controller) asked: Option<Instant>,
    /// The holdup that was found.
    pub(in crate::controller) found: String,
}

/// Drafts, and the inputs that they were made from.
#[derive(Clone)]
pub(in crate::controller) struct Drafted {
    pub(in crate::controller) generation: i64,
    pub(in crate::controller) drafts: Vec<Draft>,
    pub(in crate::controller) inputs: Vec<Input>,
    /// The objects that administrators have excluded.
    pub(in crate::controller) exclusions: Exclusions,
    /// The features that are left out on this cluster.
    pub(in crate::controller) left_out: Vec<LeftOutFeature>,
    /// The part of the read objects that the profile used.
    pub(in crate::controller) used: Remembered,
    /// The drafts whose objects may not be watched, with the remedy.
    pub(in crate::controller) unwatched: BTreeMap<String, String>,
}

/// A planned item, with everything it was planned from.
#[derive(Clone)]
pub(in crate::controller) struct CachedItem {
    pub(in crate::controller) item: PlanItem,
    /// Name, labels and spec of the object, if its rollout is followed.
    pub(in crate::controller) followed: Option<Tracked>,
    /// The inputs of the preview other than draft and object, as of then. If they are equal now,
    /// the cached item is still valid.
    pub(in crate::controller) circumstances: Circumstances,
    /// The draft.
    pub(in crate::controller) draft: Draft,
}

/// The inputs of an item's preview other than its draft and its object.
#[derive(Clone, PartialEq)]
pub(in crate::controller) struct Circumstances {
    /// Whether its object may not be watched.
    pub(in crate::controller) unwatched: bool,
    /// The version of the CRD, which determines defaults and validation.
    pub(in crate::controller) definition: Option<String>,
    /// A text for the state of the rollouts, as far as the plan depends on it.
    pub(in crate::controller) rollouts: String,
    /// The claims of other configurations to the object.
    pub(in crate::controller) claims: Vec<Claim>,
    /// The reason why an administrator skips it, if so.
    pub(in crate::controller) set_aside: Result<Option<String>, Remedy>,
    /// The overrides of it in the spec.
    pub(in crate::controller) overrides: Vec<Override>,
}

impl PlanCache {
    /// Forgets the plan: everything is read and previewed again.
    pub(in crate::controller) fn forget(&mut self) {
        self.drafted = None;
        self.items.clear();
    }

    /// Records that the status now shows `items`, as far as they belong to `plan`.
    pub(in crate::controller) fn show(&mut self, items: &[Item], plan: &Plan) {
        for fresh in &plan.items {
            if items.iter().any(|item| item.name == fresh.name && item.item_hash == fresh.hash) {
                self.shown.insert(fresh.name.clone(), (fresh.hash.clone(), fresh.live.glimpses.clone()));
            }
        }
    }

    /// The changes in `fresh` since it was shown as `item`.
    pub(in crate::controller) fn since(&self, item: &Item, fresh: &PlanItem) -> Vec<String> {
        match self.shown.get(&fresh.name) {
            // An item that was not previewed has no known values.
            Some(_) if matches!(item.operation, Operation::Blocked | Operation::Skipped | Operation::Deferred) => {
                Vec::new()
            }
            Some((hash, before)) if *hash == item.item_hash && *hash != fresh.hash => {
                drift::between(before, &fresh.live.glimpses)
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// For how long something that may pass by itself has kept a plan from being made, this time
    /// included.
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

    /// Whether the owner of the item's object has reported `trouble` for long enough to pass it on.
    /// Owners report that they are degraded while they work.
    pub(in crate::controller) fn is_troubled(&mut self, item: &str, trouble: bool, patience: Duration) -> bool {
        if !trouble {
            self.troubles.remove(item);
            return false;
        }
        self.troubles.entry(item.to_owned()).or_insert_with(Instant::now).elapsed() >= TROUBLED.min(patience)
    }

    /// The time until the next trouble has lasted for long enough.
    pub(in crate::controller) fn doubt(&self, patience: Duration) -> Option<Duration> {
        let rests = self.troubles.values().map(|since| TROUBLED.min(patience).saturating_sub(since.elapsed()));
        rests.filter(|rest| !rest.is_zero()).min()
    }
}
