//! Drafts: the profile's own step, and the reading that it asks for.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use profile_sdk::{Draft, DraftError, Inputs, Kind, Planner, Read, Recorded, Remembered};
use serde_json::Value;

use super::{CONCURRENCY, Engine, EngineError};
use crate::api::{Input, TargetRef};
use crate::cluster::Served;
use crate::plan::{digest, wire};

/// The longest value of an input that is shown as it is; of longer ones only the digest is, which tells a change as well.
const VALUE_LIMIT: usize = 1024;
/// The longest path of an input, as in the CRD.
const PATH_LIMIT: usize = 1024;

/// What became of asking a profile for its drafts.
#[derive(Debug)]
pub enum Drafting {
    /// What it wants, the values that it read for it, and what it used of them.
    Drafted(Vec<Draft>, Vec<Input>, Remembered),
    /// What it needs and is not there: one sentence for each.
    Missing(Vec<String>),
    /// An input that keeps it from saying what it wants.
    Invalid(String),
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

    /// Reads what `planner` asks for and is not `remembered`, as far as its kind is `served`, and lets it draft.
    ///
    /// # Errors
    ///
    /// If the server does not answer. An error of reading is never an absent object.
    pub async fn draft(
        &self,
        planner: &dyn Planner,
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
        let inputs = Inputs::remembering(objects, remembered);
        Ok(match planner.draft(&inputs) {
            Ok(drafts) => {
                let recorded = inputs.recorded().into_iter().map(input).collect();
                Drafting::Drafted(drafts, recorded, inputs.remember())
            }
            Err(DraftError::Forgotten) => {
                return Box::pin(self.draft(planner, served, Remembered::default())).await;
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

/// What people call the object.
fn named(read: &Read) -> String {
    let place = read.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{}", read.kind.kind, read.name)
}

fn input(recorded: Recorded) -> Input {
    let target: TargetRef = recorded.target.into();
    let secret = target.kind == "Secret" && target.api_version == "v1";
    let value = recorded.value.filter(|value| !value.is_null()).map(|value| {
        let size = value.to_string().len();
        let hidden = || Value::from(format!("sha256 {}", digest::sha256(&value)));
        if secret || size > VALUE_LIMIT { hidden() } else { value }
    });
    Input { target, path: wire::cut_text(&recorded.path, PATH_LIMIT), value, changed_from: None }
}
