//! Items: what is known of each draft's object, previewed where it must be, with how far its
//! rollout is.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::{GatherError, Gathering, is_executing};
use crate::controller::memory::{CachedItem, Drafted, PlanCache};
use advisor_core::api::{Item, ItemState, Operation};
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::health::Rollout;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::status::overridden;
use advisor_engine::engine::{CONCURRENCY, Task};

impl Gathering<'_> {
    /// The items of `drafted`, in its order.
    pub(super) async fn items(&self, drafted: &Drafted, cache: &mut PlanCache) -> Result<Vec<PlanItem>, GatherError> {
        if is_executing(self.status) && self.status.items.iter().any(|item| is_to_write(item) && !item.pools.is_empty())
        {
            // How many machines reboot at a time is decided now, and a watch may be outdated.
            self.read_pools().await?;
        }
        let choices = &Choices { exclusions: drafted.exclusions.clone(), ..self.wanted.choices.clone().at(self.now) };
        cache.items = self.previewed(drafted, choices, cache).await?;
        self.follow_rollouts(cache);
        let items = drafted.drafts.iter().filter_map(|draft| Some(cache.items.get(&draft.name)?.item.clone()));
        let mut items: Vec<_> = items.collect();
        cache.retain_times();
        for item in &mut items {
            item.live.in_effect_since = cache.in_effect_since(&item.name, self.is_waited_for(item), self.now);
            if !cache.is_troubled(&item.name, item.live.trouble.is_some(), self.ctx.patience) {
                item.live.trouble = None;
            }
        }
        Ok(items)
    }

    /// Each item with what it was planned from: as it was, where nothing has changed, or previewed.
    async fn previewed(
        &self,
        drafted: &Drafted,
        choices: &Choices,
        cache: &mut PlanCache,
    ) -> Result<BTreeMap<String, CachedItem>, GatherError> {
        let drafts = &drafted.drafts;
        let reused = drafts.iter().map(|draft| self.reused(draft, choices, drafted, cache.items.get(&draft.name)));
        let reused = reused.collect::<Vec<_>>();
        let reused: Vec<Option<PlanItem>> = stream::iter(reused).buffered(CONCURRENCY).try_collect().await?;
        let reused = reused.into_iter().flatten().map(|item| (item.name.clone(), item)).collect();
        // As of before the first request: a change in the meantime must count as a change
        // afterwards.
        let circumstances: Vec<_> = drafts.iter().map(|draft| self.circumstances(draft, choices, drafted)).collect();
        let task = Task {
            profile: self.config,
            rivals: self.profile.rivals(),
            kinds: self.profile.kinds(),
            drafts,
            remembered: &self.status.items,
            claims: &self.claims,
            choices,
            unwatched: &drafted.unwatched,
            exact: self.all,
        };
        let items = self.engine.items(task, reused).await?;
        let mut previewed = BTreeMap::new();
        for ((draft, item), circumstances) in drafts.iter().zip(items).zip(circumstances) {
            let mut known =
                CachedItem { followed: item.live.followed.clone(), circumstances, draft: draft.clone(), item };
            if let Some(item) = self.remembered(&draft.name) {
                known.item.live.changed_since_shown = cache.since(item, &known.item);
            }
            self.add_rollout(&mut known, &mut cache.slow).await?;
            previewed.insert(draft.name.clone(), known);
        }
        Ok(previewed)
    }

    /// Has the rollouts of what is under way, or overridden, followed.
    fn follow_rollouts(&self, cache: &PlanCache) {
        let followed = cache.items.iter().filter_map(|(name, known)| {
            let is_followed = |item: &Item| item.state == ItemState::InProgress || overridden::is_told(item);
            Some((known.followed.as_ref()?, self.remembered(name).is_some_and(is_followed)))
        });
        self.ctx.watches.follow_rollouts(self.config, followed);
    }

    /// Whether the item is under way, and its object in effect for its owner. What takes effect on
    /// machines is told by these, and not by who made it known to them.
    fn is_waited_for(&self, item: &PlanItem) -> bool {
        let under_way = self.remembered(&item.name).is_some_and(|item| item.state == ItemState::InProgress);
        let is_done = item.operation == Operation::NoChange && matches!(item.live.rollout, Rollout::Done(_));
        under_way && is_done && !self.ctx.rollouts.is_tracked(&item.target)
    }

    /// The item of that name that the status shows.
    pub(super) fn remembered(&self, name: &str) -> Option<&Item> {
        self.status.items.iter().find(|item| item.name == *name)
    }
}

/// Whether the item is about to be written, or may have been.
pub(super) fn is_to_write(item: &Item) -> bool {
    item.state == ItemState::InProgress && item.applied.is_none()
}
