//! What a status remembers of plans that are over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::ApprovedBy;
use super::time;

/// One earlier plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Its digest.
    #[serde(default)]
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// When it ended.
    #[serde(default = "time::unknown", deserialize_with = "time::or_unknown")]
    pub at: Time,
    /// How it ended: Completed, CompletedWithErrors, Failed, Withdrawn or Stale.
    #[serde(default)]
    #[schemars(length(max = 32))]
    pub outcome: String,
    /// The field manager whose edit approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub approved_by: Option<String>,
    /// By which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<ApprovedBy>,
    /// When its approval was seen.
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
    /// Machines that the plan said it would reboot.
    #[serde(default)]
    pub machines: u32,
    /// Machines that had all that was written for them when it ended, as their pools reported; absent if nothing was written for machines, or if
    /// that was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines_updated: Option<u32>,
    /// What it replaced: as many values as fit, of the last executions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub replaced: Vec<Replaced>,
}

/// A plan that an edit of spec replaced before anybody approved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupersededPlan {
    /// Its digest.
    #[serde(default)]
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// When it was replaced.
    #[serde(default = "time::unknown", deserialize_with = "time::or_unknown")]
    pub at: Time,
}

/// A value that a plan replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// The item.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub item: String,
    /// An RFC 6901 pointer into its object.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub path: String,
    /// The value before, as JSON, as far as it may be shown; absent if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub was: String,
}
