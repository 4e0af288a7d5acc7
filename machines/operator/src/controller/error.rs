//! Why a reconcile ends early.

use advisor_cluster::ClusterError;
use machines_core::problem::Reason;

/// Why a reconcile ends early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request failed.
    #[error("{doing}: {}", .source.displayed())]
    Request {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: ClusterError,
    },
    /// The Machine does not fit its type.
    #[error("the Machine can't be read: {0}")]
    Unreadable(String),
}

impl Error {
    /// Whether the objects have changed since they were read: it is tried again at once.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        matches!(self, Self::Request { source: ClusterError::Moved, .. })
    }

    /// The constant in metrics and conditions.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Request { source: ClusterError::Refused(refusal), .. }
                if refusal.message.contains("exceeded quota") =>
            {
                Reason::InsufficientResources
            }
            Self::Request { .. } => Reason::KubeVirtApiError,
            Self::Unreadable(_) => Reason::InvalidSpec,
        }
    }
}

/// Adds what was being done to a failed request.
pub(super) fn doing<T>(what: impl Into<String>, result: Result<T, ClusterError>) -> Result<T, Error> {
    result.map_err(|source| Error::Request { doing: what.into(), source })
}
