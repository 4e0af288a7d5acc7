//! The data of one item of a plan: what the server said of a draft, and what that means.

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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{Applied, Conflict, Input, Operation, Replaced, Severity, TargetRef};
use crate::plan::items::drift::Glimpse;
use crate::plan::items::health::Rollout;
use crate::plan::overrides::Adjusted;
use crate::rollout::Tracked;
use object::digest;
use object::fields::FieldPath;

/// What is known of a draft on this cluster.
#[derive(Debug, Clone)]
pub enum Preview {
    /// The dry run succeeded.
    Known {
        /// What was sent: the draft as administrators want it, with the spelling of quantities that is there already.
        adjusted: Adjusted,
        /// The object as it is, if it exists.
        live: Option<Arc<Value>>,
        /// The object as it would be.
        result: Value,
        /// Fields that others own with another value, each with the manager.
        conflicts: Vec<(FieldPath, String)>,
    },
    /// No server was asked: what an apply would probably do to a recorded object.
    Approximate {
        /// The draft as administrators want it.
        adjusted: Adjusted,
        /// The object as it was recorded, if it was.
        live: Option<Arc<Value>>,
        /// The object as it would be without defaults and admission.
        result: Value,
    },
    /// The object goes, or loses our part.
    Removal {
        /// The object as it is; `None` if it is gone already.
        live: Option<Arc<Value>>,
        /// The object without our part, where others have one too; `None` if it goes.
        result: Option<Value>,
        /// What is applied for that, where it is more than nothing: what is left of a document that others keep too.
        leaves: Option<Value>,
        /// Why it stays, if it does.
        stays_for: Vec<String>,
    },
    /// An administrator has set it aside.
    SetAside {
        /// The object, if it was read and exists.
        live: Option<Arc<Value>>,
        /// By what.
        why: String,
        /// The items that have no effect without it.
        needed_by: Vec<String>,
    },
    /// Its namespace or kind comes with an earlier item: nobody can tell yet.
    Deferred {
        /// The draft.
        desired: Value,
        /// The name of the item that must be applied first.
        after: String,
    },
    /// The server, or the profile, says that this can't be written.
    Refused {
        /// What is missing and what to do.
        remedy: String,
        /// Whether it may pass by itself, as a webhook that is down.
        passing: bool,
    },
}

impl Preview {
    /// A refusal that only a person can change.
    #[must_use]
    pub fn refused(remedy: impl Into<String>) -> Self {
        Self::Refused { remedy: remedy.into(), passing: false }
    }

    /// A removal of what is gone, or soon will be.
    #[must_use]
    pub fn gone(live: Option<Arc<Value>>) -> Self {
        Self::Removal { live, result: None, leaves: None, stays_for: Vec::new() }
    }
}

/// What happens to the machines of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolEffect {
    /// How many machines it has. It happens to all of them.
    pub machines: u32,
    /// To how many of them at a time, at most: what the pool's maxUnavailable comes to, which may be more than it has. 0 if
    /// that is not valid: then it happens to none before it is corrected.
    pub at_once: u32,
    /// The pool's maxUnavailable as it is written, if it is.
    pub max_unavailable: Option<String>,
    /// Whether an image is built for them first.
    pub layered: bool,
    /// Whether the pool is degraded already.
    pub degraded: bool,
}

/// What a written item would do beyond its object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Pools whose machines reboot.
    pub pools: BTreeMap<String, PoolEffect>,
    /// Pools whose machines are drained, or may be, and do not reboot.
    pub drained: BTreeMap<String, PoolEffect>,
    /// What the reviewer should know, for example a paused pool.
    pub notes: Vec<String>,
    /// The parts of it that others override ([`part`]): the machines of that pool keep what they have.
    pub overridden: BTreeSet<String>,
}

/// Parts of an object ([`part`]) that machines do not have as it says, each with what overrides it.
pub type Overridden = BTreeMap<String, String>;

/// How a part of an object on a pool is named, for example `worker: /etc/a`.
#[must_use]
pub fn part(pool: &str, name: &str) -> String {
    format!("{pool}: {name}")
}

impl Effect {
    /// The machines of `pool` reboot, if it has any. Those that join it later begin with what there is then.
    pub fn reboots(&mut self, pool: &str, effect: PoolEffect) {
        if effect.machines > 0 {
            self.pools.insert(pool.to_owned(), effect);
        } else {
            self.notes
                .push(format!("Pool {pool} has no machines now: those that join it are set up with this change."));
        }
    }

