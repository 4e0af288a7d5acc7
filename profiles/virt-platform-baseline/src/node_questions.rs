//! The questions that the profile asks about the labels of the nodes.

use std::collections::BTreeMap;

use profile_sdk::{NodeQuestion, platform};

// The labels of Node Feature Discovery and of the operators of GPUs.
pub(crate) static PCI_DEVICES: NodeQuestion = NodeQuestion {
    name: "PCI devices",
    selector: None,
    only_after: None,
    is_so: |labels| {
        has_device(labels, "pci-")
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
    NodeQuestion { name: "USB devices", selector: None, only_after: None, is_so: |labels| has_device(labels, "usb-") };
pub(crate) static NUMA: NodeQuestion = NodeQuestion {
    name: "NUMA",
    selector: None,
    only_after: None,
    is_so: |labels| is_true(labels, "feature.node.kubernetes.io/memory-numa"),
};

/// All questions of the profile.
pub(crate) static QUESTIONS: [NodeQuestion; 6] =
    [platform::CONTROL_PLANE_WORKS, platform::DEDICATED_WORKERS, PCI_DEVICES, IOMMU, USB_DEVICES, NUMA];

type Labels = BTreeMap<String, String>;

fn is_true(labels: &Labels, key: &str) -> bool {
    labels.get(key).is_some_and(|value| value == "true")
}

/// Whether the node has a device on `bus` that a virtual machine could be given. Such labels are
/// pci-10de.present, usb-ff_1a6e_089a.present, or in short pci-present.
fn has_device(labels: &Labels, bus: &str) -> bool {
    let mut keys = labels.iter().filter(|(_, value)| *value == "true").map(|(key, _)| key);
    keys.any(|key| {
        let device = key.strip_prefix("feature.node.kubernetes.io/").and_then(|name| name.strip_prefix(bus));
        let Some(device) = device.and_then(|device| device.strip_suffix("present")) else { return false };
        !device.trim_end_matches('.').split('_').any(|part| UBIQUITOUS_VENDORS.contains(&part))
    })
}

/// Vendors of devices that nearly every machine has, and that are therefore of no use to a virtual
/// machine: the displays of management controllers (ASPEED, Matrox), and the devices of a machine
/// that is a virtual machine itself (virtio, QEMU, VMware, Cirrus).
const UBIQUITOUS_VENDORS: [&str; 7] = ["1a03", "102b", "1af4", "1b36", "1234", "15ad", "1013"];
