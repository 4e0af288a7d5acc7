//! Drafts: the profile's own step, and the reading that it asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use profile_sdk::{
    DISABLED_RESOURCES, Declared, Draft, DraftError, Inputs, Kind, LeftOutFeature, Planner, Read, Recorded, Remembered,
    Surroundings,
};
use serde_json::Value;

use super::{CONCURRENCY, Engine, EngineError, version};
use advisor_cluster::{ClusterError, LookUpError, Served, SilentGroup};
use advisor_core::api::Input;
use advisor_core::plan::overrides::{Exclusions, is_override};
use advisor_core::plan::wire;
use object::fields;
use object::pointer;

/// The version under which it is noted that an object is not looked for in all namespaces any more.
const FOUND: &str = "found";

/// What became of asking a profile for its drafts.
#[derive(Debug)]
pub enum Drafting {
    /// What it wants, and from what.
    Drafted(DraftedPlan),
    /// What it needs and is not there: one sentence for each.
    Missing(Vec<String>),
    /// An input that keeps it from saying what it wants.
    Invalid(String),
}

/// What a profile wants.
#[derive(Debug)]
pub struct DraftedPlan {
    /// Its drafts.
    pub drafts: Vec<Draft>,
    /// The values that it read for them.
    pub inputs: Vec<Input>,
    /// What administrators have excluded from it.
    pub exclusions: Exclusions,
    /// The parts of which it wants nothing here.
    pub left_out: Vec<LeftOutFeature>,
    /// What it used of what it read.
    pub used: Remembered,
}

/// What is known of kinds; those in neither map are not served.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// Those that are served.
    pub served: BTreeMap<Kind, Served>,
    /// Those that may be: their group does not answer. They are never taken for not served, so nothing is left out or taken back because
    /// of that, and what needs or reads one waits.
    pub unknown: BTreeMap<Kind, SilentGroup>,
}

impl Kinds {
    /// Where the kind is served, if it is.
    fn known(&self, kind: &Kind) -> Result<Option<&Served>, EngineError> {
        match self.unknown.get(kind) {
            Some(group) => Err(EngineError::Silent { kind: kind.kind, group: group.clone() }),
            None => Ok(self.served.get(kind)),
        }
    }
}

