//! Gather: all the reading that a decision needs.
//!
//! Reads go to the API server. Objects that a watch has followed since they were read need not be
//! read again; before the first write of an execution everything is read.
//!
//! ```text
//!   causes ─► draft ─► reuse ─────────► items ─► Observed
//!             (what    (what did not    (previews of the rest,
//!             changed) change)          progress of rollouts)
//! ```

mod draft;
mod error;
mod items;
mod progress;
mod reuse;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use profile_sdk::{Impact, Kind, Profile};

use super::Context;
use super::memory::{Drafted, Memory, PlanCache};
use super::triggers::Causes;
use advisor_cluster::Subject;
use advisor_core::api::{
    self, Action, Operation, Phase, Severity, VirtPlatformConfig, VirtPlatformConfigStatus as Status,
};
use advisor_core::plan::check_drafts;
use advisor_core::plan::decision::observed::{Observed, Wanted, World};
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::{Basis, Plan};
use advisor_engine::engine::Engine;
use advisor_engine::registry::{self, Profiles};
use draft::DraftOutcome;
pub(super) use error::GatherError;
use operator_kit::clock::now;
use progress::{machines_updated, only_rollouts};
pub(super) use watched::warm;

/// How long an obstacle that may disappear without a person prevents a plan with that obstacle from
/// being shown.
const PATIENCE: Duration = Duration::from_secs(600);

/// All that a decision about `config` is made from.
pub(super) async fn observe<'a>(
    ctx: &Context,
    config: &VirtPlatformConfig,
    wanted: &'a Wanted,
    status: &'a Status,
    causes: &Causes,
    memory: &mut Memory,
) -> Result<Observed<'a>, GatherError> {
    // If an execution ends with this reconcile, nothing is followed afterwards.
    let updated_before = machines_updated(ctx, status, &memory.plan.items);
    let world = if wanted.deleting || wanted.action == Action::Ignore {
        ctx.stand_aside(&config.name_any(), memory);
        World::Unread
    } else {
        let due = memory.timing.is_due() && !memory.report.deferred;
        world(ctx, config, wanted, status, causes, due, &mut memory.plan).await?
    };
    if matches!(world, World::Invalid(_) | World::Missing(_)) {
        memory.plan.forget();
    }
    if status.plan_hash.is_some() {
        ctx.displays(config);
    }
    let profile = registry::find(ctx.profiles, &config.name_any());
    Ok(Observed {
        wanted,
        status,
        world,
        description: profile.map_or("", |profile| profile.about().description),
        version: ctx.version,
        declared_impact: declared_impact(profile),
        machines_updated: machines_updated(ctx, status, &memory.plan.items).or(updated_before),
        settling: ctx.settling,
        made_anew: ctx.is_made_anew(config),
    })
}

/// Examines the part of the cluster that `config` depends on.
async fn world(
    ctx: &Context,
    config: &VirtPlatformConfig,
    wanted: &Wanted,
    status: &Status,
    causes: &Causes,
    due: bool,
    cache: &mut PlanCache,
) -> Result<World, GatherError> {
    let config = match api::spec_problem(&config.spec) {
        Some(problem) => return Ok(World::Invalid(problem)),
        None => &config.name_any(),
    };
    let Some(profile) = registry::find(ctx.profiles, config) else {
        return Ok(World::Invalid(format!(
            "Profile {config} is not known to this version of the operator. Install a version that has it, or delete this object."
        )));
    };
    let options = wanted.options.as_ref().and_then(|options| options.get(profile.about().options_key));
    let planner = match profile.configure(options) {
        Ok(planner) => planner,
        Err(error) => return Ok(World::Invalid(error.to_string())),
    };
    let nothing_has_changed = !causes.objects
        && causes.changed.is_empty()
        && cache.drafted.as_ref().is_some_and(|drafted| drafted.generation == wanted.generation);
    if nothing_has_changed
        && wanted.action == Action::Apply
        && let Some(rollouts) = only_rollouts(ctx, status, cache).await?
    {
        return Ok(World::Rollouts(rollouts));
    }
    // Records the versions that are read, so that only other versions cause a reconcile.
    let seen = |subject: Subject, version: Option<String>| ctx.triggers.record_version(config, subject, version);
    let look = Gathering {
        ctx,
        config,
        profile,
        wanted,
        status,
        // If the definition of a kind changes, every item may change.
        all: causes.objects || cache.drafted.is_none() || causes.changed.iter().any(Subject::is_definition),
        changed: &causes.changed,
        due,
        now: now(),
        // An approved plan continues, whatever other configurations want; the server protects its
        // fields from them.
        claims: match is_executing(status) && status.applied_options == wanted.options {
            true => Vec::new(),
            false => ctx.claims.of_others(config),
        },
        engine: Engine::new(&ctx.cluster, ctx.rollouts.as_ref(), &seen),
    };
    let drafted = match look.draft(planner.as_ref(), cache).await? {
        DraftOutcome::Drafted(drafted) => drafted,
        DraftOutcome::Missing(missing) => return Ok(World::Missing(missing)),
        DraftOutcome::Invalid(problem) => return Ok(World::Invalid(problem)),
    };
    if let Err(problem) = check_drafts::all(&drafted.drafts, &drafted.inputs) {
        return Ok(World::Invalid(problem.into()));
    }
    let items = look.items(&drafted, cache).await?;
    look.wait_for_what_may_pass(&items, cache)?;
    Ok(World::Planned(look.plan(&drafted, items)))
}

