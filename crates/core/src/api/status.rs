//! The status: the plan as it is shown, and what the operator must remember.
//!
//! Status is output. Nothing in it is ever written to a target: objects are rendered again and must
//! give the approved digest. A forged status can delay a plan, it can't cause a write that the spec
//! does not approve.
//!
//! **Invariant:** every status that this program or the Go program ever wrote is stored and read:
//! no member is required but the keys of lists, and each has a value for where it is missing. A
//! backup can be restored.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::action::Action;
use super::approval::Approval;
use super::history::{HistoryEntry, SupersededPlan};
use super::terms::Terms;
use super::time;

/// The state of the configuration: its plan, the plan's execution, and what the operator remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtPlatformConfigStatus {
    /// The phase of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The highest impact of the plan's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Severity>,
    /// The generation of spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the plan: v1: followed by a SHA-256 in hexadecimal. To approve exactly this
    /// plan, set spec.approvedPlanHash to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub plan_hash: Option<String>,
    /// The hexadecimal part of planHash, under its older name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub source_snapshot_hash: Option<String>,
    /// When this plan was published.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub planned_at: Option<Time>,
    /// The generation of spec that the plan was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_generation: Option<i64>,
    /// The value of spec.action when the plan was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_action: Option<Action>,
    /// What the operator remembers of the spec from which the plan was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_spec: Option<PlannedSpec>,
    /// The version of the operator that made the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub operator_version: Option<String>,
    /// The options from which the plan was made, whether or not it has been carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub applied_options: Option<Value>,
    /// The approval of this plan, once there is one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_complete")]
    pub approval: Option<Approval>,
    /// Figures of the plan, and the current situation in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The items of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "those_that_fit")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<Item>,
    /// The values that the profile read to make the plan. An annotation that overrode something
    /// when a plan was last carried out, and has been removed since, is listed without a value; it
    /// is not part of the plan or its digest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub inputs: Vec<Input>,
    /// The features of the profile that are not planned on this cluster, or only in part, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["feature"]))]
    pub left_out: Vec<LeftOut>,
    /// The most recent approved plans whose execution has ended, latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<HistoryEntry>,
    /// The most recent plans that were replaced by an edit of spec before approval, latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub superseded: Vec<SupersededPlan>,
    /// The state as standard Kubernetes conditions.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "time::conditions")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A feature that is left out, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The name of the feature.
    #[schemars(length(min = 1, max = 63))]
    pub feature: String,
    /// Why it is left out, and what to do to have it planned.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// Members that the items of the Go program have not; ours have one of them at least.
const OURS: [&str; 5] = ["operation", "wave", "itemHash", "applied", "appliedBefore"];

/// The items but for those of the Go program: nothing of such a plan can be carried out, and the
/// next one replaces it. Any other item that does not fit is an error: what it remembers must not
/// be lost.
fn those_that_fit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Item>, D::Error> {
    let found = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    let ours = found.into_iter().filter(|item| OURS.iter().any(|member| item.get(member).is_some()));
    ours.map(|item| serde_json::from_value(item).map_err(D::Error::custom)).collect()
}

/// An approval of which nothing is missing; any other approves nothing.
fn if_complete<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Approval>, D::Error> {
    let found = Option::<Value>::deserialize(deserializer)?;
    Ok(found.and_then(|approval| serde_json::from_value(approval).ok()))
}

/// The phase of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Nothing has been read yet. Kept for compatibility; never set.
    Pending,
    /// A plan is being made. Kept for compatibility; never set.
    Drafting,
    /// Something that the profile requires is missing.
    PrerequisiteFailed,
    /// A plan waits for approval.
    ReviewRequired,
    /// An approved plan is being carried out, or its changes are taking effect.
    InProgress,
    /// Everything is as planned.
    Completed,
    /// The plan was carried out, but some items failed.
    CompletedWithErrors,
    /// Everything is as an earlier version planned it; this version would plan differently.
    CompletedWithUpgrade,
    /// Stopped: a person must act before it can continue.
    Failed,
    /// Somebody changed an applied field.
    Drifted,
    /// Not in use: the operator neither reads nor writes anything.
    Ignored,
}

