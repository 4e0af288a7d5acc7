//! Kinds and objects as a profile names them.

use std::fmt;

use crate::Read;

/// A kind of a third party, with the versions a profile understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Understood versions, best first. The first one that the cluster serves is used, for reading and for writing.
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

    /// Whether Kubernetes itself brings this kind, as its group says. Of those a cluster has many objects, which are none of ours: the named ones are
    /// watched one by one, and RBAC is limited to them.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        !self.group.contains('.') || self.group.ends_with(".k8s.io")
    }
}

/// Groups and kinds whose objects run code on machines or grant rights; `*` stands for every kind of the group.
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

/// Whether objects of the kind run code on machines or grant rights. Nobody who can only annotate one may change what is written
/// to it.
#[must_use]
pub fn is_powerful(group: &str, kind: &str) -> bool {
    POWERFUL.iter().any(|(known, name)| *known == group && (*name == "*" || *name == kind))
}

/// Few and small objects whose owners write their status all the time: HyperConverged's copies the versions of all that it owns into it
/// (kubevirt/hyperconverged-cluster-operator 03da3cff7325), the descheduler's repeats two conditions a minute
/// (openshift/cluster-kube-descheduler-operator 945dcaa9d895), that of NodeHealthChecks counts nodes there.
const TALKATIVE: [(&str, &str); 3] = [
    ("hco.kubevirt.io", "HyperConverged"),
    ("operator.openshift.io", "KubeDescheduler"),
    ("remediation.medik8s.io", "NodeHealthCheck"),
];

/// Whether the owner of the kind's objects writes their status all the time: they are watched in full, so that what says nothing new
/// costs no request.
#[must_use]
pub fn is_talkative(group: &str, kind: &str) -> bool {
    TALKATIVE.contains(&(group, kind))
}

/// What a profile does with the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only asks whether the cluster serves the kind: that needs no right.
    Ask,
    /// Only reads them.
    Read,
    /// Applies one that exists; it is never created, because creating it would install something.
    Update,
    /// Creates and applies them, and never deletes one: what is not wanted any more loses what we applied of it.
    Create,
    /// Creates and applies them, and deletes what it created and does not want any more.
    Write,
    /// Creates and applies them, and never deletes one. A field of it is a document that others keep too: what the draft has there is
    /// merged into what is there, by key, and is taken out again when it is not wanted any more.
    Merge(&'static Document),
}

/// A document in a field, YAML, of which only some settings are the profile's.
#[derive(Debug, PartialEq, Eq)]
pub struct Document {
    /// Where it is in the object, an RFC 6901 pointer.
    pub field: &'static str,
    /// The settings, as YAML.
    pub settings: &'static str,
}

/// A kind, and what the profile does with it. Watches and RBAC are derived from this.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// The kind.
    pub kind: Kind,
    /// What is done with it.
    pub access: Access,
    /// The only object that is read or written, if there is only one; RBAC is then limited to that name, and for kinds of Kubernetes
    /// itself the watch too.
    pub name: Option<&'static str>,
    /// The only namespace in which it is, for kinds that are too sensitive or too many to be watched everywhere: watch and
    /// RBAC are then limited to it. `None` for kinds that have no namespace, and where it is not known beforehand.
    pub namespace: Option<&'static str>,
}

/// Rights that objects of a profile grant to others. Kubernetes lets nobody grant what he does not have himself, unless he may `bind`
/// the role that has it.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Lower-case plurals.
    pub resources: &'static [&'static str],
    /// The only objects; empty for all.
    pub names: &'static [&'static str],
    /// What may be done with them.
    pub verbs: &'static [&'static str],
}

/// Another program that writes objects of the profile, and writes its own values back. Reviewers are told before they take anything over
/// from it.
#[derive(Debug, Clone, Copy)]
pub struct Rival {
    /// Its field manager.
    pub manager: &'static str,
    /// The label that it puts on what it manages, and the value of it.
    pub label: (&'static str, &'static str),
    /// What an administrator does so that it leaves the object alone: a sentence.
    pub remedy: &'static str,
}

/// virt-platform-autopilot, which manages what several profiles do. It applies by force whatever it finds otherwise, and looks at everything
/// every five minutes.
pub const AUTOPILOT: Rival = Rival {
    manager: "virt-platform-autopilot",
    label: ("platform.kubevirt.io/managed-by", "virt-platform-autopilot"),
    remedy: "virt-platform-autopilot manages it too and writes its own values back: switch that off first, with the annotation \
             platform.kubevirt.io/autopilot of HyperConverged, which is \"false\" or lists what it is to keep",
};

/// Something that must exist before a plan can be made.
#[derive(Debug, Clone)]
pub struct Prerequisite {
    /// The kind that must be served.
    pub kind: Kind,
    /// The object that must exist; `None` if the kind is enough.
    pub object: Option<Read>,
    /// What to install or create, in one sentence for an administrator.
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
