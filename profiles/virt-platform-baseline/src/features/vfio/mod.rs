//! The driver through which virtual machines get PCI devices.

use crate::feature::{AskedBy, Brings, Condition, Feature, MachineConfigs, Masters, Maturity, NamedBy};
use crate::machine_config::{File, Payload};
use crate::node_questions::IOMMU;
use crate::options::PlatformBaseline;

pub(crate) static FEATURE: Feature = Feature {
    name: "vfio",
    choice: |features| features.vfio,
    does: "loads the VFIO driver, which gives virtual machines access to PCI devices, and binds the devices listed in vfioDevices to it",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Nothing,
    named_by: Some(NamedBy {
        option: "vfioDevices",
        is_set: |options| !options.vfio_devices.is_empty(),
        needed: false,
    }),
    conditions: &[Condition::NodeHas(&IOMMU, "an enabled IOMMU")],
    needs: &["pciPassthrough"],
    brings: Brings::Machines(MachineConfigs {
        name: |role| format!("50-{role}-virt-vfio"),
        payload,
        masters: Masters::AsWorkers,
    }),
};

fn payload(options: &PlatformBaseline) -> Payload {
    let mut files = vec![File::text("/etc/modules-load.d/virt-vfio.conf", "vfio-pci\n")];
    if !options.vfio_devices.is_empty() {
        let options = format!("options vfio-pci ids={}\n", options.vfio_devices.join(","));
        files.push(File::text("/etc/modprobe.d/virt-vfio.conf", options));
    }
    Payload { files, ..Payload::default() }
}
