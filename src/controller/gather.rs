//! Gather: all reading that a decision needs.
//!
//! Reads go to the API server. What a watch has followed since it was read need not be read again; before the first
//! write of an execution everything is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use profile_sdk::{Body, Draft, Kind, Planner, Profile, Read};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Context;
use super::followed::{read_targets, reads, scopes, served_kinds};
use super::memory::{CachedItem, Circumstances, Drafted, Memory, Slow};
use super::progress::{change, explained, only_rollouts, standing};
use super::triggers::Causes;
use super::watches::NotListed;
use advisor_cluster::{ClusterError, LookUpError, Served, Subject};
use advisor_core::api::{Action, Item, ItemState, Operation, Phase, TargetRef, VirtPlatformConfigStatus};
use advisor_core::plan::check_drafts;
use advisor_core::plan::decision::observed::{Wanted, World};
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::document;
use advisor_core::plan::items::from_preview;
use advisor_core::plan::items::health::Rollout;
use advisor_core::plan::items::prune;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::status::overridden;
use advisor_core::plan::target;
use advisor_core::plan::{Basis, Plan};
use advisor_core::rollout::ChangeKind;
use advisor_engine::engine::{self, CONCURRENCY, Drafting, Engine, EngineError, Task, version};
use advisor_engine::registry::{self, Profiles};
use operator_kit::clock::now;

/// How long something that may pass by itself keeps a plan from being shown that says so.
const PATIENCE: Duration = Duration::from_secs(600);

/// Something could not be read. Nothing is decided; the next look starts anew.
#[derive(Debug, thiserror::Error)]
pub(super) enum GatherError {
    /// A kind could not be looked up.
    #[error("looking up kind {kind} failed: {source}")]
    Kind { kind: &'static str, source: ClusterError },
    /// An object could not be read.
    #[error("reading {object} failed: {source}")]
    Object { object: String, source: ClusterError },
    /// The rollouts are not known.
    #[error(transparent)]
    Rollouts(#[from] NotListed),
    /// A pool names a rendered configuration that can't be found.
    #[error("{object} does not exist, although it is what machines should have")]
    Rendered { object: String },
    /// An item can't be planned at the moment.
    #[error("{object}: {problem}")]
    Passing { object: String, problem: String },
    /// Changes of what the plan is made from would not be seen.
    #[error("{kind}: {remedy}")]
    Unwatched { kind: String, remedy: String },
    /// The items could not be planned.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl GatherError {
    /// What may be displayed of it.
    pub(super) fn displayed(&self) -> String {
        match self {
            Self::Kind { kind, source } => format!("Kind {kind} can't be looked up: {}", source.displayed()),
            Self::Object { object, source } => format!("{object} can't be read: {}", source.displayed()),
            Self::Engine(error) => error.displayed(),
            Self::Rollouts(_) | Self::Rendered { .. } | Self::Passing { .. } | Self::Unwatched { .. } => {
                self.to_string()
            }
        }
    }

    /// A word for logs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Rollouts(_) => "NotListed",
            Self::Rendered { .. } => "NotFound",
            Self::Passing { .. } => "Unavailable",
            Self::Unwatched { .. } => "Forbidden",
            Self::Engine(error) => error.reason(),
            Self::Kind { source, .. } | Self::Object { source, .. } => source.reason(),
        }
    }
}

