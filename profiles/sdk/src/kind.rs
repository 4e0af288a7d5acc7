//! Kinds, objects, and what a profile declares about them.

use std::fmt;

use crate::Read;

/// A kind, with the versions that a profile understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// The versions that the profile understands, best first. The first one that the cluster serves
    /// is used for reading and writing.
    pub versions: &'static [&'static str],
    /// The kind, in CamelCase.
    pub kind: &'static str,
    /// The resource name, lower-case plural.
    pub plural: &'static str,
}

impl Kind {
    /// The name of the CRD that defines this kind.
    #[must_use]
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Whether Kubernetes itself provides this kind, judging by its group. A cluster has many
    /// unrelated objects of such kinds, so the named ones are watched one by one, and RBAC is
    /// limited to them.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }
}

/// Groups and kinds whose objects run code on machines or grant rights; `*` stands for every kind
/// of the group.
const POWERFUL: [(&str, &str); 14] = [
    ("", "Pod"),
    ("", "ReplicationController"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "*"),
    ("apiextensions.k8s.io", "*"),
    ("apiregistration.k8s.io", "*"),
    ("apps", "*"),
    ("batch", "*"),
    ("machineconfiguration.openshift.io", "*"),
    ("policy", "*"),
    ("rbac.authorization.k8s.io", "*"),
    ("security.openshift.io", "*"),
    ("tuned.openshift.io", "*"),
];

/// Whether objects of the kind run code on machines or grant rights. Neither annotations nor
/// spec.overrides may change what is written to such an object.
#[must_use]
pub fn is_powerful(group: &str, kind: &str) -> bool {
    POWERFUL.iter().any(|(known, name)| *known == group && (*name == "*" || *name == kind))
}

/// Few and small objects whose owners write their status all the time: HyperConverged's copies the
/// versions of all that it owns into it (kubevirt/hyperconverged-cluster-operator 03da3cff7325),
/// the descheduler's repeats two conditions a minute (openshift/cluster-kube-descheduler-operator
/// 945dcaa9d895), that of NodeHealthChecks counts nodes there.
const TALKATIVE: [(&str, &str); 3] = [
    ("hco.kubevirt.io", "HyperConverged"),
    ("operator.openshift.io", "KubeDescheduler"),
    ("remediation.medik8s.io", "NodeHealthCheck"),
];

/// Whether the owner of the kind's objects writes their status all the time. Such objects are
/// watched in full, so that a change without news costs no request.
#[must_use]
pub fn is_talkative(group: &str, kind: &str) -> bool {
    TALKATIVE.contains(&(group, kind))
}

/// The use that a profile makes of the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only asks whether the cluster serves the kind ([`crate::Inputs::serves`]), which requires no
    /// rights.
    Ask,
    /// Only reads the objects.
    Read,
    /// Applies an existing object. It is never created, because creating it would install
    /// something.
    Update,
    /// Creates and applies objects, and never deletes one: from an object that is no longer wanted,
    /// only the applied fields are removed.
    Create,
    /// Creates and applies objects, and deletes those that are no longer wanted if no other field
    /// manager owns fields of them.
    Write,
    /// Creates and applies objects, and never deletes one. A field of the object is a document that
    /// others edit too: the draft's settings are merged into it by key, and removed again when they
    /// are no longer wanted.
    Merge(&'static Document),
}

/// A YAML document in a field of an object, in which only some settings belong to the profile.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// A JSON Pointer (RFC 6901) to the field.
    pub field: &'static str,
    /// The settings of the profile, as YAML.
    pub settings: &'static str,
}

/// A kind and the use that the profile makes of it. Watches and RBAC are derived from this.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// The kind.
    pub kind: Kind,
    /// The use of the kind.
    pub access: Access,
    /// The name of the object that is read or written, if there is only one. RBAC is then limited
    /// to that name, and for built-in kinds the watch is too.
    pub name: Option<&'static str>,
    /// The namespace of the object, for kinds that are too sensitive or too numerous to be watched
    /// in all namespaces. Watch and RBAC are then limited to it. `None` for kinds without a
    /// namespace, and if the namespace is not known in advance.
    pub namespace: Option<&'static str>,
}

/// Rights that objects of a profile grant to others. Kubernetes lets nobody grant rights that they
/// don't have themselves, unless they have the verb `bind` on the role with these rights.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// The resource names, lower-case plurals.
    pub resources: &'static [&'static str],
    /// The names of the objects; empty for all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// Another program that writes objects of the profile, and restores its own values. The plan says
/// so before anything is taken over from it.
#[derive(Debug, Clone, Copy)]
pub struct Rival {
    /// Its field manager.
    pub manager: &'static str,
    /// The key and value of the label that it sets on the objects that it manages.
    pub label: (&'static str, &'static str),
    /// What an administrator must do so that it leaves the object alone: a sentence without a full
    /// stop.
    pub remedy: &'static str,
}

/// virt-platform-autopilot, which manages the same settings as several profiles. Every five minutes
/// it compares everything, and applies by force whatever differs.
pub const AUTOPILOT: Rival = Rival {
    manager: "virt-platform-autopilot",
    label: ("platform.kubevirt.io/managed-by", "virt-platform-autopilot"),
    remedy: "the object is also managed by virt-platform-autopilot, which restores its own values: first turn that off by setting the \
             annotation platform.kubevirt.io/autopilot of HyperConverged to \"false\", or to a list of what virt-platform-autopilot is to keep",
};

/// A kind or object that must exist before a plan can be made.
#[derive(Debug, Clone)]
pub struct Prerequisite {
    /// The kind that must be served.
    pub kind: Kind,
    /// The object that must exist; `None` if the kind is enough.
    pub object: Option<Read>,
    /// What to install or create: a clause for administrators in lower case and without a full
    /// stop. It follows `… is not installed: ` or `… does not exist: `.
    pub hint: &'static str,
}

/// An object on the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// `group/version`, or `version` for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace, for namespaced kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {}/{}", self.kind, namespace, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
