//! Act: the writes that a decision names, and no others.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Context;
use super::memory::Memory;
use crate::api::{Action, Operation, Phase, VirtPlatformConfig};
use crate::cluster::{ApplyMode, ClusterError, Precondition};
use crate::engine::manager;
use crate::plan::decision::Execution;
use crate::plan::item::PlanItem;
use crate::plan::moved::applied_view;
use crate::plan::status::Written;
use crate::plan::{Plan, fields, redact};

/// A write that did not happen; the next look finds out why.
#[derive(Debug, thiserror::Error)]
pub(super) enum ActError {
    /// The configuration could not be read again.
    #[error("reading the configuration before writing failed: {0}")]
    Configuration(#[source] ClusterError),
    /// Somebody edited the configuration since it was decided.
    #[error("the configuration was edited; nothing is written until it is looked at again")]
    Superseded,
    /// A target could not be written.
    #[error("writing {target} failed: {source}")]
    Target {
        /// The object.
        target: String,
        /// Why.
        source: ClusterError,
    },
}

impl ActError {
    /// A word for logs.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Configuration(source) | Self::Target { source, .. } => source.reason(),
            Self::Superseded => "Superseded",
        }
    }
}

/// Writes the items that `execution` names, in order. What was written before an error is returned with it, so that it
/// can be reported.
pub(super) async fn write(
    ctx: &Context,
    config: &VirtPlatformConfig,
    execution: &Execution,
    plan: &Plan,
    memory: &mut Memory,
) -> (BTreeMap<String, Written>, Result<(), ActError>) {
    let mut written = BTreeMap::new();
    if let Err(error) = still_wanted(ctx, config).await {
        return (written, Err(error));
    }
    for item in execution.write.iter().filter_map(|name| plan.item(name)) {
        memory.items.remove(&item.name);
        match write_item(ctx, &config.spec.profile, item).await {
            Ok(outcome) => written.insert(item.name.clone(), outcome),
            Err(source) => {
                return (written, Err(ActError::Target { target: item.target.to_string(), source }));
            }
        };
    }
    (written, Ok(()))
}

/// Reads the configuration past the cache: between decision and write somebody may have withdrawn the approval.
async fn still_wanted(ctx: &Context, config: &VirtPlatformConfig) -> Result<(), ActError> {
    let name = &config.spec.profile;
    let live = ctx.cluster.config(name).await.map_err(ActError::Configuration)?.ok_or(ActError::Superseded)?;
    let status = live.status.unwrap_or_default();
    let approval = |status: &crate::api::VirtPlatformConfigStatus| {
        status.approval.as_ref().map(|approval| approval.plan_hash.clone())
    };
    let same = live.metadata.uid == config.metadata.uid
        && live.metadata.generation == config.metadata.generation
        && live.metadata.deletion_timestamp.is_none()
        && live.spec.action == Action::Apply
        && status.phase == Some(Phase::InProgress)
        && approval(&status) == config.status.as_ref().and_then(approval);
    if same { Ok(()) } else { Err(ActError::Superseded) }
}

async fn write_item(ctx: &Context, profile: &str, item: &PlanItem) -> Result<Written, ClusterError> {
    let target = &item.target;
    let named = serde_json::json!({"apiVersion": target.api_version, "kind": target.kind});
    let Some(kind) = ctx.cluster.resolve_object(&named).await? else {
        return Err(ClusterError::NotServed);
    };
    let precondition = match (item.operation, &item.uid, &item.resource_version) {
        (Operation::Update | Operation::Remove, Some(uid), Some(version)) => {
            Precondition::Exactly { uid: uid.clone(), resource_version: version.clone() }
        }
        (Operation::Create, None, None) => Precondition::Absent,
        // An item that changes nothing, or whose object is not what its operation says, is not written.
        (Operation::Create | Operation::Update | Operation::Remove, _, _)
        | (Operation::NoChange | Operation::Blocked | Operation::Deferred, _, _) => return Err(ClusterError::Moved),
    };
    let manager = manager(profile);
    if let (Operation::Remove, Value::Null, Precondition::Exactly { uid, resource_version }) =
        (item.operation, &item.desired, &precondition)
    {
        let place = (target.namespace.as_deref(), target.name.as_str());
        ctx.cluster.remove(&kind, place, uid, resource_version, false).await?;
        tracing::info!(config = profile, item = item.name, object = %target, "item removed");
        return Ok(Written::Removed);
    }
    let mode = if item.conflicts.is_empty() { ApplyMode::Real } else { ApplyMode::Forced };
    match ctx.cluster.apply(&kind, &item.desired, &manager, mode, &precondition).await {
        Ok(object) => {
            let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let subject = kind.subject(target.namespace.as_deref(), &target.name);
            ctx.triggers.seen(profile, subject, version.map(str::to_owned));
            tracing::info!(config = profile, item = item.name, object = %target, "item written");
            if item.operation == Operation::Remove {
                return Ok(Written::Removed);
            }
            let owned = fields::applied_by(&object, &manager);
            applied_view(&object, &owned, &item.quantities).map(Written::Applied).ok_or(ClusterError::Moved)
        }
        Err(ClusterError::Refused(refusal)) => {
            // Its words may quote the object.
            let words = match redact::is_secret(&named) || !item.sensitive.is_empty() {
                true => refusal.to_string(),
                false => refusal.message,
            };
            Ok(Written::Refused(format!("The API server refuses it: {words}")))
        }
        Err(ClusterError::NotFound { message, .. }) => {
            Ok(Written::Refused(format!("The API server refuses it: {message}")))
        }
        Err(error) => Err(error),
    }
}
