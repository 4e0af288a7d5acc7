//! Kinds whose objects take effect elsewhere and later: the effects of a change, and how far it is.
//!
//! Everything that is special about such a kind stays behind [`Rollouts`].
//!
//! ```text
//!   planned change ─► forecast ─► Forecast::Known(effect)   plan time: [`Forecasting`]
//!                        │ ▲
//!                   Needed │ record_for_forecast
//!                        ▼ │
//!                      facts        what was read of rendered configurations and their sources
//!                        │ ▲
//!                   Needed │ record_for_progress
//!                        ▼ │
//!   written object ─► progress ─► Progress::Known(rollout)  execution time: [`Tracking`]
//! ```

mod contents;
mod disruption;
mod facts;
mod forecast;
mod holdup;
mod kubelet;
mod merge;
mod pool;
mod pools;

pub use crate::plan::items::tracked::Tracked;
pub use pools::MachineConfigPools;

use std::collections::BTreeMap;

use profile_sdk::{Access, Declared, Kind};
use serde_json::Value;

use crate::api::TargetRef;
use crate::plan::items::health::Rollout;
use crate::plan::items::{Effect, Overridden};
use crate::plan::remedy::Remedy;

/// The kind that shows how far rollouts are.
pub const POOL: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
};
const MACHINE_CONFIG: Kind = Kind { kind: "MachineConfig", plural: "machineconfigs", ..POOL };
const KUBELET_CONFIG: Kind = Kind { kind: "KubeletConfig", plural: "kubeletconfigs", ..POOL };

/// The kind that is read to follow rollouts, besides the pools, which are watched. Names of
/// rendered MachineConfigs are not known in advance.
pub const LEARNED: Declared = Declared { kind: MACHINE_CONFIG, access: Access::Read, name: None, namespace: None };

const NODE: Kind = Kind { group: "", versions: &["v1"], kind: "Node", plural: "nodes" };

/// Kinds that are listed to predict the effect of a change and to find what holds up a rollout.
pub const ASKED_KINDS: &[Kind] = &[NODE, KUBELET_CONFIG, MACHINE_OS_CONFIG, MACHINE_CONFIGURATION];

/// Names the pools whose machines boot an image that is built first. Served from release-4.18 on,
/// where that is generally available.
pub const MACHINE_OS_CONFIG: Kind = Kind { kind: "MachineOSConfig", plural: "machineosconfigs", ..POOL };

/// Says for which files and units machines do not reboot. Does so from release-4.17 on, where node
/// disruption policies are generally available.
pub const MACHINE_CONFIGURATION: Kind = Kind {
    group: "operator.openshift.io",
    versions: &["v1"],
    kind: "MachineConfiguration",
    plural: "machineconfigurations",
};

/// A query for objects that may hold up a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The kind of the objects.
    pub kind: Kind,
    /// Selects some of them, if set.
    pub field_selector: Option<&'static str>,
    /// Whether their metadata is enough.
    pub metadata_only: bool,
}

/// A MachineConfig that must be read, and what it is to tell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needed {
    /// A rendered configuration: what a pool has.
    Rendered(String),
    /// A source of rendered configurations: what it brings.
    Source(String),
    /// A MachineConfig generated from a KubeletConfig: from which one.
    Maker(String),
    /// The MachineConfig generated from the tracked KubeletConfig: its contents.
    Generated(String),
    /// A MachineConfig that may have been generated from a removed KubeletConfig: whether it
    /// exists.
    Existence(String),
}

impl Needed {
    /// The name of the object.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Rendered(name)
        | Self::Source(name)
        | Self::Maker(name)
        | Self::Generated(name)
        | Self::Existence(name)) = self;
        name
    }

    /// Whether an answer that there is no such object is an answer.
    #[must_use]
    pub fn may_be_gone(&self) -> bool {
        matches!(self, Self::Existence(_))
    }
}

/// How an object that is there was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new, or unchanged: a rendered configuration that has its content has taken it up.
    New,
    /// It was edited, and may have lost something: a rendered configuration that has its content
    /// may still be the old one.
    Edited,
}

/// How far a written object is.
#[derive(Debug, PartialEq)]
pub enum Progress {
    /// Known from what is watched.
    Known(Rollout),
    /// These objects must be read first, and given to [`Tracking::record_for_progress`].
    Unread(Vec<Needed>),
}

