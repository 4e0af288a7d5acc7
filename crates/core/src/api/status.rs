//! The status: the plan as it is shown, and what the operator must remember.
//!
//! Status is output. Nothing in it is ever written to a target: objects are rendered again and must give the approved
//! digest. A forged status can delay a plan, it can't cause a write that the spec does not approve.
//!
//! **Invariant:** every status that this program or the Go program ever wrote is stored and read: no member is required but the keys of
//! lists, and each has a value for where it is missing. A backup can be restored.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::history::{HistoryEntry, Replaced, SupersededPlan};
use super::spec::Action;
use super::terms::Terms;
use super::time;

/// What the operator found, plans, does and remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtPlatformConfigStatus {
    /// Where the configuration stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The worst impact of the plan's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Severity>,
    /// The generation of spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the plan, v1: and SHA-256. Put it into spec.approvedPlanHash to approve exactly this plan.
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
    /// The action that was in force when the plan was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_action: Option<Action>,
    /// What the plan remembers of the spec it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_spec: Option<PlannedSpec>,
    /// The version of the operator that made the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub operator_version: Option<String>,
    /// The options that the plan was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub applied_options: Option<Value>,
    /// The approval of this plan, once there is one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "if_complete")]
    pub approval: Option<Approval>,
    /// The plan in figures and one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The items of the plan.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "those_that_fit")]
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<Item>,
    /// The values that the profile read to make the plan. An annotation that overrode something when a plan was last carried out and was taken
    /// away since is among them, without a value; it is no part of the plan and of its digest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub inputs: Vec<Input>,
    /// The features of the profile of which nothing is planned on this cluster, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["feature"]))]
    pub left_out: Vec<LeftOut>,
    /// The last plans that were carried out, latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<HistoryEntry>,
    /// The last plans that an edit of spec replaced before anybody approved them, latest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub superseded: Vec<SupersededPlan>,
    /// The state in the field's standard form.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "time::conditions")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A feature of which nothing is planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// The feature.
    #[schemars(length(min = 1, max = 63))]
    pub feature: String,
    /// Why, and what to do for it.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub reason: String,
}

/// Members that the items of the Go program have not; ours have one of them at least.
const OURS: [&str; 5] = ["operation", "wave", "itemHash", "applied", "appliedBefore"];

/// The items but for those of the Go program: nothing of such a plan can be carried out, and the
/// next one replaces it. Any other item that does not fit is an error: what it remembers must not be lost.
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

/// Where a configuration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Nothing has been looked at. Kept for compatibility; never set.
    Pending,
    /// Planning takes long. Kept for compatibility; never set.
    Drafting,
    /// Something that the profile needs is not there.
    PrerequisiteFailed,
    /// A plan waits for approval.
    ReviewRequired,
    /// An approved plan is being executed.
    InProgress,
    /// Everything is as planned.
    Completed,
    /// Executed, with items that failed.
    CompletedWithErrors,
    /// Everything is as an earlier version planned it; this version would plan differently.
    CompletedWithUpgrade,
    /// Stopped by something that only a person can change.
    Failed,
    /// Somebody changed what was applied.
    Drifted,
    /// The operator stands aside.
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

/// What a plan remembers of its spec, to recognise which later edit approves it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedSpec {
    /// SHA-256 of spec without action and approvedPlanHash.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub hash: String,
    /// spec.approvedPlanHash at that time; the same value approves nothing again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub approved_plan_hash: Option<String>,
    /// The value of the annotation advisor.kubevirt.io/replan at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub replan: Option<String>,
    /// When this plan took the place of another one on display; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub revised_at: Option<Time>,
    /// spec.approvedPlanHash, once it has approved an execution, for as long as it stays in spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub used_plan_hash: Option<String>,
    /// How the plan is carried out, beside its items.
    #[serde(default, skip_serializing_if = "Terms::is_default")]
    pub terms: Terms,
}

/// An approval, for one plan and one execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The digest that was approved.
    #[schemars(length(max = 80))]
    pub plan_hash: String,
    /// By which rule.
    pub how: ApprovedBy,
    /// The field manager of the edit, as far as the API server recorded it.
    #[schemars(length(max = 256))]
    pub by: String,
    /// When the approval was seen.
    #[serde(deserialize_with = "time::or_unknown")]
    pub at: Time,
    /// The generation of spec that carried it.
    pub generation: i64,
    /// The plan in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub text: String,
    /// Machines that it reboots.
    #[serde(default)]
    pub machines: u32,
    /// What it replaces: as many values as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub replaced: Vec<Replaced>,
}

