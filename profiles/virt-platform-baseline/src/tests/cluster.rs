//! A cluster as data, and the drafts of the profile on it.

use std::collections::BTreeSet;

use profile_sdk::kinds::hyper_converged;
use profile_sdk::platform::{CONTROL_PLANE_WORKS, kubelet_of_workers};
use profile_sdk::{Body, Draft, Inputs, Kind, LeftOutFeature, Surroundings};
use serde_json::{Value, json};

use crate::PROFILE;
use crate::features::FEATURES;
use crate::kinds::{PERSES_DASHBOARD, PERSES_DATASOURCE, PROMETHEUS_RULE, UI_PLUGIN};

/// A cluster: its HyperConverged, whether masters carry virtual machines, and the answers about its
/// nodes.
pub(super) struct Cluster {
    pub(super) hyper_converged: Value,
    pub(super) masters_schedulable: bool,
    pub(super) nodes: &'static [&'static str],
    pub(super) not_served: BTreeSet<Kind>,
    /// The MachineConfig that starts the kubelets of workers.
    pub(super) kubelet: Option<Value>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            hyper_converged: json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "spec": {}}),
            masters_schedulable: false,
            nodes: &["workers that are no control plane"],
            not_served: OBSERVED.into(),
            kubelet: Some(json!({"metadata": {"name": "01-worker-kubelet"}})),
        }
    }
}

/// The kinds of the feature observability. They are not served by default, because most tests are
/// about other features.
pub(super) const OBSERVED: [Kind; 4] = [UI_PLUGIN, PERSES_DATASOURCE, PERSES_DASHBOARD, PROMETHEUS_RULE];

impl Cluster {
    pub(super) fn inputs(&self) -> Inputs {
        let objects =
            [(hyper_converged(), Some(self.hyper_converged.clone())), (kubelet_of_workers(), self.kubelet.clone())];
        let work = self.masters_schedulable.then_some(CONTROL_PLANE_WORKS.name);
        let of_nodes = self.nodes.iter().copied().chain(work).collect();
        let surroundings = Surroundings { not_served: self.not_served.clone(), of_nodes };
        Inputs::new(objects).in_surroundings(surroundings).declaring(PROFILE.kinds())
    }

    pub(super) fn drafts(&self, options: Value) -> Vec<Draft> {
        PROFILE.configure(Some(&options)).unwrap().draft(&self.inputs()).unwrap()
    }

    pub(super) fn item_names(&self, options: Value) -> Vec<String> {
        self.drafts(options).into_iter().map(|draft| draft.name).collect()
    }

    pub(super) fn left_out(&self, options: Value) -> Vec<LeftOutFeature> {
        PROFILE.configure(Some(&options)).unwrap().left_out(&self.inputs()).unwrap()
    }

    pub(super) fn reason_left_out(&self, feature: &str, options: Value) -> String {
        self.left_out(options)
            .into_iter()
            .find(|part| part.feature == feature)
            .unwrap_or_else(|| panic!("{feature} is planned"))
            .reason
    }
}

pub(super) fn object(draft: &Draft) -> &Value {
    match &draft.body {
        Body::Ensure(object) => object,
        other => panic!("{other:?}"),
    }
}

pub(super) fn draft_named<'a>(drafts: &'a [Draft], name: &str) -> &'a Draft {
    drafts.iter().find(|draft| draft.name == name).unwrap_or_else(|| panic!("{name}: {drafts:#?}"))
}

/// Options that switch every feature to `choice`, with the devices and values that features need.
pub(super) fn all_features(choice: &str) -> Value {
    let features = FEATURES.iter().map(|feature| (feature.name.to_owned(), json!(choice)));
    let devices = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}]);
    json!({
        "features": features.collect::<serde_json::Map<_, _>>(), "usbDevices": devices, "vfioDevices": ["10de:1eb8"],
        "logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1", "env": {"ENABLE_EBPF": "false"}},
    })
}
