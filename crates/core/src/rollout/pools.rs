//! MachineConfigs take effect through MachineConfigPools, machine by machine. This module holds
//! what is known about the pools.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use profile_sdk::Kind;
use serde_json::{Value, json};

use self::judge::{Hold, Judged};
use super::contents::{self, Parts};
use super::disruption::Policies;
use super::facts::{Facts, GeneratedConfig, Removal};
use super::forecast;
use super::holdup;
use super::kubelet;
use super::merge::{MergePlace, MergedSource};
use super::pool::{Pool, labels, name};
use super::{
    ChangeKind, Forecast, Forecasting, MACHINE_CONFIG, MACHINE_CONFIGURATION, MACHINE_OS_CONFIG, Needed, POOL,
    PlannedChange, Progress, Question, Rollouts, Tracked, Tracking,
};
use crate::api::TargetRef;
use crate::plan::items::health::Rollout;
use crate::plan::items::{Overridden, part};
use object::digest;

/// The pools of the cluster, and what was learned about their rendered configurations.
#[derive(Default)]
pub struct MachineConfigPools {
    state: Mutex<KnownPools>,
}

#[derive(Default)]
struct KnownPools {
    pools: BTreeMap<String, Pool>,
    /// The pools that MachineOSConfigs named when these were listed last.
    layered: BTreeSet<String>,
    /// Whether that is to be believed: they were listed since the last exact plan began.
    knows_layers: bool,
    /// The node disruption policies, once MachineConfigurations were listed.
    policies: Option<Policies>,
    /// Facts about rendered configurations and their sources.
    facts: Facts,
    /// The MachineConfigs that were generated from KubeletConfigs.
    generated: BTreeMap<GeneratedConfig, Value>,
}

impl MachineConfigPools {
    fn state(&self) -> MutexGuard<'_, KnownPools> {
        self.state.lock()
    }
}

impl Rollouts for MachineConfigPools {
    fn watched_kind(&self) -> Kind {
        POOL
    }

    fn read_kind(&self) -> Kind {
        MACHINE_CONFIG
    }

    fn pool_seen(&self, object: &Value) {
        let state = &mut *self.state();
        let pool = state.read(object);
        state.pools.insert(pool.name.clone(), pool);
    }

    fn pool_gone(&self, name: &str) {
        self.state().pools.remove(name);
    }

    fn pools_listed(&self, objects: &[Value]) {
        let state = &mut *self.state();
        let pools = objects.iter().map(|object| state.read(object));
        state.pools = pools.map(|pool| (pool.name.clone(), pool)).collect();
    }
}

impl Forecasting for MachineConfigPools {
    fn has_effects(&self, target: &TargetRef) -> bool {
        is_machine_config(target) || kubelet::is(target)
    }

    fn forecast(&self, planned: PlannedChange<'_>) -> Forecast {
        let KnownPools { pools, facts, policies, knows_layers, .. } = &*self.state();
        if !knows_layers {
            return Forecast::Unlisted(MACHINE_OS_CONFIG);
        }
        match planned.result.or(planned.live) {
            Some(object) if kubelet::is(&TargetRef::of(object)) => {
                kubelet::forecast(pools, facts, policies.as_ref(), planned)
            }
            _ => forecast::forecast(pools, facts, policies.as_ref(), planned),
        }
    }

    fn record_for_forecast(&self, planned: PlannedChange<'_>, needed: &Needed, read: Option<&Value>) {
        let KnownPools { pools, facts, .. } = &mut *self.state();
        facts.keep_only(pools);
        match needed {
            Needed::Maker(name) => kubelet::record_maker(facts, pools, name, read),
            needed => forecast::record(facts, pools, planned, needed, read),
        }
    }

