//! The reported state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reported state of a Machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Pending, Creating, Running, Stopped or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// KubeVirt's own word for the state, for example WaitingForVolumeBinding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// A sentence for people: what happens, or what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation of the spec that this status tells about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, VirtualMachineReady, StorageReady, NetworkReady, and what is out of the ordinary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Edits that have not reached the running machine, with their effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingChange>,
    /// Name of the VirtualMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_name: Option<String>,
    /// Name of the VirtualMachineInstance, while the machine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmi_name: Option<String>,
    /// The node on which the machine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Addresses of all interfaces, IPv4 before IPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// The IPv6 ones of these addresses.
    #[serde(default, rename = "ipv6Addresses", skip_serializing_if = "Vec::is_empty")]
    pub ipv6_addresses: Vec<String>,
    /// Addresses on networks that the Machine names.
    #[serde(default, rename = "publicIPAddresses", skip_serializing_if = "Vec::is_empty")]
    pub public_ip_addresses: Vec<String>,
    /// Addresses on the pod network.
    #[serde(default, rename = "privateIPAddresses", skip_serializing_if = "Vec::is_empty")]
    pub private_ip_addresses: Vec<String>,
    /// Name of the guest, as its agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Operating system of the guest, as its agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_system: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operating_system_version: Option<String>,
    /// Its kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<String>,
    /// Processor architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Virtual CPUs: cores times threads times sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<i64>,
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<i64>,
    /// The uid of the VirtualMachine.
    #[serde(default, rename = "machineID", skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// kubevirt://NAMESPACE/NAME.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Always kubevirt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Claims of this Machine: those that are attached and those that are kept after their disk left the spec. A claim that is not listed here with its uid is never deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskStatus>,
    /// Network interfaces of the running machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_interfaces: Vec<InterfaceStatus>,
    /// Why the machine failed: a constant in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    /// Why the machine failed, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// When this status last changed, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
}

/// A condition.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// A constant in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When status last changed, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// The generation of the spec that this condition tells about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// An edit that has not reached the running machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct PendingChange {
    /// The object and the field, for example VirtualMachine/spec.template.spec.domain.cpu.cores.
    pub path: String,
    /// The value now, as text; absent if there is none. Secret values are never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value to come, as text; absent if the field is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Live, Restart, NextBoot, Refused or WithoutEffect.
    pub effect: String,
    /// Why it has this effect, and what to do.
    pub reason: String,
}

/// A claim of the Machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct DiskStatus {
    /// Name of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc_name: Option<String>,
    /// The uid of the claim; absent until it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Volume mode of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,
    /// Access modes of the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
    /// The device in the guest, while the machine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// A network interface of the running machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InterfaceStatus {
    /// Name of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its MAC address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Its IPv4 addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// Its IPv6 addresses.
    #[serde(default, rename = "ipv6Addresses", skip_serializing_if = "Vec::is_empty")]
    pub ipv6_addresses: Vec<String>,
    /// Whether it is up or down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}
