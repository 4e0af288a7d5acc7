//! What a status remembers of plans that are over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::{ApprovedBy, Replaced};
use super::time;

/// An earlier plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// The digest of the plan.
    #[serde(default)]
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// When its execution ended.
    #[serde(default = "time::unknown", deserialize_with = "time::or_unknown")]
    pub at: Time,
    /// How its execution ended: Completed, CompletedWithErrors, Failed, Withdrawn or Stale.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub outcome: String,
    /// The field manager whose edit approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub approved_by: Option<String>,
    /// The rule by which it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<ApprovedBy>,
    /// When the operator saw the approval.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub approved_at: Option<Time>,
    /// The generation of spec that carried the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The version of the operator that made the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub operator_version: Option<String>,
    /// The plan in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub text: String,
    /// The number of machines that the plan said it would reboot.
    #[serde(default)]
    pub machines: u32,
    /// The number of machines that ran with everything written for them when the execution ended,
    /// as their pools reported. Absent if nothing was written for machines, or if the number was
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines_updated: Option<u32>,
    /// The values that the plan replaced, as many as fit. Only the most recent executions have
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub replaced: Vec<Replaced>,
}

/// A plan that was replaced after an edit of spec before anybody approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupersededPlan {
    /// The digest of the plan.
    #[serde(default)]
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// When it was replaced.
    #[serde(default = "time::unknown", deserialize_with = "time::or_unknown")]
    pub at: Time,
}
