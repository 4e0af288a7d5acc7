//! The API `advisor.kubevirt.io/v1alpha1`: types, names and the CRD.
//!
//! ```text
//!   spec ─── action, choices (overrides, items), duration
//!   status ─ approval, history, terms, time
//!     └────► crd: both as a schema, with the options of every profile; bounds: what is too much
//! ```
//!
//! **Invariant:** no IO, no clock, no client. Options are carried as they are; only their profile
//! parses them.

mod action;
mod approval;
mod bounds;
mod choices;
mod crd;
mod history;
mod names;
mod spec;
mod status;
mod terms;
mod time;

pub use action::{Action, ApprovalPolicy, FailurePolicy};
pub use approval::{Approval, ApprovedBy, Replaced};
pub use bounds::spec_problem;
pub use choices::{ItemChoice, ItemMode, Override, OverrideMode, OverrideTarget, PatchOp, PatchOperation};
pub use crd::{crd, crd_yaml, options_schema};
pub use history::{HistoryEntry, SupersededPlan};
pub use object::duration::parse as parse_duration;
pub use spec::{VirtPlatformConfig, VirtPlatformConfigSpec};
pub use status::{
    Applied, Conflict, Input, InputBefore, Item, ItemState, LeftOut, Operation, Phase, PlannedSpec, Severity, Summary,
    TargetRef, Truncated, VirtPlatformConfigStatus,
};
pub use terms::{PoolTerms, Terms};

/// API group of everything this operator defines.
pub const GROUP: &str = "advisor.kubevirt.io";
/// The field manager of our own objects, and prefix of those on targets:
/// `virt-advisor-operator/PROFILE`.
pub const FIELD_MANAGER: &str = "virt-advisor-operator";
/// Annotation: the profile's one-line description.
pub const DESCRIPTION_ANNOTATION: &str = "advisor.kubevirt.io/description";
/// Annotation: what applying the profile may cost.
pub const IMPACT_ANNOTATION: &str = "advisor.kubevirt.io/impact-summary";
/// On advertised objects: where an administrator reads what the profile changes, its options, and
/// how to undo it.
pub const DOCUMENTATION_ANNOTATION: &str = "advisor.kubevirt.io/documentation";
/// Annotation with value `true`: the object was created by the operator to advertise a profile.
pub const AUTO_CREATED_ANNOTATION: &str = "advisor.kubevirt.io/auto-created";
/// Annotation: any new value asks for a fresh plan, from any state.
pub const REPLAN_ANNOTATION: &str = "advisor.kubevirt.io/replan";
/// Label: the profile's category.
pub const CATEGORY_LABEL: &str = "advisor.kubevirt.io/category";
