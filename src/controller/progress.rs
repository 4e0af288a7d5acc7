//! How far written objects are: what rollouts know, and what must be read for it.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

use super::Context;
use super::gather::{GatherError, resolve};
use super::memory::{CachedItem, Memory, Slow};
use advisor_core::api::{Item, ItemState, Operation, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::items::health::Rollout;
use advisor_core::rollout::{ChangeKind, Progress};

/// How far written items are, if that is all there is to know: something is under way, and nothing can be written.
pub(super) async fn only_rollouts(
    ctx: &Context,
    status: &VirtPlatformConfigStatus,
    memory: &mut Memory,
) -> Result<Option<BTreeMap<String, Rollout>>, GatherError> {
    let mut rollouts = BTreeMap::new();
    let under_way = status.items.iter().filter(|item| item.state == ItemState::InProgress);
    for item in under_way {
        let Some(known) = memory.items.get(&item.name) else {
            return Ok(None);
        };
        let (Some(object), true) = (&known.followed, item.applied.is_some()) else {
            return Ok(None);
        };
        match standing(ctx, object, change(Some(item))).await? {
            rollout @ Rollout::Waiting { .. } => {
                let (object, slow) = (object.clone(), &mut memory.slow);
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

/// `rollout` with what holds it up, if it has come no further for a while. That is found out at most once in that while. What only a person can make
/// go on has failed by then.
pub(super) async fn explained(
    ctx: &Context,
    slow: &mut BTreeMap<String, Slow>,
    item: &str,
    (object, change): (&Value, ChangeKind),
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
        entry.found = holdups(ctx, object).await.join("; ");
    }
    if entry.since.elapsed() >= ctx.patience && ctx.rollouts.is_stuck(object, change) {
        return Rollout::Failed(text.clone());
    }
    if entry.found.is_empty() {
        return rollout;
    }
    Rollout::Waiting { text: format!("{text}; {}", entry.found), paused: false }
}

/// What holds `object` up. What can't be found out is not said.
async fn holdups(ctx: &Context, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for question in ctx.rollouts.questions(object) {
        let Ok(Some(served)) = resolve(ctx, &question.kind).await else { continue };
        match ctx.cluster.list_selected(&served, question.field_selector, question.metadata_only).await {
            Ok(objects) => found.extend(ctx.rollouts.holdup(object, &question, &objects)),
            Err(error) => tracing::debug!(kind = question.kind.kind, %error, "what holds a rollout up is not known"),
        }
    }
    found
}

/// How many machines have all that the execution under way has written for them; `None` if it has written nothing for any, or if that is not known.
pub(super) fn machines_updated(
    ctx: &Context,
    status: &VirtPlatformConfigStatus,
    known: &BTreeMap<String, CachedItem>,
) -> Option<u32> {
    let executing = status.phase == Some(Phase::InProgress);
    let is_written = |item: &&Item| {
        let has_begun = matches!(item.state, ItemState::InProgress | ItemState::Completed);
        executing && has_begun && item.operation.writes() && ctx.rollouts.concern(&item.target_ref)
    };
    let mut pools: BTreeMap<String, u32> = BTreeMap::new();
    for item in status.items.iter().filter(is_written) {
        let object = known.get(&item.name)?.followed.as_ref()?;
        for (pool, machines) in ctx.rollouts.updated(object, change(Some(item))) {
            pools.entry(pool).and_modify(|least| *least = machines.min(*least)).or_insert(machines);
        }
    }
    (!pools.is_empty()).then(|| pools.values().fold(0_u32, |sum, machines| sum.saturating_add(*machines)))
}

/// How far `object` is, reading what must be read for it.
pub(super) async fn standing(ctx: &Context, object: &Value, change: ChangeKind) -> Result<Rollout, GatherError> {
    loop {
        let unread = match ctx.rollouts.standing(object, change) {
            Progress::Known(rollout) => return Ok(rollout),
            Progress::Unread(unread) => unread,
        };
        let kind = ctx.rollouts.learned();
        let served = resolve(ctx, &kind).await?;
        for name in unread {
            let describe = || format!("{} {name}", kind.kind);
            // One at a time: these objects are large.
            let read = match &served {
                Some(served) => {
                    let read = ctx.cluster.get(served, None, &name).await;
                    read.map_err(|source| GatherError::Object { object: describe(), source })?
                }
                None => None,
            };
            // That what was removed is gone is what is asked for.
            if read.is_none() && change != ChangeKind::Removed {
                return Err(GatherError::Rendered { object: describe() });
            }
            ctx.rollouts.learn(object, &name, read.as_ref());
        }
    }
}

/// How the item changed its object: an edit leaves more to prove than a new object.
pub(super) fn change(item: Option<&Item>) -> ChangeKind {
    match item {
        Some(item) if item.operation == Operation::Remove => ChangeKind::Removed,
        Some(item) if item.operation == Operation::Update && item.state == ItemState::InProgress => ChangeKind::Edited,
        Some(_) | None => ChangeKind::New,
    }
}
