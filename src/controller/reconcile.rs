//! The reconcile: gather, draft, decide, act, report.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::core::{DeserializeGuard, error_boundary::InvalidObject};
use kube::runtime::controller::Action as Next;
use serde_json::json;
use tokio::time::Instant;

use super::act::{self, ActError};
use super::caught::{Panicked, caught};
use super::followed;
use super::gather::{self, GatherError};
use super::memory::{Call, Memory, Settled};
use super::progress::machines_updated;
use super::schedule::{self, RESYNC, Reasons};
use super::store::{StoredStatus, write_status};
use super::triggers::Causes;
use super::{Context, report};
use advisor_cluster::{ClusterError, Note};
use advisor_core::api::{
    self, Action, Operation, Phase, Severity, Summary, VirtPlatformConfig, VirtPlatformConfigStatus as Status,
};
use advisor_core::plan::decision::Decision;
use advisor_core::plan::decision::decide::decide;
use advisor_core::plan::decision::observed::{Observed, Wanted, World};
use advisor_core::plan::decision::reason;
use advisor_core::plan::status;
use advisor_core::plan::status::conditions;
use advisor_core::plan::status::conditions::PhaseReport;
use advisor_core::plan::wire;
use advisor_engine::registry;
use object::limits;
use operator_kit::clock::now;

/// One look may take this long; then it is given up and made anew.
const BUDGET: Duration = Duration::from_secs(60);
/// When what could not be recorded is recorded.
const RECORD_AGAIN: Duration = Duration::from_secs(10);
/// A look that fails for so long is said in the status.
const UNREADABLE: Duration = Duration::from_secs(10);

/// A look that came to no end. It is logged once, here, and made again after a pause.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error("writing the status failed: {0}")]
    Status(#[source] ClusterError),
    /// A fault of this program.
    #[error("the operator has a fault: {0}")]
    Panicked(String),
    /// The status can't be stored.
    #[error("{0}")]
    NoRoom(String),
    #[error("The API server has not answered all requests within {} s", BUDGET.as_secs())]
    Timeout,
}

impl LookError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Gather(error) => error.reason(),
            Self::Act(error) => error.reason(),
            Self::Status(error) => error.reason(),
            Self::Panicked(_) => "InternalError",
            Self::NoRoom(_) => "NoRoom",
            Self::Timeout => "Timeout",
        }
    }

    /// Somebody was faster than us: normal, and no reason to wait long.
    fn is_race(&self) -> bool {
        match self {
            Self::Status(ClusterError::Moved) | Self::Act(ActError::Superseded | ActError::Stopping) => true,
            Self::Gather(GatherError::Engine(error)) => error.is_race(),
            Self::Act(ActError::Target { source, .. }) => matches!(source, ClusterError::Moved),
            Self::Gather(_) | Self::Act(_) | Self::Status(_) | Self::Panicked(_) | Self::NoRoom(_) | Self::Timeout => {
                false
            }
        }
    }
}

/// Looks at one configuration. Errors end here: they are logged, and the look is made again after a pause.
pub(super) async fn reconcile(
    object: Arc<DeserializeGuard<VirtPlatformConfig>>,
    ctx: Arc<Context>,
) -> Result<Next, Infallible> {
    let under_way = ctx.metrics.look();
    let (next, failed) = match &object.0 {
        Ok(config) => attend(config, &ctx).await,
        Err(_) if !ctx.fence.is_open() => (Next::await_change(), false),
        Err(invalid) => (reject_unreadable(&ctx, invalid).await, false),
    };
    under_way.end(failed);
    Ok(next)
}

