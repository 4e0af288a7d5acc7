//! What a planned MachineConfig will do: which pools render it, whether their machines will have another content, and which
//! other MachineConfigs bring the same.
//!
//! The rules of merging are those of `MergeMachineConfigs` (pkg/controller/common of machine-config-operator), as observed: kernel arguments are
//! joined, duplicates kept; files and units are merged member by member, role worker before all others, each by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::contents::{self, Differences, Members, Parts};
use super::disruption::{Disruption, Policies};
use super::pool::{Pool, labels};
use super::{MACHINE_CONFIGURATION, Outlook, PlannedChange};
use crate::plan::items::message::listed;
use crate::plan::items::{Effect, part};
use object::digest;

/// The label that says for which machines a MachineConfig is.
pub(super) const ROLE: &str = "machineconfiguration.openshift.io/role";

/// What was read for plans. Only what pools point to now is kept.
#[derive(Default)]
pub(super) struct Studies {
    /// How a planned change differs from a rendered configuration, by its name and the change.
    differences: BTreeMap<(String, String), Differences>,
    /// What a source brings, and its place in the order of merging, by the rendered configuration and its name.
    sources: BTreeMap<(String, String), Arc<MergedSource>>,
}

/// What is known of a source of a rendered configuration.
#[derive(Debug, Default)]
pub(super) struct MergedSource {
    pub(super) parts: Parts,
    place: MergePlace,
    claims: BTreeMap<String, String>,
    members: Members,
    lasting: BTreeMap<String, Vec<&'static str>>,
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

    /// Whether it decides what `claim` names otherwise than an object at `place`.
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

impl Studies {
    pub(super) fn read_anew(&mut self) {
        self.sources.clear();
    }

    /// Learns from `read`, a rendered configuration or one of its sources, which is called `name`.
    /// `None` says that it is gone: then nothing is proven of a rendered configuration, and a source brings nothing.
    pub(super) fn learn(
        &mut self,
        pools: &BTreeMap<String, Pool>,
        planned: PlannedChange<'_>,
        name: &str,
        read: Option<&Value>,
    ) {
        let mut wanting = pools.values().filter(|pool| pool.wanted == name).peekable();
        if wanting.peek().is_some() {
            // What a pool has rendered is read before its sources.
            let wanted: BTreeSet<_> = pools.values().map(|pool| &pool.wanted).collect();
            self.differences.retain(|(rendered, _), _| wanted.contains(rendered));
            self.sources.retain(|(rendered, _), _| wanted.contains(rendered));
            let specs = Specs::of(planned);
            for pool in wanting {
                let change = seen_by(pool, planned);
                let unproven = || Differences { other: true, ..Differences::default() };
                let of_change = || read.map_or_else(unproven, |read| Differences::of(change.live, change.result, read));
                self.differences.entry((name.to_owned(), specs.key(change))).or_insert_with(of_change);
            }
        }
        // The same may be among what another pool lists: what was read must be known, or it is asked for again and again.
        let mut listing = pools.values().filter(|pool| pool.sources.contains(name)).peekable();
        if listing.peek().is_some() {
            let found = Arc::new(read.map_or_else(MergedSource::default, MergedSource::of));
            let keys = listing.map(|pool| (pool.wanted.clone(), name.to_owned()));
            self.sources.extend(keys.map(|key| (key, Arc::clone(&found))));
        }
    }
}

/// What `planned` sets in motion on `pools`, where these node disruption `policies` are in force.
pub(super) fn outlook(
    pools: &BTreeMap<String, Pool>,
    studies: &Studies,
    policies: Option<&Policies>,
    planned: PlannedChange<'_>,
) -> Outlook {
    if let Some(result) = planned.result.filter(|_| !planned.takes_back)
        && let Some(remedy) = reaches_nobody(pools, result)
    {
        return Outlook::Known(Err(remedy));
    }
    if let Some(remedy) = planned.result.and_then(|result| breaks_pools(pools, result, planned.takes_back)) {
        return Outlook::Known(Err(remedy));
    }
    let specs = Specs::of(planned);
    let views: Vec<_> = pools.values().filter_map(|pool| View::of(pool, planned, &specs, studies)).collect();
    let unread: BTreeSet<_> = views.iter().flat_map(View::unread).collect();
    if !unread.is_empty() {
        return Outlook::Unread(unread.into_iter().collect());
    }
    if let Some(remedy) = views.iter().filter(|_| !planned.takes_back).find_map(View::lasting) {
        return Outlook::Known(Err(remedy));
    }
    let mut effect = Effect::default();
    for view in &views {
        if view.add_to(&mut effect, policies).is_none() {
            return Outlook::Unlisted(MACHINE_CONFIGURATION);
        }
    }
    if !planned.takes_back {
        effect.notes.extend(planned.result.and_then(|result| beside(pools, result)));
    }
    effect.notes.dedup();
    Outlook::Known(Ok(effect))
}

/// Pools that carry nothing that runs for users.
const WITHOUT_WORKLOADS: [&str; 2] = ["master", "arbiter"];

/// The pools of one's own whose machines do not get what workers get, in a sentence.
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
            "The machines of these pools do not get it, since their machineConfigSelector does not select it: {}.",
            listed(&others)
        )
    })
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
    if pools.is_empty() {
        return Some(
            "this cluster has no MachineConfigPool, so no machine would get it: where the control plane is hosted, machines are set up by the NodePools \
             of its hosting cluster"
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
    differences: Option<&'a Differences>,
    studies: &'a Studies,
    leaving: &'a [String],
}

impl<'a> View<'a> {
    /// `None` if the pool has nothing to do with it.
    fn of(pool: &'a Pool, planned: PlannedChange<'a>, specs: &Specs, studies: &'a Studies) -> Option<Self> {
        let change = seen_by(pool, planned);
        let object = change.result.or(change.live)?;
        let differences = studies.differences.get(&(pool.wanted.clone(), specs.key(change)));
        Some(Self { pool, object, differences, studies, leaving: planned.leaving })
    }
}

/// What `pool` sees of `planned`: only what its selector finds. A label that moves an object takes it from one pool and
/// gives it to another.
fn seen_by<'a>(pool: &Pool, planned: PlannedChange<'a>) -> PlannedChange<'a> {
    let selected = |object: &&Value| pool.selects(&labels(object));
    PlannedChange { live: planned.live.filter(selected), result: planned.result.filter(selected), ..planned }
}

