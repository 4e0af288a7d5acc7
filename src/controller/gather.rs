//! Gather: all reading that a decision needs.
//!
//! Reads go to the API server. What a watch has followed since it was read need not be read again; before the first
//! write of an execution everything is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures::stream::{self, StreamExt, TryStreamExt};
use profile_sdk::{Access, Body, Declared, Draft, Inputs, Kind, Planner, Profile, Read};
use serde_json::Value;

use super::memory::{Drafted, Memory, Previewed};
use super::progress::{change, only_rollouts, standing};
use super::triggers::{Causes, Subject};
use super::watches::{NotListed, crd_subject};
use super::{Context, draft};
use crate::api::{Action, FIELD_MANAGER, Item, ItemState, Operation, TargetRef, VirtPlatformConfigStatus};
use crate::cluster::{ClusterError, Served};
use crate::plan::health::Rollout;
use crate::plan::item::{self, Effect, PlanItem, Preview};
use crate::plan::observed::{Wanted, World};
use crate::plan::{Basis, Plan, diff};
use crate::registry;

/// Requests that one plan has under way at a time.
const CONCURRENCY: usize = 8;

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
    /// A change could not be previewed.
    #[error("previewing {object} failed: {source}")]
    Preview { object: String, source: ClusterError },
}

impl GatherError {
    /// A word for logs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Rollouts(_) => "NotListed",
            Self::Rendered { .. } => "NotFound",
            Self::Kind { source, .. } | Self::Object { source, .. } | Self::Preview { source, .. } => source.reason(),
        }
    }
}

/// The field manager of a profile's objects. One for each: with a shared one, the second configuration's apply would
/// remove the first one's fields.
pub(super) fn manager(profile: &str) -> String {
    format!("{FIELD_MANAGER}/{profile}")
}

/// Looks at the part of the world that `config` depends on.
pub(super) async fn world(
    ctx: &Context,
    config: &str,
    wanted: &Wanted,
    status: &VirtPlatformConfigStatus,
    causes: Causes,
    memory: &mut Memory,
) -> Result<World, GatherError> {
    let Some(profile) = registry::find(config) else {
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
        && as_drafted
        && wanted.action == Action::Apply
        && let Some(rollouts) = only_rollouts(ctx, status, memory).await?
    {
        return Ok(World::Rollouts(rollouts));
    }
    let look = Look {
        ctx,
        config,
        profile,
        wanted,
        status,
        all: causes.objects || memory.drafted.is_none(),
        read: Mutex::default(),
    };
    let drafted = match memory.drafted.clone().filter(|known| !look.all && known.generation == wanted.generation) {
        Some(drafted) => drafted,
        None => match look.draft(planner.as_ref()).await? {
            Ok(drafted) => memory.drafted.insert(drafted).clone(),
            Err(instead) => {
                memory.forget_plan();
                return Ok(instead);
            }
        },
    };
    let items = look.items(&drafted, memory).await?;
    let basis = Basis { profile: config.to_owned(), options: wanted.options.clone(), inputs: drafted.inputs };
    Ok(World::Planned(Plan::new(basis, items)))
}

/// The kind as it is served, if it is.
pub(super) async fn resolve(ctx: &Context, kind: &Kind) -> Result<Option<Served>, GatherError> {
    ctx.cluster.resolve(kind).await.map_err(|source| GatherError::Kind { kind: kind.kind, source })
}

/// One look at the world.
struct Look<'a> {
    ctx: &'a Context,
    config: &'a str,
    profile: &'a dyn Profile,
    wanted: &'a Wanted,
    status: &'a VirtPlatformConfigStatus,
    /// Everything is read again.
    all: bool,
    /// What this look has read, so that nothing is read twice.
    read: Mutex<BTreeMap<Subject, Option<Value>>>,
}

