//! Disks and images.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A disk of the machine, backed by a PersistentVolumeClaim called MACHINE-DISK.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Name of the disk, unique in the Machine: lower-case letters, digits and dashes. Absent: root for the first disk, diskN for the Nth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Size, for example 20Gi. It can grow where the storage class allows it, and never shrinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Size in GiB, in the spelling of the published CRD.
    #[serde(default, rename = "sizeGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65536))]
    pub size_gb: Option<i64>,
    /// Storage class. Absent or default: the class called default, else the cluster's default class. It can't be changed once the claim exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Access mode of the claim: ReadWriteOnce, ReadWriteMany, ReadOnlyMany or ReadWriteOncePod. Absent: what the class's StorageProfile prefers, else ReadWriteOnce. Live migration needs ReadWriteMany. It can't be changed once the claim exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_mode: Option<String>,
    /// Volume mode of the claim: Filesystem or Block. Absent: what the class's StorageProfile prefers. It can't be changed once the claim exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,
    /// The claim's fate when the Machine is deleted: Delete (the default) or Keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// Bus of the disk: virtio (the default), sata or scsi.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Boot from this disk. Only one disk can have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<bool>,
    /// No effect: the guest names its devices itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// No effect: encryption is a property of the storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// No effect: performance is a property of the storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 64000))]
    pub iops: Option<i64>,
    /// No effect: performance is a property of the storage class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 4000))]
    pub throughput: Option<i64>,
}

/// The fate of a claim when its Machine is deleted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
pub enum OnDelete {
    #[default]
    Delete,
    Keep,
}

/// The operating system and its image.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystem {
    /// No effect: for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// No effect: for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// No effect: for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// No effect: the cluster's architecture is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Architecture>,
    /// Address of an ISO image, http:// or docker://, that is offered as a CD-ROM.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Address of an ISO image, in another spelling of imageID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iso_uri: Option<String>,
    /// No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_family: Option<String>,
}

/// A processor architecture.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "a description would turn the enum of the CRD into alternatives")]
pub enum Architecture {
    Amd64,
    Arm64,
    #[serde(rename = "x86_64")]
    X86_64,
}