/// How much a change disturbs the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Severity {
    /// Nothing that runs is disturbed.
    #[default]
    Low,
    /// Workloads may move, or a component restarts.
    Medium,
    /// Machines reboot.
    High,
}

/// What a plan remembers of its spec, to recognize which later edit approves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedSpec {
    /// SHA-256 of spec without action and approvedPlanHash, in hexadecimal.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub hash: String,
    /// The value of spec.approvedPlanHash at that time. Unchanged, it approves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub approved_plan_hash: Option<String>,
    /// The value of the annotation advisor.kubevirt.io/replan at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub replan: Option<String>,
    /// When this plan replaced another one that had been published; absent for the first plan.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub revised_at: Option<Time>,
    /// The value of spec.approvedPlanHash that approved an execution, while it stays in spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub used_plan_hash: Option<String>,
    /// The terms on which the plan is carried out.
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
}

/// Figures of the plan, and the current situation in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The first twelve digits of the plan hash.
    #[schemars(length(max = 12))]
    pub plan: String,
    /// The number of objects to create.
    pub create: u32,
    /// The number of objects to change.
    pub update: u32,
    /// The number of objects to remove.
    pub remove: u32,
    /// The number of objects without a change.
    pub no_change: u32,
    /// The number of objects that can't be written; their items say why.
    pub blocked: u32,
    /// The number of objects that can be previewed only after another item is applied.
    pub deferred: u32,
    /// The number of objects that an administrator has skipped.
    pub skipped: u32,
    /// The pools whose machines reboot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub pools: Vec<String>,
    /// The number of machines that reboot.
    pub machines_to_reboot: u32,
    /// The current situation and what to do next.
    #[schemars(length(max = 1024))]
    pub text: String,
    /// What had changed when this plan was published, in the words of text.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub changed: String,
}

/// One object of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The item's name, unique in the plan.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The object of the item.
    #[serde(default)]
    pub target_ref: TargetRef,
    /// What happens to the object.
    #[serde(default)]
    pub operation: Operation,
    /// The item's wave. Items of a wave are written together; the next wave begins when all of them
    /// are in effect.
    #[serde(default)]
    pub wave: u32,
    /// How much the change disturbs the cluster.
    #[serde(default)]
    pub impact_severity: Severity,
    /// The change as the API server computed it in a dry run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 262144))]
    pub diff: String,
    /// How much of the diff is shown, if it is too long to be shown in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The object as the profile wants it. Omitted if it is larger than 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub desired_state: Option<Value>,
    /// Fields that another field manager owns with another value. The plan takes them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub conflicts: Vec<Conflict>,
    /// Pools whose machines reboot because of this item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub pools: Vec<String>,
    /// The fields that this configuration owns once the item is applied, as dotted paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub managed_fields: Vec<String>,
    /// The overrides that apply to the item, each with its origin: spec.overrides or an annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 1200)))]
    pub overrides: Vec<String>,
    /// The parts of the object that others override, as the approved plan stated. For example,
    /// `worker: /etc/a` means that another configuration sets /etc/a on the machines of pool
    /// worker. The condition Overridden reports parts that are overridden later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 1200)))]
    pub overridden: Vec<String>,
    /// Whether the object is no longer wanted. The fields that this configuration owns are then
    /// removed, or the object is deleted if no other field manager owns fields of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prune: bool,
    /// The progress of the item.
    #[serde(default)]
    pub state: ItemState,
    /// The current situation of the item, and what to do if something is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When state last changed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub last_transition_time: Option<Time>,
    /// When the operator began to wait for the item to take effect.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub wait_started_at: Option<Time>,
    /// When the current pause of the rollout began. spec.waitTimeout does not run during a pause.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub paused_since: Option<Time>,
    /// SHA-256 of everything in this item that is reviewed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub item_hash: String,
    /// What was written, so that later changes by others are noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
    /// What an earlier execution wrote, until the current execution has written the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_before: Option<Applied>,
}

