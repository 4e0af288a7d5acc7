//! Machine type, features and firmware.

use machines_api::MachineSpec;

use crate::problem::{Problem, Reason};

/// The virtual hardware that a Machine asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedDomain {
    /// The chipset, if it is named.
    pub chipset: Option<Chipset>,
    /// Power management, if it is named.
    pub acpi: Option<bool>,
    /// The interrupt controller, if it is named.
    pub apic: Option<bool>,
    /// Whether Windows guests get what they need.
    pub hyperv: bool,
    /// Whether the firmware is UEFI; `None`: the cluster's default.
    pub efi: Option<bool>,
    /// Whether only signed systems boot.
    pub secure_boot: bool,
}

/// A chipset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chipset {
    /// The usual one.
    Q35,
    /// The old one, which a cluster must allow.
    I440fx,
}

impl Chipset {
    /// As QEMU calls it: it has no machine called `pc-q35` (K9).
    #[must_use]
    pub fn machine_type(self) -> &'static str {
        match self {
            Self::Q35 => "q35",
            Self::I440fx => "pc-i440fx",
        }
    }
}

/// The virtual hardware of a Machine.
pub(super) fn domain(spec: &MachineSpec, problems: &mut Vec<Problem>) -> WantedDomain {
    let Some(domain) = &spec.domain else { return WantedDomain::default() };
    let kind = domain.machine.as_ref().and_then(|machine| machine.kind.as_deref());
    let chipset = match kind {
        None | Some("") => None,
        Some("pc-q35" | "q35") => Some(Chipset::Q35),
        Some("pc-i440fx") => Some(Chipset::I440fx),
        Some(other) => {
            let message = format!("{other:?} is not one of pc-q35, pc-i440fx: use one of them, or leave it out");
            problems.push(Problem::new(Reason::InvalidSpec, "spec.domain.machine.type", message));
            None
        }
    };
    let features = domain.features.clone().unwrap_or_default();
    let bootloader = domain.firmware.as_ref().and_then(|firmware| firmware.bootloader.clone()).unwrap_or_default();
    let secure_boot = bootloader.secure_boot == Some(true);
    if secure_boot && bootloader.efi != Some(true) {
        let message = "secure boot needs efi: set spec.domain.firmware.bootloader.efi to true";
        problems.push(Problem::new(Reason::InvalidSpec, "spec.domain.firmware.bootloader.secureBoot", message));
    }
    if secure_boot && chipset == Some(Chipset::I440fx) {
        let message = "secure boot needs the chipset pc-q35: change spec.domain.machine.type";
        problems.push(Problem::new(Reason::InvalidSpec, "spec.domain.firmware.bootloader.secureBoot", message));
    }
    WantedDomain {
        chipset,
        acpi: features.acpi,
        apic: features.apic,
        hyperv: features.hyperv == Some(true),
        efi: bootloader.efi,
        secure_boot,
    }
}
