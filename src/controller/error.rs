//! A reconcile that came to no end, and how that is reported.

use std::time::Duration;

use advisor_cluster::ClusterError;

use super::act::ActError;
use super::gather::GatherError;

/// The longest time for one reconcile; after that it is given up and made again.
pub(super) const BUDGET: Duration = Duration::from_secs(60);

/// A reconcile that was not finished. It is logged once, here, and made again after a pause.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error("writing the status failed: {0}")]
    Status(#[source] ClusterError),
    /// A fault of this program.
    #[error("internal error: {0}")]
    Panicked(String),
    /// The status can't be stored.
    #[error("{0}")]
    NoRoom(String),
    #[error("The API server has not answered all requests within {} s", BUDGET.as_secs())]
    Timeout,
}

impl ReconcileError {
    /// A word for logs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Gather(error) => error.reason(),
            Self::Act(error) => error.reason(),
            Self::Status(error) => error.reason(),
            Self::Panicked(_) => "InternalError",
            Self::NoRoom(_) => "NoRoom",
            Self::Timeout => "Timeout",
        }
    }

    /// Somebody else was faster: this is normal, and no reason to wait long.
    pub(super) fn is_race(&self) -> bool {
        match self {
            Self::Status(ClusterError::Moved) | Self::Act(ActError::Superseded | ActError::Stopping) => true,
            Self::Gather(GatherError::Engine(error)) => error.is_race(),
            Self::Act(ActError::Target { source, .. }) => matches!(source, ClusterError::Moved),
            Self::Gather(_) | Self::Act(_) | Self::Status(_) | Self::Panicked(_) | Self::NoRoom(_) | Self::Timeout => {
                false
            }
        }
    }

    /// What the status says of it, where the world could not be read.
    pub(super) fn displayed(&self) -> Option<String> {
        match self {
            Self::Gather(unread) => Some(unread.displayed()),
            Self::Timeout => Some(self.to_string()),
            Self::Panicked(words) => Some(format!(
                "An internal error keeps the operator from planning this: {words}. Report it with the output of `virt-advisor must-gather`"
            )),
            Self::Act(_) | Self::Status(_) | Self::NoRoom(_) => None,
        }
    }

    /// Whether the status says so at the first time: another try is not likely to end otherwise.
    pub(super) fn is_reported_at_once(&self) -> bool {
        matches!(self, Self::Timeout | Self::Panicked(_))
    }
}