    /// Pools whose machines can't run what they run for a while, each once.
    pub fn disturbed(&self) -> impl Iterator<Item = (&String, &PoolEffect)> {
        self.pools.iter().chain(self.drained.iter().filter(|(pool, _)| !self.pools.contains_key(*pool)))
    }

    /// Machines that reboot.
    #[must_use]
    pub fn machines(&self) -> u32 {
        self.pools.values().fold(0, |sum, pool| sum.saturating_add(pool.machines))
    }
}

/// Pools of so many machines, which reboot one by one.
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
    /// An RFC 6901 pointer, or empty for the object as a whole.
    pub path: String,
    /// Old and new value and who did it, as far as the object tells.
    pub text: String,
}

/// An item as it is planned now.
#[derive(Debug, Clone)]
pub struct PlanItem {
    /// The item's name.
    pub name: String,
    /// Its object.
    pub target: TargetRef,
    /// What happens to it.
    pub operation: Operation,
    /// Whether the object is wanted no more.
    pub prune: bool,
    /// When it happens.
    pub wave: u32,
    /// How much that disturbs.
    pub severity: Severity,
    /// The change as text, redacted and uncut.
    pub diff: String,
    /// What is sent to the server; null where nothing is applied.
    pub desired: Value,
    /// [`PlanItem::desired`] as it may be shown; null where it is too large for a status.
    pub shown: Value,
    /// JSON pointers that are never shown.
    pub sensitive: Vec<String>,
    /// JSON pointers to quantities.
    pub quantities: Vec<String>,
    /// Fields that approval takes over from others.
    pub conflicts: Vec<Conflict>,
    /// What others put into a list or map that is replaced as a whole, and what it loses, as `/path: value`.
    pub lost: Vec<String>,
    /// What stays although it is not wanted, and why.
    pub kept: Vec<String>,
    /// What administrators want otherwise, and by what.
    pub overrides: Vec<String>,
    /// The annotations of its object that say so.
    pub overriding: Vec<Input>,
    /// What it does beyond its object.
    pub effect: Effect,
    /// Fields that are ours afterwards, or were before.
    pub owned: Vec<FieldPath>,
    /// Their values in the preview, by path, quantities in one spelling.
    pub expected: BTreeMap<String, Value>,
    /// Where the preview's result has something that is not ours, if the item writes one: a write that gives more or less is not the reviewed
    /// one.
    pub beside: BTreeSet<String>,
    /// uid of the live object.
    pub uid: Option<String>,
    /// resourceVersion of the live object, for the precondition of the write.
    pub resource_version: Option<String>,
    /// What the reviewer must know, in sentences.
    pub message: String,
    /// Whether it is Blocked by something that may pass by itself.
    pub passing: bool,
    /// SHA-256 of everything that is reviewed of the item.
    pub hash: String,
    /// What there is of ours, if the object is as wanted.
    pub applied: Option<Applied>,
    /// What somebody changed of what we had applied.
    pub moved: Vec<Moved>,
    /// Our fields of the object as it is, to tell later what has moved.
    pub glimpses: BTreeMap<String, Glimpse>,
    /// The values that writing it replaces, as far as they may be shown.
    pub replaced: Vec<Replaced>,
    /// What has moved since the plan that is shown was made, as far as this process knows: a sentence for each field.
    pub since: Vec<String>,
    /// Name, labels and spec of the object as it is, with what others put into it, or as it would be if it does not exist: where
    /// a rollout is followed.
    pub followed: Option<Tracked>,
    /// Whether the object, as it is now, is in effect.
    pub rollout: Rollout,
    /// Since when the object has been in effect, as far as this process has seen it become so.
    pub in_effect_since: Option<Timestamp>,
    /// Whether its owner says how it is ([`crate::plan::items::health::speaks`]).
    pub speaks: bool,
    /// Whether its kind has a status, in which its owner may say so, and that is how its rollout is known.
    pub has_status: bool,
    /// What its owner says is wrong.
    pub trouble: Option<String>,
    /// What others override of it, where it is as wanted.
    pub overridden: Overridden,
}

impl PlanItem {
    /// Whether executing the plan writes this item.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.operation.writes()
    }

    /// Whether executing the plan makes of the object exactly what was `applied` before.
    #[must_use]
    pub fn restores(&self, applied: &Applied) -> bool {
        !applied.hash.is_empty() && digest::sha256(&self.expected).starts_with(&applied.hash)
    }

    /// What a review must see and approval in advance may not do.
    #[must_use]
    pub fn needs_review(&self) -> bool {
        !self.conflicts.is_empty()
            || !self.lost.is_empty()
            || matches!(self.operation, Operation::Remove | Operation::Deferred | Operation::Blocked)
    }
}