impl View<'_> {
    /// What must be read: what the pool has now, and where others bring the same, its other sources.
    fn unread(&self) -> Vec<String> {
        let pool = self.pool;
        if pool.wanted.is_empty() {
            return Vec::new();
        }
        let Some(differences) = self.differences else {
            return vec![pool.wanted.clone()];
        };
        let is_ours_alone =
            differences.lasting.is_empty() && differences.contested.is_empty() && differences.removed.is_empty();
        if is_ours_alone && Rivals::among(differences).is_empty() {
            return Vec::new();
        }
        let known = |source: &&String| self.studies.sources.contains_key(&(pool.wanted.clone(), (*source).clone()));
        let others = pool.sources.iter().filter(|source| source.as_str() != name(self.object));
        others.filter(|source| !known(source)).cloned().collect()
    }

    /// The other sources that the pool has now, sorted by their names.
    fn listed(&self) -> impl Iterator<Item = (&str, &MergedSource)> {
        let wanted = &self.pool.wanted;
        let of_pool = self.studies.sources.range((wanted.clone(), String::new())..);
        let of_pool = of_pool.take_while(move |((rendered, _), _)| rendered == wanted);
        let all = of_pool.map(|((_, source), found)| (source.as_str(), found.as_ref()));
        // What was read for another list of the same content is not among them any more.
        all.filter(|(source, _)| *source != name(self.object) && self.pool.sources.contains(*source))
    }

    /// Those of them that stay.
    fn sources(&self) -> impl Iterator<Item = (&str, &MergedSource)> {
        self.listed().filter(|(source, _)| !self.leaving.iter().any(|leaving| leaving == source))
    }

    /// The members of files and units that other sources override with something else, each with the one that does.
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

    /// Files that other sources bring too: who, and which of them overrides something of the object's.
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

    /// Why the machines would not get a file or unit as it is planned: rendering leaves something of an earlier source in it. What a later one
    /// brings is its own, and told as such.
    fn lasting(&self) -> Option<String> {
        let place = MergePlace::of(self.object);
        self.differences?.lasting.iter().find_map(|(name, members)| {
            let has = |other: &MergedSource| other.lasting.get(name).is_some_and(|own| own.iter().any(|of| members.contains(of)));
            let bringing: Vec<_> = self.sources().filter(|(_, other)| has(other)).collect();
            let is_earlier = !bringing.is_empty() && bringing.iter().all(|(_, other)| other.place < place);
            let by: Vec<_> = bringing.iter().map(|(source, _)| (*source).to_owned()).collect();
            is_earlier.then(|| {
                format!(
                    "on pool {} {name} is in MachineConfig {} too, with {}, and rendering leaves that in what this one wants: take {name} out of it, or \
                     set this item aside",
                    self.pool.name,
                    listed(&by),
                    members.join(" and ")
                )
            })
        })
    }

    /// What machines get of the file or unit of that name, where the object says `ours`: of each member what the last one says.
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

    /// Whether machines get something else of the file or unit of that name.
    fn becomes_another(&self, name: &str, found: &Differences) -> bool {
        self.merged(name, &found.had) != self.merged(name, &found.wants)
    }

    /// Adds what happens to the machines of the pool; `None` if that depends on policies that are not known.
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
                    "The machines of pool {} keep all of it, since other MachineConfigs bring the same: none reboots.",
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

    /// Kernel arguments that other MachineConfigs set as well.
    fn note_rivals(&self, found: &Differences, effect: &mut Effect) {
        let rivals = Rivals::among(found);
        for (ours, theirs) in rivals.pairs().take(TOLD) {
            let by = self.sources().filter(|(_, other)| other.parts.sets(theirs));
            let by: Vec<_> = by.map(|(source, _)| source.to_owned()).collect();
            if by.is_empty() {
                if self.listed().any(|(_, other)| other.parts.sets(theirs)) {
                    continue;
                }
                // Rendered of a source that is something else by now, or that can't be read.
                effect.notes.push(format!(
                    "Kernel argument {theirs} is in what pool {} has rendered, and no other MachineConfig of the pool sets it now: its machines may \
                     have it already.",
                    self.pool.name
                ));
                continue;
            }
            let by = listed(&by);
            effect.notes.push(if ours == theirs {
                format!("Kernel argument {ours} is already provided by {by}: it would be set twice, and the machines would reboot unnecessarily. Switch off the option that brings it, or set the item aside.")
            } else {
                format!("Kernel argument {theirs} is set by {by}: it is on the command line beside {ours}, and the later one usually wins.")
            });
        }
        if let Some(more) = rivals.count().checked_sub(TOLD).filter(|more| *more > 0) {
            effect
                .notes
                .push(format!("There are {more} more such pairs of kernel arguments on pool {}.", self.pool.name));
        }
    }
}

