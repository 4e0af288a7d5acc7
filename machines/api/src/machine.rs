//! The Machine itself.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cloud_init::CloudInit;
use crate::compute::{Cpu, Resources};
use crate::domain::Domain;
use crate::inert::{Backup, ProviderConfig};
use crate::network::{MachineNetwork, NetworkInterface};
use crate::status::MachineStatus;
use crate::storage::{Disk, OperatingSystem};

/// A virtual machine, declared by its size, disks, networks and first boot.
///
/// Fields that have no effect with this operator are accepted and named in the condition
/// FieldsIgnored.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[kube(
    group = "vitistack.io",
    version = "v1alpha1",
    kind = "Machine",
    plural = "machines",
    shortname = "m",
    namespaced,
    status = "MachineStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A small declaration from which a KubeVirt virtual machine with its disks and networks is made.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Addresses","type":"string","jsonPath":".status.ipAddresses"}"#,
    printcolumn = r#"{"name":"Node","type":"string","jsonPath":".status.nodeName"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.message","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// The provider that makes the machine. Absent or kubevirt: this operator. Any other value: this operator leaves the Machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// A name for people. It has no effect: the virtual machine is called as the Machine is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// A size: small (1 core, 2Gi memory, a root disk of 20Gi), medium (2, 4Gi, 40Gi) or large (4, 8Gi, 80Gi). Other fields override it one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The name of a MachineClass. It gives cores and memory. Set it or template, not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub machine_class: Option<String>,
    /// CPU and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// CPU, in the spelling of the published CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory in bytes, in the spelling of the published CRD. It must be a whole number of MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub memory: Option<i64>,
    /// Disks. One with the name of a disk of the template changes that one; others are added in order. A disk that is removed here is detached at the next restart, and its claim is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub disks: Option<Vec<Disk>>,
    /// Network interfaces. Absent: one interface on the pod network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub networks: Option<Vec<NetworkInterface>>,
    /// The network, in the spelling of the published CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<MachineNetwork>,
    /// The order in which kinds of devices are tried at boot: disk, network, cdrom. Absent: the root disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3))]
    pub boot_order: Option<Vec<String>>,
    /// What the machine does at its first boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_init: Option<CloudInit>,
    /// Machine type, features and firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// The operating system and its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<OperatingSystem>,
    /// When edits of this Machine reach the virtual machine. NextRestart (the default): they are written at once, and those that need a restart take effect at the next one. Restart: the machine is restarted for them. Hold: nothing is written; status.pending tells what would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Updates>,
    /// Whether the machine runs, in KubeVirt's terms. Absent: it is started once created, and from then on virtctl decides. Set: it is kept so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_strategy: Option<RunStrategy>,
    /// No effect: the machine type is domain.machine.type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_type: Option<String>,
    /// No effect: write user data to cloudInit.userData.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// No effect: write keys into cloudInit.userData.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<Vec<String>>,
    /// No effect: KubeVirt machines have no security groups; use a NetworkPolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// No effect: tags are read by other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<bool>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// No effect: this operator works on the cluster in which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_config: Option<ProviderConfig>,
}

/// When edits reach the virtual machine.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub enum Updates {
    #[default]
    #[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
    NextRestart,
    #[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
    Restart,
    #[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
    Hold,
}

/// Whether the machine runs.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
pub enum RunStrategy {
    Always,
    Halted,
    Manual,
    RerunOnFailure,
    Once,
}

impl RunStrategy {
    /// As KubeVirt spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Halted => "Halted",
            Self::Manual => "Manual",
            Self::RerunOnFailure => "RerunOnFailure",
            Self::Once => "Once",
        }
    }
}
