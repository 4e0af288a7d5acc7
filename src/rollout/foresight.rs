//! What a planned MachineConfig will do: which pools render it, whether their machines will have another content, and which
//! other MachineConfigs bring the same.
//!
//! The rules of merging are those of facts/machine-config-pools.md section 7: kernel arguments are joined, duplicates
//! kept; of files and units the last one wins, role worker before all others, each by name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::contents::{Differences, Parts};
use super::pool::{Pool, labels};
use super::{Outlook, Planned};
use crate::plan::digest;
use crate::plan::item::Effect;

/// The label that says for which machines a MachineConfig is.
pub(super) const ROLE: &str = "machineconfiguration.openshift.io/role";

/// What was read for plans. Only what pools point to now is kept.
#[derive(Default)]
pub(super) struct Studies {
    /// How a planned change differs from a rendered configuration, by its name and the change.
    differences: BTreeMap<(String, String), Differences>,
    /// What a source brings, and its place in the order of merging, by the rendered configuration and its name.
    sources: BTreeMap<(String, String), (Parts, Place)>,
}

/// The order in which MachineConfigs are merged: role worker first, then by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place(bool, String);

impl Place {
    fn of(object: &Value) -> Self {
        let worker = labels(object).get(ROLE).is_some_and(|role| role == "worker");
        Self(!worker, name(object).to_owned())
    }
}

impl Studies {
    /// Learns from `read`, a rendered configuration or one of its sources, which is called `name`.
    /// `None` says that it is gone: then nothing is proven of a rendered configuration, and a source brings nothing.
    pub(super) fn learn(
        &mut self,
        pools: &BTreeMap<String, Pool>,
        planned: Planned<'_>,
        name: &str,
        read: Option<&Value>,
    ) {
        let wanted: BTreeSet<_> = pools.values().map(|pool| pool.wanted.clone()).collect();
        self.differences.retain(|(rendered, _), _| wanted.contains(rendered));
        self.sources.retain(|(rendered, _), _| wanted.contains(rendered));
        for pool in pools.values() {
            if pool.wanted == name {
                let change = seen_by(pool, planned);
                let unproven = || Differences { other: true, ..Differences::default() };
                let found = read.map_or_else(unproven, |read| Differences::of(change.live, change.result, read));
                self.differences.insert((name.to_owned(), key(change)), found);
            } else if pool.sources.contains(name) {
                let found = read.map_or_else(Default::default, |read| (Parts::of(read), Place::of(read)));
                self.sources.insert((pool.wanted.clone(), name.to_owned()), found);
            }
        }
    }
}

/// What `planned` sets in motion on `pools`.
pub(super) fn outlook(pools: &BTreeMap<String, Pool>, studies: &Studies, planned: Planned<'_>) -> Outlook {
    if let Some(result) = planned.result.filter(|_| !planned.takes_back)
        && let Some(remedy) = reaches_nobody(pools, result)
    {
        return Outlook::Known(Err(remedy));
    }
    if let Some(remedy) = planned.result.and_then(|result| breaks_pools(pools, result, planned.takes_back)) {
        return Outlook::Known(Err(remedy));
    }
    let views: Vec<_> = pools.values().filter_map(|pool| View::of(pool, planned, studies)).collect();
    let unread: BTreeSet<_> = views.iter().flat_map(View::unread).collect();
    if !unread.is_empty() {
        return Outlook::Unread(unread.into_iter().collect());
    }
    let mut effect = Effect::default();
    for view in &views {
        view.add_to(&mut effect);
    }
    effect.notes.dedup();
    Outlook::Known(Ok(effect))
}

/// Why no pool that selects `object` could be rendered any more: an Ignition configuration has a version. The API server does not ask
/// for it, and what others have of an object, without our part, may have none.
fn breaks_pools(pools: &BTreeMap<String, Pool>, object: &Value, takes_back: bool) -> Option<String> {
    let config = object.pointer("/spec/config").and_then(Value::as_object).filter(|config| !config.is_empty())?;
    let version = config.get("ignition").and_then(|ignition| ignition.get("version")).and_then(Value::as_str);
    let is_known = version.is_some_and(|version| version.starts_with("3.") || version.starts_with("2.2"));
    let labels = labels(object);
    let selecting: Vec<_> =
        pools.values().filter(|pool| pool.selects(&labels)).map(|pool| pool.name.as_str()).collect();
    (!is_known && !selecting.is_empty()).then(|| {
        let what = if takes_back { "without our part it has" } else { "it would have" };
        let remedy = if takes_back {
            "Let its other owners apply it whole, delete it, or set this item aside"
        } else {
            "Give it spec.config.ignition.version"
        };
        format!(
            "{what} no Ignition version that the machine-config controllers know, and MachineConfigPool {} could not be rendered. {remedy}",
            selecting.join(", ")
        )
    })
}

/// Why `object` would reach no machine, if it would not.
fn reaches_nobody(pools: &BTreeMap<String, Pool>, object: &Value) -> Option<String> {
    let labels = labels(object);
    let selecting: Vec<_> = pools.values().filter(|pool| pool.selects(&labels)).collect();
    if selecting.is_empty() {
        return Some(format!(
            "no MachineConfigPool selects a MachineConfig with the labels {}: create the pool, or correct its machineConfigSelector",
            Value::from_iter(labels)
        ));
    }
    let names: Vec<_> = selecting.iter().map(|pool| pool.name.as_str()).collect();
    selecting.iter().all(|pool| pool.machines == 0).then(|| reaches_no_machine(&names))
}

/// Why an object for these pools would be of no use.
pub(super) fn reaches_no_machine(pools: &[&str]) -> String {
    format!(
        "MachineConfigPool {} has no machines, so the setting would reach none: aim at master where masters run the workloads",
        pools.join(", ")
    )
}