/// Looks at the part of the world that `config` depends on.
pub(super) async fn world(
    ctx: &Context,
    config: &str,
    wanted: &Wanted,
    status: &VirtPlatformConfigStatus,
    causes: &Causes,
    memory: &mut Memory,
) -> Result<World, GatherError> {
    let Some(profile) = registry::find(ctx.profiles, config) else {
        memory.forget_plan();
        return Ok(World::Invalid(format!(
            "Profile {config} is not known to this version of the operator. Install a version that has it, or delete this object."
        )));
    };
    let options = wanted.options.as_ref().and_then(|options| options.get(profile.about().options_key));
    let planner = match profile.configure(options) {
        Ok(planner) => planner,
        Err(error) => {
            memory.forget_plan();
            return Ok(World::Invalid(error.to_string()));
        }
    };
    let as_drafted = memory.drafted.as_ref().is_some_and(|drafted| drafted.generation == wanted.generation);
    if !causes.objects
        && causes.changed.is_empty()
        && as_drafted
        && wanted.action == Action::Apply
        && let Some(rollouts) = only_rollouts(ctx, status, memory).await?
    {
        return Ok(World::Rollouts(rollouts));
    }
    // Read versions are remembered, so that only other versions are news.
    let seen = |subject: Subject, version: Option<String>| ctx.triggers.seen(config, subject, version);
    let look = Gathering {
        ctx,
        config,
        profile,
        wanted,
        status,
        // Another definition of a kind may mean another plan of everything.
        all: causes.objects || memory.drafted.is_none() || causes.changed.iter().any(Subject::is_definition),
        changed: &causes.changed,
        due: memory.is_due() && !memory.deferred,
        now: now(),
        // An approved plan goes on, whatever others wish; the server keeps them from its fields.
        claims: match executing(status) && status.applied_options == wanted.options {
            true => Vec::new(),
            false => ctx.claims.of_others(config),
        },
        engine: Engine::new(&ctx.cluster, ctx.rollouts.as_ref(), &seen),
    };
    let reads = reads(planner.as_ref());
    let as_read =
        |known: &Drafted| known.generation == wanted.generation && !reads.iter().any(|read| look.has_changed(read));
    let drafted = match memory.drafted.clone().filter(|known| !look.all && as_read(known)) {
        Some(drafted) => drafted,
        None => match look.draft(planner.as_ref(), memory.drafted.as_deref()).await? {
            Ok(drafted) => memory.drafted.insert(Arc::new(drafted)).clone(),
            Err(instead) => {
                memory.forget_plan();
                return Ok(instead);
            }
        },
    };
    if let Err(problem) = check_drafts::all(&drafted.drafts, &drafted.inputs) {
        memory.forget_plan();
        return Ok(World::Invalid(problem));
    }
    let items = look.items(&drafted, memory).await?;
    look.nothing_passes(&items, memory)?;
    let basis = Basis {
        profile: config.to_owned(),
        options: wanted.options.clone(),
        inputs: drafted.inputs.clone(),
        terms: wanted.terms(),
    };
    let declared: Vec<_> = ctx.profiles.iter().flat_map(|profile| profile.kinds()).collect();
    let unused =
        wanted.choices.unused(&drafted.drafts).into_iter().chain(drafted.exclusions.unused(&declared)).collect();
    let left_out = drafted.left_out.clone();
    Ok(World::Planned(Plan { unused, left_out, ..Plan::new(basis, items) }))
}

/// The kind as it is served, if it is.
pub(super) async fn resolve(ctx: &Context, kind: &Kind) -> Result<Option<Served>, GatherError> {
    ctx.cluster.resolve(kind).await.map_err(|source| GatherError::Kind { kind: kind.kind, source })
}

/// One look at the world.
struct Gathering<'a> {
    ctx: &'a Context,
    config: &'a str,
    profile: &'a dyn Profile,
    wanted: &'a Wanted,
    status: &'a VirtPlatformConfigStatus,
    /// Everything is read again.
    all: bool,
    /// These are.
    changed: &'a BTreeSet<Subject>,
    /// It is time to look at what may have changed without an event.
    due: bool,
    now: Timestamp,
    /// What other configurations want.
    claims: Vec<Claim>,
    engine: Engine<'a>,
}

