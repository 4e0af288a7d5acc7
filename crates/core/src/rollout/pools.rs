//! MachineConfigs take effect through MachineConfigPools, machine by machine: what is remembered of these.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use profile_sdk::Kind;
use serde_json::{Value, json};

use self::judge::{Hold, Judged};
use super::contents::{self, Parts};
use super::disruption::Policies;
use super::foresight::{self, MergePlace, MergedSource, Studies};
use super::holdup;
use super::kubelet;
use super::pool::{Pool, labels};
use super::{
    ChangeKind, MACHINE_CONFIG, MACHINE_CONFIGURATION, MACHINE_OS_CONFIG, Outlook, POOL, PlannedChange, Progress,
    Question, Rollouts,
};
use crate::api::TargetRef;
use crate::plan::items::health::Rollout;
use crate::plan::items::{Overridden, part};
use object::digest;

/// The pools of the cluster, and what was learned of their rendered configurations.
#[derive(Default)]
pub struct MachineConfigPools {
    state: Mutex<KnownPools>,
}

/// A MachineConfig that was made of a KubeletConfig: its name, and uid and generation of that.
type Made = (String, String, i64);

#[derive(Default)]
struct KnownPools {
    pools: BTreeMap<String, Pool>,
    /// The pools that MachineOSConfigs name.
    layered: BTreeSet<String>,
    /// Whether these were listed.
    knows_layers: bool,
    /// The node disruption policies, once these were listed.
    policies: Option<Policies>,
    /// What of an object of this content a rendered configuration has not ([`contents::missing`]). Rendered ones never change.
    held: BTreeMap<(String, String), Option<BTreeSet<String>>>,
    /// What a rendered configuration consists of.
    rendered: BTreeMap<String, Parts>,
    /// What its sources brought when they were read after it, by its name and theirs.
    sources: BTreeMap<(String, String), Arc<MergedSource>>,
    /// The MachineConfigs that were made of KubeletConfigs.
    generated: BTreeMap<Made, Value>,
    /// Of which KubeletConfig that is there was made what pools list, by the rendered configuration that lists it and its name.
    makers: BTreeMap<(String, String), Option<String>>,
    /// Whether what was made of KubeletConfigs existed after one was removed, by the rendered configuration that lists it and the names
    /// of both.
    exists: BTreeMap<(String, (String, String)), bool>,
    /// What was read for plans.
    studies: Studies,
}

impl MachineConfigPools {
    fn state(&self) -> MutexGuard<'_, KnownPools> {
        self.state.lock()
    }
}

impl Rollouts for MachineConfigPools {
    fn watched(&self) -> Kind {
        POOL
    }

    fn learned(&self) -> Kind {
        MACHINE_CONFIG
    }

    fn concern(&self, target: &TargetRef) -> bool {
        is_machine_config(target) || kubelet::is(target)
    }

    fn follow(&self, object: &Value) -> Option<Value> {
        let target = TargetRef::of(object);
        if kubelet::is(&target) {
            return Some(kubelet::followed(object));
        }
        let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
        is_machine_config(&target).then(|| {
            json!({
                "metadata": {"name": part("/metadata/name"), "labels": part("/metadata/labels")},
                "spec": part("/spec"),
            })
        })
    }

    fn saw(&self, object: &Value) {
        let state = &mut *self.state();
        let pool = state.read(object);
        state.pools.insert(pool.name.clone(), pool);
    }

    fn lost(&self, name: &str) {
        self.state().pools.remove(name);
    }

    fn saw_all(&self, objects: &[Value]) {
        let state = &mut *self.state();
        let pools = objects.iter().map(|object| state.read(object));
        state.pools = pools.map(|pool| (pool.name.clone(), pool)).collect();
    }

