//! The data that a decision is made from, gathered beforehand.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::api::{self, Action, FailurePolicy, Severity, Terms, VirtPlatformConfig, VirtPlatformConfigStatus};
use crate::plan::Plan;
use crate::plan::guard::{Guard, stops};
use crate::plan::items::health::Rollout;
use crate::plan::overrides::{Choices, Exclusions};
use crate::plan::wire;
use object::digest;

/// The most bytes of the annotation's value that are remembered and compared.
const REPLAN_LIMIT: usize = 256;

/// The edit that last set a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The field manager.
    pub by: String,
    /// The time, to the second.
    pub at: Timestamp,
}

/// The spec, as far as decisions depend on it.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// `metadata.generation`.
    pub generation: i64,
    /// `spec.action`.
    pub action: Action,
    /// The edit that set the action, if the API server recorded it.
    pub action_edit: Option<Edit>,
    /// The edit that set approvedPlanHash, if the API server recorded it.
    pub hash_edit: Option<Edit>,
    /// When the status was last written, by the server's clock.
    pub shown_at: Option<Timestamp>,
    /// The edit that set bypassOptimisticLock, if the API server recorded it.
    pub bypass_edit: Option<Edit>,
    /// Digest of spec without action and approvedPlanHash.
    pub spec_hash: String,
    /// `spec.options`.
    pub options: Option<Value>,
    /// `spec.approvedPlanHash`, if not empty.
    pub approved_plan_hash: Option<String>,
    /// Whether `spec.approvalPolicy` is Automatic.
    pub automatic: bool,
    /// `spec.failurePolicy`.
    pub failure_policy: FailurePolicy,
    /// `spec.waitTimeout`; an unreadable value means no limit.
    pub wait_timeout: Option<Duration>,
    /// Whether `spec.bypassOptimisticLock` is set.
    pub bypass: bool,
    /// `spec.overrides` and `spec.items`.
    pub choices: Choices,
    /// The annotation that asks for a fresh plan.
    pub replan: Option<String>,
    /// Whether the object is being deleted.
    pub deleting: bool,
}

impl Wanted {
    /// Reads it from the object.
    #[must_use]
    pub fn of(config: &VirtPlatformConfig) -> Self {
        let spec = &config.spec;
        let mut rest = spec.clone();
        rest.action = Action::DryRun;
        rest.approved_plan_hash = None;
        Self {
            generation: config.metadata.generation.unwrap_or_default(),
            action: spec.action,
            action_edit: edit_of(config, "/f:spec/f:action"),
            hash_edit: edit_of(config, "/f:spec/f:approvedPlanHash"),
            shown_at: edit_of(config, "/f:status/f:planHash").map(|edit| edit.at),
            bypass_edit: edit_of(config, "/f:spec/f:bypassOptimisticLock"),
            spec_hash: digest::sha256(&rest),
            options: spec.options.clone(),
            approved_plan_hash: spec.approved_plan_hash.clone().filter(|hash| !hash.is_empty()),
            automatic: spec.approval_policy == api::ApprovalPolicy::Automatic,
            failure_policy: spec.failure_policy,
            wait_timeout: spec.wait_timeout.as_deref().and_then(api::parse_duration),
            bypass: spec.bypass_optimistic_lock,
            choices: Choices {
                overrides: spec.overrides.clone(),
                items: spec.items.clone(),
                exclusions: Exclusions::default(),
            },
            replan: config
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(api::REPLAN_ANNOTATION))
                .map(|value| wire::cut_text(value, REPLAN_LIMIT)),
            deleting: config.metadata.deletion_timestamp.is_some(),
        }
    }
}

impl Wanted {
    /// The terms of plans, as far as the spec determines them.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms {
            failure_policy: self.failure_policy,
            wait_timeout: self.wait_timeout.map(|limit| limit.as_millis().to_string()),
            ..Terms::default()
        }
    }
}

/// The edit that set the field: manager and time of its latest owner.
fn edit_of(config: &VirtPlatformConfig, field: &str) -> Option<Edit> {
    let entries = config.metadata.managed_fields.iter().flatten();
    let owners = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.and_then(|fields| fields.pointer(field)).is_some()
    });
    let edits = owners
        .filter_map(|entry| Some(Edit { by: entry.manager.clone().unwrap_or_default(), at: entry.time.as_ref()?.0 }));
    edits.max_by_key(|edit| edit.at)
}

/// The cluster, as far as it was examined.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is a plan")]
pub enum World {
    /// Nothing was read, because nothing may be done.
    Unread,
    /// The profile is unknown, its options are not valid, or an input breaks its promise.
    Invalid(String),
    /// Something that the profile needs is missing: one sentence for each.
    Missing(Vec<String>),
    /// Only the rollouts of written items were examined; by item name.
    Rollouts(BTreeMap<String, Rollout>),
    /// The plan was made again.
    Planned(Plan),
}

/// Everything that a decision is made from.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The wishes of the user.
    pub wanted: &'a Wanted,
    /// The stored status.
    pub status: &'a VirtPlatformConfigStatus,
    /// The state of the cluster.
    pub world: World,
    /// What the profile does, in a phrase; empty if it is unknown.
    pub description: &'a str,
    /// The version of this build.
    pub version: &'a str,
    /// The impact that the profile declares, shown as long as there is no plan.
    pub declared_impact: Severity,
    /// The machines that have everything that the current execution has written for them, if known.
    pub machines_updated: Option<u32>,
    /// How long an owner's conditions are not believed after it has seen a change, see
    /// [`crate::plan::decision::execution::SETTLING`].
    pub settling: SignedDuration,
    /// Whether a plan may have been on display under this name before this object was created.
    pub made_anew: bool,
}

/// Whether a plan of another object with this name may have been read, according to this process or
/// an earlier one.
pub(in crate::plan) fn is_made_anew(seen: &Observed<'_>) -> bool {
    let planned = seen.status.planned_spec.as_ref();
    let known = planned.is_some_and(|planned| seen.status.plan_hash.is_none() && planned.revised_at.is_some());
    stops(Guard::MadeAnew, seen.made_anew || known)
}
