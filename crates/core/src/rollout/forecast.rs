//! What a planned MachineConfig will do: which pools render it, whether their machines will have
//! another content, and which other MachineConfigs bring the same.

mod arguments;
mod notes;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::contents::{Differences, Members};
use super::disruption::{Disruption, Policies};
use super::facts::{Facts, RenderedFacts};
use super::merge::{MergePlace, MergedSource};
use super::pool::{Pool, ROLE, labels, name, reaches_no_machine};
use super::{Forecast, MACHINE_CONFIGURATION, Needed, PlannedChange};
use crate::plan::items::message::listed;
use crate::plan::items::{Effect, part};
use arguments::Rivals;
use notes::{Shared, is_file, note_overridden, note_overridden_in_part, note_overridden_units, note_replaced};
use object::digest;

/// Records what `read`, which is what `needed` asks for, says of `planned`. `None` says that it is
/// gone: then nothing is proven of a rendered configuration, and a source brings nothing.
pub(super) fn record(
    facts: &mut Facts,
    pools: &BTreeMap<String, Pool>,
    planned: PlannedChange<'_>,
    needed: &Needed,
    read: Option<&Value>,
) {
    match needed {
        Needed::Rendered(name) => {
            let specs = Specs::of(planned);
            for pool in pools.values().filter(|pool| pool.wanted == *name) {
                let change = seen_by(pool, planned);
                let unproven = || Differences { other: true, ..Differences::default() };
                let of_change = || read.map_or_else(unproven, |read| Differences::of(change.live, change.result, read));
                facts.of_mut(pool).differences.entry(specs.key(change)).or_insert_with(of_change);
            }
        }
        Needed::Source(name) => {
            let found = Arc::new(read.map_or_else(MergedSource::default, MergedSource::of));
            for pool in pools.values().filter(|pool| pool.sources.contains(name)) {
                facts.of_mut(pool).planned_sources.insert(name.clone(), Arc::clone(&found));
            }
        }
        Needed::Maker(_) | Needed::Generated(_) | Needed::Existence(_) => {}
    }
}

/// The effect of `planned` on `pools`, with these node disruption `policies` in force.
pub(super) fn forecast(
    pools: &BTreeMap<String, Pool>,
    facts: &Facts,
    policies: Option<&Policies>,
    planned: PlannedChange<'_>,
) -> Forecast {
    if let Some(result) = planned.result.filter(|_| !planned.takes_back)
        && let Some(remedy) = reaches_nobody(pools, result)
    {
        return Forecast::Known(Err(remedy.into()));
    }
    if let Some(remedy) = planned.result.and_then(|result| breaks_pools(pools, result, planned.takes_back)) {
        return Forecast::Known(Err(remedy.into()));
    }
    let specs = Specs::of(planned);
    let views: Vec<_> = pools.values().filter_map(|pool| View::of(pool, planned, &specs, facts)).collect();
    let unread: BTreeSet<_> = views.iter().flat_map(View::unread).collect();
    if !unread.is_empty() {
        return Forecast::Unread(unread.into_iter().collect());
    }
    if let Some(remedy) = views.iter().filter(|_| !planned.takes_back).find_map(View::lasting) {
        return Forecast::Known(Err(remedy.into()));
    }
    let mut effect = Effect::default();
    for view in &views {
        if view.add_to(&mut effect, policies).is_none() {
            return Forecast::Unlisted(MACHINE_CONFIGURATION);
        }
    }
    if !planned.takes_back {
        effect.notes.extend(planned.result.and_then(|result| beside(pools, result)));
    }
    effect.notes.dedup();
    Forecast::Known(Ok(effect))
}

/// Pools whose machines run no workloads of users.
const WITHOUT_WORKLOADS: [&str; 2] = ["master", "arbiter"];