    fn kind_listed(&self, kind: Kind, objects: &[Value]) {
        let state = &mut *self.state();
        if kind == MACHINE_CONFIGURATION {
            state.policies = Some(Policies::of(objects));
            return;
        }
        let named = objects.iter().filter_map(|object| object.pointer("/spec/machineConfigPool/name")?.as_str());
        state.layered = named.map(str::to_owned).collect();
        state.knows_layers = true;
        let KnownPools { pools, layered, .. } = state;
        pools.values_mut().for_each(|pool| pool.layered = layered.contains(&pool.name));
    }

    fn read_anew(&self) {
        let state = &mut *self.state();
        state.facts.read_sources_anew();
        // What was listed is as good as before for what watches tell of pools.
        state.knows_layers = false;
        state.policies = None;
    }

    fn plan_fingerprint(&self) -> String {
        // Of all: which of them have an object now, only the object tells.
        self.state().pools.values().map(Pool::resting).collect::<Vec<_>>().join("\n")
    }
}

impl Tracking for MachineConfigPools {
    fn is_tracked(&self, target: &TargetRef) -> bool {
        is_machine_config(target) || kubelet::is(target)
    }

    fn snapshot(&self, object: &Value) -> Option<Tracked> {
        let target = TargetRef::of(object);
        if kubelet::is(&target) {
            return Some(Tracked::Object(kubelet::followed(object)));
        }
        let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        is_machine_config(&target).then(|| {
            Tracked::Object(json!({
                "metadata": {"name": part("/metadata/name"), "labels": part("/metadata/labels")},
                "spec": part("/spec"),
            }))
        })
    }

    fn progress(&self, tracked: &Tracked, change: ChangeKind) -> Progress {
        match self.state().judged(tracked, change) {
            Judged::Unread(needed) => Progress::Unread(needed),
            Judged::Waits(Hold { text, paused, .. }) => Progress::Known(Rollout::Waiting { text, paused }),
            Judged::Is(rollout) => Progress::Known(rollout),
        }
    }

    fn record_for_progress(&self, tracked: &Tracked, needed: &Needed, read: Option<&Value>) {
        let state = &mut *self.state();
        state.facts.keep_only(&state.pools);
        match (needed, tracked) {
            (Needed::Existence(source), Tracked::Removed { target, pools }) => {
                let removal = Removal { removed: target.name.clone(), source: source.clone() };
                for pool in pools.iter().filter_map(|name| state.pools.get(name)) {
                    state.facts.of_mut(pool).exists.insert(removal.clone(), read.is_some());
                }
            }
            (Needed::Generated(name), Tracked::Object(object)) => {
                if let Some(read) = read {
                    state.record_generated(GeneratedConfig::of(object, name), read);
                }
            }
            (Needed::Rendered(name), Tracked::Object(object)) => {
                if let Some(read) = read {
                    state.record_rendered(name, object, read);
                }
            }
            (Needed::Source(name), _) => {
                let Some(found) = read.map(|read| Arc::new(MergedSource::of(read))) else { return };
                for pool in state.pools.values().filter(|pool| pool.sources.contains(name)) {
                    state.facts.of_mut(pool).sources.insert(name.clone(), Arc::clone(&found));
                }
            }
            (Needed::Existence(_) | Needed::Generated(_) | Needed::Rendered(_) | Needed::Maker(_), _) => {}
        }
    }

    fn machines_updated(&self, tracked: &Tracked, change: ChangeKind) -> BTreeMap<String, u32> {
        self.state().machines_updated(tracked, change)
    }

    fn overridden(&self, tracked: &Tracked) -> Overridden {
        match tracked {
            Tracked::Object(object) => self.state().overridden(object),
            Tracked::Removed { .. } => Overridden::new(),
        }
    }

    fn is_stuck(&self, tracked: &Tracked, change: ChangeKind) -> bool {
        matches!(self.state().judged(tracked, change), Judged::Waits(Hold { stuck: true, .. }))
    }