impl Engine<'_> {
    /// Which of `kinds` are served.
    ///
    /// # Errors
    ///
    /// If the server does not answer, or the group of the rollouts: those that are not known must not be taken for absent.
    pub async fn served(&self, kinds: impl IntoIterator<Item = Kind>) -> Result<Kinds, EngineError> {
        let mut found = Kinds::default();
        for kind in kinds {
            if let Some(silent) = found.unknown.values().find(|silent| silent.has(&kind)).cloned() {
                found.unknown.insert(kind, silent);
                continue;
            }
            // One after the other: the kinds of a group are known from one request, and all of them after the first plan.
            match self.cluster.look_up(&kind).await {
                Ok(Some(served)) => drop(found.served.insert(kind, served)),
                Ok(None) => {}
                Err(LookUpError::Group(silent)) => drop(found.unknown.insert(kind, silent)),
                Err(LookUpError::Cluster(source)) => return Err(EngineError::Kind { kind: kind.kind, source }),
            }
        }
        found.known(&self.rollouts.watched_kind())?;
        Ok(found)
    }

    /// Reads what `planner` asks for and is not `remembered`, as far as its kind, one of `kinds`, is `served`, and lets it draft what `manager`
    /// applies.
    ///
    /// # Errors
    ///
    /// If the server does not answer. An error of reading is never an absent object.
    pub async fn draft(
        &self,
        planner: &dyn Planner,
        manager: &str,
        kinds: &[Declared],
        served: &Kinds,
        remembered: Remembered,
    ) -> Result<Drafting, EngineError> {
        if let Some(error) = undeclared(planner, kinds) {
            return Ok(Drafting::Invalid(format!("The plan could not be made: {error}.")));
        }
        let prerequisites = planner.prerequisites();
        let mut missing = Vec::new();
        for needed in &prerequisites {
            let kind = needed.kind;
            if served.known(&kind)?.is_some() {
                continue;
            }
            missing.push(format!("{} (CRD {}) is not installed: {}", kind.kind, kind.crd_name(), needed.hint));
        }
        let unknown = planner.reads().into_iter().filter(|read| !remembered.knows(read));
        let reads = stream::iter(unknown).map(|read| self.read(read, served, manager));
        let objects: Vec<(Read, Option<Value>)> = match reads.buffered(CONCURRENCY).try_collect().await {
            Err(error @ EngineError::Ambiguous { .. }) => return Ok(Drafting::Missing(vec![error.to_string()])),
            objects => objects?,
        };
        for needed in prerequisites {
            let Some(read) = needed.object.filter(|_| served.served.contains_key(&needed.kind)) else {
                continue;
            };
            if remembered.has(&read) {
                // It was there, and has not changed.
                continue;
            }
            // What was read already is not read again.
            let (read, object) = self.read(read, served, manager).await?;
            if object.is_none() {
                missing.push(match read.elsewhere {
                    true => {
                        format!("{} {} does not exist in any namespace: {}", read.kind.kind, read.name, needed.hint)
                    }
                    false => format!("{} does not exist: {}", named(&read), needed.hint),
                });
            }
        }
        if !missing.is_empty() {
            return Ok(Drafting::Missing(missing));
        }
        let of_nodes = match remembered.of_nodes() {
            Some(known) => known.clone(),
            None => self.ask_nodes(planner.node_questions()).await?,
        };
        let not_served = |kind: &Kind| !served.served.contains_key(kind) && !served.unknown.contains_key(kind);
        let not_served = kinds.iter().map(|declared| declared.kind).filter(not_served).collect();
        let surroundings = Surroundings { not_served, of_nodes };
        let inputs = Inputs::remembering(objects, remembered).in_surroundings(surroundings).declaring(kinds);
        let drafted = planner.draft(&inputs).and_then(|drafts| {
            let (exclusions, left_out) = (exclusions(planner, &inputs)?, planner.left_out(&inputs)?);
            inputs.check()?;
            Ok((drafts, exclusions, left_out))
        });
        Ok(match drafted {
            Ok((drafts, exclusions, left_out)) => {
                // Where nothing is overridden, the plan need not say so.
                let says = |input: &Input| input.value.is_some() || !is_override(input);
                let recorded = inputs.recorded().into_iter().map(input).filter(says).collect();
                Drafting::Drafted(DraftedPlan {
                    drafts,
                    inputs: recorded,
                    exclusions,
                    left_out,
                    used: inputs.remember(),
                })
            }
            Err(DraftError::Forgotten) => {
                return Box::pin(self.draft(planner, manager, kinds, served, Remembered::default())).await;
            }
            Err(error) => Drafting::Invalid(format!("The plan could not be made: {error}.")),
        })
    }

    async fn read(&self, read: Read, served: &Kinds, manager: &str) -> Result<(Read, Option<Value>), EngineError> {
        let failed = |source| EngineError::Object { object: named(&read), source };
        let object = match served.known(&read.kind)? {
            Some(kind) => match self.read_as_applied(kind, &read, manager).await.map_err(failed)? {
                None if read.elsewhere && kind.namespaced => self.read_elsewhere(kind, &read, manager).await?,
                found => found,
            },
            None => None,
        };
        if let (Some(kind), true, true) = (served.known(&read.kind)?, read.elsewhere, object.is_some()) {
            // Others that come elsewhere are none of anybody's business.
            (self.seen)(kind.subject(None, &read.name), Some(FOUND.to_owned()));
        }
        Ok((read, object.map(Arc::unwrap_or_clone)))
    }

    /// The only object of that name in any namespace.
    async fn read_elsewhere(
        &self,
        kind: &Served,
        read: &Read,
        manager: &str,
    ) -> Result<Option<Arc<Value>>, EngineError> {
        let failed = |source| EngineError::Object { object: named(read), source };
        let by_name = format!("metadata.name={}", read.name);
        let found = self.cluster.list_selected(kind, Some(&by_name), true).await.map_err(failed)?;
        let place = |object: &Value| object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
        let mut places: Vec<_> = found.iter().filter_map(place).collect();
        for object in &found {
            // That one of several goes is news too.
            (self.seen)(kind.subject(place(object).as_deref(), &read.name), version(object));
        }
        match places.as_slice() {
            [] => {
                // So that one that comes, wherever that is, is news.
                (self.seen)(kind.subject(None, &read.name), None);
                Ok(None)
            }
            [place] => {
                let there = Read { namespace: Some(place.clone()), ..read.clone() };
                self.read_as_applied(kind, &there, manager).await.map_err(failed)
            }
            _ => {
                places.sort_unstable();
                Err(EngineError::Ambiguous { kind: read.kind.kind, name: read.name.clone(), namespaces: places })
            }
        }
    }

    /// The object as `kind` serves it, or in the version in which `manager` has applied it, as long as that is served too. An apply in another
    /// version has the server convert all of the object there and back for the sake of the manager's fields: HyperConverged's own types add a
    /// null on the way, which its schema refuses, and then nothing can be applied any more (observed at 03da3cff7325 on kube-apiserver 1.36).
    async fn read_as_applied(
        &self,
        kind: &Served,
        read: &Read,
        manager: &str,
    ) -> Result<Option<Arc<Value>>, ClusterError> {
        let place = read.namespace.as_deref();
        let object = self.get(kind, place, &read.name).await?;
        let version = object.as_deref().and_then(|object| fields::applied_in(object, manager));
        let version = version.and_then(|version| version.strip_prefix(read.kind.group)?.strip_prefix('/'));
        let other = version.filter(|version| *version != kind.resource.version && read.kind.versions.contains(version));
        let Some(version) = other else { return Ok(object) };
        match self.cluster.look_up_in(&read.kind, version).await? {
            Some(other) => {
                self.forget(kind, place, &read.name);
                self.get(&other, place, &read.name).await
            }
            None => Ok(object),
        }
    }
}

/// What administrators have excluded, by the annotation of the object that the profile names.
///
/// # Errors
///
/// As [`Inputs::value`].
pub fn exclusions(planner: &dyn Planner, inputs: &Inputs) -> Result<Exclusions, DraftError> {
    let Some(read) = planner.exclusions() else { return Ok(Exclusions::default()) };
    let mut place = "/metadata/annotations".to_owned();
    pointer::push(&mut place, DISABLED_RESOURCES);
    let value = inputs.value(&read, &place)?;
    Ok(Exclusions::parse(value.as_ref().and_then(Value::as_str)))
}

/// A kind that `planner` needs or reads and its profile does not declare: it would not be served on any cluster.
#[must_use]
pub fn undeclared(planner: &dyn Planner, kinds: &[Declared]) -> Option<DraftError> {
    let needed = planner.prerequisites().into_iter().map(|needed| needed.kind);
    let mut all = needed.chain(planner.reads().into_iter().map(|read| read.kind));
    let unknown = all.find(|kind| !kinds.iter().any(|declared| declared.kind == *kind))?;
    Some(DraftError::UndeclaredKind { kind: unknown.kind, group: unknown.group })
}

/// What people call the object.
fn named(read: &Read) -> String {
    let place = read.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{}", read.kind.kind, read.name)
}

fn input(recorded: Recorded) -> Input {
    wire::input(recorded.target.into(), &recorded.path, recorded.value)
}
