//! One MachineConfigPool, as far as rollouts depend on it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::disruption::Disruption;
use crate::plan::items::message;
use crate::plan::items::{Effect, PoolEffect};
use object::limits::{self, cut_text};

/// The label that says for which machines a MachineConfig is.
pub(super) const ROLE: &str = "machineconfiguration.openshift.io/role";

/// The most bytes of maxUnavailable that a plan remembers, as in the CRD.
const WRITTEN: usize = 32;

/// The most machines that a pool counts as having, twenty times what Kubernetes supports in a
/// cluster. It keeps sums over pools in range, whatever they report.
const MACHINES: u32 = 100_000;

/// The note about a change that reboots nothing: policies determine what is done for it, if
/// anything.
const UNTIL_REBOOT: &str =
    "Services may be reloaded or restarted instead; what needs a reboot takes effect with the next one.";

/// The data kept of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Pool {
    pub(super) name: String,
    labels: BTreeMap<String, String>,
    selector: Option<Selector>,
    machines_selector: Option<Selector>,
    pub(super) paused: bool,
    /// The maxUnavailable as written; null if it is not set.
    max_unavailable: Value,
    pub(super) generation: i64,
    pub(super) observed_generation: i64,
    /// The rendered configuration that the machines should have, and the objects it was made from.
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
    /// Whether its machines boot an image that is built for the pool first, because a
    /// MachineOSConfig names the pool.
    pub(super) layered: bool,
}