/// A planned change: the object as it is, if it exists, and as it would be, if it is not deleted.
#[derive(Debug, Clone, Copy)]
pub struct PlannedChange<'a> {
    /// The object as it is.
    pub live: Option<&'a Value>,
    /// The object as it would be.
    pub result: Option<&'a Value>,
    /// Whether it is a removal, which must be possible in every case.
    pub takes_back: bool,
    /// The names of the objects of [`Rollouts::read_kind`] that the same plan removes: what they
    /// bring does not stay.
    pub leaving: &'a [String],
}

/// The predicted effect of a planned change.
#[derive(Debug, PartialEq)]
pub enum Forecast {
    /// Known: the effect, or a sentence with the remedy if the change would never take effect.
    Known(Result<Effect, Remedy>),
    /// These objects must be read first, and given to [`Forecasting::record_for_forecast`].
    Unread(Vec<Needed>),
    /// All objects of this kind must be listed first, and given to [`Forecasting::kind_listed`].
    Unlisted(Kind),
}

/// The part of the cluster in which objects of one kind take effect.
pub trait Rollouts: Forecasting + Tracking {
    /// The kind that shows the state of rollouts. It has few and small objects, which are all
    /// watched, so progress costs no request.
    fn watched_kind(&self) -> Kind;

    /// The kind that [`Needed`] names objects of.
    fn read_kind(&self) -> Kind;

    /// Records that a watched object was found or has changed.
    fn pool_seen(&self, object: &Value);

    /// Records that a watched object was deleted.
    fn pool_gone(&self, name: &str);

    /// Replaces all watched objects by these.
    fn pools_listed(&self, objects: &[Value]);
}

/// At plan time: what changes set in motion.
pub trait Forecasting: Send + Sync {
    /// Whether a change of `target` sets something in motion.
    fn has_effects(&self, target: &TargetRef) -> bool;

    /// The predicted effect of `planned`.
    fn forecast(&self, planned: PlannedChange<'_>) -> Forecast;

    /// Records what `read`, which [`Forecast::Unread`] asked for, says of `planned`; `None` if it
    /// is gone.
    fn record_for_forecast(&self, planned: PlannedChange<'_>, needed: &Needed, read: Option<&Value>);

    /// Replaces all objects of a kind that [`Forecast::Unlisted`] named by these.
    fn kind_listed(&self, kind: Kind, objects: &[Value]);

    /// Has what sources bring, and what was listed, read again before it is believed.
    fn read_anew(&self);

    /// A text that changes whenever something changes that plans depend on.
    fn plan_fingerprint(&self) -> String;
}

/// At execution time: how far written objects are.
pub trait Tracking: Send + Sync {
    /// Whether an object is tracked, and its removal too.
    fn is_tracked(&self, target: &TargetRef) -> bool;

    /// The part of `object` that is kept to track it; `None` if it does not take effect through
    /// these rollouts.
    fn snapshot(&self, object: &Value) -> Option<Tracked>;

    /// How far `tracked` is. `change` is how it was changed, if it is there.
    fn progress(&self, tracked: &Tracked, change: ChangeKind) -> Progress;

    /// Records what `read`, which [`Progress::Unread`] asked for, says of `tracked`; `None` if it
    /// is gone.
    fn record_for_progress(&self, tracked: &Tracked, needed: &Needed, read: Option<&Value>);

    /// How many machines of each pool that `tracked` concerns have it as it is now, as far as what
    /// was read tells.
    fn machines_updated(&self, tracked: &Tracked, change: ChangeKind) -> BTreeMap<String, u32>;

    /// What others override of `tracked`, as far as what was read tells: the machines of a pool
    /// have theirs instead.
    fn overridden(&self, tracked: &Tracked) -> Overridden;

    /// Whether only a person can make `tracked` go on, if that does not pass by itself.
    fn is_stuck(&self, tracked: &Tracked, change: ChangeKind) -> bool;

    /// Where to look if `tracked` has come no further for a while; nowhere if that is no question.
    fn questions(&self, tracked: &Tracked) -> Vec<Question>;

    /// What `found`, all objects that `question` asks for, hold of `tracked` up: a sentence with
    /// the remedy.
    fn holdup(&self, tracked: &Tracked, question: &Question, found: &[Value]) -> Option<String>;

    /// The part of `tracked` that [`Tracking::progress_fingerprint`] depends on: it is kept, and
    /// the rest may be large.
    fn outline(&self, tracked: &Tracked) -> Tracked;

    /// A text that changes whenever something changes that the progress of `tracked` depends on.
    fn progress_fingerprint(&self, tracked: &Tracked) -> String;
}
