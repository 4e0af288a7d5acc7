//! The items of a plan: the answer of the server to a draft, and what it means.
//!
//! ```text
//!   Preview ─► from_preview ─► PlanItem { review, fields, live }
//!                 │
//!                 ├─ ownership, beside, document   who else has a part in the object
//!                 ├─ drift                         what moved since it was applied
//!                 ├─ redact, ignition              what is never shown
//!                 ├─ health                        whether it is in effect for its owner
//!                 └─ message                       all of it in sentences
//!   prune: what earlier plans applied and this one lacks; claims: what other configurations want
//! ```

pub mod beside;
pub mod claims;
pub mod document;
pub mod drift;
pub mod from_preview;
pub mod health;
pub(in crate::plan) mod ignition;
pub mod message;
pub(in crate::plan) mod ownership;
pub mod prune;
pub mod redact;
pub mod tracked;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use profile_sdk::{Body, Draft};
use serde_json::Value;

use crate::api::{Applied, Conflict, Input, Operation, Replaced, Severity, TargetRef};
use crate::plan::items::drift::Glimpse;
use crate::plan::items::health::Rollout;
use crate::plan::items::tracked::Tracked;
use crate::plan::overrides::Adjusted;
use crate::plan::remedy::Remedy;
use object::digest;
use object::fields::FieldPath;

/// What is known about a draft on this cluster.
#[derive(Debug, Clone)]
pub enum Preview {
    /// The dry run succeeded.
    Known {
        /// The object that was sent: the draft with overrides, in the spelling of quantities that
        /// the object already has.
        adjusted: Adjusted,
        /// The object as it is, if it exists.
        live: Option<Arc<Value>>,
        /// The object as it would be.
        result: Value,
        /// Fields that others own with another value, each with its manager.
        conflicts: Vec<(FieldPath, String)>,
    },
    /// No server was asked: the probable result of applying to a recorded object.
    Approximate {
        /// The draft with overrides.
        adjusted: Adjusted,
        /// The object as recorded, if it was.
        live: Option<Arc<Value>>,
        /// The object as it would be without defaults and admission.
        result: Value,
    },
    /// The object is deleted, or loses our fields.
    Removal {
        /// The object as it is; `None` if it is already gone.
        live: Option<Arc<Value>>,
        /// The object without our fields, if others own fields too; `None` if it is deleted.
        result: Option<Value>,
        /// The object to apply, if it is not empty: the rest of a document that others keep too.
        leaves: Option<Value>,
        /// Why the object is not deleted: the managers that own fields of it.
        stays_for: Vec<String>,
    },
    /// An administrator skips it.
    SetAside {
        /// The object, if it was read and exists.
        live: Option<Arc<Value>>,
        /// The setting that skips it.
        why: String,
        /// The items that have no effect without it.
        needed_by: Vec<String>,
    },
    /// Its namespace or kind is created by an earlier item: it can't be previewed yet.
    Deferred {
        /// The draft.
        desired: Value,
        /// The name of the item that must be applied first.
        after: String,
    },
    /// The server, or the profile, refuses this write.
    Refused {
        /// The problem, and what to do.
        remedy: Remedy,
        /// Whether the cause may disappear without a person, such as a webhook that is down.
        passing: bool,
    },
}

impl Preview {
    /// A refusal that only a person can resolve.
    #[must_use]
    pub fn refused(remedy: impl Into<Remedy>) -> Self {
        Self::Refused { remedy: remedy.into(), passing: false }
    }

    /// A removal of an object that is gone, or soon will be.
    #[must_use]
    pub fn removal_done(live: Option<Arc<Value>>) -> Self {
        Self::Removal { live, result: None, leaves: None, stays_for: Vec::new() }
    }
}

/// The effect on the machines of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolEffect {
    /// The number of machines of the pool. All of them are affected.
    pub machines: u32,
    /// The most machines that are affected at a time: the number to which the pool's maxUnavailable
    /// evaluates, which may be larger than the pool. 0 if maxUnavailable is not valid: then no
    /// machine is affected until it is corrected.
    pub at_once: u32,
    /// The pool's maxUnavailable as written, if set.
    pub max_unavailable: Option<String>,
    /// Whether an image is built for them first.
    pub layered: bool,
    /// Whether the pool is already degraded.
    pub degraded: bool,
}

