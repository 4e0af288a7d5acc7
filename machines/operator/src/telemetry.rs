//! The metrics of the documentation, under its names. Two gauges end in `_total`, as counters do:
//! dashboards know them so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use kube::ResourceExt;
use machines_api::Machine;
use machines_core::problem::{Problem, Reason};
use machines_core::report::Outcome;
use machines_core::understand::{NetworkRef, Wanted};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::cluster::mirror::{Key, text_at};

type Label = (&'static str, String);
type Histograms = Family<[Label; 1], Histogram, fn() -> Histogram>;

/// Buckets in seconds for reconciles.
const RECONCILE_SECONDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];
/// Buckets in seconds for claims, from created to bound.
const PROVISIONING_SECONDS: [f64; 9] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0];
/// The controller's name in metrics.
const CONTROLLER: &str = "machine";

/// Name, kind and help of each metric, for documents and tests.
pub const DEFINITIONS: [(&str, &str, &str); 6] = [
    ("kubevirt_operator_machines_total", "gauge", "Machines by phase and template"),
    ("kubevirt_operator_reconciliation_duration_seconds", "histogram", "Duration of reconciles"),
    ("kubevirt_operator_reconciliation_errors_total", "counter", "Reconciles that failed, by type of error"),
    ("kubevirt_operator_virtual_machines_total", "gauge", "Virtual machines of Machines, by KubeVirt's status"),
    (
        "kubevirt_operator_storage_provisioning_duration_seconds",
        "histogram",
        "Time until a claim is bound, by storage class",
    ),
    ("kubevirt_operator_network_configuration_errors_total", "counter", "Networks that were not found, by name"),
];

/// The metrics of one operator. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    seconds: Histograms,
    errors: Family<[Label; 2], Counter>,
    provisioning: Histograms,
    networks: Family<[Label; 1], Counter>,
    machines: Mutex<BTreeMap<Key, [String; 3]>>,
    /// Claims that are not bound, and since when they have been seen so.
    unbound: Mutex<BTreeMap<Key, Instant>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let reconcile: fn() -> Histogram = || Histogram::new(RECONCILE_SECONDS);
        let provisioning: fn() -> Histogram = || Histogram::new(PROVISIONING_SECONDS);
        Self(Arc::new(Counted {
            seconds: Family::new_with_constructor(reconcile),
            errors: Family::default(),
            provisioning: Family::new_with_constructor(provisioning),
            networks: Family::default(),
            machines: Mutex::default(),
            unbound: Mutex::default(),
        }))
    }
}

/// A reconcile under way.
pub struct Timer(Metrics, Instant);

impl Timer {
    /// Ends it.
    pub fn end(self, failure: Option<Reason>) {
        let Self(metrics, began) = self;
        let controller = [("controller", CONTROLLER.to_owned())];
        metrics.0.seconds.get_or_create(&controller).observe(began.elapsed().as_secs_f64());
        if let Some(reason) = failure {
            let [controller] = controller;
            metrics.0.errors.get_or_create(&[controller, ("error_type", reason.name().to_owned())]).inc();
        }
    }
}

impl Metrics {
    /// Begins a reconcile.
    #[must_use]
    pub fn begin(&self) -> Timer {
        Timer(self.clone(), Instant::now())
    }

    /// Notes the state of a Machine.
    pub fn machine(&self, machine: &Machine, phase: &str, template: &str, state: Option<&str>) {
        let key = (machine.namespace().unwrap_or_default(), machine.name_any());
        let state = state.unwrap_or_default();
        self.0.machines.lock().insert(key, [phase, template, state].map(str::to_owned));
    }

    /// Notes that a Machine is gone.
    pub fn forget(&self, key: &Key) {
        self.0.machines.lock().remove(key);
    }

    /// Counts networks that were not found.
    pub fn network_errors(&self, problems: &[Problem], wanted: &Wanted) {
        for problem in problems.iter().filter(|problem| problem.reason == Reason::NetworkConfigurationNotFound) {
            let is_about = |index: Option<usize>| {
                index.is_none_or(|index| problem.path.starts_with(&format!("spec.networks[{index}].")))
            };
            let name = wanted.nics.iter().filter(|nic| is_about(nic.index)).find_map(|nic| match &nic.network {
                NetworkRef::Named(name) | NetworkRef::Namespace(name) => Some(name.clone()),
                NetworkRef::Pod => None,
            });
            self.0.networks.get_or_create(&[("network_name", name.unwrap_or_default())]).inc();
        }
    }