impl Pool {
    /// Reads a MachineConfigPool. Absent fields are empty or zero, as in a new pool.
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
            max_unavailable: object.pointer("/spec/maxUnavailable").cloned().unwrap_or_default(),
            generation: number("/metadata/generation"),
            observed_generation: number("/status/observedGeneration"),
            wanted: text("/spec/configuration/name"),
            sources: list("/spec/configuration/source")
                .map(|source| member(source, "name"))
                .filter(|name| !name.is_empty())
                .collect(),
            present: text("/status/configuration/name"),
            machines: count("/status/machineCount"),
            updated: count("/status/updatedMachineCount"),
            ready: count("/status/readyMachineCount"),
            degraded: count("/status/degradedMachineCount"),
            unavailable: count("/status/unavailableMachineCount"),
            conditions: list("/status/conditions")
                .map(|found| (member(found, "type"), (member(found, "status") == "True", member(found, "message"))))
                .collect(),
            layered: false,
        }
    }

    /// Whether the pool renders objects with these labels.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether the selector of `object` at `path` matches this pool.
    pub(super) fn is_selected_by(&self, object: &Value, path: &str) -> bool {
        selector(object, path).is_some_and(|selector| selector.matches(&self.labels))
    }

    /// Whether the Node `machine` belongs to the pool, by its labels.
    pub(super) fn has(&self, machine: &Value) -> bool {
        self.machines_selector.as_ref().is_some_and(|selector| selector.matches(&labels(machine)))
    }

    /// Notes about conditions that keep the pool from rolling out, or delay it.
    pub(super) fn obstacles(&self) -> Vec<String> {
        let name = &self.name;
        let mut notes = Vec::new();
        if self.paused {
            notes.push(format!("MachineConfigPool {name} is paused: nothing happens on it until it is unpaused."));
        }
        if self.at_once() == 0 {
            notes.push(format!(
                "The maxUnavailable of MachineConfigPool {name}, {}, is not valid: none of its machines is updated until it is \
                 corrected.",
                self.max_unavailable
            ));
        }
        if self.layered {
            notes.push(format!(
                "MachineConfigPool {name} is layered: if the change needs a new image, as every change does up to OpenShift 4.19, the image is built first, and the machines reboot into it."
            ));
        }
        if let Some(message) = self.holds("Degraded") {
            // If rendering fails, only the condition for that has a message.
            let other = || self.trouble().filter(|why| !why.starts_with("Degraded:")).unwrap_or_default();
            let why = Some(reason(message)).filter(|why| !why.is_empty()).unwrap_or_else(|| reason(&other()));
            notes.push(format!("MachineConfigPool {name} is degraded already{why}."));
        }
        notes
    }

    /// The message of the condition, if it is True.
    pub(super) fn holds(&self, condition: &str) -> Option<&str> {
        self.conditions.get(condition).filter(|(holds, _)| *holds).map(|(_, message)| message.as_str())
    }

    /// The degraded condition that the controllers report, with its message, for example about the
    /// image build of a layered pool. A specific one is preferred.
    pub(super) fn trouble(&self) -> Option<String> {
        let holding = self.conditions.iter().filter(|(name, (holds, _))| *holds && name.ends_with("Degraded"));
        // The condition called Degraded only summarizes the others.
        let (name, (_, message)) = holding.max_by_key(|(name, _)| *name != "Degraded")?;
        let message = if message.is_empty() { "no reason given".to_owned() } else { limits::words(message) };
        Some(format!("{name}: {message}"))
    }

    /// The effect of another configuration on its machines.
    pub(super) fn effect(&self) -> PoolEffect {
        let written = match &self.max_unavailable {
            Value::Null => None,
            Value::String(text) => Some(cut_text(text, WRITTEN)),
            other => Some(cut_text(&other.to_string(), WRITTEN)),
        };
        PoolEffect {
            machines: self.machines,
            at_once: self.at_once(),
            max_unavailable: written,
            layered: self.layered,
            degraded: self.holds("Degraded").is_some(),
        }
    }

    /// Adds to `effect` what happens to the machines of the pool, with the obstacles.
    pub(super) fn disturb(&self, effect: &mut Effect, disruption: Disruption) {
        let Self { name, machines, .. } = self;
        // The machines of a layered pool reboot into every new image, whatever policies say
        // (pkg/daemon/update.go, `newMachineConfigDiffFromLayered`), and in release-4.18 and 4.19
        // each change builds one. From 4.20 on only some do (`RequiresRebuild`,
        // pkg/controller/common/helpers.go), but no object shows the release: a reboot is forecast.
        if disruption == Disruption::Reboot || self.layered || *machines == 0 {
            effect.reboots(name, self.effect());
            effect.notes.extend(self.obstacles());
            return;
        }
        let machines = message::at_once(*machines, self.at_once(), name);
        effect.notes.push(match disruption {
            Disruption::Nothing => format!("Neither drains nor reboots the machines of pool {name}."),
            Disruption::MayDrain => format!("May drain {machines}, and reboots none."),
            _ => format!("Drains {machines}, and reboots none."),
        });
        effect.notes.push(UNTIL_REBOOT.to_owned());
        if disruption != Disruption::Nothing {
            effect.drained.insert(name.clone(), self.effect());
        }
        effect.notes.extend(self.obstacles());
    }

    /// The number of machines that are updated at a time; 0 if maxUnavailable is not valid.
    ///
    /// The rule is that of openshift/machine-config-operator,
    /// pkg/controller/node/node_controller.go, `maxUnavailable` and `getAllCandidateMachines`,
    /// unchanged from release-4.14 to release-5.0: a number, or a percentage that is rounded down;
    /// 1 if it is unset or 0. For a text that is not a percentage the controller returns an error
    /// before it looks for machines, and below 0 it finds none. The control plane is no exception:
    /// in pool master, only the machine on which the operator runs is postponed for one round
    /// (`filterControlPlaneCandidateNodes`). From release-4.23 on, a pool called arbiter, which has
    /// one machine, is held at 1 whatever it sets.
    fn at_once(&self) -> u32 {
        let wanted = match &self.max_unavailable {
            Value::Null => Some(1),
            Value::Number(number) => number.as_i64(),
            Value::String(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
                percent.map(|percent| percent.saturating_mul(self.machines.into()).div_euclid(100))
            }
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match wanted {
            None | Some(..0) => 0,
            Some(wanted) => u32::try_from(wanted).unwrap_or(u32::MAX).max(1),
        }
    }

    /// The properties that a plan depends on.
    pub(super) fn resting(&self) -> String {
        let Self { name, labels, paused, max_unavailable, wanted, sources, machines, layered, .. } = self;
        let degraded = self.holds("Degraded").is_some();
        format!("{name} {labels:?} {paused} {max_unavailable} {wanted} {sources:?} {machines} {degraded} {layered}")
    }

    /// The properties that progress depends on.
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

/// The end of a sentence with the `message` of a condition; empty if it has none.
pub(super) fn reason(message: &str) -> String {
    match message.trim_end_matches('.') {
        "" => String::new(),
        message => format!(": {}", limits::words(message)),
    }
}

/// The labels of `object`.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The name of `object`.
pub(super) fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The problem that these pools have no machines.
pub(super) fn reaches_no_machine(pools: &[&str]) -> String {
    format!(
        "MachineConfigPool {} has no machines, so the setting would reach none: target pool master if the control plane runs the workloads",
        pools.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pool_that_is_degraded_is_told_with_its_words_if_it_has_any() {
        let obstacles = |message: &str| {
            let condition = json!([{"type": "Degraded", "status": "True", "message": message}]);
            Pool::read(&json!({"metadata": {"name": "worker"}, "status": {"conditions": condition}})).obstacles()
        };
        assert_eq!(obstacles(""), ["MachineConfigPool worker is degraded already."]);
        let both = json!([{"type": "Degraded", "status": "True", "message": ""}, {"type": "RenderDegraded", "status": "True", "message": "parsing failed"}]);
        let rendering =
            Pool::read(&json!({"metadata": {"name": "worker"}, "status": {"conditions": both}})).obstacles();
        assert_eq!(rendering, ["MachineConfigPool worker is degraded already: RenderDegraded: parsing failed."]);
        let silent = json!([{"type": "Degraded", "status": "True", "message": ""}, {"type": "Updated", "status": "True", "message": "m"}]);
        let silent = Pool::read(&json!({"metadata": {"name": "worker"}, "status": {"conditions": silent}})).obstacles();
        assert_eq!(silent, ["MachineConfigPool worker is degraded already."]);
        assert_eq!(obstacles("node-1: no disk."), ["MachineConfigPool worker is degraded already: node-1: no disk."]);
        assert!(obstacles(&"x".repeat(200_000))[0].len() < limits::WORDS + 100);
    }
}