/// As many pairs of kernel arguments as are told of a pool.
const TOLD: usize = 10;

/// Whether what is called so is a file: units have no path.
fn is_file(name: &str) -> bool {
    name.starts_with('/')
}

/// Other MachineConfigs that bring one of our files too.
#[derive(Default)]
struct Shared<'a> {
    by: Vec<&'a str>,
    /// The first of them that comes later in the order of merging.
    overridden_by: Option<&'a str>,
}

/// The files that stay as they are on the pool of that name, in a sentence.
fn note_overridden(pool: &str, shared: &BTreeMap<&str, Shared<'_>>, another: &dyn Fn(&str) -> bool) -> Option<String> {
    let overridden: Vec<_> = shared
        .iter()
        .filter_map(|(file, found)| found.overridden_by.map(|by| (*file, by)))
        .filter(|(file, _)| !another(file))
        .collect();
    match overridden.as_slice() {
        [] => None,
        [(file, by)] => Some(format!("On pool {pool} MachineConfig {by} overrides {file}: it stays as it is.")),
        files => {
            let told: Vec<_> = files.iter().map(|(file, by)| format!("{file} (by {by})")).collect();
            Some(format!(
                "On pool {pool} {} files are overridden and stay as they are: {}.",
                files.len(),
                listed(&told)
            ))
        }
    }
}

