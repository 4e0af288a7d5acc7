//! The choices of a spec about what the operator may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the operator may go: DryRun, Apply or Ignore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// Plan, show, wait.
    #[default]
    DryRun,
    /// Execute an approved plan.
    Apply,
    /// Read nothing, write nothing.
    Ignore,
}

/// What a failed item means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// Stop; later items stay Pending.
    #[default]
    Abort,
    /// Go on with the other items.
    Continue,
}

impl FailurePolicy {
    /// Whether it is the one that holds if spec does not say.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who approves plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovalPolicy {
    /// A person, plan by plan.
    #[default]
    Review,
    /// Whoever edits `spec.options` with action Apply.
    Automatic,
}
