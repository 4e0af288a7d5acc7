//! What every reconcile shares, and what the program sets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use advisor_cluster::Cluster;
use operator_kit::leader::Fence;
use parking_lot::Mutex;

use super::report::Definition;
use crate::cluster::mirror::Key;
use crate::cluster::reader::Reader;
use crate::telemetry::Metrics;

/// What becomes of claims when a Machine is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum DiskDeletion {
    /// Claims that are provably the Machine's are deleted, unless they are marked to be kept.
    #[default]
    Delete,
    /// No claim is ever deleted.
    Never,
}

/// What the program sets.
#[derive(Clone)]
pub struct Settings {
    /// Decides whether this replica writes.
    pub fence: Fence,
    /// How many Machines are worked on at once.
    pub concurrency: u16,
    /// The longest pause between two tries of a Machine that something stands in the way of.
    pub longest_pause: Duration,
    /// What becomes of claims.
    pub disk_deletion: DiskDeletion,
    /// Counts what happens.
    pub metrics: Metrics,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fence: Fence::open(),
            concurrency: 5,
            longest_pause: Duration::from_secs(30),
            disk_deletion: DiskDeletion::default(),
            metrics: Metrics::default(),
        }
    }
}

/// What every reconcile shares. The cluster is one value: nothing else knows which one it is.
pub(super) struct Context {
    pub(super) cluster: Arc<Cluster>,
    pub(super) reader: Reader,
    pub(super) settings: Settings,
    /// Failures in a row, by Machine.
    pub(super) failures: Mutex<BTreeMap<Key, u32>>,
    /// What the definition of Machines serves, as it was last read.
    pub(super) definition: Mutex<Option<Definition>>,
}