/// The files of which a part stays as it is on the pool of that name, in a sentence.
fn note_overridden_in_part(
    pool: &str,
    shared: &BTreeMap<&str, Shared<'_>>,
    another: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let overridden = shared.iter().filter_map(|(file, found)| found.overridden_by.map(|by| (*file, by)));
    let told: Vec<_> =
        overridden.filter(|(file, _)| another(file)).map(|(file, by)| format!("{file} (by {by})")).collect();
    (!told.is_empty())
        .then(|| format!("On pool {pool} other MachineConfigs override a part of files: {}.", listed(&told)))
}

/// The parts of units that stay as they are on the pool of that name, in a sentence.
fn note_overridden_units(pool: &str, overridden: &BTreeMap<&str, &str>) -> Option<String> {
    let told: Vec<_> =
        overridden.iter().map(|(claim, by)| format!("{} (by {by})", claim.replacen(' ', ": ", 1))).collect();
    (!told.is_empty()).then(|| {
        format!(
            "On pool {pool} other MachineConfigs override parts of units, which stay as they are: {}.",
            listed(&told)
        )
    })
}

/// The files of other MachineConfigs that are replaced on the pool of that name, in a sentence.
fn note_replaced(pool: &str, shared: &BTreeMap<&str, Shared<'_>>, replaces: &dyn Fn(&str) -> bool) -> Option<String> {
    let in_force: Vec<_> =
        shared.iter().filter(|(file, found)| found.overridden_by.is_none() && replaces(file)).collect();
    let owners = |found: &Shared<'_>| listed(&found.by.iter().map(|by| (*by).to_owned()).collect::<Vec<_>>());
    match in_force.as_slice() {
        [] => None,
        [(file, found)] => Some(format!("On pool {pool} it replaces {file} of MachineConfig {}.", owners(found))),
        files => {
            let told: Vec<_> = files.iter().map(|(file, found)| format!("{file} (of {})", owners(found))).collect();
            let told = listed(&told);
            Some(format!("On pool {pool} it replaces {} files of other MachineConfigs: {told}.", files.len()))
        }
    }
}

/// New kernel arguments, and those that other objects bring under the same name.
struct Rivals<'a> {
    ours: BTreeSet<&'a str>,
    theirs: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Rivals<'a> {
    fn among(differences: &'a Differences) -> Self {
        let ours: BTreeSet<_> = differences.new_arguments.iter().map(String::as_str).collect();
        let mut theirs: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for argument in &differences.other_arguments {
            theirs.entry(name_of(argument)).or_default().insert(argument.as_str());
        }
        Self { ours, theirs }
    }

    fn of(&self, argument: &str) -> Option<&BTreeSet<&'a str>> {
        self.theirs.get(name_of(argument))
    }

    fn is_empty(&self) -> bool {
        !self.ours.iter().any(|ours| self.of(ours).is_some())
    }

    /// How many pairs there are.
    fn count(&self) -> usize {
        self.ours.iter().filter_map(|ours| self.of(ours)).fold(0, |sum, theirs| sum.saturating_add(theirs.len()))
    }

    /// Ours, each with one of theirs; sorted.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let theirs = |ours: &'_ str| self.of(ours).into_iter().flatten();
        self.ours.iter().flat_map(move |ours| theirs(ours).map(move |theirs| (*ours, *theirs)))
    }
}

/// The name of a kernel argument.
fn name_of(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}

/// Digests of the specs of a planned change, which may be large: they are made once for all pools.
struct Specs {
    live: String,
    result: String,
}

impl Specs {
    fn of(planned: PlannedChange<'_>) -> Self {
        let digest = |object: Option<&Value>| digest::sha256(&object.and_then(|object| object.get("spec")));
        Self { live: digest(planned.live), result: digest(planned.result) }
    }

    /// Identifies the part of the change that a pool sees, by its content.
    fn key(&self, seen: PlannedChange<'_>) -> String {
        let digest = |object: Option<&Value>, digest: &str| object.map(|_| digest.to_owned()).unwrap_or_default();
        format!("{} {}", digest(seen.live, &self.live), digest(seen.result, &self.result))
    }
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod policies;
#[cfg(test)]
mod tests;
