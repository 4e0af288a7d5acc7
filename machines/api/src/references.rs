//! Objects that a Machine names: read, never written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network that interfaces name, made by an administrator.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfigurationSpec {
    /// VLAN, 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Bridge on the nodes, br0 if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// An existing NetworkAttachmentDefinition to use, in place of one that is made for VLAN and bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_attachment_definition: Option<String>,
}

/// What is read of a MachineClass.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MachineClassSpec {
    /// Whether Machines may use it; true if it is absent.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// Its CPU topology.
    #[serde(default)]
    pub cpu: ClassCpu,
    /// Its memory.
    #[serde(default)]
    pub memory: ClassMemory,
}

/// CPU topology of a class.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct ClassCpu {
    /// Cores of each socket.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Sockets.
    #[serde(default)]
    pub sockets: Option<u32>,
    /// Threads of each core.
    #[serde(default)]
    pub threads: Option<u32>,
}

/// Memory of a class.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ClassMemory {
    /// The amount that a Machine of this class gets.
    #[serde(default)]
    pub quantity: Option<String>,
    /// The least that a Machine may ask for.
    #[serde(default)]
    pub min_quantity: Option<String>,
    /// The most that a Machine may ask for.
    #[serde(default)]
    pub max_quantity: Option<String>,
}
