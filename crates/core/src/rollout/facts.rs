//! Facts that were read about rendered configurations, which never change, and about their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::contents::{Differences, Parts};
use super::merge::MergedSource;
use super::pool::Pool;

/// All that was read, by the name of the rendered configuration.
#[derive(Debug, Default)]
pub(super) struct Facts(BTreeMap<String, RenderedFacts>);

/// The facts about one rendered configuration.
#[derive(Debug, Default)]
pub(super) struct RenderedFacts {
    /// Its parts, if it was read.
    pub(super) parts: Option<Parts>,
    /// By the digest of a spec, what of that it has not ([`super::contents::missing`]).
    pub(super) missing: BTreeMap<String, Option<BTreeSet<String>>>,
    /// The contents of its sources, by name, read after it.
    pub(super) sources: BTreeMap<String, Arc<MergedSource>>,
    /// Whether those of its sources that were made of KubeletConfigs existed after one of these was
    /// removed.
    pub(super) exists: BTreeMap<Removal, bool>,
    /// By the digests of a planned change, how that differs from it.
    pub(super) differences: BTreeMap<String, Differences>,
    /// The contents of its sources for plans, by name; they are read again before each exact plan.
    pub(super) planned_sources: BTreeMap<String, Arc<MergedSource>>,
    /// Of which KubeletConfig that is there its sources were made, by their names.
    pub(super) makers: BTreeMap<String, Option<String>>,
}

/// A source, as far as the removal of a KubeletConfig is concerned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Removal {
    /// The KubeletConfig that was removed.
    pub(super) removed: String,
    /// The MachineConfig that may have been made of it.
    pub(super) source: String,
}

/// The MachineConfig that was generated from a KubeletConfig in one generation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GeneratedConfig {
    /// The name of the MachineConfig.
    pub(super) name: String,
    /// The uid of the KubeletConfig: another object of the same name begins anew.
    uid: String,
    generation: i64,
}

impl GeneratedConfig {
    /// The MachineConfig `name` that was generated from `kubelet_config` as it is now.
    pub(super) fn of(kubelet_config: &Value, name: &str) -> Self {
        let uid = kubelet_config.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        let generation = kubelet_config.pointer("/metadata/generation").and_then(Value::as_i64);
        Self { name: name.to_owned(), uid: uid.to_owned(), generation: generation.unwrap_or_default() }
    }
}

impl Facts {
    /// The facts about the rendered configuration that `pool` should have.
    pub(super) fn of(&self, pool: &Pool) -> Option<&RenderedFacts> {
        self.0.get(&pool.wanted)
    }

    /// The same, to add to it.
    pub(super) fn of_mut(&mut self, pool: &Pool) -> &mut RenderedFacts {
        self.0.entry(pool.wanted.clone()).or_default()
    }

    /// Forgets what no pool points to now.
    pub(super) fn keep_only(&mut self, pools: &BTreeMap<String, Pool>) {
        self.0.retain(|rendered, _| pools.values().any(|pool| pool.wanted == *rendered));
    }

    /// Has the sources read again before a plan relies on them.
    pub(super) fn read_sources_anew(&mut self) {
        self.0.values_mut().for_each(|facts| facts.planned_sources.clear());
    }
}