impl Look<'_> {
    /// Reads the inputs and lets the profile draft. The inner error is what to decide from instead.
    async fn draft(&self, planner: &dyn Planner) -> Result<Result<Drafted, World>, GatherError> {
        let served = self.served_kinds().await?;
        self.follow(&served).await?;
        let mut missing = Vec::new();
        for needed in planner.prerequisites() {
            if !served.contains_key(&needed.kind) {
                let kind = needed.kind;
                missing.push(format!("{} (CRD {}) is not installed: {}", kind.kind, kind.crd_name(), needed.hint));
            }
        }
        let reads = planner.reads();
        let objects: Vec<(Read, Option<Value>)> =
            stream::iter(reads).map(|read| self.read(read, &served)).buffered(CONCURRENCY).try_collect().await?;
        for needed in planner.prerequisites() {
            let Some((namespace, name)) = needed.object.filter(|_| served.contains_key(&needed.kind)) else {
                continue;
            };
            let read = Read { kind: needed.kind, namespace, name };
            let known = objects.iter().find(|(other, _)| *other == read).map(|(_, object)| object.is_some());
            let exists = match known {
                Some(exists) => exists,
                None => self.read(read.clone(), &served).await?.1.is_some(),
            };
            if !exists {
                let place = read.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
                missing.push(format!("{} {place}{} does not exist: {}", read.kind.kind, read.name, needed.hint));
            }
        }
        if !missing.is_empty() {
            return Ok(Err(World::Missing(missing)));
        }
        Ok(draft::drafted(planner, &Inputs::new(objects), self.wanted.generation).map_err(World::Invalid))
    }

    /// The profile's kinds that are served. What is not served may come: its CRD is followed.
    async fn served_kinds(&self) -> Result<BTreeMap<Kind, Served>, GatherError> {
        let mut kinds: Vec<_> = self.profile.kinds().iter().map(|declared| declared.kind).collect();
        kinds.push(self.ctx.rollouts.watched());
        for kind in &kinds {
            let name = kind.crd_name();
            self.ctx.triggers.seen(self.config, crd_subject(&name), self.ctx.watches.crd_version(&name));
        }
        let mut served = BTreeMap::new();
        for kind in kinds {
            // One after the other: the kinds of a group are known from one request, and all of them after the first plan.
            if let Some(found) = resolve(self.ctx, &kind).await? {
                served.insert(kind, found);
            }
        }
        Ok(served)
    }

    async fn follow(&self, served: &BTreeMap<Kind, Served>) -> Result<(), NotListed> {
        // CRDs are followed by a watch of their own.
        let kinds: Vec<_> = served
            .iter()
            .filter(|(kind, _)| kind.group != "apiextensions.k8s.io")
            .map(|(_, served)| served.clone())
            .collect();
        self.ctx.watches.follow(self.config, &kinds).await
    }

    async fn read(&self, read: Read, served: &BTreeMap<Kind, Served>) -> Result<(Read, Option<Value>), GatherError> {
        let object = match served.get(&read.kind) {
            Some(kind) => self.get(kind, read.namespace.as_deref(), &read.name).await?,
            None => None,
        };
        Ok((read, object))
    }

    /// Reads an object and remembers its version, so that only other versions of it are news.
    async fn get(&self, kind: &Served, namespace: Option<&str>, name: &str) -> Result<Option<Value>, GatherError> {
        let subject = Subject {
            group: kind.resource.group.clone(),
            kind: kind.resource.kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        if let Some(read) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&subject) {
            return Ok(read.clone());
        }
        let object = self
            .ctx
            .cluster
            .get(kind, namespace, name)
            .await
            .map_err(|source| GatherError::Object { object: format!("{} {name}", kind.resource.kind), source })?;
        self.ctx.triggers.seen(self.config, subject.clone(), object.as_ref().and_then(version));
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(subject, object.clone());
        Ok(object)
    }

    async fn items(&self, drafted: &Drafted, memory: &mut Memory) -> Result<Vec<PlanItem>, GatherError> {
        let known = &memory.items;
        let previews: Vec<_> = drafted.drafts.iter().map(|draft| self.item(draft, known.get(draft.name))).collect();
        let previewed: Vec<Previewed> = stream::iter(previews).buffered(CONCURRENCY).try_collect().await?;
        memory.items = previewed.into_iter().map(|known| (known.item.name.clone(), known)).collect();
        let followed = memory.items.iter().filter_map(|(name, known)| {
            let remembered = self.status.items.iter().find(|item| item.name == *name);
            let rolling = remembered.is_some_and(|item| item.state == ItemState::InProgress);
            known.followed.as_ref().map(|object| (object, rolling))
        });
        self.ctx.watches.follow_rollouts(self.config, followed);
        Ok(drafted
            .drafts
            .iter()
            .filter_map(|draft| memory.items.get(draft.name))
            .map(|known| known.item.clone())
            .collect())
    }

    /// Plans one item. What is known of it is used if neither the draft nor the object has changed since.
    async fn item(&self, draft: &Draft, known: Option<&Previewed>) -> Result<Previewed, GatherError> {
        let remembered = self.status.items.iter().find(|item| item.name == draft.name);
        let to_write = remembered.is_some_and(|item| item.state == ItemState::InProgress && item.applied.is_none());
        let desired = match &draft.body {
            Body::Ensure(object) => object,
            Body::Blocked { remedy, .. } => return Ok(self.refused(draft, None, remedy.clone())),
        };
        let rollouts = self.fingerprint(desired);
        // What changes nothing has no effect, whatever the rollouts look like, its own among them.
        let same = |known: &&Previewed| known.rollouts == rollouts || known.item.operation == Operation::NoChange;
        let definition = self.definition(desired);
        let known = known.filter(|known| known.draft == *draft && known.definition == definition).filter(same);
        if let Some(known) = known.filter(|_| !self.all && !to_write) {
            return self.with_rollout(known.clone(), remembered).await;
        }
        let refused = |remedy| Ok(self.refused(draft, Some(desired), remedy));
        let target = TargetRef::of(desired).to_string();
        let kind = self.ctx.cluster.resolve_object(desired).await;
        let Some(kind) = kind.map_err(|source| GatherError::Preview { object: target.clone(), source })? else {
            let kind = desired.get("kind").and_then(Value::as_str).unwrap_or_default();
            return refused(format!("the cluster does not serve {kind}: install its operator"));
        };
        let text = |pointer: &str| desired.pointer(pointer).and_then(Value::as_str);
        let live = self.get(&kind, text("/metadata/namespace"), text("/metadata/name").unwrap_or_default()).await?;
        // What was refused may be allowed now, without any change of the object.
        let unchanged = |known: &&Previewed| {
            known.item.operation != Operation::Blocked && known.item.resource_version == live.as_ref().and_then(version)
        };
        if let Some(known) = known.filter(unchanged) {
            return self.with_rollout(known.clone(), remembered).await;
        }
        if live.is_none() && !self.may_create(desired) {
            return refused(format!(
                "{target} does not exist, and creating it would install something: create it first"
            ));
        }
        let manager = manager(self.config);
        let preview = self.ctx.cluster.preview(&kind, desired, live, &manager, &draft.sensitive).await;
        let preview = preview.map_err(|source| GatherError::Preview { object: target, source })?;
        let (effect, followed) = match &preview {
            Preview::Known { live, result, .. } => match self.effect(live.as_ref(), result) {
                Ok(effect) => (effect, self.followed(live.as_ref().unwrap_or(result))),
                Err(remedy) => return refused(remedy),
            },
            Preview::Refused { .. } => (Effect::default(), self.followed(desired)),
        };
        let item = item::compose(draft, &manager, preview, effect, remembered);
        let previewed = Previewed { item, followed, definition, rollouts, draft: draft.clone() };
        self.with_rollout(previewed, remembered).await
    }

    fn refused(&self, draft: &Draft, desired: Option<&Value>, remedy: String) -> Previewed {
        let preview = Preview::Refused { remedy };
        let item = item::compose(draft, &manager(self.config), preview, Effect::default(), None);
        let followed = desired.and_then(|desired| self.followed(desired));
        let rollouts = desired.map(|desired| self.fingerprint(desired)).unwrap_or_default();
        let definition = desired.and_then(|desired| self.definition(desired));
        Previewed { item, followed, definition, rollouts, draft: draft.clone() }
    }

    /// What the rollouts look like for `object`, as far as its plan depends on them.
    fn fingerprint(&self, object: &Value) -> String {
        let concerned = self.ctx.rollouts.concern(&TargetRef::of(object));
        if concerned { self.ctx.rollouts.fingerprint(object, false) } else { String::new() }
    }

    /// What the profile declares of the object's kind.
    fn declared(&self, desired: &Value) -> Option<&'static Declared> {
        let kind = desired.get("kind").and_then(Value::as_str);
        self.profile.kinds().iter().find(|declared| Some(declared.kind.kind) == kind)
    }

    /// The version of the object's CRD, as far as a watch told it.
    fn definition(&self, desired: &Value) -> Option<String> {
        self.ctx.watches.crd_version(&self.declared(desired)?.kind.crd_name())
    }

    fn may_create(&self, desired: &Value) -> bool {
        self.declared(desired).is_some_and(|declared| declared.access == Access::Write)
    }

    fn effect(&self, live: Option<&Value>, result: &Value) -> Result<Effect, String> {
        // What changes nothing has no effect, and needs no pool.
        let changes = live.map(diff::without_noise) != Some(diff::without_noise(result));
        if changes && self.ctx.rollouts.concern(&TargetRef::of(result)) {
            self.ctx.rollouts.effect(live, result)
        } else {
            Ok(Effect::default())
        }
    }

    /// What is kept of an object whose rollout is followed.
    fn followed(&self, object: &Value) -> Option<Value> {
        self.ctx.rollouts.concern(&TargetRef::of(object)).then(|| {
            let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
            serde_json::json!({
                "metadata": {"name": part("/metadata/name"), "labels": part("/metadata/labels")},
                "spec": part("/spec"),
            })
        })
    }

    /// How far `object` is. That an execution is done is read live, once, and not believed of a watch.
    async fn confirmed(&self, item: Option<&Item>, object: &Value) -> Result<Rollout, GatherError> {
        let change = change(item);
        let rollout = standing(self.ctx, object, change).await?;
        let rolling = item.is_some_and(|item| item.state == ItemState::InProgress && item.applied.is_some());
        let kind = self.ctx.rollouts.watched();
        if !(rolling && matches!(rollout, Rollout::Done(_))) {
            return Ok(rollout);
        }
        if let Some(served) = resolve(self.ctx, &kind).await? {
            let objects = self.ctx.cluster.list(&served).await;
            let objects = objects.map_err(|source| GatherError::Object { object: kind.plural.to_owned(), source })?;
            self.ctx.rollouts.saw_all(&objects);
        }
        standing(self.ctx, object, change).await
    }

    async fn with_rollout(&self, mut known: Previewed, item: Option<&Item>) -> Result<Previewed, GatherError> {
        if let Some(object) = &known.followed {
            known.item.rollout = match known.item.uid {
                Some(_) => self.confirmed(item, object).await?,
                None => Rollout::Waiting { text: "does not exist yet".to_owned(), paused: false },
            };
        }
        Ok(known)
    }
}

fn version(object: &Value) -> Option<String> {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned)
}

/// The names of all CRDs that the registered profiles and `rollouts` depend on, with group and kind.
pub(super) fn declared_crds(also: Kind) -> BTreeMap<String, (String, String)> {
    let kinds = registry::PROFILES.iter().flat_map(|profile| profile.kinds().iter().map(|declared| declared.kind));
    let kinds: BTreeSet<Kind> = kinds.chain([also]).collect();
    kinds.into_iter().map(|kind| (kind.crd_name(), (kind.group.to_owned(), kind.kind.to_owned()))).collect()
}
