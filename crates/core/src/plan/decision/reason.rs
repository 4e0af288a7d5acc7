//! Condition types and reasons: every word that automation may match, in one place.

/// Condition types, besides those that are named like phases.
pub mod condition {
    /// True once the configuration has nothing more to do; see the table in docs/ARCHITECTURE.md.
    pub const READY: &str = "Ready";
    /// True while the operator works on it (kstatus).
    pub const RECONCILING: &str = "Reconciling";
    /// True when only a person can make it go on (kstatus).
    pub const STALLED: &str = "Stalled";
    /// A value that the plan was made from has changed.
    pub const INPUT_DEPENDENCY_DRIFT: &str = "InputDependencyDrift";
    /// This version of the operator plans differently.
    pub const UPGRADE_AVAILABLE: &str = "UpgradeAvailable";
    /// The owner of an object in the plan reports that something is wrong with it, and has for a
    /// while.
    pub const OWNER_UNHEALTHY: &str = "OwnerUnhealthy";
    /// Everything applied is as it should be, but machines lack part of it because something else
    /// takes precedence.
    pub const OVERRIDDEN: &str = "Overridden";
    /// Something that the plan depends on can't be read, and has not been for a while: the status
    /// may be out of date.
    pub const READING_FAILED: &str = "ReadingFailed";
}

/// Reasons of events, besides the condition types. They are part of the events' names: another word
/// makes another event.
pub mod event {
    /// An edit has approved the plan, and its execution begins.
    pub const APPROVED: &str = "Approved";
    /// An item was written and is in effect.
    pub const ITEM_APPLIED: &str = "ItemApplied";
    /// An item failed.
    pub const ITEM_FAILED: &str = "ItemFailed";
    /// No owner reports a problem any longer.
    pub const OWNER_HEALTHY: &str = "OwnerHealthy";
    /// Machines have everything that was applied again.
    pub const OVERRIDDEN_NO_MORE: &str = "OverriddenNoMore";
    /// The object is too large to have a status.
    pub const NO_ROOM_FOR_STATUS: &str = "NoRoomForStatus";
}

/// A plan waits for its review.
pub const PLAN_READY: &str = "PlanReady";
/// The plan changed since it was shown, because a target, the spec or its terms did.
pub const PLAN_STALE: &str = "PlanStale";
/// The plan changed because the options did.
pub const OPTIONS_CHANGED: &str = "OptionsChanged";
/// The plan changed because an input did.
pub const INPUT_DEPENDENCY_DRIFT: &str = "InputDependencyDrift";
/// The execution was stopped because the approval was withdrawn: by the action, by removing the
/// hash, or by switching the bypass off.
pub const WITHDRAWN: &str = "Withdrawn";
/// An item can't be written.
pub const BLOCKED: &str = "Blocked";
/// Somebody changed what was applied.
pub const DRIFT_DETECTED: &str = "DriftDetected";
/// The operator's logic changed.
pub const LOGIC_CHANGED: &str = "LogicChanged";
/// Something that the profile needs is missing.
pub const PREREQUISITES_FAILED: &str = "PrerequisitesFailed";
/// The options or the profile are not valid, or an input is not what its kind promises.
pub const INVALID: &str = "Invalid";
/// An item failed.
pub const ITEM_FAILED: &str = "ItemFailed";
/// The action is Ignore.
pub const IGNORED: &str = "Ignored";
/// Everything is as planned.
pub const COMPLETED: &str = "Completed";
/// An approved plan is being executed.
pub const IN_PROGRESS: &str = "InProgress";
/// The condition's cause is gone, or was never there.
pub const NOT_APPLICABLE: &str = "NotApplicable";
/// Machines do not have what was applied, because something else overrides it.
pub const OVERRIDDEN: &str = "OverriddenByOthers";
