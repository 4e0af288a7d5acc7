//! What is read of the cluster to understand a Machine: kept small, because there is one for all.

use std::collections::BTreeMap;

use machines_api::references::MachineClassSpec;

/// A storage class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// Its name.
    pub name: String,
    /// Whether it bears the annotation of a default class.
    pub is_default: bool,
    /// When it was created, in RFC 3339: of several defaults the newest counts, as for Kubernetes.
    pub created: String,
    /// Whether claims of it can grow.
    pub allows_expansion: bool,
    /// Whether a claim is bound only when a Pod uses it.
    pub waits_for_consumer: bool,
}

/// What CDI's StorageProfile of a class prefers: its first property set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageProfile {
    /// The access mode.
    pub access_mode: Option<String>,
    /// The volume mode that belongs to it.
    pub volume_mode: Option<String>,
}

/// A network that a Machine names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// An existing NetworkAttachmentDefinition.
    Attachment(String),
    /// A bridge on the nodes with a VLAN, for which a definition is made if there is none.
    Bridge {
        /// The bridge.
        bridge: String,
        /// The VLAN, 0 for none.
        vlan: u16,
    },
}

/// What is set in KubeVirt's own configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVirt {
    /// Whether edits can reach a running machine (`vmRolloutStrategy: LiveUpdate`).
    pub live_update: bool,
    /// Whether it migrates machines by itself to complete an edit.
    pub migrates: bool,
    /// Whether it evicts machines that can't migrate to complete an edit.
    pub evicts: bool,
    /// Machine types that it accepts, as patterns with a star at the end.
    pub machine_types: Vec<String>,
}

impl Default for KubeVirt {
    /// What KubeVirt 1.9 does without configuration.
    fn default() -> Self {
        let machine_types = ["q35*", "pc-q35*"].map(str::to_owned).to_vec();
        Self { live_update: true, migrates: false, evicts: false, machine_types }
    }
}

impl KubeVirt {
    /// Whether a machine type is accepted.
    #[must_use]
    pub fn accepts(&self, machine_type: &str) -> bool {
        self.machine_types.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => machine_type.starts_with(start),
            None => pattern == machine_type,
        })
    }
}

/// Everything that is read of the cluster for one Machine. A name that was looked up and not found
/// is a key with `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// All storage classes.
    pub storage_classes: Vec<StorageClass>,
    /// StorageProfiles by class.
    pub storage_profiles: BTreeMap<String, StorageProfile>,
    /// The class that the Machine names.
    pub machine_class: Option<MachineClassSpec>,
    /// Networks by the name that interfaces use.
    pub networks: BTreeMap<String, Option<Network>>,
    /// The VLAN of the NetworkNamespace that the Machine names.
    pub namespace_vlan: Option<u16>,
    /// Keys of the Secrets that cloud-init names, and their values.
    pub secrets: BTreeMap<String, Option<BTreeMap<String, Vec<u8>>>>,
    /// Keys of the ConfigMaps that cloud-init names, and their values.
    pub config_maps: BTreeMap<String, Option<BTreeMap<String, Vec<u8>>>>,
    /// Whether the virtual machine has data of the first boot from this very spec: then nothing of
    /// it is read or written again.
    pub cloud_init_is_settled: bool,
    /// KubeVirt's configuration; `None` if KubeVirt is not installed.
    pub kubevirt: Option<KubeVirt>,
    /// Whether CDI's DataVolumes are served.
    pub has_data_volumes: bool,
}
