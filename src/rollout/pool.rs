//! One MachineConfigPool, as far as rollouts depend on it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::kubelet;

/// The most machines that a pool is taken to have, twenty times what Kubernetes supports in a cluster: whatever pools say, their machines
/// can be added up.
const MACHINES: u32 = 100_000;

/// What is kept of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pool {
    pub(super) name: String,
    labels: BTreeMap<String, String>,
    selector: Option<Selector>,
    machines_selector: Option<Selector>,
    pub(super) paused: bool,
    pub(super) generation: i64,
    pub(super) observed_generation: i64,
    /// The rendered configuration that the machines should have, and the objects it was made of.
    pub(super) wanted: String,
    pub(super) sources: BTreeSet<String>,
    /// The rendered configuration that all machines have.
    pub(super) present: String,
    pub(super) machines: u32,
    pub(super) updated: u32,
    pub(super) ready: u32,
    pub(super) degraded: u32,
    pub(super) unavailable: u32,
    conditions: BTreeMap<String, (bool, String)>,
}

impl Pool {
    /// Reads a MachineConfigPool. What is absent is empty or zero, as in a pool that was just made.
    pub(super) fn read(object: &Value) -> Self {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
        let count = |path: &str| u32::try_from(number(path)).unwrap_or_default().min(MACHINES);
        let list = |path: &str| object.pointer(path).and_then(Value::as_array).into_iter().flatten();
        let member = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("/metadata/name"),
            labels: labels(object),
            selector: selector(object, "/spec/machineConfigSelector"),
            machines_selector: selector(object, "/spec/nodeSelector"),
            paused: object.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or_default(),
            generation: number("/metadata/generation"),
            observed_generation: number("/status/observedGeneration"),
            wanted: text("/spec/configuration/name"),
            sources: list("/spec/configuration/source").map(|source| member(source, "name")).collect(),
            present: text("/status/configuration/name"),
            machines: count("/status/machineCount"),
            updated: count("/status/updatedMachineCount"),
            ready: count("/status/readyMachineCount"),
            degraded: count("/status/degradedMachineCount"),
            unavailable: count("/status/unavailableMachineCount"),
            conditions: list("/status/conditions")
                .map(|found| (member(found, "type"), (member(found, "status") == "True", member(found, "message"))))
                .collect(),
        }
    }

    /// Whether the pool renders objects with these labels.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether `object`, by its own selector at `path`, is meant for this pool.
    pub(super) fn is_selected_by(&self, object: &Value, path: &str) -> bool {
        selector(object, path).is_some_and(|selector| selector.matches(&self.labels))
    }

    /// Whether the Node `machine` is one of the pool's, by its labels.
    pub(super) fn has(&self, machine: &Value) -> bool {
        self.machines_selector.as_ref().is_some_and(|selector| selector.matches(&labels(machine)))
    }

    /// The message of the condition, if it is True.
    pub(super) fn holds(&self, condition: &str) -> Option<&str> {
        self.conditions.get(condition).filter(|(holds, _)| *holds).map(|(_, message)| message.as_str())
    }

    /// What a plan depends on.
    pub(super) fn resting(&self) -> String {
        let Self { name, labels, paused, wanted, sources, machines, .. } = self;
        let kubelets: Vec<_> = sources.iter().filter(|source| kubelet::is_generated(source)).collect();
        format!("{name} {labels:?} {paused} {wanted} {kubelets:?} {machines} {}", self.holds("Degraded").is_some())
    }

    /// What progress depends on.
    pub(super) fn rolling(&self) -> String {
        let Self { generation, observed_generation, present, updated, ready, unavailable, .. } = self;
        format!(
            "{} {generation} {observed_generation} {present} {updated} {ready} {unavailable} {:?}",
            self.resting(),
            self.conditions
        )
    }
}

fn selector(object: &Value, path: &str) -> Option<Selector> {
    let found: LabelSelector = serde_json::from_value(object.pointer(path)?.clone()).ok()?;
    found.try_into().ok()
}

/// The labels of `object`.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