/// The rules by which a plan becomes approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ApprovedBy {
    /// spec.approvedPlanHash names the plan.
    Hash,
    /// The action went from DryRun to Apply after the plan was shown.
    Action,
    /// Apply was asked for when there was no plan yet.
    InAdvance,
    /// spec.approvalPolicy is Automatic.
    Policy,
    /// spec.bypassOptimisticLock is set: targets that move are not asked about.
    Bypass,
}

/// The plan in figures and one sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// The first twelve digits of the plan's hash.
    #[schemars(length(max = 12))]
    pub plan: String,
    /// Objects to create.
    pub create: u32,
    /// Objects to change.
    pub update: u32,
    /// Objects to remove.
    pub remove: u32,
    /// Objects that are as wanted.
    pub no_change: u32,
    /// Objects that can't be written here.
    pub blocked: u32,
    /// Objects that can only be previewed after another item.
    pub deferred: u32,
    /// Objects that an administrator has set aside.
    pub skipped: u32,
    /// Pools whose machines reboot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub pools: Vec<String>,
    /// Machines that reboot.
    pub machines_to_reboot: u32,
    /// What is going on and what to do next, in one sentence.
    #[schemars(length(max = 1024))]
    pub text: String,
    /// What had changed when this plan was published, as text says it.
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
    /// The object.
    #[serde(default)]
    pub target_ref: TargetRef,
    /// What happens to it.
    #[serde(default)]
    pub operation: Operation,
    /// Items of a wave are written together; the next wave waits for them.
    #[serde(default)]
    pub wave: u32,
    /// How much that disturbs the cluster.
    #[serde(default)]
    pub impact_severity: Severity,
    /// The change, as the API server computed it by a dry run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 262144))]
    pub diff: String,
    /// How much of the diff is shown, if it was too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncated>,
    /// The object as the profile wants it; left out above 8 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub desired_state: Option<Value>,
    /// Fields that somebody else owns with another value. Approving the plan takes them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "atomic"))]
    pub conflicts: Vec<Conflict>,
    /// Pools whose machines reboot because of this item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub pools: Vec<String>,
    /// Fields that we own once the item is applied, as dotted paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub managed_fields: Vec<String>,
    /// What an administrator wants otherwise than the profile, and by what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 1200)))]
    pub overrides: Vec<String>,
    /// The parts of it that others override, as the plan said that was approved, for example `worker: /etc/a`: the machines of that pool have
    /// theirs. What is overridden later is told by the condition Overridden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 1200)))]
    pub overridden: Vec<String>,
    /// Whether the object is wanted no more: what is ours of it is taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prune: bool,
    /// How far its execution is.
    #[serde(default)]
    pub state: ItemState,
    /// What is going on, and what to do if something is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub message: String,
    /// When state last changed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub last_transition_time: Option<Time>,
    /// When waiting for it to take effect began.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub wait_started_at: Option<Time>,
    /// Since when a pause holds it up, during which spec.waitTimeout stands still.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "time::remembered")]
    pub paused_since: Option<Time>,
    /// SHA-256 of everything that was reviewed of this item.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub item_hash: String,
    /// What was written, to notice when somebody changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
    /// What had been written before the execution that is under way, for as long as that has not written the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_before: Option<Applied>,
}

/// A reference to the object of an item or input.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// `group/version`, or `version` for the core group.
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
    /// The object, or what we own of it, is removed.
    Remove,
    /// The object is as wanted.
    NoChange,
    /// The object can't be written; the message says what to do. Also where a status does not say what happens to it.
    #[default]
    Blocked,
    /// The object can only be previewed after another item has been applied.
    Deferred,
    /// An administrator has set the object aside: it is neither written nor watched for drift.
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

/// A field that somebody else owns with another value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// An RFC 6901 pointer.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// The field manager that owns it.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub manager: String,
    /// Its present value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub live: Option<Value>,
    /// The value that the plan wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub desired: Option<Value>,
    /// Whether the manager looks like a controller, which will set its value again.
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
    /// The fields that we own, in the notation of metadata.managedFields. Left out where they would not fit; `pathsHash`
    /// says then which they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"))]
    pub paths: Vec<String>,
    /// SHA-256 of `paths`, where they are left out.
    #[serde(default, rename = "pathsHash", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub paths_hash: Option<String>,
    /// SHA-256 of their values, as the API server answered them.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub hash: String,
}

/// A value that the profile read to make the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The object it was read from.
    #[serde(default)]
    pub target: TargetRef,
    /// An RFC 6901 pointer.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub path: String,
    /// The value, or what the profile made of it; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Preserved")]
    pub value: Option<Value>,
    /// What it was when a plan was last carried out, if that is something else.
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
