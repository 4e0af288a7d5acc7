//! Report: one status write, or none if nothing changed; events and logs.
//!
//! ```text
//!   old and new status ─► events: what belongs to the audit trail, what may wait (pure)
//!            └──────────► store: one replace of the status, if nobody was faster
//!   unreadable: the world, or the configuration, could not be read
//! ```

mod events;
mod store;
pub(super) mod unreadable;

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::Context;
use super::error::ReconcileError;
use super::memory::{LastReport, Memory, Settled, Timing};
use advisor_cluster::{ClusterError, Note};
use advisor_core::api::{Phase, VirtPlatformConfig, VirtPlatformConfigStatus as Status};
use advisor_core::plan::decision::observed::{Observed, World};
use advisor_core::plan::decision::reason;
use advisor_core::plan::status::conditions;
use operator_kit::clock;
use store::{StoredStatus, write_status};

/// When to record again what could not be recorded.
const RECORD_AGAIN: Duration = Duration::from_secs(10);

/// Records the events that a crash or an error has kept from the audit trail.
pub(super) async fn record_lost_events(
    ctx: &Context,
    config: &VirtPlatformConfig,
    status: &Status,
    last: &mut LastReport,
) {
    if !last.recorded {
        let now = clock::now();
        last.recorded = record(ctx, config, &events::latest_notes(status, now), now).await;
    }
}

/// Reports what has become of a configuration that was `seen`: its status is `new` now.
/// `planned_in` is how long the plan took, if one was made.
pub(super) async fn report(
    ctx: &Context,
    config: &VirtPlatformConfig,
    seen: &Observed<'_>,
    new: Status,
    planned_in: Duration,
    memory: &mut Memory,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    let plan = match &seen.world {
        World::Planned(plan) => Some(plan),
        World::Unread | World::Invalid(_) | World::Missing(_) | World::Rollouts(_) => None,
    };
    if plan.is_some() {
        count_plan(ctx, &config.name_any(), (seen.status, &new), planned_in, now);
    }
    let items = new.items.clone();
    write_if_new(ctx, config, (seen.status, new), &mut memory.report, &mut memory.timing, now).await?;
    if let Some(plan) = plan.filter(|_| !memory.report.deferred) {
        memory.plan.show(&items, plan);
    }
    if !memory.report.recorded {
        memory.timing.set_at_latest(RECORD_AGAIN);
    }
    Ok(())
}

/// Writes the status if it has news, and records the events for the audit trail.
async fn write_if_new(
    ctx: &Context,
    config: &VirtPlatformConfig,
    (old, new): (&Status, Status),
    last: &mut LastReport,
    timing: &mut Timing,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    let name = config.name_any();
    let mut settled = Settled::of(config);
    last.deferred = false;
    if new == *old {
        last.settled = Some(settled);
        return Ok(());
    }
    if let Some(pause) = events::pause(old, &new, last.written_at, now) {
        timing.set_at_latest(pause);
        last.deferred = true;
        last.settled = Some(settled);
        return Ok(());
    }
    let mut whole = new.clone();
    whole.conditions.extend(conditions::of_others(config.status.as_ref()));
    let written = write_status(&ctx.cluster, config, &whole).await;
    // It may be stored all the same, and then its events are missing.
    last.recorded &= written.is_ok();
    let mut written = match written {
        Err(ClusterError::Refused(refusal)) if refusal.is_too_large() => {
            return Err(ReconcileError::NoRoom(tell_no_room(ctx, config, now).await));
        }
        written => written.map_err(ReconcileError::Status)?,
    };
    last.replaced_version = replaced(config, &written);
    conditions::retain_ours(&mut written.status.conditions);
    if written.status != new && !std::mem::replace(&mut last.told_of_crd, true) {
        tracing::warn!(
            config = name,
            "the API server drops parts of the status, because the CRD is older than this program. Apply \
             crds/advisor.kubevirt.io_virtplatformconfigs.yaml of this release"
        );
    }
    last.written_at = Some(now);
    if new.plan_hash.is_some() {
        ctx.displays(config);
    }
    let phase = new.phase.map(Phase::name);
    tracing::info!(config = name, phase, plan = new.plan_hash, "status written");
    count(ctx, &name, old, &new, now);
    last.recorded &= record(ctx, config, &events::notes(old, &new), now).await;
    // As stored: the status that comes back with the event of this write is not news.
    settled.status = written.status;
    last.settled = Some(settled);
    Ok(())
}

/// Records an event that the object is too large to have a status, and returns its text for the
/// log.
async fn tell_no_room(ctx: &Context, config: &VirtPlatformConfig, now: Timestamp) -> String {
    let text = advisor_core::api::spec_problem(&config.spec).unwrap_or_else(|| {
        "The object leaves no room for a status: the API server rejects it as too large. Make its annotations and spec smaller."
            .to_owned()
    });
    let key = format!("{}", config.metadata.generation.unwrap_or_default());
    let note =
        Note { reason: reason::event::NO_ROOM_FOR_STATUS, action: "Report", warning: true, text: text.clone(), key };
    record(ctx, config, &[note], now).await;
    text
}

/// The version of `config` that this write replaced. A write that changed nothing causes no event
/// to wait for.
fn replaced(config: &VirtPlatformConfig, written: &StoredStatus) -> Option<String> {
    config.resource_version().filter(|version| *version != written.version)
}

/// Counts the plan that `new` shows, if it is another one than `old` shows.
fn count_plan(ctx: &Context, name: &str, (old, new): (&Status, &Status), planned_in: Duration, now: Timestamp) {
    if let Some(phase) = new.phase.filter(|_| new.planned_at != old.planned_at) {
        let digest = new.plan_hash.as_deref().unwrap_or_default();
        ctx.metrics.planned(name, phase.name(), planned_in);
        ctx.traces.planned(name, digest, phase.name(), now - planned_in, now);
    }
}

/// Counts the change from `old` to `new` in the metrics.
fn count(ctx: &Context, name: &str, old: &Status, new: &Status, now: Timestamp) {
    let Some(phase) = new.phase else { return };
    let outcome = phase.name();
    // A plan that is merely not in effect yet has no approval.
    if old.phase == Some(Phase::InProgress)
        && phase != Phase::InProgress
        && let Some(approval) = &old.approval
    {
        ctx.metrics.executed(name, outcome, now.duration_since(approval.at.0).as_secs_f64());
        let failed = matches!(phase, Phase::Failed | Phase::CompletedWithErrors);
        ctx.traces.executed(name, approval, outcome, now, failed);
    }
    if phase == Phase::Drifted && old.phase != Some(Phase::Drifted) {
        ctx.metrics.drifted(name);
    }
}

/// Records `notes`. Returns whether all were recorded.
async fn record(ctx: &Context, config: &VirtPlatformConfig, notes: &[Note], now: Timestamp) -> bool {
    let mut recorded = true;
    for note in notes {
        if let Err(error) = ctx.cluster.record(config, note, now).await {
            tracing::warn!(config = config.name_any(), event = note.reason, %error, "an event could not be recorded");
            recorded = false;
        }
    }
    recorded
}