/// The effects of a written item beyond its object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Pools whose machines reboot.
    pub pools: BTreeMap<String, PoolEffect>,
    /// Pools whose machines are drained, or may be, and do not reboot.
    pub drained: BTreeMap<String, PoolEffect>,
    /// Sentences for the reviewer, for example about a paused pool.
    pub notes: Vec<String>,
    /// Parts of the object ([`part`]) that others override: the machines of that pool keep what
    /// they have.
    pub overridden: BTreeSet<String>,
}

/// Parts of an object ([`part`]) that its machines have with other contents, each with what
/// overrides it.
pub type Overridden = BTreeMap<String, String>;

/// The name of a part of an object on a pool, for example `worker: /etc/a`.
#[must_use]
pub fn part(pool: &str, name: &str) -> String {
    format!("{pool}: {name}")
}

impl Effect {
    /// Records that the machines of `pool` reboot, if it has any. Machines that join later start
    /// with the configuration of that time.
    pub fn reboots(&mut self, pool: &str, effect: PoolEffect) {
        if effect.machines > 0 {
            self.pools.insert(pool.to_owned(), effect);
        } else {
            self.notes
                .push(format!("Pool {pool} has no machines now: those that join it are set up with this change."));
        }
    }

    /// Pools whose machines are unavailable for workloads for a while, each once.
    pub fn disturbed(&self) -> impl Iterator<Item = (&String, &PoolEffect)> {
        self.pools.iter().chain(self.drained.iter().filter(|(pool, _)| !self.pools.contains_key(*pool)))
    }

    /// The number of machines that reboot.
    #[must_use]
    pub fn machines(&self) -> u32 {
        self.pools.values().fold(0, |sum, pool| sum.saturating_add(pool.machines))
    }
}

/// Pools with these numbers of machines, which reboot one by one.
#[cfg(test)]
pub(crate) fn one_by_one(pools: &[(&str, u32)]) -> BTreeMap<String, PoolEffect> {
    pools
        .iter()
        .map(|(pool, machines)| {
            ((*pool).to_owned(), PoolEffect { machines: *machines, at_once: 1, ..PoolEffect::default() })
        })
        .collect()
}

/// A field of ours that somebody changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// An RFC 6901 pointer; empty for the object as a whole.
    pub path: String,
    /// The old and new value and who changed it, as far as the object records it.
    pub text: String,
}

/// An item of the current plan: one object, what happens to it, and all that a decision about it
/// needs.
#[derive(Debug, Clone)]
pub struct PlanItem {
    /// The item's name.
    pub name: String,
    /// Its object.
    pub target: TargetRef,
    /// What happens to the object.
    pub operation: Operation,
    /// Whether the object is no longer desired.
    pub prune: bool,
    /// The wave in which it happens.
    pub wave: u32,
    /// SHA-256 of everything about the item that is reviewed.
    pub hash: String,
    /// What a person reviews.
    pub review: Review,
    /// Which fields of the object are this configuration's.
    pub fields: OwnedFields,
    /// The object as it is now.
    pub live: LiveObject,
}

/// The part of an item that a person reviews.
#[derive(Debug, Clone, Default)]
pub struct Review {
    /// How much it disturbs.
    pub severity: Severity,
    /// The change as text, redacted and uncut.
    pub diff: String,
    /// The object that is sent to the server; null if nothing is applied.
    pub desired: Value,
    /// [`Review::desired`] as displayed; null if it is too large for a status.
    pub shown: Value,
    /// What the reviewer must know, in sentences.
    pub message: String,
    /// Fields that an approval takes over from others.
    pub conflicts: Vec<Conflict>,
    /// Entries that others put into a list or map and that its replacement lacks, as `/path:
    /// value`.
    pub lost: Vec<String>,
    /// Fields that stay although they are not desired, and why.
    pub kept: Vec<String>,
    /// What administrators want differently, and by which setting.
    pub overrides: Vec<String>,
    /// The annotations of its object that do so.
    pub overriding: Vec<Input>,
    /// The values that writing it replaces, as far as they may be shown.
    pub replaced: Vec<Replaced>,
    /// Its effects beyond its object.
    pub effect: Effect,
    /// Whether it is Blocked by something that may disappear without a person.
    pub blocked_temporarily: bool,
}

