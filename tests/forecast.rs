//! Forecasts beside an independent account of the same rules: what a plan says that machines will
//! do, and what rendering before and after it makes the daemons do, on clusters made at random.
//! Each sentence of a forecast is said where it is so, and nowhere else.
//!
//! The account is that of mco-simulator: `render` merges as the controllers do, and `policy`
//! decides as the daemons do. It shares no code with `crates/core/src/rollout`.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::BTreeMap;

use advisor_core::plan::items::Effect;
use advisor_core::plan::remedy::Remedy;
use advisor_core::rollout::{Forecast, Forecasting, MachineConfigPools, PlannedChange, Rollouts};
use mco_simulator::api::{MachineConfig, MachineConfigSpec, MachineConfiguration};
use mco_simulator::policy::{self, Disruption};
use mco_simulator::release::MAIN;
use mco_simulator::render::render;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

const OURS: &str = "90-ours";
const ROLE: &str = "machineconfiguration.openshift.io/role";

/// A cluster: its pools, the MachineConfigs of others, and the policies.
#[derive(Debug, Clone)]
struct Cluster {
    pools: Vec<Pool>,
    others: Vec<Value>,
    policies: Value,
}

/// A pool and what may keep it from rolling out.
#[derive(Debug, Clone)]
struct Pool {
    name: &'static str,
    machines: u32,
    paused: bool,
    max_unavailable: Option<Value>,
    degraded: bool,
    layered: bool,
}

impl Pool {
    /// The roles whose MachineConfigs it takes in.
    fn roles(&self) -> &'static [&'static str] {
        match self.name {
            "infra" => &["worker", "infra"],
            "gpu" => &["gpu"],
            _ => &["worker"],
        }
    }

    fn takes_in_ours(&self) -> bool {
        self.roles().contains(&"worker")
    }
}

fn pool(name: &'static str, machines: std::ops::Range<u32>) -> impl Strategy<Value = Pool> {
    let limit = prop::option::of(select(vec![json!(1), json!(2), json!("50%"), json!("half"), json!(-1)]));
    (machines, any::<bool>(), limit, any::<bool>(), any::<bool>()).prop_map(
        move |(machines, paused, max_unavailable, degraded, layered)| Pool {
            name,
            machines,
            paused,
            max_unavailable,
            degraded,
            layered,
        },
    )
}

fn spec() -> impl Strategy<Value = Value> {
    let arguments = prop::collection::vec(select(vec!["psi=1", "quiet", "a=1", "a=2"]), 0..3);
    let contents = (select(vec!["data:,1", "data:,2"]), prop::option::of(select(vec![0o644, 0o755])));
    let files = prop::collection::btree_map(select(vec!["/etc/a", "/etc/b/c"]), contents, 0..3);
    let unit =
        (any::<Option<bool>>(), prop::option::of(select(vec!["[A]", "[B]"])), prop::option::of(select(vec!["x", "y"])));
    (arguments, files, prop::option::of(unit)).prop_map(|(arguments, files, unit)| {
        let file = |(path, (source, mode)): (&&str, &(&str, Option<i32>))| {
            let mut file = json!({"path": path, "contents": {"source": source}});
            if let Some(mode) = mode {
                file["mode"] = json!(mode);
            }
            file
        };
        let files: Vec<_> = files.iter().map(file).collect();
        let units: Vec<_> = unit
            .into_iter()
            .map(|(enabled, contents, dropin)| {
                let mut unit = json!({"name": "u.service"});
                if let Some(enabled) = enabled {
                    unit["enabled"] = json!(enabled);
                }
                if let Some(contents) = contents {
                    unit["contents"] = json!(contents);
                }
                if let Some(dropin) = dropin {
                    unit["dropins"] = json!([{"name": "10-d.conf", "contents": dropin}]);
                }
                unit
            })
            .collect();
        let config =
            json!({"ignition": {"version": "3.5.0"}, "storage": {"files": files}, "systemd": {"units": units}});
        json!({"kernelArguments": arguments, "config": config})
    })
}

fn object(name: &str, role: &str, spec: Value) -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: role}}, "spec": spec})
}

