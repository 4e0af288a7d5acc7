//! Drafts: runs the profile, and reads what it asks for.

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

/// The version that is recorded when an object no longer needs to be searched for in all
/// namespaces.
const FOUND: &str = "found";

/// The result of asking a profile for its drafts.
#[derive(Debug)]
pub enum Drafting {
    /// The drafts and their inputs.
    Drafted(DraftedPlan),
    /// Prerequisites that are missing: a sentence for each.
    Missing(Vec<String>),
    /// An input prevents the profile from making drafts.
    Invalid(String),
}

/// The drafts of a profile and what they were made from.
#[derive(Debug)]
pub struct DraftedPlan {
    /// Its drafts.
    pub drafts: Vec<Draft>,
    /// The values that it read for them.
    pub inputs: Vec<Input>,
    /// The objects that administrators have excluded.
    pub exclusions: Exclusions,
    /// The features that are left out on this cluster.
    pub left_out: Vec<LeftOutFeature>,
    /// The part of the read objects that the profile used.
    pub used: Remembered,
}

/// What is known about kinds. A kind in neither map is not served.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// The kinds that are served.
    pub served: BTreeMap<Kind, Served>,
    /// The kinds that may be served, but whose group does not answer. They are never treated as not
    /// served, so nothing is left out or removed because of that, and anything that needs or reads
    /// one waits.
    pub unknown: BTreeMap<Kind, SilentGroup>,
}

impl Kinds {
    /// How the kind is served, if it is.
    fn served_as(&self, kind: &Kind) -> Result<Option<&Served>, EngineError> {
        match self.unknown.get(kind) {
            Some(group) => Err(EngineError::Silent { kind: kind.kind, group: group.clone() }),
            None => Ok(self.served.get(kind)),
        }
    }
}

impl Engine<'_> {
    /// Looks up which of `kinds` are served.
    ///
    /// # Errors
    ///
    /// If the server does not answer, or the group of the rollouts does not: unknown pools must not
    /// be treated as absent.
    pub async fn served(&self, kinds: impl IntoIterator<Item = Kind>) -> Result<Kinds, EngineError> {
        let mut found = Kinds::default();
        for kind in kinds {
            if let Some(silent) = found.unknown.values().find(|silent| silent.has(&kind)).cloned() {
                found.unknown.insert(kind, silent);
                continue;
            }
            // One after the other: one request answers for all kinds of a group, and after the
            // first plan all are known.
            match self.cluster.look_up(&kind).await {
                Ok(Some(served)) => drop(found.served.insert(kind, served)),
                Ok(None) => {}
                Err(LookUpError::Group(silent)) => drop(found.unknown.insert(kind, silent)),
                Err(LookUpError::Cluster(source)) => return Err(EngineError::Kind { kind: kind.kind, source }),
            }
        }
        found.served_as(&self.rollouts.watched_kind())?;
        Ok(found)
    }

    /// Reads what `planner` asks for and is not `remembered`, if its kind, one of `kinds`, is
    /// `served`, and lets it make the drafts that `manager` will apply.
    ///
    /// # Errors
    ///
    /// If the server does not answer. A read error is never treated as an absent object.
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
            if served.served_as(&kind)?.is_some() {
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
                // It existed, and has not changed.
                continue;
            }
            // Objects that were already read are not read again.
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
                // A missing override is not an input of the plan.
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
        let object = match served.served_as(&read.kind)? {
            Some(kind) => match self.read_as_applied(kind, &read, manager).await.map_err(failed)? {
                None if read.elsewhere && kind.namespaced => self.read_elsewhere(kind, &read, manager).await?,
                found => found,
            },
            None => None,
        };
        if let (Some(kind), true, true) = (served.served_as(&read.kind)?, read.elsewhere, object.is_some()) {
            // Objects that appear in other namespaces no longer matter.
            (self.seen)(kind.subject(None, &read.name), Some(FOUND.to_owned()));
        }
        Ok((read, object.map(Arc::unwrap_or_clone)))
    }

    /// The only object with this name in any namespace.
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
            // The plan also changes when one of several is deleted.
            (self.seen)(kind.subject(place(object).as_deref(), &read.name), version(object));
        }
        match places.as_slice() {
            [] => {
                // Recorded without a namespace, so that an object that appears anywhere is noticed.
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

    /// The object as `kind` serves it, or in the version in which `manager` applied it, as long as
    /// that is served too. For an apply in another version, the server converts the whole object
    /// there and back because of the manager's fields: HyperConverged's own types add a null on the
    /// way, which its schema refuses, and then nothing can be applied any longer (observed at
    /// 03da3cff7325 on kube-apiserver 1.36).
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

/// The objects that administrators have excluded, in the annotation of the object that the profile
/// names.
///
/// # Errors
///
/// As for [`Inputs::value`].
pub fn exclusions(planner: &dyn Planner, inputs: &Inputs) -> Result<Exclusions, DraftError> {
    let Some(read) = planner.exclusions() else { return Ok(Exclusions::default()) };
    let mut place = "/metadata/annotations".to_owned();
    pointer::push(&mut place, DISABLED_RESOURCES);
    let value = inputs.value(&read, &place)?;
    Ok(Exclusions::parse(value.as_ref().and_then(Value::as_str)))
}

/// An error for a kind that `planner` needs or reads but its profile does not declare: it would be
/// treated as not served on any cluster.
#[must_use]
pub fn undeclared(planner: &dyn Planner, kinds: &[Declared]) -> Option<DraftError> {
    let needed = planner.prerequisites().into_iter().map(|needed| needed.kind);
    let mut all = needed.chain(planner.reads().into_iter().map(|read| read.kind));
    let unknown = all.find(|kind| !kinds.iter().any(|declared| declared.kind == *kind))?;
    Some(DraftError::UndeclaredKind { kind: unknown.kind, group: unknown.group })
}

/// The name of the object for people.
fn named(read: &Read) -> String {
    let place = read.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{}", read.kind.kind, read.name)
}

fn input(recorded: Recorded) -> Input {
    wire::input(recorded.target.into(), &recorded.path, recorded.value)
}