    fn saw_listed(&self, kind: Kind, objects: &[Value]) {
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

    fn foresee(&self, target: &TargetRef) -> bool {
        self.concern(target)
    }

    fn outlook(&self, planned: PlannedChange<'_>) -> Outlook {
        let KnownPools { pools, makers, studies, policies, knows_layers, .. } = &*self.state();
        if !knows_layers {
            return Outlook::Unlisted(MACHINE_OS_CONFIG);
        }
        match planned.result.or(planned.live) {
            Some(object) if kubelet::is(&TargetRef::of(object)) => {
                kubelet::outlook(pools, makers, policies.as_ref(), planned)
            }
            _ => foresight::outlook(pools, studies, policies.as_ref(), planned),
        }
    }

    fn study(&self, planned: PlannedChange<'_>, name: &str, read: Option<&Value>) {
        let state = &mut *self.state();
        let object = planned.result.or(planned.live);
        if kubelet::is_generated(name) && object.is_some_and(|object| kubelet::is(&TargetRef::of(object))) {
            let wanted: BTreeSet<_> = state.pools.values().map(|pool| &pool.wanted).collect();
            state.makers.retain(|(rendered, _), _| wanted.contains(rendered));
            let listing = state.pools.values().filter(|pool| pool.sources.contains(name));
            let maker = read.and_then(kubelet::maker);
            state.makers.extend(listing.map(|pool| ((pool.wanted.clone(), name.to_owned()), maker.clone())));
            return;
        }
        state.studies.learn(&state.pools, planned, name, read);
    }

    fn standing(&self, object: &Value, change: ChangeKind) -> Progress {
        match self.state().judged(object, change) {
            Judged::Unread(names) => Progress::Unread(names),
            Judged::Waits(Hold { text, paused, .. }) => Progress::Known(Rollout::Waiting { text, paused }),
            Judged::Is(rollout) => Progress::Known(rollout),
        }
    }

    fn learn(&self, object: &Value, name: &str, read: Option<&Value>) {
        let mut state = self.state();
        // Only what pools point to now is worth remembering.
        let wanted: BTreeSet<_> = state.pools.values().map(|pool| pool.wanted.clone()).collect();
        state.held.retain(|(rendered, _), _| wanted.contains(rendered));
        state.rendered.retain(|rendered, _| wanted.contains(rendered));
        state.sources.retain(|(rendered, _), _| wanted.contains(rendered));
        state.exists.retain(|(rendered, _), _| wanted.contains(rendered));
        let Some(read) = read.filter(|_| object.get("pools").is_none()) else {
            let found = state.concerned(object).into_iter().map(|pool| (pool.wanted.clone(), of_removed(object, name)));
            let found: Vec<_> = found.map(|key| (key, read.is_some())).collect();
            state.exists.extend(found);
            return;
        };
        if kubelet::is(&TargetRef::of(object))
            && state.pools.keys().any(|pool| kubelet::generated(object, pool) == name)
        {
            let of_this = generation_of(object, name);
            if !state.generated.contains_key(&of_this) {
                let listed = |known: &str| state.pools.values().any(|pool| pool.sources.contains(known));
                let gone: Vec<_> =
                    state.generated.keys().filter(|(known, ..)| known == name || !listed(known)).cloned().collect();
                gone.iter().for_each(|key| drop(state.generated.remove(key)));
                let part = |pointer: &str| read.pointer(pointer).cloned().unwrap_or_default();
                let metadata = json!({"name": name, "labels": part("/metadata/labels")});
                state.generated.insert(of_this, json!({"metadata": metadata, "spec": part("/spec")}));
                return;
            }
        }
        if wanted.contains(name) {
            let made: Vec<_> = state.generated.values().cloned().collect();
            for object in made.iter().chain([object]) {
                state.held.insert((name.to_owned(), content(object)), contents::missing(read, object));
            }
            state.rendered.insert(name.to_owned(), Parts::of(read));
        }
        // The same may be among what another pool lists: what was read must be known, or it is asked for again and again.
        let pools = state.pools.values().filter(|pool| pool.sources.contains(name));
        let keys: Vec<_> = pools.map(|pool| (pool.wanted.clone(), name.to_owned())).collect();
        let parts = Arc::new(MergedSource::of(read));
        state.sources.extend(keys.into_iter().map(|key| (key, Arc::clone(&parts))));
    }

    fn updated(&self, object: &Value, change: ChangeKind) -> BTreeMap<String, u32> {
        self.state().updated(object, change)
    }

    fn overridden(&self, object: &Value) -> Overridden {
        self.state().overridden(object)
    }

    fn is_stuck(&self, object: &Value, change: ChangeKind) -> bool {
        matches!(self.state().judged(object, change), Judged::Waits(Hold { stuck: true, .. }))
    }

    fn read_anew(&self) {
        let state = &mut *self.state();
        state.studies.read_anew();
        state.knows_layers = false;
        state.policies = None;
    }

    fn questions(&self, object: &Value) -> Vec<Question> {
        let state = self.state();
        let mut questions = Vec::new();
        for question in state.selecting(object).into_iter().filter(|pool| !pool.paused).map(holdup::question) {
            if !questions.contains(&question) {
                questions.push(question);
            }
        }
        questions
    }

    fn holdup(&self, object: &Value, question: &Question, found: &[Value]) -> Option<String> {
        let state = self.state();
        let pools = state.selecting(object).into_iter().filter(|pool| holdup::question(pool) == *question);
        pools.filter_map(|pool| holdup::told(&state.pools, pool, question, found)).next()
    }

    fn outline(&self, object: &Value) -> Value {
        if kubelet::is(&TargetRef::of(object)) {
            return object.clone();
        }
        // What is gone has no labels any more: the pools that had it are named.
        match object.get("pools") {
            Some(pools) => json!({"pools": pools}),
            None => json!({"metadata": {"labels": object.pointer("/metadata/labels")}}),
        }
    }

    fn fingerprint(&self, object: &Value, rolling: bool) -> String {
        let state = self.state();
        let lines: Vec<_> = if rolling {
            state.concerned(object).into_iter().map(Pool::rolling).collect()
        } else {
            // Of all: which of them have the object now, only the object tells.
            state.pools.values().map(Pool::resting).collect()
        };
        lines.join("\n")
    }
}

impl KnownPools {
    fn read(&self, object: &Value) -> Pool {
        let mut pool = Pool::read(object);
        pool.layered = self.layered.contains(&pool.name);
        pool
    }