impl Gathering<'_> {
    /// Reads the inputs and lets the profile draft. The inner error is what to decide from instead.
    async fn draft(
        &self,
        planner: &dyn Planner,
        before: Option<&Drafted>,
    ) -> Result<Result<Drafted, World>, GatherError> {
        let served = served_kinds(self.ctx, self.config, self.profile, &self.engine).await?;
        let reads = scopes(self.ctx, self.profile, &served.served, read_targets(planner));
        if let Some(scope) = self.ctx.watches.follow(self.config, &reads).await?.first() {
            return Err(GatherError::Unwatched { kind: scope.served.resource.kind.clone(), remedy: scope.remedy() });
        }
        // What a watch has followed since it was read is as it was.
        // And what a profile makes of a value may depend on its options.
        let same = before.filter(|before| !self.all && before.generation == self.wanted.generation);
        let used = same.map(|before| before.used.clone()).unwrap_or_default();
        let used = used.of(|read| !self.has_changed(read));
        Ok(
            match self.engine.draft(planner, &engine::manager(self.config), self.profile.kinds(), &served, used).await?
            {
                Drafting::Drafted(engine::DraftedPlan { mut drafts, inputs, exclusions, left_out, used }) => {
                    let generation = self.wanted.generation;
                    drafts.extend(prune::departed(self.status, &drafts, self.wanted.options.as_ref()));
                    let unwatched = self.follow(&served.served, read_targets(planner), &drafts).await?;
                    Ok(Drafted { generation, drafts, inputs, exclusions, left_out, used, unwatched })
                }
                Drafting::Missing(missing) => Err(World::Missing(missing)),
                Drafting::Invalid(problem) => Err(World::Invalid(problem)),
            },
        )
    }

    /// Watches what was read and what is drafted, and nothing else. Returns the drafts whose objects may not be watched, with what to do:
    /// these are blocked, and no others.
    async fn follow(
        &self,
        served: &BTreeMap<Kind, Served>,
        reads: impl Iterator<Item = TargetRef>,
        drafts: &[Draft],
    ) -> Result<BTreeMap<String, String>, GatherError> {
        let targets: Vec<_> = drafts.iter().map(|draft| (&draft.name, target::target(draft))).collect();
        let all = scopes(self.ctx, self.profile, served, reads.chain(targets.iter().map(|(_, target)| target.clone())));
        let forbidden = self.ctx.watches.follow(self.config, &all).await?;
        self.ctx.watches.keep_only(self.config, &all);
        let remedy = |target: &TargetRef| Some(forbidden.iter().find(|scope| scope.covers(target))?.remedy());
        Ok(targets.into_iter().filter_map(|(name, target)| Some((name.clone(), remedy(&target)?))).collect())
    }

    fn has_changed(&self, read: &Read) -> bool {
        self.changed.iter().any(|subject| {
            (subject.group.as_str(), subject.kind.as_str(), &subject.name)
                == (read.kind.group, read.kind.kind, &read.name)
                && read.may_be_in(subject.namespace.as_deref())
        })
    }

    async fn items(&self, drafted: &Drafted, memory: &mut Memory) -> Result<Vec<PlanItem>, GatherError> {
        let drafts = &drafted.drafts;
        let choices = &Choices { exclusions: drafted.exclusions.clone(), ..self.wanted.choices.clone().at(self.now) };
        if executing(self.status) && self.status.items.iter().any(|item| is_to_write(item) && !item.pools.is_empty()) {
            // How many machines reboot at a time is decided now: a watch may be behind.
            self.read_pools().await?;
        }
        let reused = drafts
            .iter()
            .map(|draft| self.reused(draft, choices, drafted, memory.items.get(&draft.name)))
            .collect::<Vec<_>>();
        let reused: Vec<Option<PlanItem>> = stream::iter(reused).buffered(CONCURRENCY).try_collect().await?;
        let reused = reused.into_iter().flatten().map(|item| (item.name.clone(), item)).collect();
        // As they are before anything is asked: what changes meanwhile must be seen as a change afterwards.
        let circumstances: Vec<_> = drafts.iter().map(|draft| self.circumstances(draft, choices, drafted)).collect();
        let (kinds, remembered, claims) = (self.profile.kinds(), &self.status.items, &self.claims);
        let unwatched = &drafted.unwatched;
        let exact = self.all;
        let rivals = self.profile.rivals();
        let task = Task { profile: self.config, rivals, kinds, drafts, remembered, claims, choices, unwatched, exact };
        let items = self.engine.items(task, reused).await?;
        let mut previewed = BTreeMap::new();
        for ((draft, item), circumstances) in drafts.iter().zip(items).zip(circumstances) {
            let mut known = CachedItem { followed: item.followed.clone(), circumstances, draft: draft.clone(), item };
            if let Some(item) = self.status.items.iter().find(|item| item.name == draft.name) {
                known.item.since = memory.since(item, &known.item);
            }
            self.add_rollout(&mut known, &mut memory.slow).await?;
            previewed.insert(draft.name.clone(), known);
        }
        memory.items = previewed;
        let followed = memory.items.iter().filter_map(|(name, known)| {
            let remembered = self.status.items.iter().find(|item| item.name == *name);
            let rolling =
                remembered.is_some_and(|item| item.state == ItemState::InProgress || overridden::is_told(item));
            known.followed.as_ref().map(|object| (object, rolling))
        });
        self.ctx.watches.follow_rollouts(self.config, followed);
        let items = drafts.iter().filter_map(|draft| memory.items.get(&draft.name)).map(|known| known.item.clone());
        let mut items: Vec<_> = items.collect();
        memory.troubles.retain(|name, _| memory.items.contains_key(name));
        let waited_for = |item: &PlanItem| {
            let remembered = self.status.items.iter().find(|remembered| remembered.name == item.name);
            let under_way = remembered.is_some_and(|item| item.state == ItemState::InProgress);
            // What takes effect on machines is told by these, and not by who made it known to them.
            let is_followed = self.ctx.rollouts.concern(&item.target);
            let is_done = item.operation == Operation::NoChange && matches!(item.rollout, Rollout::Done(_));
            under_way && is_done && !is_followed
        };
        memory.in_effect.retain(|name, _| items.iter().any(|item| item.name == *name && waited_for(item)));
        for item in items.iter_mut().filter(|item| waited_for(item)) {
            item.in_effect_since = Some(*memory.in_effect.entry(item.name.clone()).or_insert(self.now));
        }
        for item in &mut items {
            if !memory.is_troubled(&item.name, item.trouble.is_some(), self.ctx.patience) {
                item.trouble = None;
            }
        }
        Ok(items)
    }

    /// What may pass by itself, a webhook that is down, is waited for rather than made a new plan of, for a while. Where nothing
    /// is shown yet of this spec, or that is what is shown, a plan is better than none.
    fn nothing_passes(&self, items: &[PlanItem], memory: &mut Memory) -> Result<(), GatherError> {
        let status = self.status;
        // An edit that only approves is no other spec.
        let other_spec = status.planned_spec.as_ref().is_none_or(|planned| planned.hash != self.wanted.spec_hash);
        if executing(status) || other_spec {
            // What is carried out waits by itself, and says so.
            return Ok(());
        }
        let is_shown = |item: &PlanItem| {
            status.items.iter().any(|shown| shown.name == item.name && shown.operation == Operation::Blocked)
        };
        let Some(item) = items.iter().find(|item| item.passing && !is_shown(item)) else {
            memory.passing_since = None;
            return Ok(());
        };
        let since = *memory.passing_since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            return Ok(());
        }
        Err(GatherError::Passing { object: item.target.to_string(), problem: item.message.clone() })
    }

    /// What is known of an item, if neither the draft nor anything that its plan depends on has changed since.
    async fn reused(
        &self,
        draft: &Draft,
        choices: &Choices,
        drafted: &Drafted,
        known: Option<&CachedItem>,
    ) -> Result<Option<PlanItem>, GatherError> {
        let Some(known) = known else {
            return Ok(None);
        };
        // Whether it can be previewed now depends on an earlier item.
        if known.item.operation == Operation::Deferred || (self.due && known.item.operation == Operation::Blocked) {
            return Ok(None);
        }
        let (now, then) = (self.circumstances(draft, choices, drafted), &known.circumstances);
        // What changes nothing has no effect, whatever the rollouts look like, its own among them.
        let same = known.draft == *draft
            && then.definition == now.definition
            && then.unwatched == now.unwatched
            && (then.rollouts == now.rollouts || known.item.operation == Operation::NoChange)
            && then.claims == now.claims
            && then.set_aside == now.set_aside
            && then.overrides == now.overrides;
        if !same {
            return Ok(None);
        }
        let remembered = self.status.items.iter().find(|item| item.name == draft.name);
        let to_write = remembered.is_some_and(is_to_write);
        let changed = self.changed.iter().any(|subject| is_of(subject, &known.item.target));
        if !self.all && !to_write && !changed {
            return Ok(Some(known.item.clone()));
        }
        // What was refused may be allowed now, without any change of the object. And what stays of a removal is told by other objects.
        let may_differ =
            self.all && known.item.operation == Operation::Remove && self.ctx.rollouts.foresee(&known.item.target);
        if known.item.operation == Operation::Blocked || may_differ {
            return Ok(None);
        }
        let target = &known.item.target;
        let kind = match self.ctx.cluster.look_up_object(&target.empty()).await {
            Ok(Some(kind)) => kind,
            // That its group does not answer is the engine's to tell.
            Ok(None) | Err(LookUpError::Group(_)) => return Ok(None),
            Err(LookUpError::Cluster(source)) => {
                return Err(GatherError::Object { object: target.to_string(), source });
            }
        };
        // An object that can't be read is the engine's to judge.
        let Ok(live) = self.engine.get(&kind, target.namespace.as_deref(), &target.name).await else {
            return Ok(None);
        };
        if known.item.resource_version == live.as_deref().and_then(version) {
            return Ok(Some(known.item.clone()));
        }
        // Somebody has edited what is none of our business: nothing to ask the server for. Not where it decides what sets machines in motion.
        let plain = !self.all && draft.unwanted.is_empty() && !self.ctx.rollouts.foresee(target);
        let document = document::of(self.profile.kinds(), target);
        Ok(live.filter(|_| plain).and_then(|live| from_preview::unmoved(draft, document, &known.item, &live)))
    }

    /// What the plan of `draft` depends on beside its object, as it is now.
    fn circumstances(&self, draft: &Draft, choices: &Choices, drafted: &Drafted) -> Circumstances {
        let desired = desired(draft);
        let target = target::target(draft);
        Circumstances {
            unwatched: drafted.unwatched.contains_key(&draft.name),
            definition: desired.and_then(|desired| self.definition(desired)),
            rollouts: self.fingerprint(desired.unwrap_or(&target.empty())),
            claims: self.claims.iter().filter(|claim| claim.target.is_same_object(&target)).cloned().collect(),
            set_aside: choices.set_aside(draft),
            overrides: choices.of(&target).into_iter().cloned().collect(),
        }
    }

    /// What the rollouts look like for `object`, as far as its plan depends on them.
    fn fingerprint(&self, object: &Value) -> String {
        let foreseen = self.ctx.rollouts.foresee(&TargetRef::of(object));
        if foreseen { self.ctx.rollouts.fingerprint(object, false) } else { String::new() }
    }

    /// The version of the object's CRD, as far as a watch told it.
    fn definition(&self, desired: &Value) -> Option<String> {
        let kind = desired.get("kind").and_then(Value::as_str);
        let declared = self.profile.kinds().iter().find(|declared| Some(declared.kind.kind) == kind)?;
        self.ctx.watches.crd_version(&declared.kind.crd_name())
    }

    /// How far `object` is. That an execution is done is read live, once, and not believed of a watch.
    async fn confirmed(&self, item: Option<&Item>, object: &Value) -> Result<Rollout, GatherError> {
        let change = change(item);
        let rollout = standing(self.ctx, object, change).await?;
        let rolling = item.is_some_and(|item| item.state == ItemState::InProgress && item.applied.is_some());
        if !(rolling && matches!(rollout, Rollout::Done(_))) {
            return Ok(rollout);
        }
        self.read_pools().await?;
        standing(self.ctx, object, change).await
    }

    /// Reads live what rollouts are told from, where a watch may be behind.
    async fn read_pools(&self) -> Result<(), GatherError> {
        let kind = self.ctx.rollouts.watched();
        if let Some(served) = resolve(self.ctx, &kind).await? {
            let objects = self.ctx.cluster.list(&served).await;
            let objects = objects.map_err(|source| GatherError::Object { object: kind.plural.to_owned(), source })?;
            self.ctx.rollouts.saw_all(&objects);
        }
        Ok(())
    }

    async fn add_rollout(&self, known: &mut CachedItem, slow: &mut BTreeMap<String, Slow>) -> Result<(), GatherError> {
        let item = self.status.items.iter().find(|item| item.name == known.item.name);
        if matches!(known.draft.body, Body::Remove(_)) {
            let under_way = item.filter(|item| item.state == ItemState::InProgress);
            let is_made = known.item.operation == Operation::NoChange && self.ctx.rollouts.concern(&known.item.target);
            let Some(item) = under_way.filter(|_| is_made) else { return Ok(()) };
            match (&known.item.uid, &known.item.resource_version, &known.followed) {
                (None, None, _) => {
                    let TargetRef { api_version, kind, name, .. } = &known.item.target;
                    let gone = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "pools": item.pools});
                    known.item.rollout = standing(self.ctx, &gone, ChangeKind::Removed).await?;
                    known.followed = Some(gone);
                }
                // Others have a part in it, and it stays without ours.
                (Some(_), Some(_), Some(left)) => {
                    known.item.rollout = standing(self.ctx, left, ChangeKind::Edited).await?
                }
                // It is on its way out, and not gone.
                _ => {}
            }
            return Ok(());
        }
        // What is blocked or set aside is not waited for, whether it exists or not.
        let is_followed = !matches!(known.item.operation, Operation::Blocked | Operation::Skipped);
        if let Some(object) = known.followed.as_ref().filter(|_| is_followed) {
            known.item.overridden = BTreeMap::new();
            known.item.rollout = match known.item.uid {
                Some(_) => {
                    let rollout = self.confirmed(item, object).await?;
                    if known.item.operation == Operation::NoChange {
                        known.item.overridden = self.ctx.rollouts.overridden(object);
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

/// Whether an approved plan is being carried out.
fn executing(status: &VirtPlatformConfigStatus) -> bool {
    status.phase == Some(Phase::InProgress) && status.approval.is_some()
}

/// Whether the item is about to be written, or may have been.
fn is_to_write(item: &Item) -> bool {
    item.state == ItemState::InProgress && item.applied.is_none()
}

/// Whether `subject` is the object of that reference.
fn is_of(subject: &Subject, target: &TargetRef) -> bool {
    (subject.group.as_str(), &subject.kind, &subject.namespace, &subject.name)
        == (target.group(), &target.kind, &target.namespace, &target.name)
}

/// The object that a draft wants.
fn desired(draft: &Draft) -> Option<&Value> {
    match &draft.body {
        Body::Ensure(object) => Some(object),
        Body::Remove(_) | Body::Blocked { .. } => None,
    }
}

/// The names of all CRDs that `profiles` depend on, and that of `also`, with group and kind.
pub(super) fn declared_crds(profiles: Profiles, also: Kind) -> BTreeMap<String, (String, String)> {
    let kinds = profiles.iter().flat_map(|profile| profile.kinds().iter().map(|declared| declared.kind));
    let kinds: BTreeSet<Kind> = kinds.chain([also]).collect();
    kinds.into_iter().map(|kind| (kind.crd_name(), (kind.group.to_owned(), kind.kind.to_owned()))).collect()
}
