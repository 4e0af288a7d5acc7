//! `VirtPlatformConfig` and its spec: what a user asks for.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choices::{ItemChoice, Override, item_choices};
use super::status::VirtPlatformConfigStatus;

/// A profile to plan and, once approved, to apply to this cluster.
#[expect(clippy::duplicated_attributes, reason = "each column has a type and a path")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "advisor.kubevirt.io",
    version = "v1alpha1",
    kind = "VirtPlatformConfig",
    plural = "virtplatformconfigs",
    singular = "virtplatformconfig",
    shortname = "vpc",
    doc = "A profile of reviewed changes to the components of a virtualization cluster: planned, approved, applied, watched.",
    status = "VirtPlatformConfigStatus",
    derive = "PartialEq",
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "Impact", type_ = "string", json_path = ".status.impactSeverity"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Plan", type_ = "string", json_path = ".status.summary.plan", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.summary.text", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct VirtPlatformConfigSpec {
    /// The profile. It can't be changed later, and the object's name must be the same: there is one configuration for each profile.
    pub profile: String,
    /// DryRun plans and waits for a review, Apply executes an approved plan, Ignore stands aside.
    #[serde(default)]
    pub action: Action,
    /// Abort stops at the first item that fails, Continue goes on with the others.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// Options of the profile, in the member of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub options: Option<Value>,
    /// Apply even if a target has changed since the review, and correct drift without asking.
    #[serde(default)]
    pub bypass_optimistic_lock: bool,
    /// How long an item may take to become effective, for example 90m or 2h. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub wait_timeout: Option<String>,
    /// Approves the plan whose status.planHash this is, and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub approved_plan_hash: Option<String>,
    /// Review: every plan waits until a person approves it. Automatic: a plan that comes from an edit of spec.options is approved by that edit,
    /// unless others have changed something in it since a plan was carried out: an input, an annotation, or a field that was applied.
    #[serde(default)]
    pub approval_policy: ApprovalPolicy,
    /// What is wanted of single objects otherwise than the profile wants it. A change of it is reviewed like any other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub overrides: Vec<Override>,
    /// Items and features that are set aside, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "item_choices")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<ItemChoice>,
}

/// What the operator may do.
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
