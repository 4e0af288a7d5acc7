//! Machine type, features and firmware.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The virtual hardware.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Domain {
    /// The chipset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineType>,
    /// Features of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Firmware>,
}

/// The chipset.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct MachineType {
    /// pc-q35, or pc-i440fx where the cluster's KubeVirt allows it. Absent: the cluster's default.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Features of the platform.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Features {
    /// Power management, which a shutdown from outside needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acpi: Option<bool>,
    /// The interrupt controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apic: Option<bool>,
    /// What Windows guests need to run well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyperv: Option<bool>,
}

/// The firmware.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Firmware {
    /// The bootloader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootloader: Option<Bootloader>,
}

/// The bootloader.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Bootloader {
    /// UEFI. false: BIOS. Absent: the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efi: Option<bool>,
    /// Only signed systems boot. It needs efi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
}
