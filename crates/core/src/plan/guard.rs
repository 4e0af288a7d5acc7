//! The guards of approval and execution, by name.
//!
//! Each is a condition that stops something. The names exist so that the model check can take every guard out in turn and
//! show that it is needed: without it, somebody gets a write that nobody approved, or an approval that is lost.

/// What may stop an approval, a step or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Nothing is done for an object that is being deleted.
    BeingDeleted,
    /// Under action Ignore the operator stands aside.
    Ignored,
    /// Nothing is approved unless the action is Apply.
    NotApply,
    /// What was not shown was not read.
    NotShown,
    /// A hash approves the plan that it names, and keeps every other rule from approving another one.
    OtherHash,
    /// A hash that was there before the plan was shown approves nothing.
    OldHash,
    /// An automatic policy covers what an edit of the spec plans, and not what the world does.
    NoEdit,
    /// Approval in advance is for a first plan.
    NotFirst,
    /// Approval in advance takes nothing from others.
    TakesFromOthers,
    /// The action approves by going from DryRun to Apply, which must have been seen.
    NotShownUnderDryRun,
    /// The edit that approves by the action edits nothing else.
    SpecChanged,
    /// A plan that took the place of another one within the minute before it was approved may not be the one that was read.
    TooFresh,
    /// A plan of another object of the same name may be the one that was read.
    MadeAnew,
    /// A time that has not come yet is no evidence of when something was approved.
    ForgedTime,
    /// How a plan is carried out is part of what is approved.
    OtherTerms,
    /// An automatic policy approves what an edit of the options makes, and nothing that others have changed since a plan was carried out.
    PolicyOfOthers,
    /// bypassOptimisticLock is for targets that move, and not for other options, inputs or versions.
    BypassOfOthers,
    /// bypassOptimisticLock corrects what was applied once, and nothing that nobody ever approved.
    BypassOfNew,
    /// bypassOptimisticLock does not fight for ever.
    Thrashing,
    /// A plan with a blocked item can't be executed.
    BlockedItem,
    /// A failure is left only when its cause can be gone.
    CauseRemains,
    /// Going back from Apply withdraws the approval.
    ActionWithdrawn,
    /// Taking the approving hash away withdraws the approval.
    HashWithdrawn,
    /// Switching bypassOptimisticLock off withdraws what it approved.
    BypassWithdrawn,
    /// The intent is stored before the first write.
    NoIntent,
    /// What is executed has the digest that was approved.
    OtherDigest,
    /// What was written and then changed by somebody is not put back.
    WrittenMoved,
    /// What is not written yet must be as it was reviewed.
    UnwrittenMoved,
    /// While something of what is approved can't be told, nothing of it is written.
    Unknown,
    /// A wave waits until the one before it is in effect.
    WaveUnfinished,
    /// With failurePolicy Abort nothing comes after a failure.
    Aborted,
    /// Nothing comes after an item that could not be previewed.
    Deferred,
    /// A wait ends when its time is up.
    TimeIsUp,
    /// A paused rollout is not overdue.
    Paused,
    /// An approval ends with its execution.
    ApprovalUsedUp,
    /// A hash that approved an execution approves no other.
    HashUsedUp,
    /// Before each write the configuration is read again: somebody may have changed their mind.
    Superseded,
}

#[cfg(test)]
impl Guard {
    /// All of them.
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

    /// Takes `guard` out in this thread.
    pub(in crate::plan) fn disable(guard: Option<Guard>) {
        DISABLED.set(guard);
    }

    /// Whether `guard` stops what is about to happen.
    pub(in crate::plan) fn stops(guard: Guard, condition: bool) -> bool {
        condition && DISABLED.get() != Some(guard)
    }
}
