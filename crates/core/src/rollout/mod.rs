//! Kinds whose objects take effect elsewhere and later: what they set in motion, and how far it is.
//!
//! Everything that is special about such a kind stays behind [`Rollouts`].

mod contents;
mod disruption;
mod foresight;
mod holdup;
mod kubelet;
mod pool;
mod pools;

pub use pools::MachineConfigPools;

use std::collections::BTreeMap;

use profile_sdk::{Access, Declared, Kind};
use serde_json::Value;

use crate::api::TargetRef;
use crate::plan::items::health::Rollout;
use crate::plan::items::{Effect, Overridden};

/// What tells how far rollouts are.
pub const POOL: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
};
const MACHINE_CONFIG: Kind = Kind { kind: "MachineConfig", plural: "machineconfigs", ..POOL };
const KUBELET_CONFIG: Kind = Kind { kind: "KubeletConfig", plural: "kubeletconfigs", ..POOL };

/// What following rollouts reads beside the pools, which their watch tells in full. Rendered MachineConfigs have names that nobody
/// knows beforehand.
pub const LEARNED: Declared = Declared { kind: MACHINE_CONFIG, access: Access::Read, name: None, namespace: None };

const NODE: Kind = Kind { group: "", versions: &["v1"], kind: "Node", plural: "nodes" };

/// What is listed to find out what a change does, and what holds a rollout up.
pub const ASKED_KINDS: &[Kind] = &[NODE, KUBELET_CONFIG, MACHINE_OS_CONFIG, MACHINE_CONFIGURATION];

/// Says of which pools the machines boot an image that is built first. Served from release-4.18 on, where that is generally available.
pub const MACHINE_OS_CONFIG: Kind = Kind { kind: "MachineOSConfig", plural: "machineosconfigs", ..POOL };

/// Says for which files and units machines do not reboot. It does so from release-4.17 on, where node disruption policies are generally available.
pub const MACHINE_CONFIGURATION: Kind = Kind {
    group: "operator.openshift.io",
    versions: &["v1"],
    kind: "MachineConfiguration",
    plural: "machineconfigurations",
};

/// Where to look for what holds a rollout up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Objects of this kind.
    pub kind: Kind,
    /// Only those that this selects.
    pub field_selector: Option<&'static str>,
    /// Whether their metadata is enough.
    pub metadata_only: bool,
}

/// How far a written object is.
#[derive(Debug, PartialEq)]
pub enum Progress {
    /// Known from what is watched.
    Known(Rollout),
    /// These objects must be read first, and given to [`Rollouts::learn`].
    Unread(Vec<String>),
}

/// How an object was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new, or unchanged: what holds its content has taken it in.
    New,
    /// It was edited, and may have lost something: what holds its content may hold the old one.
    Edited,
    /// It is gone: of the object only its name is known, and under `pools` which pools had it.
    Removed,
}

/// A change that is planned: the object as it is, if it exists, and as it would be, if it would.
#[derive(Debug, Clone, Copy)]
pub struct PlannedChange<'a> {
    /// The object as it is.
    pub live: Option<&'a Value>,
    /// The object as it would be.
    pub result: Option<&'a Value>,
    /// Whether it is only taken back, which must be possible wherever it is.
    pub takes_back: bool,
    /// The names of the objects of [`Rollouts::learned`] that the same plan removes: what they bring does not stay.
    pub leaving: &'a [String],
}

/// What a planned change sets in motion.
#[derive(Debug, PartialEq)]
pub enum Outlook {
    /// Known; or a sentence with the remedy if it would never take effect.
    Known(Result<Effect, String>),
    /// These objects must be read first, and given to [`Rollouts::study`].
    Unread(Vec<String>),
    /// All objects of this kind must be listed first, and given to [`Rollouts::saw_listed`].
    Unlisted(Kind),
}

/// The part of the world in which objects of one kind take effect.
pub trait Rollouts: Send + Sync {
    /// The kind that tells about rollouts. Few and small objects, watched in full, so that progress costs no request.
    fn watched(&self) -> Kind;

    /// The kind that [`Progress::Unread`] and [`Outlook::Unread`] name objects of.
    fn learned(&self) -> Kind;

    /// Whether what is removed as `target` is followed: [`ChangeKind::Removed`] tells how far that is.
    fn concern(&self, target: &TargetRef) -> bool;

    /// What is kept of `object` to tell how far it is by [`Rollouts::standing`]; `None` if it does not take effect through these
    /// rollouts.
    fn follow(&self, object: &Value) -> Option<Value>;

    /// Whether a change of `target` sets something in motion that [`Rollouts::outlook`] tells of.
    fn foresee(&self, target: &TargetRef) -> bool;

    /// A watched object was found or has changed.
    fn saw(&self, object: &Value);

    /// A watched object is gone.
    fn lost(&self, name: &str);

    /// These are all watched objects.
    fn saw_all(&self, objects: &[Value]);

    /// These are all objects of a kind that [`Outlook::Unlisted`] named.
    fn saw_listed(&self, kind: Kind, objects: &[Value]);

    /// What `planned` sets in motion.
    fn outlook(&self, planned: PlannedChange<'_>) -> Outlook;

    /// Learns what `read`, one of the objects that [`Outlook::Unread`] named, says of `planned`; `None` if it is gone.
    fn study(&self, planned: PlannedChange<'_>, name: &str, read: Option<&Value>);

    /// How far `object`, as it is now, is.
    fn standing(&self, object: &Value, change: ChangeKind) -> Progress;

    /// Learns what `read`, one of the objects that [`Progress::Unread`] named, says of `object`; `None` if it is gone.
    fn learn(&self, object: &Value, name: &str, read: Option<&Value>);

    /// How many machines of each pool that `object` concerns have it as it is now, as far as what was read tells.
    fn updated(&self, object: &Value, change: ChangeKind) -> BTreeMap<String, u32>;

    /// What others override of `object`, as far as what was read tells: the machines of a pool have theirs instead.
    fn overridden(&self, object: &Value) -> Overridden;

    /// Whether only a person can make `object` go on, if that does not pass by itself.
    fn is_stuck(&self, object: &Value, change: ChangeKind) -> bool;

    /// What sources of rendered configurations bring, and what was listed, is to be read again before it is believed.
    fn read_anew(&self);

    /// Where to look if `object` has come no further for a while; nowhere if that is no question.
    fn questions(&self, object: &Value) -> Vec<Question>;

    /// What `found`, all objects that `question` asks for, hold of `object` up: a sentence with the remedy.
    fn holdup(&self, object: &Value, question: &Question, found: &[Value]) -> Option<String>;

    /// The part of `object` that [`Rollouts::fingerprint`] depends on: it is kept, and the rest may be large.
    fn outline(&self, object: &Value) -> Value;

    /// A text that changes whenever something changes that matters for `object`: for its plan, and while it is rolled
    /// out also for its progress.
    fn fingerprint(&self, object: &Value, rolling: bool) -> String;
}
