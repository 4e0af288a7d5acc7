//! The guards of approval and execution, by name.
//!
//! Each guard is a condition that stops something. They have names so that the model check can
//! disable every guard in turn and show that it is needed: without it, something is written that
//! nobody approved, or an approval is lost.

/// A condition that may stop an approval, a step or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Nothing is done for an object that is being deleted.
    BeingDeleted,
    /// With action Ignore the operator does nothing.
    Ignored,
    /// Nothing is approved unless the action is Apply.
    NotApply,
    /// A plan that was not shown can't have been read.
    NotShown,
    /// A hash approves the plan that it names, and keeps every other rule from approving another
    /// plan.
    OtherHash,
    /// A hash that was in the spec before the plan was shown approves nothing.
    OldHash,
    /// An automatic policy covers plans that come from an edit of the spec, not those that come
    /// from changes in the cluster.
    NoEdit,
    /// Approval in advance is for a first plan.
    NotFirst,
    /// Approval in advance does not cover a plan that takes something from others.
    TakesFromOthers,
    /// The action approves by going from DryRun to Apply, and the plan must have been published
    /// under DryRun.
    NotShownUnderDryRun,
    /// An edit that approves by the action changes nothing else in the spec.
    SpecChanged,
    /// A plan that replaced another one within the minute before its approval may not be the one
    /// that was read.
    TooFresh,
    /// The plan that was read may belong to an earlier object of the same name.
    MadeAnew,
    /// A time in the future is no evidence of when something was approved.
    ForgedTime,
    /// The terms under which a plan is carried out are part of what is approved.
    OtherTerms,
    /// An automatic policy approves what an edit of the options leads to, but not if others changed
    /// something since a plan was carried out.
    PolicyOfOthers,
    /// bypassOptimisticLock is for targets that change, not for other options, inputs or versions.
    BypassOfOthers,
    /// bypassOptimisticLock restores what was applied before, and nothing that nobody ever
    /// approved.
    BypassOfNew,
    /// bypassOptimisticLock does not fight another writer forever.
    Thrashing,
    /// A plan with a blocked item can't be executed.
    BlockedItem,
    /// A failure ends only when its cause may be gone.
    CauseRemains,
    /// Going back from Apply withdraws the approval.
    ActionWithdrawn,
    /// Removing the approving hash withdraws the approval.
    HashWithdrawn,
    /// Switching bypassOptimisticLock off withdraws what it approved.
    BypassWithdrawn,
    /// The intent is stored before the first write.
    NoIntent,
    /// The executed plan must have the approved digest.
    OtherDigest,
    /// A written object that somebody changed afterwards is not restored.
    WrittenMoved,
    /// An object that is not written yet must be as it was reviewed.
    UnwrittenMoved,
    /// While part of what was approved can't be previewed, nothing of it is written.
    Unknown,
    /// A wave waits until the one before it is in effect.
    WaveUnfinished,
    /// With failurePolicy Abort nothing is written after a failure.
    Aborted,
    /// Nothing is written after an item that could not be previewed.
    Deferred,
    /// A wait ends when its time is up.
    TimeIsUp,
    /// A paused rollout is not overdue.
    Paused,
    /// An approval ends with its execution.
    ApprovalUsedUp,
    /// A hash that approved one execution does not approve another.
    HashUsedUp,
    /// The configuration is read again before each write: it may have been edited since.
    Superseded,
}

#[cfg(test)]
impl Guard {
    /// All guards.
    pub(in crate::plan) const ALL: [Self; 37] = [
        Self::BeingDeleted,
        Self::Ignored,
        Self::NotApply,
        Self::NotShown,
        Self::OtherHash,
        Self::OldHash,
        Self::NoEdit,
        Self::NotFirst,
        Self::TakesFromOthers,
        Self::NotShownUnderDryRun,
        Self::SpecChanged,
        Self::TooFresh,
        Self::MadeAnew,
        Self::ForgedTime,
        Self::OtherTerms,
        Self::PolicyOfOthers,
        Self::BypassOfOthers,
        Self::BypassOfNew,
        Self::Thrashing,
        Self::BlockedItem,
        Self::CauseRemains,
        Self::ActionWithdrawn,
        Self::HashWithdrawn,
        Self::BypassWithdrawn,
        Self::NoIntent,
        Self::OtherDigest,
        Self::WrittenMoved,
        Self::UnwrittenMoved,
        Self::Unknown,
        Self::WaveUnfinished,
        Self::Aborted,
        Self::Deferred,
        Self::TimeIsUp,
        Self::Paused,
        Self::ApprovalUsedUp,
        Self::HashUsedUp,
        Self::Superseded,
    ];
}

/// Whether `guard` stops what is about to happen.
#[cfg(not(test))]
#[inline]
pub(in crate::plan) const fn stops(_guard: Guard, condition: bool) -> bool {
    condition
}

#[cfg(test)]
pub(in crate::plan) use disabling::{disable, stops};

#[cfg(test)]
mod disabling {
    use std::cell::Cell;

    use super::Guard;

    thread_local! {
        static DISABLED: Cell<Option<Guard>> = const { Cell::new(None) };
    }

    /// Disables `guard` in this thread.
    pub(in crate::plan) fn disable(guard: Option<Guard>) {
        DISABLED.set(guard);
    }

    /// Whether `guard` stops what is about to happen.
    pub(in crate::plan) fn stops(guard: Guard, condition: bool) -> bool {
        condition && DISABLED.get() != Some(guard)
    }
}
