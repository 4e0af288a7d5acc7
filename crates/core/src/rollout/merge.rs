//! How the sources of a rendered configuration are merged.
//!
//! The rules are those of `MergeMachineConfigs` (pkg/controller/common of machine-config-operator),
//! as observed: kernel arguments are joined, duplicates kept; files and units are merged member by
//! member, role worker before all others, each by name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::contents::{self, Members, Parts};
use super::pool::{ROLE, labels, name};

/// The contents of a source of a rendered configuration, and its place in the merge order.
#[derive(Debug, Default)]
pub(super) struct MergedSource {
    pub(super) parts: Parts,
    pub(super) place: MergePlace,
    pub(super) claims: BTreeMap<String, String>,
    pub(super) members: Members,
    pub(super) lasting: BTreeMap<String, Vec<&'static str>>,
}

impl MergedSource {
    pub(super) fn of(object: &Value) -> Self {
        Self {
            parts: Parts::of(object),
            place: MergePlace::of(object),
            claims: contents::claims(object),
            members: contents::members(object, |_| true),
            lasting: contents::lasting_of(object),
        }
    }

    /// Whether it overrides `claim` of an object at `place`.
    pub(super) fn overrides(&self, claim: &str, place: &MergePlace) -> bool {
        self.place > *place && self.claims.contains_key(claim)
    }
}

/// The order in which MachineConfigs are merged: role worker first, then by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MergePlace(bool, String);

impl MergePlace {
    pub(super) fn of(object: &Value) -> Self {
        let worker = labels(object).get(ROLE).is_some_and(|role| role == "worker");
        Self(!worker, name(object).to_owned())
    }
}