/// The fields of an item's object that are this configuration's, and how they are compared.
#[derive(Debug, Clone, Default)]
pub struct OwnedFields {
    /// JSON pointers to values that are never shown.
    pub sensitive: Vec<String>,
    /// JSON pointers to quantities.
    pub quantities: Vec<String>,
    /// Fields that are ours after the write, or were before it.
    pub owned: Vec<FieldPath>,
    /// The values of [`OwnedFields::owned`] in the preview, by path, with quantities in one
    /// spelling.
    pub expected: BTreeMap<String, Value>,
    /// The paths at which the preview's result has fields that are not ours, if the item writes. A
    /// write that results in more or fewer of them is not the reviewed one.
    pub beside: BTreeSet<String>,
}

/// The object of an item as it is now, and what has become of it.
#[derive(Debug, Clone)]
pub struct LiveObject {
    /// Its uid, if it exists.
    pub uid: Option<String>,
    /// Its resourceVersion, for the precondition of the write.
    pub resource_version: Option<String>,
    /// The record of our fields, if the object is unchanged.
    pub applied: Option<Applied>,
    /// Applied fields that somebody changed.
    pub moved: Vec<Moved>,
    /// Our fields of the object as it is, to find later what has moved.
    pub glimpses: BTreeMap<String, Glimpse>,
    /// Changes since the displayed plan was made, as far as this process knows: a sentence for each
    /// field.
    pub changed_since_shown: Vec<String>,
    /// As much of the object as its rollout depends on, fields of others included, or as it would
    /// be if it does not exist. Only where a rollout is followed.
    pub followed: Option<Tracked>,
    /// Whether the object, as it is now, is in effect.
    pub rollout: Rollout,
    /// When the object took effect, if this process saw it.
    pub in_effect_since: Option<Timestamp>,
    /// Whether its owner reports conditions ([`crate::plan::items::health::speaks`]).
    pub speaks: bool,
    /// Whether its kind has a status in which its owner may report, and its rollout is judged by
    /// that.
    pub has_status: bool,
    /// The problem that its owner reports.
    pub trouble: Option<String>,
    /// Parts of the object that others override, if it is unchanged.
    pub overridden: Overridden,
}

impl LiveObject {
    /// An object of which nothing is known but how far its `rollout` is.
    #[must_use]
    pub fn unknown(rollout: Rollout) -> Self {
        Self {
            uid: None,
            resource_version: None,
            applied: None,
            moved: Vec::new(),
            glimpses: BTreeMap::new(),
            changed_since_shown: Vec::new(),
            followed: None,
            rollout,
            in_effect_since: None,
            speaks: false,
            has_status: false,
            trouble: None,
            overridden: BTreeMap::new(),
        }
    }
}

impl PlanItem {
    /// The item of `draft`, whose object is `target`, before anything is known of that.
    #[must_use]
    pub fn new(draft: &Draft, target: TargetRef, operation: Operation) -> Self {
        Self {
            name: draft.name.clone(),
            target,
            operation,
            prune: matches!(draft.body, Body::Remove(_)),
            wave: draft.wave,
            hash: String::new(),
            review: Review::default(),
            fields: OwnedFields {
                sensitive: draft.sensitive.clone(),
                quantities: draft.quantities.clone(),
                ..OwnedFields::default()
            },
            live: LiveObject::unknown(Rollout::Waiting { text: "blocked".to_owned(), paused: false }),
        }
    }

    /// Whether executing the plan writes this item.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.operation.writes()
    }

    /// Whether executing the plan restores exactly what was `applied` before.
    #[must_use]
    pub fn restores(&self, applied: &Applied) -> bool {
        !applied.hash.is_empty() && digest::sha256(&self.fields.expected).starts_with(&applied.hash)
    }

    /// Whether a person must review the item, so that approval in advance does not cover it.
    #[must_use]
    pub fn needs_review(&self) -> bool {
        !self.review.conflicts.is_empty()
            || !self.review.lost.is_empty()
            || matches!(self.operation, Operation::Remove | Operation::Deferred | Operation::Blocked)
    }
}
