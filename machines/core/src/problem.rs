//! What stands in the way of a Machine, for the person who wrote it.

use std::fmt;

/// Why a Machine can't be made, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The spec contradicts itself or holds a value that can't be.
    InvalidSpec,
    /// The template or the class does not exist.
    TemplateNotFound,
    /// A NetworkConfiguration or NetworkAttachmentDefinition does not exist.
    NetworkConfigurationNotFound,
    /// A storage class does not exist.
    StorageClassNotFound,
    /// A Secret or ConfigMap with cloud-init data, or its key, does not exist.
    CloudInitNotFound,
    /// A claim of the wanted name is not this Machine's, or is not what it was.
    DiskConflict,
    /// Somebody else uses a claim, perhaps for a moment more.
    DiskInUse,
    /// Another object has a name that this Machine needs.
    NameTaken,
    /// An edit that the cluster can't carry out.
    EditRefused,
    /// No node or no quota has room.
    InsufficientResources,
    /// The API server, KubeVirt or CDI refused, did not answer, or is not installed.
    KubeVirtApiError,
}

impl Reason {
    /// All of them, for metrics and documents.
    pub const ALL: [Self; 11] = [
        Self::InvalidSpec,
        Self::TemplateNotFound,
        Self::NetworkConfigurationNotFound,
        Self::StorageClassNotFound,
        Self::CloudInitNotFound,
        Self::DiskConflict,
        Self::DiskInUse,
        Self::NameTaken,
        Self::EditRefused,
        Self::InsufficientResources,
        Self::KubeVirtApiError,
    ];

    /// The constant in conditions, events and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::TemplateNotFound => "TemplateNotFound",
            Self::NetworkConfigurationNotFound => "NetworkConfigurationNotFound",
            Self::StorageClassNotFound => "StorageClassNotFound",
            Self::CloudInitNotFound => "CloudInitNotFound",
            Self::DiskConflict => "DiskConflict",
            Self::DiskInUse => "DiskInUse",
            Self::NameTaken => "NameTaken",
            Self::EditRefused => "EditRefused",
            Self::InsufficientResources => "InsufficientResources",
            Self::KubeVirtApiError => "KubeVirtApiError",
        }
    }

    /// Whether only a person can remove it. The others go away when something else appears.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::InvalidSpec | Self::DiskConflict | Self::NameTaken)
    }
}

/// One problem: where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is.
    pub reason: Reason,
    /// The field of the Machine, for example `spec.disks[1].size`; empty where it is about none.
    pub path: String,
    /// A sentence with the remedy.
    pub message: String,
}

impl Problem {
    /// A problem with a field.
    pub fn new(reason: Reason, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// All problems in one sentence each, as conditions show them.
#[must_use]
pub fn joined(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
