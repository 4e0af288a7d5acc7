//! The reconcile: gather, decide, act, report, and when to reconcile again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::controller::Action as Next;
use tokio::time::Instant;

use super::Context;
use super::act::act;
use super::caught::{Panicked, caught};
use super::error::{BUDGET, ReconcileError};
use super::gather;
use super::memory::{Call, Memory, Settled, our_status};
use super::report::unreadable;
use super::report::{record_lost_events, report};
use super::schedule::{self, Reasons};
use super::triggers::Causes;
use advisor_core::api::{Action, VirtPlatformConfig};
use advisor_core::plan::decision::Decision;
use advisor_core::plan::decision::decide::decide;
use advisor_core::plan::decision::observed::Wanted;
use advisor_core::plan::status::{self, conditions};
use operator_kit::clock::now;

/// How long reconciles must fail before the status says so.
const UNREADABLE: Duration = Duration::from_secs(10);

/// Reconciles one configuration. Errors end here: they are logged, and the reconcile is made again
/// after a pause.
pub(super) async fn reconcile(
    object: Arc<DeserializeGuard<VirtPlatformConfig>>,
    ctx: Arc<Context>,
) -> Result<Next, Infallible> {
    let under_way = ctx.metrics.begin_reconcile();
    let (next, failed) = match &object.0 {
        Ok(config) => attend(config, &ctx).await,
        Err(_) if !ctx.fence.is_open() => (Next::await_change(), false),
        Err(invalid) => (unreadable::reject(&ctx, invalid).await, false),
    };
    under_way.end(failed);
    Ok(next)
}

/// The steps of a reconcile.
async fn run_steps(
    ctx: &Context,
    config: &VirtPlatformConfig,
    causes: &Causes,
    memory: &mut Memory,
) -> Result<(), ReconcileError> {
    let began = Instant::now();
    let (wanted, old) = (Wanted::of(config), our_status(config));
    record_lost_events(ctx, config, &old, &mut memory.report).await;

    let seen = gather::observe(ctx, config, &wanted, &old, causes, memory).await?;
    let (planned_in, now) = (began.elapsed(), now());
    let decision = decide(&seen, now);
    let (written, acted) = act(ctx, config, &decision, &seen.world, &mut memory.plan).await;
    let mut new = status::compose(&seen, &decision, &written, now).unwrap_or_else(|| old.clone());
    conditions::readable(&mut new.conditions, now);
    let reasons = Reasons::of(&seen, memory.plan.doubt(ctx.patience), patience(ctx, &decision, memory), now);
    memory.timing.set(schedule::pause(&decision, &reasons, now, &config.name_any()));
    report(ctx, config, &seen, new, planned_in, memory, now).await?;
    Ok(acted?)
}

/// How long what is executed may come no further before it is reconciled again, if anything has
/// not.
fn patience(ctx: &Context, decision: &Decision, memory: &mut Memory) -> Option<Duration> {
    if !decision.is_execution() {
        memory.plan.slow.clear();
    }
    (!memory.plan.slow.is_empty()).then_some(ctx.patience)
}

/// Reconciles `config` if there is a reason. Returns when to do so again, and whether it failed.
async fn attend(config: &VirtPlatformConfig, ctx: &Context) -> (Next, bool) {
    let name = config.name_any();
    let memory = ctx.memory(&name);
    let mut memory = memory.lock().await;
    if memory.uid != config.uid() {
        // Another object with this name: nothing remembered of the first one applies to it.
        *memory = Memory::of(config.uid());
        ctx.stand_aside(&name, &mut memory);
    }
    if memory.report.is_replaced(config) {
        // The event of our own write is still to come.
        return (Next::await_change(), false);
    }
    if !ctx.fence.is_open() {
        stand_by(ctx, config, &mut memory).await;
        return (Next::await_change(), false);
    }
    let settled = Settled::of(config);
    match memory.call(&settled, ctx.triggers.news(&name), Instant::now()) {
        Call::Now => {}
        Call::Rest => return (Next::requeue(memory.timing.until_due()), false),
        // The events stay recorded until then.
        Call::After(gap) => return (Next::requeue(gap.min(memory.timing.until_due())), false),
    }
    let mut causes = ctx.triggers.take(&name);
    causes.objects |= memory.needs_everything(&settled);
    let outcome = match tokio::time::timeout(BUDGET, caught(run_steps(ctx, config, &causes, &mut memory))).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(Panicked(words))) => Err(ReconcileError::Panicked(words)),
        Err(_) => Err(ReconcileError::Timeout),
    };
    let failed = match outcome {
        Ok(()) => {
            memory.has_succeeded();
            false
        }
        Err(error) => {
            reconcile_failed(ctx, config, settled, &error, &mut memory).await;
            !error.is_race()
        }
    };
    memory.timing.reconcile_ended(Instant::now());
    (Next::requeue(memory.timing.until_due()), failed)
}

/// Another replica leads: only watches are opened, so that this one can go on at once. When it
/// leads, everything is reconciled.
async fn stand_by(ctx: &Context, config: &VirtPlatformConfig, memory: &mut Memory) {
    let name = config.name_any();
    match config.spec.action {
        Action::Ignore => ctx.stand_aside(&name, memory),
        Action::DryRun | Action::Apply => {
            let items = config.status.as_ref().map_or(&[][..], |status| &status.items);
            let warming = gather::warm(ctx, &name, &config.spec, items);
            if tokio::time::timeout(BUDGET, warming).await.is_err() {
                tracing::debug!(config = name, "watches could not be opened in time");
            }
        }
    }
}

/// Logs the error, and says it in the status if reconciles have failed for a while.
async fn reconcile_failed(
    ctx: &Context,
    config: &VirtPlatformConfig,
    seen: Settled,
    error: &ReconcileError,
    memory: &mut Memory,
) {
    let name = config.name_any();
    let pause = memory.has_failed(seen, &name, error.is_race());
    if error.is_race() {
        tracing::debug!(config = name, %error, "reconciling again");
    } else {
        tracing::warn!(config = name, reason = error.reason(), %error, retry_in = ?pause, "could not reconcile the configuration");
    }
    let is_time = memory.timing.failing_for() >= UNREADABLE || error.is_reported_at_once();
    if let Some(problem) = error.displayed().filter(|_| is_time) {
        unreadable::report_unread(ctx, config, error.reason(), &problem, &mut memory.report).await;
    }
}
