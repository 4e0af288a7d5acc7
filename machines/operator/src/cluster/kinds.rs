//! The kinds that are read and written, each in the one version that is used.

use advisor_cluster::Served;
use kube::core::ApiResource;

/// A kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Name in paths and rights.
    pub plural: &'static str,
}

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group, version, kind, plural }
}

/// Machines.
pub const MACHINE: Kind = kind("vitistack.io", "v1alpha1", "Machine", "machines");
/// Networks that Machines name.
pub const NETWORK_CONFIGURATION: Kind =
    kind("vitistack.io", "v1alpha1", "NetworkConfiguration", "networkconfigurations");
/// Classes that Machines name.
pub const MACHINE_CLASS: Kind = kind("vitistack.io", "v1alpha1", "MachineClass", "machineclasses");
/// Networks with a VLAN.
pub const NETWORK_NAMESPACE: Kind = kind("vitistack.io", "v1alpha1", "NetworkNamespace", "networknamespaces");
/// Virtual machines.
pub const VM: Kind = kind("kubevirt.io", "v1", "VirtualMachine", "virtualmachines");
/// Running instances.
pub const VMI: Kind = kind("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances");
/// KubeVirt's own configuration.
pub const KUBEVIRT: Kind = kind("kubevirt.io", "v1", "KubeVirt", "kubevirts");
/// Claims.
pub const CLAIM: Kind = kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
/// Secrets.
pub const SECRET: Kind = kind("", "v1", "Secret", "secrets");
/// ConfigMaps.
pub const CONFIG_MAP: Kind = kind("", "v1", "ConfigMap", "configmaps");
/// Pods.
pub const POD: Kind = kind("", "v1", "Pod", "pods");
/// Storage classes.
pub const STORAGE_CLASS: Kind = kind("storage.k8s.io", "v1", "StorageClass", "storageclasses");
/// What CDI knows about storage classes.
pub const STORAGE_PROFILE: Kind = kind("cdi.kubevirt.io", "v1beta1", "StorageProfile", "storageprofiles");
/// Images that CDI fetches.
pub const DATA_VOLUME: Kind = kind("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes");
/// Networks of the nodes.
pub const NETWORK_ATTACHMENT: Kind =
    kind("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions");
/// Definitions of kinds.
pub const DEFINITION: Kind =
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");

impl Kind {
    /// The kind for requests.
    #[must_use]
    pub fn served(&self) -> Served {
        Served { resource: self.resource(), namespaced: self.is_namespaced(), has_status: false }
    }

    /// The kind for watches.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        let api_version =
            if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) };
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        ![STORAGE_CLASS, STORAGE_PROFILE, MACHINE_CLASS, DEFINITION].contains(self)
    }

    /// The name of its definition; `None` for kinds that every cluster has.
    #[must_use]
    pub fn definition(&self) -> Option<String> {
        let is_built_in = self.group.is_empty() || ["storage.k8s.io", "apiextensions.k8s.io"].contains(&self.group);
        (!is_built_in).then(|| format!("{}.{}", self.plural, self.group))
    }

    /// The kind of an object that the operator writes.
    #[must_use]
    pub fn of(object: &serde_json::Value) -> Option<Self> {
        let written = [VM, CLAIM, SECRET, NETWORK_ATTACHMENT, DATA_VOLUME];
        written.into_iter().find(|kind| object["kind"] == kind.kind)
    }
}
