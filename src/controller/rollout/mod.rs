//! Kinds whose objects take effect elsewhere and later: what they set in motion, and how far it is.
//!
//! Everything that is special about such a kind stays behind [`Rollouts`].

mod contents;
mod pool;
mod pools;

pub(super) use pools::MachineConfigPools;

use profile_sdk::{Access, Declared, Kind};
use serde_json::Value;

use crate::api::TargetRef;
use crate::plan::health::Rollout;
use crate::plan::item::Effect;

const POOL: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
};
const MACHINE_CONFIG: Kind = Kind { kind: "MachineConfig", plural: "machineconfigs", ..POOL };

/// What following rollouts reads. Rendered MachineConfigs have names that nobody knows beforehand.
pub const ROLLOUT_KINDS: &[Declared] = &[
    Declared { kind: POOL, access: Access::Read, name: None },
    Declared { kind: MACHINE_CONFIG, access: Access::Read, name: None },
];

/// How far a written object is.
#[derive(Debug, PartialEq)]
pub(super) enum Standing {
    /// Known from what is watched.
    Known(Rollout),
    /// These objects must be read first, and given to [`Rollouts::learn`].
    Unread(Vec<String>),
}

/// How an object was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It is new, or unchanged: what holds its content has taken it in.
    New,
    /// It was edited, and may have lost something: what holds its content may hold the old one.
    Edited,
}

/// The part of the world in which objects of one kind take effect.
pub(super) trait Rollouts: Send + Sync {
    /// The kind that tells about rollouts. Few and small objects, watched in full, so that progress costs no request.
    fn watched(&self) -> Kind;

    /// The kind that [`Standing::Unread`] names objects of.
    fn learned(&self) -> Kind;

    /// Whether `target` takes effect through these rollouts.
    fn concern(&self, target: &TargetRef) -> bool;

    /// A watched object was found or has changed.
    fn saw(&self, object: &Value);

    /// A watched object is gone.
    fn lost(&self, name: &str);

    /// These are all watched objects.
    fn saw_all(&self, objects: &[Value]);

    /// What applying `result` in place of `live` sets in motion.
    ///
    /// # Errors
    ///
    /// A sentence with the remedy if it would never take effect.
    fn effect(&self, live: Option<&Value>, result: &Value) -> Result<Effect, String>;

    /// How far `object`, as it is now, is.
    fn standing(&self, object: &Value, change: Change) -> Standing;

    /// Learns what `read`, one of the objects that [`Standing::Unread`] named, says of `object`.
    fn learn(&self, object: &Value, name: &str, read: &Value);

    /// A text that changes whenever something changes that matters for `object`: for its plan, and while it is rolled
    /// out also for its progress.
    fn fingerprint(&self, object: &Value, rolling: bool) -> String;
}
