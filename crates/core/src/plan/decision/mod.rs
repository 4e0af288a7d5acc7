//! Decisions: what happens next to a configuration. Plain data, made by one exhaustive function and
//! carried out by the controller.
//!
//! ```text
//!   Observed ─► decide ─┬─ approval    which edit approves which plan
//!                       ├─ execution   the next step of what is approved
//!                       ├─ changes     what moved since a plan was shown
//!                       └─► Decision   with a reason
//! ```

pub mod approval;
pub mod changes;
pub mod decide;
pub mod execution;
pub mod observed;
pub mod reason;

use jiff::Timestamp;

use crate::api::{Approval, ItemState, Phase};

/// The next step.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Nothing at all: the object is being deleted.
    Leave,
    /// Report that the action is Ignore.
    StandAside,
    /// Report that no plan can be made from this spec.
    Reject(String),
    /// Report what is missing.
    AwaitPrerequisites(Vec<String>),
    /// Everything stays as it was reported.
    Hold,
    /// Show the current plan.
    Publish(Publication),
    /// Carry out the approved plan.
    Execute(Execution),
    /// End the execution with items that failed.
    Fail(Failure),
}

impl Decision {
    /// Whether an execution is under way.
    #[must_use]
    pub fn is_execution(&self) -> bool {
        matches!(self, Self::Execute(_))
    }
}

/// A plan to show, and the phase in which it leaves the configuration.
#[derive(Debug, PartialEq)]
pub struct Publication {
    /// ReviewRequired, Drifted, CompletedWithUpgrade, Completed, or InProgress if a satisfied plan
    /// is not in effect yet.
    pub phase: Phase,
    /// The reason, a constant of [`crate::plan::decision::reason`].
    pub reason: &'static str,
    /// What changed, for the reader; may be empty. While the same plan is shown for the same
    /// reason, the first detail is kept.
    pub detail: String,
    /// Why it is not carried out and what to do; may be empty. Always the latest.
    pub remedy: String,
    /// Whether it must be reported although the same plan was shown before, with another text.
    pub news: bool,
    /// The outcome of the execution that this ends, for the history.
    pub ended: Option<Outcome>,
}

/// One step of an execution.
#[derive(Debug, PartialEq)]
pub struct Execution {
    /// The approval that it rests on.
    pub approval: Approval,
    /// Whether it replaces an execution that ends with this step.
    pub replaces: bool,
    /// The items with a new state or message.
    pub steps: Vec<Step>,
    /// The items to write now. Their intent is already stored.
    pub write: Vec<String>,
    /// When to reconcile again without an event.
    pub look_again: LookAgain,
}

/// The time of the next reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookAgain {
    /// As soon as this step is stored.
    AtOnce,
    /// When something changes.
    OnEvent,
    /// When something changes, but at this time at the latest.
    At(Timestamp),
}

/// The new state of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The item's name.
    pub item: String,
    /// Its state from now on.
    pub state: ItemState,
    /// The message about it.
    pub message: String,
    /// Whether somebody has paused it.
    pub paused: bool,
}

/// An execution that ends with failed items.
#[derive(Debug, PartialEq)]
pub struct Failure {
    /// Failed or CompletedWithErrors.
    pub phase: Phase,
    /// The failures, and what to do.
    pub message: String,
    /// The items with a new state or message.
    pub steps: Vec<Step>,
}

/// The outcome of an execution, as recorded in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is in effect.
    Completed,
    /// Some items failed, and all others are in effect.
    CompletedWithErrors,
    /// An item failed, and what comes after it was not begun.
    Failed,
    /// The approval was withdrawn: by the action, by removing the hash, or by switching the bypass
    /// off.
    Withdrawn,
    /// The plan is no longer the approved one.
    Stale,
}

impl Outcome {
    /// The value in `history[].outcome`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "Completed",
            Self::CompletedWithErrors => "CompletedWithErrors",
            Self::Failed => "Failed",
            Self::Withdrawn => "Withdrawn",
            Self::Stale => "Stale",
        }
    }
}
