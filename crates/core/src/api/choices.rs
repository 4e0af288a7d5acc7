//! What an administrator wants otherwise than the profile: overrides of single objects, and items
//! that are set aside.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::time;

/// A change to what the profile plans for one object. The annotations `platform.kubevirt.io/patch`,
/// `platform.kubevirt.io/ignore-fields` and `platform.kubevirt.io/mode` of the object have the same
/// effect; an override can also be written before the object exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// The object to change.
    pub target: OverrideTarget,
    /// JSON Patch operations (RFC 6902) that are applied, in order, to the object as the profile
    /// wants it, before it is previewed. They are refused for kinds that run code on machines or
    /// grant rights, and for fields that identify the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub patch: Vec<PatchOperation>,
    /// JSON Pointers (RFC 6901) to fields that this configuration leaves to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub ignore_fields: Vec<String>,
    /// Unmanaged leaves the whole object alone: it is neither written nor monitored for drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<OverrideMode>,
}

/// The object that an override applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideTarget {
    /// The API group, empty for the core group. If unset, an object of this kind in any group
    /// matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,
    /// The kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The namespace, for objects that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One JSON Patch operation (RFC 6902).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchOperation {
    /// The operation.
    pub op: PatchOp,
    /// The JSON Pointer (RFC 6901) of the value to operate on.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
    /// The JSON Pointer of the source, for copy and move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub from: Option<String>,
    /// The value, for add, replace and test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Option<Value>,
}

/// The operations of RFC 6902.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatchOp {
    /// Sets a member, or inserts an entry.
    Add,
    /// Takes a value away.
    Remove,
    /// Puts a value in the place of one that is there.
    Replace,
    /// Moves a value.
    Move,
    /// Copies a value.
    Copy,
    /// Fails unless the value is this one.
    Test,
}

/// How an object is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OverrideMode {
    /// Not at all: it is neither written nor watched for drift.
    Unmanaged,
}

/// An item, or all items of a feature, to skip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemChoice {
    /// The name of the item, as in status.items, or of a feature.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Skip shows the item in the plan, but neither writes it nor monitors it for drift.
    pub mode: ItemMode,
    /// The reason, shown in the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub reason: String,
    /// When skipping ends. If unset, the item is skipped until this entry is removed. Afterwards
    /// the item is planned again and must be reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::written")]
    #[schemars(extend("pattern" = time::PATTERN))]
    pub until: Option<Time>,
}

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ItemMode {
    /// It is shown, and not carried out.
    Skip,
}

/// The entries of spec.items; an error says which of them it is about.
///
/// # Errors
///
/// If an entry does not fit.
pub(super) fn item_choices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ItemChoice>, D::Error> {
    let found = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    let read = |(index, entry): (usize, Value)| {
        let until = entry.get("until").map(time::written).unwrap_or(Ok(None));
        let until = until.map_err(|error| D::Error::custom(format!("spec.items[{index}].until: {error}")))?;
        let choice = ItemChoice::deserialize(entry);
        let choice = choice.map_err(|error| D::Error::custom(format!("spec.items[{index}]: {error}")))?;
        Ok(ItemChoice { until, ..choice })
    };
    found.into_iter().enumerate().map(read).collect()
}