/// A reference to the object of an item or input.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// The API version: `group/version`, or `version` for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub api_version: String,
    /// The kind.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The name.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
    /// The namespace, for namespaced kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

impl fmt::Display for TargetRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

impl TargetRef {
    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Whether both are the same object, in whatever version.
    #[must_use]
    pub fn is_same_object(&self, other: &Self) -> bool {
        (self.group(), &self.kind, &self.namespace, &self.name)
            == (other.group(), &other.kind, &other.namespace, &other.name)
    }

    /// An object of that name that says nothing: applied, it takes back all that its manager owns.
    #[must_use]
    pub fn empty(&self) -> Value {
        let Self { api_version, kind, name, namespace } = self;
        let mut object = serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let (Some(namespace), Some(metadata)) =
            (namespace, object.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.insert("namespace".to_owned(), Value::from(namespace.as_str()));
        }
        object
    }

    /// The reference to `object`; empty where the object says nothing.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            api_version: text("/apiVersion").unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            name: text("/metadata/name").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
        }
    }
}

/// What an item does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted, or the fields that this configuration owns are removed from it.
    Remove,
    /// The object stays as it is: nothing has to change.
    NoChange,
    /// The object can't be written; the message says what to do. Also where a status does not say
    /// what happens to it.
    #[default]
    Blocked,
    /// The object can only be previewed after another item has been applied.
    Deferred,
    /// Skipped by an administrator: the object is neither written nor monitored for drift.
    Skipped,
}

impl Operation {
    /// Whether the object stays as it is and nobody need look at it.
    #[must_use]
    pub fn leaves_alone(self) -> bool {
        matches!(self, Self::NoChange | Self::Skipped)
    }

    /// Whether executing the plan writes the object.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Remove)
    }
}

/// How far the execution of an item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ItemState {
    /// Not begun.
    #[default]
    Pending,
    /// About to be written, or written and not yet effective.
    InProgress,
    /// As planned, and effective.
    Completed,
    /// Given up.
    Failed,
}

/// How much of a long diff is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Lines shown.
    #[serde(default)]
    pub shown: u32,
    /// Lines in all.
    #[serde(default)]
    pub total: u32,
    /// Lines that the whole diff adds.
    #[serde(default)]
    pub added: u32,
    /// Lines that the whole diff removes. They are the last to be cut.
    #[serde(default)]
    pub removed: u32,
}

/// A field that another field manager owns with another value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// A JSON Pointer (RFC 6901) to the field.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// The field manager that owns the field.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub manager: String,
    /// The current value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub live: Option<Value>,
    /// The value that the plan wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub desired: Option<Value>,
    /// Whether the field manager looks like a controller that will set its own value again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
}

/// What was written to a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The uid of the object.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub uid: String,
    /// The fields that this configuration owns, in the notation of metadata.managedFields. Omitted
    /// if they would not fit; `pathsHash` then identifies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"))]
    pub paths: Vec<String>,
    /// SHA-256 of `paths` if they are omitted.
    #[serde(default, rename = "pathsHash", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub paths_hash: Option<String>,
    /// SHA-256 of the values of these fields as the API server returned them.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub hash: String,
}

/// A value that the profile read to make the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The object from which the value was read.
    #[serde(default)]
    pub target: TargetRef,
    /// A JSON Pointer (RFC 6901) to the value.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// The value, or what the profile derived from it; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub value: Option<Value>,
    /// The value when a plan was last carried out, if it was different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<InputBefore>,
}

/// An earlier value of an input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputBefore {
    /// The value; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub value: Option<Value>,
}

/// Schema of a value of any type.
struct Preserved;

impl JsonSchema for Preserved {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Preserved".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"x-kubernetes-preserve-unknown-fields": true})
    }
}

#[cfg(test)]
mod tests;