/// A planned change, as one pool sees it: an object that it selects now, afterwards, or both.
struct View<'a> {
    pool: &'a Pool,
    object: &'a Value,
    change: Planned<'a>,
    studies: &'a Studies,
}

impl<'a> View<'a> {
    /// `None` if the pool has nothing to do with it.
    fn of(pool: &'a Pool, planned: Planned<'a>, studies: &'a Studies) -> Option<Self> {
        let change = seen_by(pool, planned);
        let object = change.result.or(change.live)?;
        Some(Self { pool, object, change, studies })
    }
}

/// What `pool` sees of `planned`: only what its selector finds. A label that moves an object takes it from one pool and
/// gives it to another.
fn seen_by<'a>(pool: &Pool, planned: Planned<'a>) -> Planned<'a> {
    let selected = |object: &&Value| pool.selects(&labels(object));
    Planned { live: planned.live.filter(selected), result: planned.result.filter(selected), ..planned }
}

impl View<'_> {
    fn differences(&self) -> Option<&Differences> {
        self.studies.differences.get(&(self.pool.wanted.clone(), key(self.change)))
    }

    /// What must be read: what the pool has now, and where others bring the same, its other sources.
    fn unread(&self) -> Vec<String> {
        let pool = self.pool;
        if pool.wanted.is_empty() {
            return Vec::new();
        }
        let Some(differences) = self.differences() else {
            return vec![pool.wanted.clone()];
        };
        if differences.replaced.is_empty() && rivals(differences).is_empty() {
            return Vec::new();
        }
        let known = |source: &&String| self.studies.sources.contains_key(&(pool.wanted.clone(), (*source).clone()));
        let others = pool.sources.iter().filter(|source| source.as_str() != name(self.object));
        others.filter(|source| !known(source)).cloned().collect()
    }

    fn sources(&self) -> impl Iterator<Item = (&String, &(Parts, Place))> {
        let of_pool = self.studies.sources.iter().filter(|((rendered, _), _)| *rendered == self.pool.wanted);
        of_pool.map(|((_, source), found)| (source, found)).filter(|(source, _)| *source != name(self.object))
    }

    fn add_to(&self, effect: &mut Effect) {
        let pool = self.pool;
        let nothing = Differences::default();
        // A pool that has rendered nothing yet will render this.
        let differences = self.differences();
        let found = differences.unwrap_or(&nothing);
        let place = Place::of(self.object);
        let overridden: Vec<_> = found
            .replaced
            .iter()
            .filter_map(|entry| {
                let later = self.sources().find(|(_, (parts, other))| parts.names(entry) && *other > place)?;
                Some((entry, later.0))
            })
            .collect();
        for (entry, by) in &overridden {
            effect
                .notes
                .push(format!("On pool {} MachineConfig {by} overrides {entry}: it stays as it is.", pool.name));
        }
        let in_force = |entry: &&String| !overridden.iter().any(|(other, _)| other == entry);
        for entry in found.replaced.iter().filter(in_force) {
            let before = self.sources().filter(|(_, (parts, _))| parts.names(entry)).map(|(source, _)| source.as_str());
            let before: Vec<_> = before.collect();
            if !before.is_empty() {
                let note = format!("On pool {} it replaces {entry} of MachineConfig {}.", pool.name, before.join(", "));
                effect.notes.push(note);
            }
        }
        let changes = differences.is_none()
            || found.appended
            || found.other
            || !found.removed.is_empty()
            || found.entries.iter().any(|entry| in_force(&entry));
        if !changes {
            effect.notes.push(format!("The machines of pool {} have all of it already: none reboots.", pool.name));
            return;
        }
        self.note_rivals(found, effect);
        effect.pools.insert(pool.name.clone(), pool.machines);
        effect.notes.extend(state_of(pool));
    }

    /// Kernel arguments that other MachineConfigs set as well.
    fn note_rivals(&self, found: &Differences, effect: &mut Effect) {
        for (ours, theirs) in rivals(found) {
            let by = self.sources().filter(|(_, (parts, _))| parts.arguments().any(|argument| argument == theirs));
            let by: Vec<_> = by.map(|(source, _)| source.as_str()).collect();
            let by = if by.is_empty() { "another MachineConfig".to_owned() } else { by.join(", ") };
            effect.notes.push(if ours == theirs {
                format!("Kernel argument {ours} is already provided by {by}: it would be there twice, and the machines reboot without need.")
            } else {
                format!("Kernel argument {theirs} is set by {by}: it is on the command line beside {ours}, and the later one usually wins.")
            });
        }
    }
}

/// New kernel arguments, each with one that other objects bring under the same name.
fn rivals(differences: &Differences) -> Vec<(&str, &str)> {
    let name = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
    let mut found: Vec<_> = differences
        .new_arguments
        .iter()
        .flat_map(|ours| {
            let others = differences.other_arguments.iter().filter(move |theirs| name(theirs) == name(ours));
            others.map(move |theirs| (ours.as_str(), theirs.as_str()))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// What keeps a pool from rolling out.
pub(super) fn state_of(pool: &Pool) -> Vec<String> {
    let mut notes = Vec::new();
    if pool.paused {
        notes.push(format!("MachineConfigPool {} is paused: nothing happens on it until it is unpaused.", pool.name));
    }
    if let Some(message) = pool.holds("Degraded") {
        notes.push(format!("MachineConfigPool {} is degraded already: {message}.", pool.name));
    }
    notes
}

/// Identifies a planned change by its content.
fn key(planned: Planned<'_>) -> String {
    let spec = |object: Option<&Value>| object.map(|object| object.get("spec").cloned().unwrap_or_default());
    digest::sha256(&(spec(planned.live), spec(planned.result)))
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
