//! How far written objects are: what rollouts know, and what must be read for it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Context;
use super::gather::{GatherError, resolve};
use super::memory::Memory;
use crate::api::{Item, ItemState, Operation, VirtPlatformConfigStatus};
use crate::plan::health::Rollout;
use crate::rollout::{Change, Standing};

/// How far written items are, if that is all there is to know: something is under way, and nothing can be written.
pub(super) async fn only_rollouts(
    ctx: &Context,
    status: &VirtPlatformConfigStatus,
    memory: &Memory,
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
            rollout @ Rollout::Waiting { .. } => rollouts.insert(item.name.clone(), rollout),
            Rollout::Done(_) | Rollout::Failed(_) => return Ok(None),
        };
    }
    Ok((!rollouts.is_empty()).then_some(rollouts))
}

/// How far `object` is, reading what must be read for it.
pub(super) async fn standing(ctx: &Context, object: &Value, change: Change) -> Result<Rollout, GatherError> {
    loop {
        let unread = match ctx.rollouts.standing(object, change) {
            Standing::Known(rollout) => return Ok(rollout),
            Standing::Unread(unread) => unread,
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
            let read = read.ok_or_else(|| GatherError::Rendered { object: describe() })?;
            ctx.rollouts.learn(object, &name, &read);
        }
    }
}

/// How the item changed its object: an edit leaves more to prove than a new object.
pub(super) fn change(item: Option<&Item>) -> Change {
    match item {
        Some(item) if item.operation == Operation::Remove => Change::Removed,
        Some(item) if item.operation == Operation::Update && item.state == ItemState::InProgress => Change::Edited,
        Some(_) | None => Change::New,
    }
}
