//! CPU and memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU and memory, in the spelling of the documentation.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Resources {
    /// CPU. Each field overrides that of the template or class on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<ResourceCpu>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ResourceMemory>,
}

/// The CPU topology.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ResourceCpu {
    /// Cores of each socket. Another number needs a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub cores: Option<u32>,
    /// Threads of each core. Another number needs a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub threads: Option<u32>,
    /// Sockets. More can be added to a running machine where the cluster allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub sockets: Option<u32>,
}

/// Memory of the guest.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ResourceMemory {
    /// Memory of the guest, for example 8Gi. More can be added to a running machine where the cluster allows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
}

/// The CPU topology, in the spelling of the published CRD.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Cores of each socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub cores: Option<u32>,
    /// Threads of each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub threads_per_core: Option<u32>,
    /// Sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub sockets: Option<u32>,
}