fn cluster() -> impl Strategy<Value = Cluster> {
    let policy = |of: &'static str, key: &'static str| {
        prop::option::of(select(vec!["None", "Drain", "Reboot", "Restart"]))
            .prop_map(move |action| action.map(|action| json!({key: of, "actions": [{"type": action}]})))
    };
    let policies =
        (policy("/etc/a", "path"), policy("/etc/b", "path"), policy("u.service", "name")).prop_map(|(a, b, unit)| {
            let files: Vec<_> = a.into_iter().chain(b).collect();
            json!({"files": files, "units": unit.into_iter().collect::<Vec<_>>()})
        });
    let name = select(vec!["50-before", "85-near", "95-after"]);
    let others = prop::collection::btree_map(name, (select(vec!["worker", "infra"]), spec()), 0..3);
    let pools = (pool("worker", 2..4), prop::option::of(pool("infra", 0..3)), prop::option::of(pool("gpu", 0..2)));
    (others, policies, pools).prop_map(|(others, policies, (worker, infra, gpu))| Cluster {
        pools: std::iter::once(worker).chain(infra).chain(gpu).collect(),
        others: std::iter::once(object("00-worker", "worker", json!({"kernelArguments": ["base"]})))
            .chain(std::iter::once(object("00-gpu", "gpu", json!({}))))
            .chain(others.into_iter().map(|(name, (role, spec))| object(name, role, spec)))
            .collect(),
        policies,
    })
}

impl Cluster {
    /// What a pool renders of these, and from which.
    fn rendered(&self, pool: &Pool, all: &[Value]) -> (MachineConfigSpec, Vec<String>) {
        let selected: Vec<MachineConfig> = all
            .iter()
            .filter(|config| pool.roles().iter().any(|role| config["metadata"]["labels"][ROLE] == *role))
            .map(|config| serde_json::from_value(config.clone()).unwrap())
            .collect();
        let spec = render(pool.name, &selected.iter().collect::<Vec<_>>(), MAIN).unwrap().spec;
        (spec, selected.into_iter().filter_map(|config| config.metadata.name).collect())
    }

    fn with(&self, ours: Option<&Value>) -> Vec<Value> {
        self.others.iter().cloned().chain(ours.cloned()).collect()
    }

    fn configuration(&self) -> Value {
        let status = json!({"observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": policy::merged(&self.policies)}});
        json!({"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
            "metadata": {"name": "cluster", "generation": 1}, "spec": {}, "status": status})
    }

    /// What the machines of the pool really do.
    fn outcome(&self, pool: &Pool, live: Option<&Value>, result: Option<&Value>) -> Disruption {
        let configuration: MachineConfiguration = serde_json::from_value(self.configuration()).unwrap();
        let (before, after) = (self.rendered(pool, &self.with(live)).0, self.rendered(pool, &self.with(result)).0);
        policy::disruption(&before, &after, Some(&configuration), true).unwrap()
    }

    /// What the plan says of it.
    fn forecast(&self, live: Option<&Value>, result: Option<&Value>) -> Result<Effect, Remedy> {
        let rollouts = MachineConfigPools::default();
        let name_of = |config: &Value| config["metadata"]["name"].as_str().unwrap().to_owned();
        let mut known: BTreeMap<String, Value> =
            self.with(live).into_iter().map(|config| (name_of(&config), config)).collect();
        let mut layers = Vec::new();
        let mut pools = Vec::new();
        for pool in &self.pools {
            let (spec, sources) = self.rendered(pool, &self.with(live));
            let name = format!("rendered-{}", pool.name);
            known.insert(name.clone(), json!({"metadata": {"name": name}, "spec": spec}));
            let sources: Vec<_> = sources.iter().map(|name| json!({"name": name})).collect();
            let selector = json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": pool.roles()}]});
            let degraded = if pool.degraded { "True" } else { "False" };
            pools.push(json!({
                "metadata": {"name": pool.name},
                "spec": {"machineConfigSelector": selector, "configuration": {"name": name, "source": sources},
                    "paused": pool.paused, "maxUnavailable": pool.max_unavailable},
                "status": {"machineCount": pool.machines,
                    "conditions": [{"type": "Degraded", "status": degraded, "message": "a machine failed"}]},
            }));
            if pool.layered {
                layers.push(json!({"spec": {"machineConfigPool": {"name": pool.name}}}));
            }
        }
        rollouts.pools_listed(&pools);
        let planned = PlannedChange { live, result, takes_back: result.is_none(), leaving: &[] };
        for _ in 0..10 {
            match rollouts.forecast(planned) {
                Forecast::Known(known) => return known,
                Forecast::Unlisted(kind) if kind.kind == "MachineConfiguration" => {
                    rollouts.kind_listed(kind, &[self.configuration()]);
                }
                Forecast::Unlisted(kind) => rollouts.kind_listed(kind, &layers),
                Forecast::Unread(unread) => {
                    for needed in unread {
                        rollouts.record_for_forecast(planned, &needed, known.get(needed.name()));
                    }
                }
            }
        }
        panic!("it is asked for again and again");
    }
}

/// What is forecast of a pool.
fn forecast_of(effect: &Effect, pool: &str) -> Disruption {
    let reboots = effect.pools.contains_key(pool);
    Disruption { drains: reboots || effect.drained.contains_key(pool), reboots }
}

/// What a list of the Ignition configuration has under that name.
fn entry<'a>(spec: &'a Value, list: &str, key: &str, name: &str) -> Option<&'a Value> {
    let entries = spec.pointer(&format!("/config/{list}")).and_then(Value::as_array)?;
    entries.iter().find(|entry| entry[key] == name)
}

