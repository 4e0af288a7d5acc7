//! Plans: what a person reads and approves, and what is decided from it.
//!
//! The modules are layers: each imports only those below it (`tests/architecture`).
//!
//! ```text
//!   offline, check_drafts    plans from recorded objects; drafts that can't be planned
//!   status                   what is shown: the next status, its conditions and sentences
//!   decision                 what happens next: approval, execution, what is stale
//!   figures, hash            a plan in numbers, and the hash by which it is approved
//!   (Plan, Basis)            what is reviewed, here
//!   items                    what one object becomes, and what that means
//!   overrides                what administrators want differently
//!   target, wire, guard      the object, its form in the API, conditions by name
//! ```
//!
//! **Invariant:** pure. No IO, no clock, no client; no profile and no third-party kind is named
//! here.

pub mod check_drafts;
pub mod decision;
#[cfg(test)]
mod digest_vectors;
pub mod figures;
mod guard;
pub mod hash;
pub mod items;
#[cfg(test)]
mod model;
pub mod offline;
pub mod overrides;
pub mod remedy;
pub mod status;
pub mod target;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use profile_sdk::LeftOutFeature;

use crate::api::{Input, Operation, PoolTerms, Severity, Terms};
use guard::{Guard, stops};
use items::PlanItem;

/// The reviewed parts of a plan besides its items.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Basis {
    /// The profile's name.
    pub profile: String,
    /// The options as the user gave them.
    pub options: Option<Value>,
    /// The values that the profile read, in a stable order.
    pub inputs: Vec<Input>,
    /// How the plan is carried out. [`Plan::new`] adds the effects of the items on pools.
    pub terms: Terms,
}

impl Basis {
    /// The digest of the plan with these items, each given as (name, wave, hash), in order.
    #[must_use]
    pub fn digest<'a>(&self, items: impl IntoIterator<Item = (&'a str, u32, &'a str)>) -> String {
        self.digest_under(&self.terms, items)
    }

    /// Like [`Basis::digest`], if the plan were carried out under these `terms`.
    #[must_use]
    pub fn digest_under<'a>(&self, terms: &Terms, items: impl IntoIterator<Item = (&'a str, u32, &'a str)>) -> String {
        // The earlier values are there for the reader and are not part of what is approved.
        let inputs = self.inputs.iter().map(|input| Input { changed_from: None, ..input.clone() });
        let inputs: Vec<_> = inputs.collect();
        let mut reviewed = json!({
            "profile": self.profile,
            "options": self.options,
            "inputs": inputs,
            "items": items.into_iter().collect::<Vec<_>>(),
        });
        // Absent if all terms have their defaults: plans from before terms existed keep their
        // digests.
        if stops(Guard::OtherTerms, !terms.is_default()) {
            reviewed["terms"] = json!(terms);
        }
        hash::plan_hash(&reviewed)
    }
}

/// A plan as of now.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The reviewed data it was made from.
    pub basis: Basis,
    /// Its items, in order of execution within their waves.
    pub items: Vec<PlanItem>,
    /// The plan hash.
    pub digest: String,
    /// Settings of administrators that have no effect in this plan: a sentence for each.
    pub unused: Vec<String>,
    /// The features of the profile that are left out on this cluster.
    pub left_out: Vec<LeftOutFeature>,
}

impl Plan {
    /// Makes the plan with these items.
    #[must_use]
    pub fn new(mut basis: Basis, items: Vec<PlanItem>) -> Self {
        // Annotations that override objects are inputs like others: each is listed once, however
        // many items read it.
        let read = |input: &Input| (input.target.clone(), input.path.clone());
        let mut known: BTreeSet<_> = basis.inputs.iter().map(read).collect();
        let overriding =
            items.iter().flat_map(|item| &item.review.overriding).filter(|input| known.insert(read(input)));
        basis.inputs.extend(overriding.cloned().collect::<Vec<_>>());
        basis.terms.pools = pool_terms(&items);
        let digest = basis.digest(items.iter().map(|item| (item.name.as_str(), item.wave, item.hash.as_str())));
        Self { basis, items, digest, unused: Vec::new(), left_out: Vec::new() }
    }

    /// The item called `name`.
    #[must_use]
    pub fn item(&self, name: &str) -> Option<&PlanItem> {
        self.items.iter().find(|item| item.name == name)
    }

    /// Whether every item is unchanged or skipped.
    #[must_use]
    pub fn is_satisfied(&self) -> bool {
        self.items.iter().all(|item| item.operation.leaves_alone())
    }

    /// The items that can't be written as things are.
    pub fn blocked(&self) -> impl Iterator<Item = &PlanItem> {
        self.items.iter().filter(|item| item.operation == Operation::Blocked)
    }

    /// The highest severity of the items.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.items.iter().map(|item| item.review.severity).max().unwrap_or(Severity::Low)
    }
}

/// The terms of each pool in which `items` reboot or drain machines, where they are more than a
/// reader expects.
fn pool_terms(items: &[PlanItem]) -> BTreeMap<String, PoolTerms> {
    let pools = items.iter().flat_map(|item| item.review.effect.disturbed());
    let terms = pools.map(|(pool, effect)| {
        let magnitude = 10_u32.checked_pow(effect.machines.checked_ilog10().unwrap_or_default());
        let terms = PoolTerms {
            // As written: a percentage yields another number whenever a machine joins.
            max_unavailable: effect.max_unavailable.clone().filter(|written| written != "1"),
            machines_at_least: magnitude.filter(|least| *least >= 10),
            layered: effect.layered,
            degraded: effect.degraded,
        };
        (pool.clone(), terms)
    });
    terms.filter(|(_, terms)| *terms != PoolTerms::default()).collect()
}