    /// What must be read to know whether `pool` has rendered the object. Where it has some of it otherwise, also the other sources: one of
    /// them may override that. And after an edit: what the rendered configuration has beyond them is left from before the edit.
    fn unread(&self, pool: &Pool, object: &str, content: &str, change: ChangeKind) -> Vec<String> {
        let held = self.held.get(&(pool.wanted.clone(), content.to_owned()));
        let rendered = held.is_none().then(|| pool.wanted.clone());
        let is_disputed = held.is_some_and(|held| held.as_ref().is_some_and(|missing| !missing.is_empty()));
        let others = pool.sources.iter().filter(|source| {
            let known = self.sources.contains_key(&(pool.wanted.clone(), (*source).clone()));
            (change == ChangeKind::Edited || is_disputed) && source.as_str() != object && !known
        });
        rendered.into_iter().chain(others.cloned()).collect()
    }

    fn holds(&self, pool: &Pool, name: &str, object: &Value, content: &str, change: ChangeKind) -> bool {
        let Some(Some(missing)) = self.held.get(&(pool.wanted.clone(), content.to_owned())) else {
            return false;
        };
        if self.overridden_on(pool, name, object, content).len() != missing.len() {
            return false;
        }
        match change {
            ChangeKind::New | ChangeKind::Removed => true,
            ChangeKind::Edited => {
                let own = Parts::of(object);
                let all = self.others(pool, name).map(|(_, other)| &other.parts).chain([&own]);
                self.rendered.get(&pool.wanted) == Some(&Parts::sum(all))
            }
        }
    }

    /// What `pool` was rendered from beside the source of that name, as far as it was read.
    fn others<'a>(&'a self, pool: &'a Pool, name: &str) -> impl Iterator<Item = (&'a str, &'a MergedSource)> {
        let others = pool.sources.iter().filter(move |source| source.as_str() != name);
        others.filter_map(|source| {
            Some((source.as_str(), self.sources.get(&(pool.wanted.clone(), source.clone()))?.as_ref()))
        })
    }

    /// The claims of `object` that `pool` has otherwise, because of the source beside each.
    fn overridden_on<'a>(
        &'a self,
        pool: &'a Pool,
        name: &str,
        object: &Value,
        content: &str,
    ) -> BTreeMap<&'a str, &'a str> {
        let held = self.held.get(&(pool.wanted.clone(), content.to_owned()));
        let missing = held.and_then(Option::as_ref).into_iter().flatten();
        let place = MergePlace::of(object);
        let by = |claim: &str| self.others(pool, name).find(|(_, other)| other.overrides(claim, &place));
        missing.filter_map(|claim| Some((claim.as_str(), by(claim)?.0))).collect()
    }

    /// What others override of `object`, by pool and part.
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
            if let Some(made) = self.generated.get(&generation_of(object, &generated)) {
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

    /// The pools whose progress tells how far `object` is: those that select it, or that had it, as it is itself no more.
    fn concerned(&self, object: &Value) -> Vec<&Pool> {
        match object.get("pools").and_then(Value::as_array) {
            Some(names) => names.iter().filter_map(|name| self.pools.get(name.as_str()?)).collect(),
            None => self.selecting(object),
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

/// A source of that name, as far as the removal of `object` is concerned.
fn of_removed(object: &Value, source: &str) -> (String, String) {
    (name(object).to_owned(), source.to_owned())
}

fn is_machine_config(target: &TargetRef) -> bool {
    target.kind == MACHINE_CONFIG.kind && target.api_version.starts_with(MACHINE_CONFIG.group)
}

/// What was made of `object` as it is now, under that name: another object of the same name begins anew.
fn generation_of(object: &Value, name: &str) -> Made {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    (name.to_owned(), part("/metadata/uid").to_string(), part("/metadata/generation").as_i64().unwrap_or_default())
}

/// Identifies the content that is looked for, not the object: an edit asks anew.
fn content(object: &Value) -> String {
    digest::sha256(&object.get("spec"))
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