/// The members of a file, by name: what rendering adds of itself left out.
fn file(spec: &Value, path: &str) -> Option<BTreeMap<String, Value>> {
    let file = entry(spec, "storage/files", "path", path)?;
    let source = [("source".to_owned(), file["contents"]["source"].clone())];
    let mode = file.get("mode").map(|mode| ("mode".to_owned(), mode.clone()));
    Some(source.into_iter().chain(mode).collect())
}

/// Whether all that `wanted` says is so in `there`.
fn within(wanted: Option<&BTreeMap<String, Value>>, there: Option<&BTreeMap<String, Value>>) -> bool {
    let is_there = |(member, value): (&String, &Value)| there.is_some_and(|there| there.get(member) == Some(value));
    wanted.is_some_and(|wanted| wanted.iter().all(is_there))
}

fn arguments(spec: &Value) -> Vec<&str> {
    spec["kernelArguments"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The entries of `all` beyond those of `some`.
fn beyond<'a>(all: &[&'a str], some: &[&str]) -> Vec<&'a str> {
    let mut some = some.to_vec();
    let mut rest = Vec::new();
    for entry in all {
        match some.iter().position(|other| other == entry) {
            Some(at) => drop(some.remove(at)),
            None => rest.push(*entry),
        }
    }
    rest
}

/// A change of one object, as one pool sees it.
struct Story<'a> {
    cluster: &'a Cluster,
    pool: &'a Pool,
    before: Value,
    after: Value,
    had: Value,
    wants: Value,
    happens: Disruption,
    same: bool,
    goes: bool,
}

impl<'a> Story<'a> {
    fn of(cluster: &'a Cluster, pool: &'a Pool, live: Option<&Value>, result: Option<&Value>) -> Self {
        let rendered = |ours| serde_json::to_value(cluster.rendered(pool, &cluster.with(ours)).0).unwrap();
        let spec = |object: Option<&Value>| object.map(|object| object["spec"].clone()).unwrap_or_default();
        let (had, wants) = (spec(live), spec(result));
        let names = |spec: &Value, list: &str, key: &str| -> Vec<String> {
            let entries = spec.pointer(&format!("/config/{list}")).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(|entry| entry[key].as_str().map(str::to_owned)).collect()
        };
        let goes = [("storage/files", "path"), ("systemd/units", "name")]
            .iter()
            .any(|(list, key)| names(&had, list, key).iter().any(|name| !names(&wants, list, key).contains(name)));
        let without_policies = Cluster { policies: json!({}), ..cluster.clone() };
        let mut happens = cluster.outcome(pool, live, result);
        // Without policies every difference reboots.
        let same = without_policies.outcome(pool, live, result) == Disruption::default();
        if pool.layered && !same {
            happens = policy::REBOOT; // Up to release-4.19 each change builds another image: `newMachineConfigDiffFromLayered`.
        }
        Self { cluster, pool, before: rendered(live), after: rendered(result), had, wants, happens, same, goes }
    }

    /// Other MachineConfigs of the pool.
    fn others(&self) -> impl Iterator<Item = &Value> {
        let roles = self.pool.roles();
        self.cluster
            .others
            .iter()
            .filter(move |config| roles.iter().any(|role| config["metadata"]["labels"][ROLE] == *role))
    }