/// Looks at `config` if there is anything to see. Returns when to do so again, and whether it failed.
async fn attend(config: &VirtPlatformConfig, ctx: &Context) -> (Next, bool) {
    let name = config.name_any();
    let memory = ctx.memory(&name);
    let mut memory = memory.lock().await;
    if memory.uid != config.uid() {
        // Another object of that name: nothing of the first one is true of it.
        *memory = Memory::of(config.uid());
        ctx.stand_aside(&name, &mut memory);
    }
    if config.resource_version().is_some() && config.resource_version() == memory.replaced_version {
        // The event of our own write is on its way.
        return (Next::await_change(), false);
    }
    if !ctx.fence.is_open() {
        // Another replica leads. When this one does, everything is looked at.
        match config.spec.action {
            Action::Ignore => ctx.stand_aside(&name, &mut memory),
            Action::DryRun | Action::Apply => {
                let items = config.status.as_ref().map_or(&[][..], |status| &status.items);
                let warming = followed::warm(ctx, &name, &config.spec, items);
                if tokio::time::timeout(BUDGET, warming).await.is_err() {
                    tracing::debug!(config = name, "watches could not be opened in time");
                }
            }
        }
        return (Next::await_change(), false);
    }
    let settled = Settled::of(config);
    match memory.call(&settled, ctx.triggers.news(&name), Instant::now()) {
        Call::Now => {}
        Call::Rest => return (Next::requeue(until_due(&memory)), false),
        // What has happened stays noted until then.
        Call::After(gap) => return (Next::requeue(gap.min(until_due(&memory))), false),
    }
    let mut causes = ctx.triggers.take(&name);
    causes.objects |= needs_everything(&mut memory, &settled, config);
    let outcome = tokio::time::timeout(BUDGET, caught(look(ctx, config, &causes, &mut memory))).await;
    let outcome = match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(Panicked(words))) => Err(LookError::Panicked(words)),
        Err(_) => Err(LookError::Timeout),
    };
    let mut failed = false;
    match outcome {
        Ok(()) => memory.no_error(),
        Err(error) => {
            let pause = memory.has_failed(settled, &name, error.is_race());
            failed = !error.is_race();
            if error.is_race() {
                tracing::debug!(config = name, %error, "looking again");
            } else {
                tracing::warn!(config = name, reason = error.reason(), %error, retry_in = ?pause, "could not look at the configuration");
            }
            let unread = match &error {
                LookError::Gather(unread) => Some(unread.displayed()),
                LookError::Timeout => Some(error.to_string()),
                LookError::Panicked(words) => Some(format!(
                    "The operator has a fault and can't plan this: {words}. Report it with the output of `virt-advisor must-gather`"
                )),
                LookError::Act(_) | LookError::Status(_) | LookError::NoRoom(_) => None,
            };
            let at_once = matches!(error, LookError::Timeout | LookError::Panicked(_));
            if let Some(problem) = unread.filter(|_| memory.failing_for() >= UNREADABLE || at_once) {
                tell_unread(ctx, config, error.reason(), &problem, &mut memory).await;
            }
        }
    }
    memory.pacing.end(Instant::now());
    (Next::requeue(until_due(&memory)), failed)
}

/// Says in the status what can't be read. If that fails too, the log has said it.
async fn tell_unread(ctx: &Context, config: &VirtPlatformConfig, reason: &str, problem: &str, memory: &mut Memory) {
    let mut status = config.status.clone().unwrap_or_default();
    let generation = config.metadata.generation.unwrap_or_default();
    if !conditions::unreadable(&mut status, reason, problem, generation, now()) {
        return;
    }
    let write = write_status(&ctx.cluster, config, &status);
    match tokio::time::timeout(BUDGET, write).await {
        Ok(Ok(mut written)) => {
            memory.replaced_version = replaced(config, &written);
            conditions::retain_ours(&mut written.status.conditions);
            // What comes back with the event of this write is nothing new.
            memory.failed.iter_mut().for_each(|failed| failed.status = written.status.clone());
        }
        Ok(Err(error)) => tracing::debug!(config = config.name_any(), %error, "the status could not be written either"),
        Err(_) => tracing::debug!(config = config.name_any(), "the status could not be written either"),
    }
}

/// Whether nothing that is remembered may be used: at the first look, at the regular one, when a fresh plan was asked
/// for, and before the first write of an execution.
fn needs_everything(memory: &mut Memory, settled: &Settled, config: &VirtPlatformConfig) -> bool {
    let status = &settled.status;
    let executing = config.spec.action == Action::Apply && status.phase == Some(Phase::InProgress);
    // A removal that was made is remembered by its wait alone.
    let unwritten = |item: &api::Item| {
        item.operation == Operation::NoChange || (item.applied.is_none() && item.wait_started_at.is_none())
    };
    let first_write = executing && status.approval.is_some() && status.items.iter().all(unwritten);
    let asked = memory.settled.as_ref().is_none_or(|before| before.replan != settled.replan);
    if first_write || asked {
        memory.forget_plan();
    }
    first_write || asked || (memory.is_due() && !executing && !memory.deferred)
}