/// The data of one reconcile.
struct Gathering<'a> {
    ctx: &'a Context,
    config: &'a str,
    profile: &'a dyn Profile,
    wanted: &'a Wanted,
    status: &'a Status,
    /// Whether everything is read again.
    all: bool,
    /// The objects that are read again.
    changed: &'a BTreeSet<Subject>,
    /// Whether it is time to examine what may have changed without an event.
    due: bool,
    now: Timestamp,
    /// The claims of other configurations.
    claims: Vec<Claim>,
    engine: Engine<'a>,
}

impl Gathering<'_> {
    fn plan(&self, drafted: &Arc<Drafted>, items: Vec<PlanItem>) -> Plan {
        let basis = Basis {
            profile: self.config.to_owned(),
            options: self.wanted.options.clone(),
            inputs: drafted.inputs.clone(),
            terms: self.wanted.terms(),
        };
        let declared: Vec<_> = self.ctx.profiles.iter().flat_map(|profile| profile.kinds()).collect();
        let unused = self.wanted.choices.unused(&drafted.drafts);
        let unused = unused.into_iter().chain(drafted.exclusions.unused(&declared)).collect();
        Plan { unused, left_out: drafted.left_out.clone(), ..Plan::new(basis, items) }
    }

    /// While an obstacle that may disappear without a person lasts, such as a webhook that is down,
    /// waits for a while instead of showing another plan. If nothing is shown yet for this spec, or
    /// that obstacle is shown already, a plan is better than none.
    fn wait_for_what_may_pass(&self, items: &[PlanItem], cache: &mut PlanCache) -> Result<(), GatherError> {
        let status = self.status;
        // An edit that only approves is not another spec.
        let other_spec = status.planned_spec.as_ref().is_none_or(|planned| planned.hash != self.wanted.spec_hash);
        if is_executing(status) || other_spec {
            // An execution waits by itself, and reports it.
            return Ok(());
        }
        let is_shown = |item: &PlanItem| {
            status.items.iter().any(|shown| shown.name == item.name && shown.operation == Operation::Blocked)
        };
        let Some(item) = items.iter().find(|item| item.review.blocked_temporarily && !is_shown(item)) else {
            cache.is_not_blocked();
            return Ok(());
        };
        if cache.blocked_for() > PATIENCE {
            return Ok(());
        }
        Err(GatherError::Passing { object: item.target.to_string(), problem: item.review.message.clone() })
    }
}

/// Whether an approved plan is being carried out.
fn is_executing(status: &Status) -> bool {
    status.phase == Some(Phase::InProgress) && status.approval.is_some()
}

fn declared_impact(profile: Option<&dyn Profile>) -> Severity {
    match profile.map(|profile| profile.about().impact) {
        Some(Impact::High) => Severity::High,
        Some(Impact::Medium) => Severity::Medium,
        Some(Impact::Low | Impact::Derived) | None => Severity::Low,
    }
}

/// The names of all CRDs that `profiles` depend on and of the CRD of `also`, each with group and
/// kind.
pub(super) fn declared_crds(profiles: Profiles, also: Kind) -> BTreeMap<String, (String, String)> {
    let kinds = profiles.iter().flat_map(|profile| profile.kinds().iter().map(|declared| declared.kind));
    let kinds: BTreeSet<Kind> = kinds.chain([also]).collect();
    kinds.into_iter().map(|kind| (kind.crd_name(), (kind.group.to_owned(), kind.kind.to_owned()))).collect()
}
