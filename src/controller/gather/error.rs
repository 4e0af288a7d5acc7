//! What can't be read: nothing is decided then, and the next reconcile starts anew.

use advisor_cluster::{ClusterError, Served};
use advisor_engine::engine::EngineError;
use profile_sdk::Kind;

use crate::controller::Context;
use crate::controller::watches::NotListed;

/// Something could not be read. Nothing is decided; the next reconcile starts over.
#[derive(Debug, thiserror::Error)]
pub(in crate::controller) enum GatherError {
    /// A kind could not be looked up.
    #[error("looking up kind {kind} failed: {source}")]
    Kind { kind: &'static str, source: ClusterError },
    /// An object could not be read.
    #[error("reading {object} failed: {source}")]
    Object { object: String, source: ClusterError },
    /// The state of the rollouts is not known.
    #[error(transparent)]
    Rollouts(#[from] NotListed),
    /// A pool names a rendered configuration that does not exist.
    #[error("{object} does not exist, although machines are to be updated to it")]
    Rendered { object: String },
    /// An item can't be planned at the moment.
    #[error("{object}: {problem}")]
    Passing { object: String, problem: String },
    /// Changes of something that the plan depends on would not be noticed.
    #[error("{kind}: {remedy}")]
    Unwatched { kind: String, remedy: String },
    /// The items could not be planned.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl GatherError {
    /// The text that may be displayed.
    pub(in crate::controller) fn displayed(&self) -> String {
        match self {
            Self::Kind { kind, source } => format!("Kind {kind} can't be looked up: {}", source.displayed()),
            Self::Object { object, source } => format!("{object} can't be read: {}", source.displayed()),
            Self::Engine(error) => error.displayed(),
            Self::Rollouts(_) | Self::Rendered { .. } | Self::Passing { .. } | Self::Unwatched { .. } => {
                self.to_string()
            }
        }
    }

    /// A word for logs.
    pub(in crate::controller) fn reason(&self) -> &'static str {
        match self {
            Self::Rollouts(_) => "NotListed",
            Self::Rendered { .. } => "NotFound",
            Self::Passing { .. } => "Unavailable",
            Self::Unwatched { .. } => "Forbidden",
            Self::Engine(error) => error.reason(),
            Self::Kind { source, .. } | Self::Object { source, .. } => source.reason(),
        }
    }
}

/// The kind as it is served, if it is.
pub(in crate::controller) async fn resolve(ctx: &Context, kind: &Kind) -> Result<Option<Served>, GatherError> {
    ctx.cluster.resolve(kind).await.map_err(|source| GatherError::Kind { kind: kind.kind, source })
}
