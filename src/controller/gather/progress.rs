//! The progress of written objects: what rollouts know, and what must be read for it.

use std::collections::BTreeMap;

use profile_sdk::Body;
use tokio::time::Instant;

use super::error::resolve;
use super::{GatherError, Gathering};
use crate::controller::Context;
use crate::controller::memory::{CachedItem, PlanCache, Slow};
use advisor_core::api::{Item, ItemState, Operation, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::items::health::Rollout;
use advisor_core::rollout::{ChangeKind, Progress, Tracked};

/// The progress of written items, if nothing else needs to be examined: something is in progress,
/// and nothing can be written.
pub(super) async fn only_rollouts(
    ctx: &Context,
    status: &VirtPlatformConfigStatus,
    cache: &mut PlanCache,
) -> Result<Option<BTreeMap<String, Rollout>>, GatherError> {
    let mut rollouts = BTreeMap::new();
    let under_way = status.items.iter().filter(|item| item.state == ItemState::InProgress);
    for item in under_way {
        let Some(known) = cache.items.get(&item.name) else {
            return Ok(None);
        };
        let (Some(object), true) = (&known.followed, item.applied.is_some()) else {
            return Ok(None);
        };
        match progress(ctx, object, change(Some(item))).await? {
            rollout @ Rollout::Waiting { .. } => {
                let (object, slow) = (object.clone(), &mut cache.slow);
                rollouts.insert(
                    item.name.clone(),
                    explained(ctx, slow, &item.name, (&object, change(Some(item))), rollout).await,
                )
            }
            Rollout::Done(_) | Rollout::Failed(_) => return Ok(None),
        };
    }
    Ok((!rollouts.is_empty()).then_some(rollouts))
}

/// `rollout` with what holds it up, if it has made no progress for a while. The holdup is searched
/// for at most once within that time. If only a person can make it progress, it has failed by then.
pub(super) async fn explained(
    ctx: &Context,
    slow: &mut BTreeMap<String, Slow>,
    item: &str,
    (tracked, change): (&Tracked, ChangeKind),
    rollout: Rollout,
) -> Rollout {
    let Rollout::Waiting { text, paused: false } = &rollout else {
        slow.remove(item);
        return rollout;
    };
    let now = Instant::now();
    let fresh = || Slow { text: text.clone(), since: now, asked: None, found: String::new() };
    let entry = slow.entry(item.to_owned()).or_insert_with(fresh);
    if entry.text != *text {
        *entry = fresh();
    }
    let waited = entry.asked.unwrap_or(entry.since).elapsed();
    if waited >= ctx.patience {
        entry.asked = Some(now);
        entry.found = holdups(ctx, tracked).await.join("; ");
    }
    if entry.since.elapsed() >= ctx.patience && ctx.rollouts.is_stuck(tracked, change) {
        return Rollout::Failed(text.clone());
    }
    if entry.found.is_empty() {
        return rollout;
    }
    Rollout::Waiting { text: format!("{text}; {}", entry.found), paused: false }
}

/// What holds `tracked` up. What can't be found out is not said.
async fn holdups(ctx: &Context, tracked: &Tracked) -> Vec<String> {
    let mut found = Vec::new();
    for question in ctx.rollouts.questions(tracked) {
        let Ok(Some(served)) = resolve(ctx, &question.kind).await else { continue };
        match ctx.cluster.list_selected(&served, question.field_selector, question.metadata_only).await {
            Ok(objects) => found.extend(ctx.rollouts.holdup(tracked, &question, &objects)),
            Err(error) => {
                tracing::debug!(kind = question.kind.kind, %error, "could not find out what holds the rollout up")
            }
        }
    }
    found
}

/// The number of machines that have everything that the current execution has written for them.
/// `None` if it has written nothing for any machine, or if it is not known.
pub(super) fn machines_updated(
    ctx: &Context,
    status: &VirtPlatformConfigStatus,
    known: &BTreeMap<String, CachedItem>,
) -> Option<u32> {
    let executing = status.phase == Some(Phase::InProgress);
    let is_written = |item: &&Item| {
        let has_begun = matches!(item.state, ItemState::InProgress | ItemState::Completed);
        executing && has_begun && item.operation.writes() && ctx.rollouts.is_tracked(&item.target_ref)
    };
    let mut pools: BTreeMap<String, u32> = BTreeMap::new();
    for item in status.items.iter().filter(is_written) {
        let object = known.get(&item.name)?.followed.as_ref()?;
        for (pool, machines) in ctx.rollouts.machines_updated(object, change(Some(item))) {
            pools.entry(pool).and_modify(|least| *least = machines.min(*least)).or_insert(machines);
        }
    }
    (!pools.is_empty()).then(|| pools.values().fold(0_u32, |sum, machines| sum.saturating_add(*machines)))
}

/// How far `tracked` is, reading what must be read for it.
pub(super) async fn progress(ctx: &Context, tracked: &Tracked, change: ChangeKind) -> Result<Rollout, GatherError> {
    loop {
        let unread = match ctx.rollouts.progress(tracked, change) {
            Progress::Known(rollout) => return Ok(rollout),
            Progress::Unread(unread) => unread,
        };
        let kind = ctx.rollouts.read_kind();
        let served = resolve(ctx, &kind).await?;
        for needed in unread {
            let describe = || format!("{} {}", kind.kind, needed.name());
            // One at a time: these objects are large.
            let read = match &served {
                Some(served) => {
                    let read = ctx.cluster.get(served, None, needed.name()).await;
                    read.map_err(|source| GatherError::Object { object: describe(), source })?
                }
                None => None,
            };
            if read.is_none() && !needed.may_be_gone() {
                return Err(GatherError::Rendered { object: describe() });
            }
            ctx.rollouts.record_for_progress(tracked, &needed, read.as_ref());
        }
    }
}

/// How the item changed its object: an edit needs more proof than a new object.
pub(super) fn change(item: Option<&Item>) -> ChangeKind {
    match item {
        Some(Item { operation: Operation::Update | Operation::Remove, state: ItemState::InProgress, .. }) => {
            ChangeKind::Edited
        }
        Some(_) | None => ChangeKind::New,
    }
}

impl Gathering<'_> {
    /// How far `tracked` is. That an execution is done is read live, once, and not believed of a
    /// watch.
    async fn confirmed(&self, item: Option<&Item>, tracked: &Tracked) -> Result<Rollout, GatherError> {
        let change = change(item);
        let rollout = progress(self.ctx, tracked, change).await?;
        let rolling = item.is_some_and(|item| item.state == ItemState::InProgress && item.applied.is_some());
        if !(rolling && matches!(rollout, Rollout::Done(_))) {
            return Ok(rollout);
        }
        self.read_pools().await?;
        progress(self.ctx, tracked, change).await
    }

    /// Reads the objects that show the state of rollouts, because a watch may be outdated.
    pub(super) async fn read_pools(&self) -> Result<(), GatherError> {
        let kind = self.ctx.rollouts.watched_kind();
        if let Some(served) = resolve(self.ctx, &kind).await? {
            let objects = self.ctx.cluster.list(&served).await;
            let objects = objects.map_err(|source| GatherError::Object { object: kind.plural.to_owned(), source })?;
            self.ctx.rollouts.pools_listed(&objects);
        }
        Ok(())
    }

    pub(super) async fn add_rollout(
        &self,
        known: &mut CachedItem,
        slow: &mut BTreeMap<String, Slow>,
    ) -> Result<(), GatherError> {
        let item = self.remembered(&known.item.name);
        if matches!(known.draft.body, Body::Remove(_)) {
            let under_way = item.filter(|item| item.state == ItemState::InProgress);
            let is_made =
                known.item.operation == Operation::NoChange && self.ctx.rollouts.is_tracked(&known.item.target);
            let Some(item) = under_way.filter(|_| is_made) else { return Ok(()) };
            match (&known.item.live.uid, &known.item.live.resource_version, &known.followed) {
                (None, None, _) => {
                    let gone = Tracked::Removed { target: known.item.target.clone(), pools: item.pools.clone() };
                    known.item.live.rollout = progress(self.ctx, &gone, ChangeKind::New).await?;
                    known.followed = Some(gone);
                }
                // Others own fields of it, and it stays without ours.
                (Some(_), Some(_), Some(left)) => {
                    known.item.live.rollout = progress(self.ctx, left, ChangeKind::Edited).await?
                }
                // It is being deleted, but still exists.
                _ => {}
            }
            return Ok(());
        }
        // Blocked and skipped items are not waited for, whether their objects exist or not.
        let is_followed = !matches!(known.item.operation, Operation::Blocked | Operation::Skipped);
        if let Some(object) = known.followed.as_ref().filter(|_| is_followed) {
            known.item.live.overridden = BTreeMap::new();
            known.item.live.rollout = match known.item.live.uid {
                Some(_) => {
                    let rollout = self.confirmed(item, object).await?;
                    if known.item.operation == Operation::NoChange {
                        known.item.live.overridden = self.ctx.rollouts.overridden(object);
                    }
                    let under_way = item.is_some_and(|item| item.state == ItemState::InProgress);
                    if under_way {
                        explained(self.ctx, slow, &known.item.name, (object, change(item)), rollout).await
                    } else {
                        rollout
                    }
                }
                None => Rollout::Waiting { text: "does not exist yet".to_owned(), paused: false },
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is left of an object that others share is not done with the rendering of before.
    #[test]
    fn edits_and_removals_under_way_need_more_proof_than_new_objects() {
        for (operation, state, expected) in [
            ("Create", "InProgress", ChangeKind::New),
            ("Update", "InProgress", ChangeKind::Edited),
            ("Remove", "InProgress", ChangeKind::Edited),
            ("Remove", "Completed", ChangeKind::New),
            ("NoChange", "Completed", ChangeKind::New),
        ] {
            let target = json!({"apiVersion": "v1", "kind": "Widget", "name": "w"});
            let item = json!({"name": "w", "targetRef": target, "operation": operation, "state": state});
            let item: Item = serde_json::from_value(item).unwrap();
            assert_eq!(change(Some(&item)), expected, "{operation} {state}");
        }
        assert_eq!(change(None), ChangeKind::New);
    }
}
