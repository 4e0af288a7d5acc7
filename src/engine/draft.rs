//! Drafts: the profile's own step, and the reading that it asks for.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use profile_sdk::{
    DISABLED_RESOURCES, Declared, Draft, DraftError, Inputs, Kind, LeftOut, Planner, Read, Recorded, Remembered,
    Surroundings,
};
use serde_json::Value;

use super::{CONCURRENCY, Engine, EngineError};
use crate::api::Input;
use crate::cluster::Served;
use crate::plan::overrides::{Exclusions, is_override};
use crate::plan::{pointer, wire};

/// What became of asking a profile for its drafts.
#[derive(Debug)]
pub enum Drafting {
    /// What it wants, and from what.
    Drafted(Wanted),
    /// What it needs and is not there: one sentence for each.
    Missing(Vec<String>),
    /// An input that keeps it from saying what it wants.
    Invalid(String),
}

/// What a profile wants.
#[derive(Debug)]
pub struct Wanted {
    /// Its drafts.
    pub drafts: Vec<Draft>,
    /// The values that it read for them.
    pub inputs: Vec<Input>,
    /// What administrators have excluded from it.
    pub exclusions: Exclusions,
    /// The parts of which it wants nothing here.
    pub left_out: Vec<LeftOut>,
    /// What it used of what it read.
    pub used: Remembered,
}

impl Engine<'_> {
    /// Which of `kinds` are served.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn served(&self, kinds: impl IntoIterator<Item = Kind>) -> Result<BTreeMap<Kind, Served>, EngineError> {
        let mut served = BTreeMap::new();
        for kind in kinds {
            // One after the other: the kinds of a group are known from one request, and all of them after the first plan.
            let found = self.cluster.resolve(&kind).await;
            if let Some(found) = found.map_err(|source| EngineError::Kind { kind: kind.kind, source })? {
                served.insert(kind, found);
            }
        }
        Ok(served)
    }

    /// Reads what `planner` asks for and is not `remembered`, as far as its kind, one of `kinds`, is `served`, and lets it draft.
    ///
    /// # Errors
    ///
    /// If the server does not answer. An error of reading is never an absent object.
    pub async fn draft(
        &self,
        planner: &dyn Planner,
        kinds: &[Declared],
        served: &BTreeMap<Kind, Served>,
        remembered: Remembered,
    ) -> Result<Drafting, EngineError> {
        let prerequisites = planner.prerequisites();
        let mut missing = Vec::new();
        for needed in prerequisites.iter().filter(|needed| !served.contains_key(&needed.kind)) {
            let kind = needed.kind;
            missing.push(format!("{} (CRD {}) is not installed: {}", kind.kind, kind.crd_name(), needed.hint));
        }
        let unknown = planner.reads().into_iter().filter(|read| !remembered.knows(read));
        let reads = stream::iter(unknown).map(|read| self.read(read, served));
        let objects: Vec<(Read, Option<Value>)> = reads.buffered(CONCURRENCY).try_collect().await?;
        for needed in prerequisites {
            let Some((namespace, name)) = needed.object.filter(|_| served.contains_key(&needed.kind)) else {
                continue;
            };
            let read = Read { kind: needed.kind, namespace, name };
            if remembered.has(&read) {
                // It was there, and has not changed.
                continue;
            }
            // What was read already is not read again.
            let (read, object) = self.read(read, served).await?;
            if object.is_none() {
                missing.push(format!("{} does not exist: {}", named(&read), needed.hint));
            }
        }
        if !missing.is_empty() {
            return Ok(Drafting::Missing(missing));
        }
        let of_nodes = match remembered.of_nodes() {
            Some(known) => known.clone(),
            None => self.ask_nodes(planner.node_questions()).await?,
        };
        let not_served = kinds.iter().map(|declared| declared.kind).filter(|kind| !served.contains_key(kind)).collect();
        let surroundings = Surroundings { not_served, of_nodes };
        let inputs = Inputs::remembering(objects, remembered).in_surroundings(surroundings);
        let drafted = planner
            .draft(&inputs)
            .and_then(|drafts| Ok((drafts, exclusions(planner, &inputs)?, planner.left_out(&inputs)?)));
        Ok(match drafted {
            Ok((drafts, exclusions, left_out)) => {
                // Where nothing is overridden, the plan need not say so.
                let says = |input: &Input| input.value.is_some() || !is_override(input);
                let recorded = inputs.recorded().into_iter().map(input).filter(says).collect();
                Drafting::Drafted(Wanted { drafts, inputs: recorded, exclusions, left_out, used: inputs.remember() })
            }
            Err(DraftError::Forgotten) => {
                return Box::pin(self.draft(planner, kinds, served, Remembered::default())).await;
            }
            Err(error) => Drafting::Invalid(format!("The plan could not be made: {error}.")),
        })
    }

    async fn read(&self, read: Read, served: &BTreeMap<Kind, Served>) -> Result<(Read, Option<Value>), EngineError> {
        let object = match served.get(&read.kind) {
            Some(kind) => self.get(kind, read.namespace.as_deref(), &read.name).await,
            None => Ok(None),
        };
        let object = object.map_err(|source| EngineError::Object { object: named(&read), source })?;
        Ok((read, object))
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

/// What people call the object.
fn named(read: &Read) -> String {
    let place = read.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{}", read.kind.kind, read.name)
}

fn input(recorded: Recorded) -> Input {
    wire::input(recorded.target.into(), &recorded.path, recorded.value)
}
