//! The approval of a plan, as a status remembers it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;

/// The approval of one plan for one execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The digest of the approved plan.
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// The rule by which the plan was approved.
    pub how: ApprovedBy,
    /// The field manager of the edit that approved the plan, as far as the API server recorded it.
    #[schemars(length(max = 256))]
    pub by: String,
    /// When the operator saw the approval.
    #[serde(deserialize_with = "time::or_unknown")]
    pub at: Time,
    /// The generation of spec that carried the approval.
    pub generation: i64,
    /// The plan in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub text: String,
    /// The number of machines that the plan reboots.
    #[serde(default)]
    pub machines: u32,
    /// The values that the plan replaces, as many as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub replaced: Vec<Replaced>,
}

/// The rules by which a plan becomes approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovedBy {
    /// spec.approvedPlanHash names the plan.
    Hash,
    /// The action was changed from DryRun to Apply after the plan was shown.
    Action,
    /// The action was already Apply when there was no plan yet.
    InAdvance,
    /// spec.approvalPolicy is Automatic.
    Policy,
    /// spec.bypassOptimisticLock is set: changed targets need no new approval.
    Bypass,
}

/// A value that a plan replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// The name of the item.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub item: String,
    /// A JSON Pointer (RFC 6901) into the item's object.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub path: String,
    /// The previous value as JSON, as far as it may be shown; absent if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub was: String,
}