    fn questions(&self, tracked: &Tracked) -> Vec<Question> {
        let state = self.state();
        let mut questions = Vec::new();
        for question in state.concerned(tracked).into_iter().filter(|pool| !pool.paused).map(holdup::question) {
            if !questions.contains(&question) {
                questions.push(question);
            }
        }
        questions
    }

    fn holdup(&self, tracked: &Tracked, question: &Question, found: &[Value]) -> Option<String> {
        let state = self.state();
        let pools = state.concerned(tracked).into_iter().filter(|pool| holdup::question(pool) == *question);
        pools.filter_map(|pool| holdup::cause(&state.pools, pool, question, found)).next()
    }

    fn outline(&self, tracked: &Tracked) -> Tracked {
        match tracked {
            Tracked::Object(object) if !kubelet::is(&TargetRef::of(object)) => {
                Tracked::Object(json!({"metadata": {"labels": object.pointer("/metadata/labels")}}))
            }
            other => other.clone(),
        }
    }

    fn progress_fingerprint(&self, tracked: &Tracked) -> String {
        self.state().concerned(tracked).into_iter().map(Pool::rolling).collect::<Vec<_>>().join("\n")
    }
}

impl KnownPools {
    fn read(&self, object: &Value) -> Pool {
        let mut pool = Pool::read(object);
        pool.layered = self.layered.contains(&pool.name);
        pool
    }

    /// Records what was made of a KubeletConfig, in place of what was made of it before, and of
    /// what no pool lists any more.
    fn record_generated(&mut self, generated: GeneratedConfig, read: &Value) {
        let pools = &self.pools;
        let is_listed = |name: &str| pools.values().any(|pool| pool.sources.contains(name));
        self.generated.retain(|known, _| known.name != generated.name && is_listed(&known.name));
        let part = |pointer: &str| read.pointer(pointer).cloned().unwrap_or_default();
        let metadata = json!({"name": generated.name, "labels": part("/metadata/labels")});
        self.generated.insert(generated, json!({"metadata": metadata, "spec": part("/spec")}));
    }

    /// Records what the rendered configuration `name` has of `object`, and of all that was made of
    /// KubeletConfigs.
    fn record_rendered(&mut self, name: &str, object: &Value, read: &Value) {
        let Some(pool) = self.pools.values().find(|pool| pool.wanted == name) else { return };
        let facts = self.facts.of_mut(pool);
        for object in self.generated.values().chain([object]) {
            facts.missing.insert(content(object), contents::missing(read, object));
        }
        facts.parts = Some(Parts::of(read));
    }

    /// The objects that must be read to know whether `pool` has rendered the object. If it has part
    /// of it with other values, also the other sources, since one of them may override that part.
    /// After an edit as well: parts of the rendered configuration that no source has are left from
    /// before the edit.
    fn unread(&self, pool: &Pool, object: &str, content: &str, change: ChangeKind) -> Vec<Needed> {
        let missing = self.missing(pool, content);
        let rendered = missing.is_none().then(|| Needed::Rendered(pool.wanted.clone()));
        let is_disputed = missing.is_some_and(|missing| missing.as_ref().is_some_and(|missing| !missing.is_empty()));
        let is_known = |source: &str| self.facts.of(pool).is_some_and(|facts| facts.sources.contains_key(source));
        let others = pool.sources.iter().filter(|source| {
            (change == ChangeKind::Edited || is_disputed) && source.as_str() != object && !is_known(source)
        });
        rendered.into_iter().chain(others.cloned().map(Needed::Source)).collect()
    }

    /// The parts of the content with that digest that the rendered configuration of `pool` lacks;
    /// `None` if it was not read for that.
    fn missing(&self, pool: &Pool, content: &str) -> Option<&Option<BTreeSet<String>>> {
        self.facts.of(pool)?.missing.get(content)
    }

