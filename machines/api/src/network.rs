//! Network interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network interface of the machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Name of the interface, unique in the Machine: letters, digits, dashes and underscores.
    pub name: String,
    /// A NetworkConfiguration or a NetworkAttachmentDefinition in the Machine's namespace. Absent: the pod network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_name: Option<String>,
    /// Model of the card: virtio (the default), e1000, e1000e, igb, ne2k_pci, pcnet or rtl8139.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// MAC address, for example 52:54:00:12:34:56. Absent: one that stays the same for this Machine and interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// The network, in the spelling of the published CRD.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MachineNetwork {
    /// The NetworkNamespace that gives the VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_namespace_name: Option<String>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc: Option<String>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// No effect.
    #[serde(default, rename = "assignPublicIP", skip_serializing_if = "Option::is_none")]
    pub assign_public_ip: Option<bool>,
    /// No effect.
    #[serde(default, rename = "privateIP", skip_serializing_if = "Option::is_none")]
    pub private_ip: Option<String>,
    /// No effect.
    #[serde(default, rename = "publicIP", skip_serializing_if = "Option::is_none")]
    pub public_ip: Option<String>,
    /// No effect: write interfaces to networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<MachineNetworkInterface>>,
}

/// An interface in the spelling of the published CRD.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MachineNetworkInterface {
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
}
