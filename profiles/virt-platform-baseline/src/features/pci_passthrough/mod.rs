//! PCI devices for virtual machines: the kernel maps their memory.

use crate::feature::{AskedBy, Brings, Condition, Feature, MachineConfigs, Masters, Maturity};
use crate::machine_config::Payload;
use crate::node_questions::PCI_DEVICES;

/// On AMD the kernel maps memory by default; on Intel an argument must switch it on. With
/// `iommu=pt` the devices that the machine itself uses are not slowed down.
pub(crate) static FEATURE: Feature = Feature {
    name: "pciPassthrough",
    choice: |features| features.pci_passthrough,
    does: "enables the IOMMU, so that virtual machines can use PCI devices of their machine",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-pci-passthrough"),
    named_by: None,
    conditions: &[Condition::NodeHas(&PCI_DEVICES, "PCI devices for virtual machines")],
    needs: &[],
    brings: Brings::Machines(MachineConfigs {
        name: |role| match role {
            "worker" => "50-virt-pci-passthrough".to_owned(),
            role => format!("50-{role}-virt-pci-passthrough"),
        },
        payload: |_| Payload { kernel_arguments: vec!["intel_iommu=on", "iommu=pt"], ..Payload::default() },
        masters: Masters::AsWorkers,
    }),
};