/// The five steps.
async fn look(
    ctx: &Context,
    config: &VirtPlatformConfig,
    causes: &Causes,
    memory: &mut Memory,
) -> Result<(), LookError> {
    let began = Instant::now();
    let wanted = Wanted::of(config);
    let old = our_status(config);
    let name = config.name_any();

    // What a crash, or an error, has kept from the audit trail.
    if !memory.recorded {
        memory.recorded = record(ctx, config, &report::latest_notes(&old, now()), now()).await;
    }

    // Where it ends by this look, nothing is followed any more after it.
    let updated_before = machines_updated(ctx, &old, &memory.items);

    // Gather and draft: the profile's drafts are previewed as soon as it made them.
    let world = if wanted.deleting || wanted.action == Action::Ignore {
        ctx.stand_aside(&name, memory);
        World::Unread
    } else if let Some(problem) = advisor_core::api::spec_problem(&config.spec) {
        memory.forget_plan();
        World::Invalid(problem)
    } else {
        gather::world(ctx, &name, &wanted, &old, causes, memory).await?
    };
    let declared_impact = declared_impact(ctx, &name);
    if old.plan_hash.is_some() {
        ctx.displays(config);
    }
    let made_anew = ctx.is_made_anew(config);
    let machines_updated = machines_updated(ctx, &old, &memory.items).or(updated_before);
    let seen = Observed {
        wanted: &wanted,
        status: &old,
        world,
        version: ctx.version,
        declared_impact,
        machines_updated,
        settling: ctx.settling,
        made_anew,
    };

    let planned_in = began.elapsed();
    let now = now();
    let decision = decide(&seen, now);

    let (written, outcome) = match (&decision, &seen.world) {
        (Decision::Execute(execution), World::Planned(plan)) if !execution.write.is_empty() => {
            act::write(ctx, config, execution, plan, memory).await
        }
        _ => (BTreeMap::new(), Ok(())),
    };

    let mut new = status::compose(&seen, &decision, &written, now).unwrap_or_else(|| old.clone());
    conditions::readable(&mut new.conditions, now);
    let follows = decision.is_execution() && !memory.slow.is_empty();
    if !follows {
        memory.slow.clear();
    }
    let reasons = Reasons {
        blocked: matches!(&seen.world, World::Planned(plan) if plan.blocked().next().is_some()),
        set_aside_until: wanted.choices.next_end(now),
        doubt: memory.doubt(ctx.patience),
        patience: follows.then_some(ctx.patience),
    };
    let pause = schedule::pause(&decision, &reasons, now, &name);
    memory.due = Some(Instant::now() + pause);
    if let (World::Planned(_), Some(phase)) = (&seen.world, new.phase.filter(|_| new.planned_at != old.planned_at)) {
        let outcome = phase.name();
        let digest = new.plan_hash.clone().unwrap_or_default();
        ctx.metrics.planned(&name, outcome, planned_in);
        ctx.traces.planned(&name, &digest, outcome, now - planned_in, now);
    }
    let items = new.items.clone();
    report(ctx, config, &old, new, memory, now).await?;
    if let (World::Planned(plan), false) = (&seen.world, memory.deferred) {
        memory.show(&items, plan);
    }
    if !memory.recorded {
        let again = Instant::now() + RECORD_AGAIN;
        memory.due = Some(memory.due.map_or(again, |due| due.min(again)));
    }
    Ok(outcome?)
}

/// Writes the status if it says something new, and records what belongs into the audit trail.
async fn report(
    ctx: &Context,
    config: &VirtPlatformConfig,
    old: &Status,
    new: Status,
    memory: &mut Memory,
    now: jiff::Timestamp,
) -> Result<(), LookError> {
    let name = config.name_any();
    let mut settled = Settled::of(config);
    memory.deferred = false;
    if new == *old {
        memory.settled = Some(settled);
        return Ok(());
    }
    if let Some(pause) = report::pause(old, &new, memory.written_at, now) {
        let until = Instant::now() + pause;
        memory.due = Some(memory.due.map_or(until, |due| due.min(until)));
        memory.deferred = true;
        memory.settled = Some(settled);
        return Ok(());
    }
    let mut whole = new.clone();
    whole.conditions.extend(conditions::of_others(config.status.as_ref()));
    let written = write_status(&ctx.cluster, config, &whole).await;
    // It may be stored all the same, and then its events are missing.
    memory.recorded &= written.is_ok();
    let mut written = match written {
        Err(ClusterError::Refused(refusal)) if refusal.is_too_large() => {
            return Err(LookError::NoRoom(tell_no_room(ctx, config, now).await));
        }
        written => written.map_err(LookError::Status)?,
    };
    memory.replaced_version = replaced(config, &written);
    conditions::retain_ours(&mut written.status.conditions);
    if written.status != new && !std::mem::replace(&mut memory.told_of_crd, true) {
        tracing::warn!(
            config = name,
            "the cluster leaves out parts of the status: its CRD is older than this program. Apply \
             crds/advisor.kubevirt.io_virtplatformconfigs.yaml of this release"
        );
    }
    memory.written_at = Some(now);
    if new.plan_hash.is_some() {
        ctx.displays(config);
    }
    let phase = new.phase.map(Phase::name);
    tracing::info!(config = name, phase, plan = new.plan_hash, "status written");
    count(ctx, &name, old, &new, now);
    memory.recorded &= record(ctx, config, &report::notes(old, &new), now).await;
    // As it is stored: what comes back with the event of this write is nothing new.
    settled.status = written.status;
    memory.settled = Some(settled);
    Ok(())
}

