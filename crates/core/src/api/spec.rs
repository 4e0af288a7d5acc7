//! `VirtPlatformConfig` and its spec: what a user asks for.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{Action, ApprovalPolicy, FailurePolicy};
use super::choices::{ItemChoice, Override, item_choices};
use super::status::VirtPlatformConfigStatus;

/// The profile to plan and, once approved, to apply to this cluster.
#[expect(clippy::duplicated_attributes, reason = "each column has a type and a path")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "advisor.kubevirt.io",
    version = "v1alpha1",
    kind = "VirtPlatformConfig",
    plural = "virtplatformconfigs",
    singular = "virtplatformconfig",
    shortname = "vpc",
    doc = "Plans the changes of a profile to the components of a virtualization cluster, applies them once they are approved, and reports drift.",
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
    /// The name of the profile. It is immutable, and metadata.name must be the same: there is one
    /// configuration per profile.
    pub profile: String,
    /// DryRun publishes a plan and waits for a review. Apply carries out an approved plan. With
    /// Ignore, the operator neither reads nor writes anything.
    #[serde(default)]
    pub action: Action,
    /// Abort stops at the first item that fails. Continue carries on with the other items.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// Options of the profile, under the key of that profile. No other key may be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub options: Option<Value>,
    /// Apply a plan even if a target has changed since the review, and correct drift without an
    /// approval.
    #[serde(default)]
    pub bypass_optimistic_lock: bool,
    /// How long an item may take to take effect, for example 90m or 2h. If unset, there is no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub wait_timeout: Option<String>,
    /// Approves the plan whose status.planHash has this value, and no other plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub approved_plan_hash: Option<String>,
    /// With Review, every plan waits until a person approves it. With Automatic, an edit of
    /// spec.options approves the plan that results from it, unless others have changed something
    /// that the plan depends on since a plan was last carried out: an input, an annotation, or an
    /// applied field.
    #[serde(default)]
    pub approval_policy: ApprovalPolicy,
    /// Changes to what the profile plans for individual objects. An edit of this list is reviewed
    /// like any other change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub overrides: Vec<Override>,
    /// Items and features to skip, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "item_choices")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<ItemChoice>,
}