    /// Each sentence about the pool, and whether it is so.
    fn sentences(&self) -> Vec<(String, bool)> {
        let Pool { name, machines, paused, max_unavailable, degraded, layered } = self.pool;
        let takes_it = self.pool.takes_in_ours();
        let changes = takes_it && !self.same;
        let is_valid = !max_unavailable.as_ref().is_some_and(|limit| *limit == "half" || *limit == -1);
        let mut sentences = vec![
            (
                format!("The machines of pool {name} have all of it already: none reboots."),
                takes_it && self.same && !self.goes,
            ),
            (
                format!("The machines of pool {name} keep all of it, because other MachineConfigs set the same"),
                takes_it && self.same && self.goes,
            ),
            (format!("Pool {name} has no machines now"), changes && *machines == 0),
            (format!("{name} (machines: {machines})"), !takes_it && *machines > 0),
            (format!("MachineConfigPool {name} is paused"), changes && *paused),
            (format!("The maxUnavailable of MachineConfigPool {name}"), changes && !is_valid),
            (format!("MachineConfigPool {name} is layered"), changes && *layered),
            (format!("MachineConfigPool {name} is degraded already: a machine failed."), changes && *degraded),
            (
                format!("Neither drains nor reboots the machines of pool {name}."),
                changes && *machines > 0 && self.happens == Disruption::default(),
            ),
            (
                format!("Drains the {machines} machines of pool {name}"),
                changes && *machines > 1 && self.happens == Disruption { drains: true, reboots: false },
            ),
            (
                format!("Drains the only machine of pool {name}"),
                changes && *machines == 1 && self.happens == Disruption { drains: true, reboots: false },
            ),
            (format!("May drain the {machines} machines of pool {name}"), false),
        ];
        for path in ["/etc/a", "/etc/b/c"] {
            let [wanted, had, present, becomes] =
                [&self.wants, &self.had, &self.before, &self.after].map(|spec| file(spec, path));
            let is_new = takes_it && wanted.is_some() && wanted != had;
            let changed = present != becomes;
            let is_overridden = is_new && !within(wanted.as_ref(), becomes.as_ref());
            let theirs = self.others().any(|other| file(&other["spec"], path).is_some());
            let replaces = is_new
                && changed
                && !is_overridden
                && theirs
                && present.is_some()
                && !within(had.as_ref(), present.as_ref());
            let alone = format!("On pool {name}, MachineConfig |overrides {path}, which stays as it is.");
            let among = format!("On pool {name}, |files are overridden and stay as they are|{path} (by");
            sentences.push((format!("{alone}||{among}"), is_overridden && !changed));
            let in_part = format!("On pool {name}, other MachineConfigs override parts of files: |{path} (by");
            sentences.push((in_part, is_overridden && changed));
            let alone = format!("On pool {name}, it replaces {path} of MachineConfig");
            let among = format!("On pool {name}, it replaces |files of other MachineConfigs|{path} (of");
            sentences.push((format!("{alone}||{among}"), replaces));
        }
        let [wanted, had, becomes] =
            [&self.wants, &self.had, &self.after].map(|spec| entry(spec, "systemd/units", "name", "u.service"));
        for member in ["enabled", "contents", "dropins"] {
            let wants = wanted.and_then(|unit| unit.get(member));
            let stays =
                takes_it && wanted != had && wants.is_some() && becomes.and_then(|unit| unit.get(member)) != wants;
            let told = if member == "dropins" { "10-d.conf" } else { member };
            let lead =
                format!("On pool {name}, other MachineConfigs override parts of units, which stay as they are: ");
            sentences.push((format!("{lead}|u.service: {told} (by"), stays));
        }
        sentences.push((
            format!(
                "in the rendered configuration of pool {name}, although no other MachineConfig of the pool sets it now"
            ),
            false,
        ));
        let new = beyond(&arguments(&self.wants), &arguments(&self.had));
        let reboots = takes_it && self.happens.reboots;
        for ours in ["psi=1", "quiet", "a=1", "a=2"] {
            let theirs = self.others().any(|other| arguments(&other["spec"]).contains(&ours));
            let twice = reboots && new.contains(&ours) && theirs;
            sentences.push((format!("Kernel argument {ours} is already provided by"), twice));
        }
        for (ours, theirs) in [("a=1", "a=2"), ("a=2", "a=1")] {
            let set = self.others().any(|other| arguments(&other["spec"]).contains(&theirs));
            let beside = reboots && new.contains(&ours) && set;
            let told = format!("Kernel argument {theirs} is set by");
            sentences.push((format!("{told}|together with {ours}, and"), beside));
        }
        sentences
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// Machines reboot, are drained, or neither: as it is said, on each pool; and each sentence is
    /// said where it is so, and nowhere else.
    #[test]
    fn what_is_forecast_is_what_happens_and_each_sentence_is_true(
        cluster in cluster(),
        live in prop::option::of(spec()),
        result in prop::option::of(spec()),
    ) {
        prop_assume!(live != result);
        let [live, result] = [live, result].map(|spec| spec.map(|spec| object(OURS, "worker", spec)));
        let effect = cluster.forecast(live.as_ref(), result.as_ref()).unwrap();
        let notes = effect.notes.join(" ");
        let mut expected: BTreeMap<String, bool> = BTreeMap::new();
        for pool in &cluster.pools {
            let story = Story::of(&cluster, pool, live.as_ref(), result.as_ref());
            let happens = if pool.machines == 0 { Disruption::default() } else { story.happens };
            prop_assert_eq!(forecast_of(&effect, pool.name), happens, "pool {}: {:?}", pool.name, effect);
            for (sentence, holds) in story.sentences() {
                *expected.entry(sentence).or_default() |= holds;
            }
        }
        for (sentence, holds) in expected {
            let says = |note: &String| sentence.split("||").any(|one| one.split('|').all(|part| note.contains(part)));
            let said = effect.notes.iter().any(says);
            // Of what is taken back nothing is said of pools that never got it.
            let is_beside = sentence.contains(" (machines: ") && result.is_none();
            prop_assert_eq!(said, holds && !is_beside, "{:?} in {:?}", sentence, notes);
        }
    }
}
