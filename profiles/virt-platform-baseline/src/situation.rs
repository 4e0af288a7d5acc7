//! What decides about features: the options, what HyperConverged says, the roles and labels of the nodes.

use std::collections::BTreeMap;

use profile_sdk::kinds::hyper_converged;
use profile_sdk::platform::{self, Role};
use profile_sdk::{DraftError, Inputs, NodeQuestion};
use serde_json::{Value, json};

use crate::feature::{AskedBy, Feature, FeatureState};
use crate::options::PlatformBaseline;

/// Whether somebody has asked for a feature.
pub(crate) enum Asked {
    Yes,
    No,
    /// Something is there that can't be what it is meant to be.
    Unclear(String),
}

/// The situation in which the profile drafts.
pub(crate) struct Situation<'a> {
    pub(crate) options: &'a PlatformBaseline,
    pub(crate) inputs: &'a Inputs,
    /// Whether HyperConverged is served in v1, which groups the fields of v1beta1 differently.
    pub(crate) is_v1: bool,
}

// The labels of Node Feature Discovery and of the operators of GPUs.
pub(crate) static PCI_DEVICES: NodeQuestion = NodeQuestion {
    name: "PCI devices",
    selector: None,
    only_after: None,
    is_so: |labels| {
        is_present(labels, "pci-")
            || ["nvidia.com/gpu.present", "amd.com/gpu.present"].iter().any(|key| is_true(labels, key))
    },
};
pub(crate) static IOMMU: NodeQuestion = NodeQuestion {
    name: "IOMMU",
    selector: None,
    only_after: None,
    is_so: |labels| is_true(labels, "feature.node.kubernetes.io/iommu-enabled"),
};
pub(crate) static USB_DEVICES: NodeQuestion =
    NodeQuestion { name: "USB devices", selector: None, only_after: None, is_so: |labels| is_present(labels, "usb-") };
pub(crate) static NUMA: NodeQuestion = NodeQuestion {
    name: "NUMA",
    selector: None,
    only_after: None,
    is_so: |labels| is_true(labels, "feature.node.kubernetes.io/memory-numa"),
};

/// Everything that is asked of the nodes.
pub(crate) static QUESTIONS: [NodeQuestion; 6] =
    [platform::CONTROL_PLANE_WORKS, platform::DEDICATED_WORKERS, PCI_DEVICES, IOMMU, USB_DEVICES, NUMA];

type Labels = BTreeMap<String, String>;

fn is_true(labels: &Labels, key: &str) -> bool {
    labels.get(key).is_some_and(|value| value == "true")
}

/// Whether a device of that bus is there that a virtual machine could be given: pci-10de.present, usb-ff_1a6e_089a.present, or in short
/// pci-present.
fn is_present(labels: &Labels, bus: &str) -> bool {
    let mut keys = labels.iter().filter(|(_, value)| *value == "true").map(|(key, _)| key);
    keys.any(|key| {
        let device = key.strip_prefix("feature.node.kubernetes.io/").and_then(|name| name.strip_prefix(bus));
        let Some(device) = device.and_then(|device| device.strip_suffix("present")) else { return false };
        !device.trim_end_matches('.').split('_').any(|part| OF_NO_USE.contains(&part))
    })
}

/// Vendors of what nearly every machine has: displays of management controllers (ASPEED, Matrox), and the devices of a machine that is
/// a virtual one itself (virtio, QEMU, VMware, Cirrus).
const OF_NO_USE: [&str; 7] = ["1a03", "102b", "1af4", "1b36", "1234", "15ad", "1013"];

impl<'a> Situation<'a> {
    pub(crate) fn new(options: &'a PlatformBaseline, inputs: &'a Inputs) -> Result<Self, DraftError> {
        let is_v1 = inputs.version(&hyper_converged())? != "v1beta1";
        Ok(Self { options, inputs, is_v1 })
    }

    /// Whether the feature is planned.
    pub(crate) fn is_on(&self, feature: &Feature) -> Result<bool, DraftError> {
        Ok(matches!(feature.standing(self)?, FeatureState::On { .. }))
    }

    /// Whether an earlier choice of the administrator asks for it.
    pub(crate) fn asks_for(&self, by: &AskedBy) -> Result<Asked, DraftError> {
        let asked = |yes: bool| if yes { Asked::Yes } else { Asked::No };
        match by {
            AskedBy::Nothing => Ok(Asked::No),
            AskedBy::Annotation(name) => {
                let place = format!("/metadata/annotations/platform.kubevirt.io~1{name}");
                // True, false, or what else it says.
                let says = |value: Option<&Value>| match value.and_then(Value::as_str) {
                    Some("true") => Some(json!(true)),
                    None | Some("" | "false") => Some(json!(false)),
                    Some(other) => Some(json!(other)),
                };
                Ok(match self.inputs.derive(&hyper_converged(), &place, says)? {
                    Some(Value::String(other)) => Asked::Unclear(format!(
                        "the annotation platform.kubevirt.io/{name} of HyperConverged is {other:?}"
                    )),
                    says => asked(says == Some(json!(true))),
                })
            }
        }
    }

    /// Whether HyperConverged says something at `path`. An empty map says nothing.
    pub(crate) fn is_configured(&self, path: &str) -> Result<bool, DraftError> {
        let says_something = |value: Option<&Value>| {
            let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            Some(json!(value.is_some_and(|value| !is_empty(value))))
        };
        Ok(self.inputs.derive(&hyper_converged(), path, says_something)? == Some(json!(true)))
    }

    /// The roles whose machines carry virtual machines. A pool of one's own takes in what workers get.
    pub(crate) fn roles(&self) -> Vec<&'static str> {
        platform::roles(self.inputs).into_iter().map(Role::name).collect()
    }
}