/// A sentence about custom pools whose machines do not get what workers get.
fn beside(pools: &BTreeMap<String, Pool>, object: &Value) -> Option<String> {
    let labels = labels(object);
    if labels.get(ROLE).is_none_or(|role| role != "worker") {
        return None;
    }
    let others = pools
        .values()
        .filter(|pool| pool.machines > 0 && !pool.selects(&labels) && !WITHOUT_WORKLOADS.contains(&pool.name.as_str()));
    let others: Vec<_> = others.map(|pool| format!("{} (machines: {})", pool.name, pool.machines)).collect();
    (!others.is_empty()).then(|| {
        format!(
            "The machines of these pools do not get it, because the machineConfigSelector of the pool does not select it: {}. Extend the selector if they should.",
            listed(&others)
        )
    })
}

/// Why pools that select `object` could no longer be rendered, if so: an Ignition configuration
/// needs a version. The API server does not require one, and the fields of others that stay without
/// ours may lack it.
fn breaks_pools(pools: &BTreeMap<String, Pool>, object: &Value, takes_back: bool) -> Option<String> {
    let config = object.pointer("/spec/config").and_then(Value::as_object).filter(|config| !config.is_empty())?;
    let version = config.get("ignition").and_then(|ignition| ignition.get("version")).and_then(Value::as_str);
    let is_known = version.is_some_and(|version| version.starts_with("3.") || version.starts_with("2.2"));
    let labels = labels(object);
    let selecting: Vec<_> =
        pools.values().filter(|pool| pool.selects(&labels)).map(|pool| pool.name.as_str()).collect();
    (!is_known && !selecting.is_empty()).then(|| {
        let what = if takes_back { "without this configuration's fields, it would have" } else { "it would have" };
        let remedy = if takes_back {
            "Have its other owners apply all of it, delete it, or skip this item in spec.items"
        } else {
            "Set spec.config.ignition.version"
        };
        format!(
            "{what} no Ignition version that the Machine Config Operator supports, and MachineConfigPool {} could not be rendered. {remedy}",
            selecting.join(", ")
        )
    })
}

/// Why `object` would reach no machine, if so.
fn reaches_nobody(pools: &BTreeMap<String, Pool>, object: &Value) -> Option<String> {
    let labels = labels(object);
    if pools.is_empty() {
        return Some(
            "this cluster has no MachineConfigPool, so no machine would get it: with a hosted control plane, machines are configured by the NodePools \
             of the hosting cluster. Disable the option that plans this item"
                .to_owned(),
        );
    }
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

/// A planned change from the view of one pool: an object that it selects now, afterwards, or both.
struct View<'a> {
    pool: &'a Pool,
    object: &'a Value,
    differences: Option<&'a Differences>,
    facts: Option<&'a RenderedFacts>,
    leaving: &'a [String],
}

impl<'a> View<'a> {
    /// `None` if the change does not concern the pool.
    fn of(pool: &'a Pool, planned: PlannedChange<'a>, specs: &Specs, facts: &'a Facts) -> Option<Self> {
        let change = seen_by(pool, planned);
        let object = change.result.or(change.live)?;
        let facts = facts.of(pool);
        let differences = facts.and_then(|facts| facts.differences.get(&specs.key(change)));
        Some(Self { pool, object, differences, facts, leaving: planned.leaving })
    }
}

/// The part of `planned` that `pool` sees, which is what its selector matches. A changed label can
/// remove an object from one pool and add it to another.
fn seen_by<'a>(pool: &Pool, planned: PlannedChange<'a>) -> PlannedChange<'a> {
    let selected = |object: &&Value| pool.selects(&labels(object));
    PlannedChange { live: planned.live.filter(selected), result: planned.result.filter(selected), ..planned }
}

