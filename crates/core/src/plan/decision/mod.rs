//! What can be decided: plain data, made by [`crate::plan::decision::decide`] and carried out by the controller.

pub mod approval;
pub mod changes;
pub mod decide;
pub mod execution;
pub mod observed;
pub mod reason;

use jiff::Timestamp;

use crate::api::{Approval, ItemState, Phase};

/// What happens next.
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
    /// Show the plan that was made now.
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

/// A plan to show, and where it leaves the configuration.
#[derive(Debug, PartialEq)]
pub struct Publication {
    /// ReviewRequired, Drifted, CompletedWithUpgrade or Completed.
    pub phase: Phase,
    /// Why, a constant of [`crate::plan::decision::reason`].
    pub reason: &'static str,
    /// What moved, for the reader; may be empty. While the same plan is shown for the same reason, the first one stays.
    pub detail: String,
    /// What keeps it from being carried out and what to do; may be empty. It is always the latest.
    pub remedy: String,
    /// Whether it must be told even where the same plan was shown before, with another text.
    pub news: bool,
    /// How an execution ended by this, for the history.
    pub ended: Option<Outcome>,
}

/// One step of an execution.
#[derive(Debug, PartialEq)]
pub struct Execution {
    /// The approval that it rests on.
    pub approval: Approval,
    /// Whether it takes the place of an execution that ends by this.
    pub replaces: bool,
    /// The items whose state or message is known anew.
    pub steps: Vec<Step>,
    /// The items to write now. Their intent is stored.
    pub write: Vec<String>,
    /// When to look again without an event.
    pub look_again: LookAgain,
}

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookAgain {
    /// As soon as this step is stored.
    AtOnce,
    /// When something changes.
    OnEvent,
    /// When something changes, at the latest then.
    At(Timestamp),
}

/// What becomes of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The item's name.
    pub item: String,
    /// Its state from now on.
    pub state: ItemState,
    /// What to tell about it.
    pub message: String,
    /// Whether somebody has paused it.
    pub paused: bool,
}

/// An execution that ends with failed items.
#[derive(Debug, PartialEq)]
pub struct Failure {
    /// Failed or CompletedWithErrors.
    pub phase: Phase,
    /// What failed and what to do.
    pub message: String,
    /// The items whose state or message is known anew.
    pub steps: Vec<Step>,
}

/// How an execution ended, as the history has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is in effect.
    Completed,
    /// The rest is, and some items failed.
    CompletedWithErrors,
    /// An item failed, and what comes after it was not begun.
    Failed,
    /// The action is no longer Apply.
    Withdrawn,
    /// Another plan takes its place.
    Stale,
}

impl Outcome {
    /// What it is called in `history[].outcome`.
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