    /// Measures how long claims take to be bound.
    pub fn provisioned(&self, machine: &Machine, outcome: &Outcome<'_>) {
        let namespace = machine.namespace().unwrap_or_default();
        let mut unbound = self.0.unbound.lock();
        for claim in &outcome.claims {
            let key = (namespace.clone(), text_at(claim, "/metadata/name").to_owned());
            if text_at(claim, "/status/phase") != "Bound" {
                unbound.entry(key).or_insert_with(Instant::now);
            } else if let Some(since) = unbound.remove(&key) {
                let class = text_at(claim, "/spec/storageClassName").to_owned();
                self.0.provisioning.get_or_create(&[("storage_class", class)]).observe(since.elapsed().as_secs_f64());
            }
        }
        if outcome.deleting.is_some() {
            unbound.retain(|(of, name), _| *of != namespace || !name.starts_with(&machine.name_any()));
        }
    }

    /// The registry with everything.
    #[must_use]
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let [_, seconds, errors, _, provisioning, networks] = DEFINITIONS;
        let counter = |name: &'static str| name.trim_end_matches("_total");
        registry.register(seconds.0, seconds.2, self.0.seconds.clone());
        registry.register(counter(errors.0), errors.2, self.0.errors.clone());
        registry.register(provisioning.0, provisioning.2, self.0.provisioning.clone());
        registry.register(counter(networks.0), networks.2, self.0.networks.clone());
        registry.register_collector(Box::new(Gauges(self.clone())));
        registry
    }
}

/// Gauges are counted when somebody asks.
#[derive(Debug)]
struct Gauges(Metrics);

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut machines: BTreeMap<[Label; 2], i64> = BTreeMap::new();
        let mut virtual_machines: BTreeMap<[Label; 1], i64> = BTreeMap::new();
        for [phase, template, state] in self.0.0.machines.lock().values() {
            *machines.entry([("phase", phase.clone()), ("template", template.clone())]).or_default() += 1;
            if !state.is_empty() {
                *virtual_machines.entry([("status", state.clone())]).or_default() += 1;
            }
        }
        let (of_machines, of_virtual_machines) = (DEFINITIONS[0], DEFINITIONS[3]);
        let gauge = ConstGauge::new(0_i64);
        let mut all = encoder.encode_descriptor(of_machines.0, of_machines.2, None, gauge.metric_type())?;
        for (labels, count) in machines {
            ConstGauge::new(count).encode(all.encode_family(&labels)?)?;
        }
        let mut all =
            encoder.encode_descriptor(of_virtual_machines.0, of_virtual_machines.2, None, gauge.metric_type())?;
        for (labels, count) in virtual_machines {
            ConstGauge::new(count).encode(all.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The reference of the metrics, as Markdown.
#[must_use]
pub fn page() -> String {
    let rows = DEFINITIONS.map(|(name, kind, help)| format!("| `{name}` | {kind} | {help} |\n"));
    format!("| metric | type | meaning |\n| --- | --- | --- |\n{}", rows.concat())
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text::encode;
    use serde_json::json;

    use super::*;

    #[test]
    fn v32_the_metrics_of_the_documentation_are_there_under_their_names() {
        let metrics = Metrics::default();
        let machine = |name: &str| -> Machine {
            let object = json!({"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
                "metadata": {"name": name, "namespace": "n"}, "spec": {}});
            serde_json::from_value(object).unwrap()
        };
        metrics.begin().end(Some(Reason::StorageClassNotFound));
        for name in ["a", "b"] {
            metrics.machine(&machine(name), "Running", "small", Some("Running"));
        }
        metrics.machine(&machine("b"), "Stopped", "small", Some("Stopped"));
        let claim = |phase: &str| json!({"metadata": {"name": "a-root"}, "spec": {"storageClassName": "fast"}, "status": {"phase": phase}});
        for claim in [claim("Pending"), claim("Bound")] {
            metrics.provisioned(&machine("a"), &Outcome { claims: vec![&claim], ..Outcome::default() });
        }
        let mut text = String::new();
        encode(&mut text, &metrics.registry()).unwrap();
        for line in [
            r#"kubevirt_operator_machines_total{phase="Running",template="small"} 1"#,
            r#"kubevirt_operator_machines_total{phase="Stopped",template="small"} 1"#,
            r#"kubevirt_operator_virtual_machines_total{status="Stopped"} 1"#,
            r#"kubevirt_operator_reconciliation_errors_total{controller="machine",error_type="StorageClassNotFound"} 1"#,
            r#"kubevirt_operator_reconciliation_duration_seconds_count{controller="machine"} 1"#,
            r#"kubevirt_operator_storage_provisioning_duration_seconds_count{storage_class="fast"} 1"#,
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        metrics.forget(&("n".to_owned(), "b".to_owned()));
        text.clear();
        encode(&mut text, &metrics.registry()).unwrap();
        assert!(!text.contains("Stopped"), "{text}");
    }
}