impl View<'_> {
    /// The objects that must be read: the pool's rendered configuration, and its other sources if
    /// they may contain the same.
    fn unread(&self) -> Vec<Needed> {
        let pool = self.pool;
        if pool.wanted.is_empty() {
            return Vec::new();
        }
        let Some(differences) = self.differences else {
            return vec![Needed::Rendered(pool.wanted.clone())];
        };
        let is_ours_alone =
            differences.lasting.is_empty() && differences.contested.is_empty() && differences.removed.is_empty();
        if is_ours_alone && Rivals::among(differences).is_empty() {
            return Vec::new();
        }
        let is_known = |source: &&String| self.facts.is_some_and(|facts| facts.planned_sources.contains_key(*source));
        let others = pool.sources.iter().filter(|source| source.as_str() != name(self.object));
        others.filter(|source| !is_known(source)).cloned().map(Needed::Source).collect()
    }

    /// The other sources that the pool has now, sorted by name.
    fn listed(&self) -> impl Iterator<Item = (&str, &MergedSource)> {
        let of_pool = self.facts.into_iter().flat_map(|facts| &facts.planned_sources);
        let all = of_pool.map(|(source, found)| (source.as_str(), found.as_ref()));
        // Sources that were read for an earlier list with the same content are no longer among
        // them.
        all.filter(|(source, _)| *source != name(self.object) && self.pool.sources.contains(*source))
    }

    /// The listed sources that stay.
    fn sources(&self) -> impl Iterator<Item = (&str, &MergedSource)> {
        self.listed().filter(|(source, _)| !self.leaving.iter().any(|leaving| leaving == source))
    }

    /// The members of files and units that other sources override with another value, each with
    /// that source.
    fn overridden<'a>(&'a self, wants: &'a Members) -> BTreeMap<(&'a str, &'a str), &'a str> {
        let place = MergePlace::of(self.object);
        let by = |member: &(String, String), ours: &String| {
            let later = self.sources().filter(|(_, other)| other.place > place && other.members.contains_key(member));
            let (source, last) = later.max_by_key(|(_, other)| &other.place)?;
            last.members.get(member).filter(|theirs| *theirs != ours).map(|_| source)
        };
        wants
            .iter()
            .filter_map(|(member, ours)| Some(((member.0.as_str(), member.1.as_str()), by(member, ours)?)))
            .collect()
    }

    /// The files that other sources contain too: which sources, and which of them overrides part of
    /// the object's file.
    fn shared<'a>(
        &'a self,
        found: &'a Differences,
        overridden: &BTreeMap<(&'a str, &'a str), &'a str>,
    ) -> BTreeMap<&'a str, Shared<'a>> {
        let files = found.contested.iter().map(String::as_str).filter(|name| is_file(name));
        let shared = files.map(|file| {
            let bringing = self.sources().filter(|(_, other)| other.parts.names().any(|name| name == file));
            let by: Vec<_> = bringing.map(|(source, _)| source).collect();
            let overridden_by = overridden.iter().find(|((name, _), _)| *name == file).map(|(_, by)| *by);
            (file, Shared { by, overridden_by })
        });
        shared.filter(|(_, found)| !found.by.is_empty()).collect()
    }

    /// Why the machines would not get a file or unit as planned, if rendering leaves something of
    /// an earlier source in it. What a later source adds is reported as an override.
    fn lasting(&self) -> Option<String> {
        let place = MergePlace::of(self.object);
        self.differences?.lasting.iter().find_map(|(name, members)| {
            let has = |other: &MergedSource| other.lasting.get(name).is_some_and(|own| own.iter().any(|of| members.contains(of)));
            let bringing: Vec<_> = self.sources().filter(|(_, other)| has(other)).collect();
            let is_earlier = !bringing.is_empty() && bringing.iter().all(|(_, other)| other.place < place);
            let by: Vec<_> = bringing.iter().map(|(source, _)| (*source).to_owned()).collect();
            is_earlier.then(|| {
                format!(
                    "on pool {}, {name} is also in MachineConfig {}, with {}, which rendering would keep: remove {name} from that MachineConfig, or \
                     skip this item in spec.items",
                    self.pool.name,
                    listed(&by),
                    members.join(" and ")
                )
            })
        })
    }

    /// What machines get of the file or unit called `name` if the object contains `ours`: for each
    /// member, the value of the last source.
    fn merged<'a>(&'a self, name: &str, ours: &'a Members) -> BTreeMap<&'a str, &'a str> {
        let place = MergePlace::of(self.object);
        let others = self.sources().map(|(_, other)| (&other.place, &other.members));
        let mut all: Vec<_> = others.chain([(&place, ours)]).collect();
        all.sort_by_key(|(place, _)| *place);
        let of_name = |members: &'a Members| {
            let from = members.range((name.to_owned(), String::new())..);
            let name = name.to_owned();
            from.take_while(move |((of, _), _)| *of == name)
                .map(|((_, member), digest)| (member.as_str(), digest.as_str()))
        };
        all.into_iter().flat_map(|(_, members)| of_name(members)).collect()
    }

    /// Whether the file or unit called `name` changes on the machines.
    fn becomes_another(&self, name: &str, found: &Differences) -> bool {
        self.merged(name, &found.had) != self.merged(name, &found.wants)
    }

    /// Adds the effect on the machines of the pool; `None` if it depends on policies that are not
    /// known.
    fn add_to(&self, effect: &mut Effect, policies: Option<&Policies>) -> Option<()> {
        let pool = self.pool;
        let nothing = Differences::default();
        // A pool that has rendered nothing yet will render this.
        let found = self.differences.unwrap_or(&nothing);
        let overridden = self.overridden(&found.wants);
        let shared = self.shared(found, &overridden);
        let another = |name: &str| self.becomes_another(name, found);
        effect.notes.extend(note_overridden(&pool.name, &shared, &another));
        effect.notes.extend(note_overridden_in_part(&pool.name, &shared, &another));
        let replaces = |name: &str| another(name) && found.replaced.iter().any(|file| file == name);
        effect.notes.extend(note_replaced(&pool.name, &shared, &replaces));
        let units: BTreeMap<_, _> =
            overridden.iter().filter(|((name, _), _)| !is_file(name)).map(|((_, claim), by)| (*claim, *by)).collect();
        effect.notes.extend(note_overridden_units(&pool.name, &units));
        let files = shared.iter().filter(|(_, found)| found.overridden_by.is_some()).map(|(file, _)| *file);
        effect.overridden.extend(files.chain(units.keys().copied()).map(|claim| part(&pool.name, claim)));
        let is_changed = |name: &&String| !found.contested.contains(*name) || another(name);
        let always_reboots = self.differences.is_none() || found.appended || found.other;
        let removed = found.removed.iter().filter(|name| another(name));
        let changed: Vec<_> = removed.chain(found.entries.iter().filter(is_changed)).collect();
        if !always_reboots && !found.keys && changed.is_empty() {
            effect.notes.push(match found.removed.is_empty() {
                true => format!("The machines of pool {} have all of it already: none reboots.", pool.name),
                false => format!(
                    "The machines of pool {} keep all of it, because other MachineConfigs set the same: none reboots.",
                    pool.name
                ),
            });
            return Some(());
        }
        self.note_rivals(found, effect);
        let disruption = match always_reboots {
            true => Disruption::Reboot,
            false => {
                let of_keys = policies?.of_keys();
                let of_entries = policies?.disruption(changed.into_iter().map(String::as_str));
                if found.keys { of_entries.max(of_keys) } else { of_entries }
            }
        };
        pool.disturb(effect, disruption);
        Some(())
    }
}

/// Digests of the specs of a planned change. Specs may be large, so this is done once for all
/// pools.
struct Specs {
    live: String,
    result: String,
}

impl Specs {
    fn of(planned: PlannedChange<'_>) -> Self {
        let digest = |object: Option<&Value>| digest::sha256(&object.and_then(|object| object.get("spec")));
        Self { live: digest(planned.live), result: digest(planned.result) }
    }

    /// Identifies the part of the change that a pool sees by its content.
    fn key(&self, seen: PlannedChange<'_>) -> String {
        let digest = |object: Option<&Value>, digest: &str| object.map(|_| digest.to_owned()).unwrap_or_default();
        format!("{} {}", digest(seen.live, &self.live), digest(seen.result, &self.result))
    }
}