/// Says in an event, and returns for the log, that the object is so large that it can have no status.
async fn tell_no_room(ctx: &Context, config: &VirtPlatformConfig, now: jiff::Timestamp) -> String {
    let text = advisor_core::api::spec_problem(&config.spec).unwrap_or_else(|| {
        "The object leaves no room for a status: the API server refuses it as too large. Make its annotations and spec smaller."
            .to_owned()
    });
    let key = format!("{}", config.metadata.generation.unwrap_or_default());
    let note =
        Note { reason: reason::event::NO_ROOM_FOR_STATUS, action: "Report", warning: true, text: text.clone(), key };
    record(ctx, config, &[note], now).await;
    text
}

/// The version of `config` that this write replaced. One that changed nothing makes no event to wait for.
fn replaced(config: &VirtPlatformConfig, written: &StoredStatus) -> Option<String> {
    config.resource_version().filter(|version| *version != written.version)
}

/// Counts what the step from `old` to `new` was.
fn count(ctx: &Context, name: &str, old: &Status, new: &Status, now: jiff::Timestamp) {
    let Some(phase) = new.phase else { return };
    let outcome = phase.name();
    // What is merely not in effect yet has no approval.
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

/// Records `notes`, if that can be done now.
async fn record(ctx: &Context, config: &VirtPlatformConfig, notes: &[Note], now: jiff::Timestamp) -> bool {
    let mut recorded = true;
    for note in notes {
        if let Err(error) = ctx.cluster.record(config, note, now).await {
            tracing::warn!(config = config.name_any(), event = note.reason, %error, "an event could not be recorded");
            recorded = false;
        }
    }
    recorded
}

fn until_due(memory: &Memory) -> Duration {
    memory.due.map_or(RESYNC, |due| due.saturating_duration_since(Instant::now()))
}

fn declared_impact(ctx: &Context, profile: &str) -> Severity {
    match registry::find(ctx.profiles, profile).map(|profile| profile.about().impact) {
        Some(profile_sdk::Impact::High) => Severity::High,
        Some(profile_sdk::Impact::Medium) => Severity::Medium,
        Some(profile_sdk::Impact::Low | profile_sdk::Impact::Derived) | None => Severity::Low,
    }
}

impl Settled {
    fn of(config: &VirtPlatformConfig) -> Self {
        Self {
            generation: config.metadata.generation,
            uid: config.uid(),
            replan: config.annotations().get(api::REPLAN_ANNOTATION).cloned(),
            deleting: config.metadata.deletion_timestamp.is_some(),
            status: our_status(config),
        }
    }
}

/// The status without what others put into it.
fn our_status(config: &VirtPlatformConfig) -> Status {
    let mut status = config.status.clone().unwrap_or_default();
    conditions::retain_ours(&mut status.conditions);
    status
}

/// An object that no longer fits our types is told so, and its neighbours go on. The text is the same each time, and so
/// is its time: a restart writes nothing new.
async fn reject_unreadable(ctx: &Context, invalid: &InvalidObject) -> Next {
    let name = invalid.metadata.name.clone().unwrap_or_default();
    let memory = ctx.memory(&name);
    let mut memory = memory.lock().await;
    let version = invalid.metadata.resource_version.clone();
    if memory.replaced_version == version {
        return Next::await_change();
    }
    ctx.stand_aside(&name, &mut memory);
    // Corrected, it is looked at, whatever it looked like before.
    memory.settled = None;
    let message = format!(
        "This object does not match this version's schema: {}. Correct it, or delete it.",
        limits::words(&invalid.error)
    );
    let generation = invalid.metadata.generation.unwrap_or_default();
    let verdict = PhaseReport {
        phase: Phase::Failed,
        reason: reason::INVALID,
        message: &message,
        input_drift: None,
        trouble: None,
        overridden: None,
        generation,
    };
    // The object's own time, so that a restart says the same.
    let since = invalid.metadata.creation_timestamp.as_ref().map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0);
    let status = json!({
        "phase": Phase::Failed,
        "observedGeneration": generation,
        "summary": Summary { text: wire::cut_text(&message, wire::SUMMARY_LIMIT), ..Summary::default() },
        "conditions": conditions::derive(&[], &verdict, since),
    });
    tracing::warn!(config = name, error = limits::words(&invalid.error), "the object can't be read");
    let write = ctx.cluster.patch_status::<VirtPlatformConfig>(&name, version.as_deref().unwrap_or_default(), &status);
    let problem = match tokio::time::timeout(BUDGET, write).await {
        Ok(Ok(written)) => {
            memory.replaced_version = Some(written);
            memory.no_error();
            return Next::await_change();
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    tracing::warn!(config = name, problem, "the object could not be told that it can't be read");
    Next::requeue(memory.pause_after_error(&name))
}