    fn holds(&self, pool: &Pool, name: &str, object: &Value, content: &str, change: ChangeKind) -> bool {
        let Some(Some(missing)) = self.missing(pool, content) else { return false };
        if self.overridden_on(pool, name, object, content).len() != missing.len() {
            return false;
        }
        match change {
            ChangeKind::New => true,
            ChangeKind::Edited => {
                let own = Parts::of(object);
                let all = self.others(pool, name).map(|(_, other)| &other.parts).chain([&own]);
                self.facts.of(pool).and_then(|facts| facts.parts.as_ref()) == Some(&Parts::sum(all))
            }
        }
    }

    /// The other sources of `pool` besides `name`, as far as they were read.
    fn others<'a>(&'a self, pool: &'a Pool, name: &str) -> impl Iterator<Item = (&'a str, &'a MergedSource)> {
        let others = pool.sources.iter().filter(move |source| source.as_str() != name);
        let sources = self.facts.of(pool).map(|facts| &facts.sources);
        others.filter_map(move |source| Some((source.as_str(), sources?.get(source)?.as_ref())))
    }

    /// The claims of `object` that `pool` has with other values, each with the source that
    /// overrides it.
    fn overridden_on<'a>(
        &'a self,
        pool: &'a Pool,
        name: &str,
        object: &Value,
        content: &str,
    ) -> BTreeMap<&'a str, &'a str> {
        let missing = self.missing(pool, content).and_then(Option::as_ref).into_iter().flatten();
        let place = MergePlace::of(object);
        let by = |claim: &str| self.others(pool, name).find(|(_, other)| other.overrides(claim, &place));
        missing.filter_map(|claim| Some((claim.as_str(), by(claim)?.0))).collect()
    }

    /// The parts of `object` that others override, by pool and part.
    fn overridden(&self, object: &Value) -> Overridden {
        let mut found = Overridden::new();
        let mut add = |pool: &Pool, name: &str, object: &Value| {
            for (claim, by) in self.overridden_on(pool, name, object, &content(object)) {
                found.insert(part(&pool.name, claim), by.to_owned());
            }
        };
        if !kubelet::is(&TargetRef::of(object)) {
            self.selecting(object).into_iter().for_each(|pool| add(pool, name(object), object));
            return found;
        }
        let mut by_kubelets = Vec::new();
        for (pool, made_for) in kubelet::reached(&self.pools, object) {
            let generated = kubelet::generated(object, made_for);
            if let Some(made) = self.generated.get(&GeneratedConfig::of(object, &generated)) {
                add(pool, &generated, made);
            }
            by_kubelets.extend(
                kubelet::later(object, pool, made_for)
                    .map(|by| (&pool.name, format!("another KubeletConfig, rendered as {by}"))),
            );
        }
        found.extend(by_kubelets.into_iter().map(|(pool, by)| (part(pool, kubelet::FILE), by)));
        found
    }

    /// The pools whose progress tells how far `tracked` is: those that select it, or that had it.
    fn concerned(&self, tracked: &Tracked) -> Vec<&Pool> {
        match tracked {
            Tracked::Object(object) => self.selecting(object),
            Tracked::Removed { pools, .. } => pools.iter().filter_map(|name| self.pools.get(name)).collect(),
        }
    }

    fn selecting(&self, object: &Value) -> Vec<&Pool> {
        if kubelet::is(&TargetRef::of(object)) {
            return kubelet::reached(&self.pools, object).into_iter().map(|(pool, _)| pool).collect();
        }
        let labels = labels(object);
        self.pools.values().filter(|pool| pool.selects(&labels)).collect()
    }
}

fn is_machine_config(target: &TargetRef) -> bool {
    target.kind == MACHINE_CONFIG.kind && target.api_version.starts_with(MACHINE_CONFIG.group)
}

/// Identifies the content rather than the object: after an edit it is read again.
fn content(object: &Value) -> String {
    digest::sha256(&object.get("spec"))
}

#[cfg(test)]
mod tests;
