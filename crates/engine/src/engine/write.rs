//! Writes one item, exactly as planned or not at all.

use serde_json::{Value, json};

use super::manager;
use advisor_cluster::{ApplyMode, Cluster, ClusterError, Precondition, Subject};
use advisor_core::api::Operation;
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::beside;
use advisor_core::plan::items::drift::{Lens, applied_view};
use advisor_core::plan::status::Written;
use advisor_core::plan::wire;
use object::fields;

/// The most fields that a sentence names.
const NAMED: usize = 10;
/// The most bytes of the server's message that are kept.
const WORDS_LIMIT: usize = 1000;

/// The result of a write.
#[derive(Debug)]
pub struct WriteOutcome {
    /// The record for the status.
    pub written: Written,
    /// The object and its version after the write; `None` if it is gone. If the write was refused,
    /// the version before it.
    pub seen: (Subject, Option<String>),
}

/// Writes `item` of the plan of `profile`. The precondition is uid and resourceVersion, or that the
/// object does not exist; force is used only if the plan listed conflicts, or to remove our fields.
///
/// # Errors
///
/// [`ClusterError::Moved`] if the object is not what it was when the item was planned; transient
/// errors. A permanent refusal of the server is [`Written::Refused`].
pub async fn write(cluster: &Cluster, profile: &str, item: &PlanItem) -> Result<WriteOutcome, ClusterError> {
    let target = &item.target;
    let named = json!({"apiVersion": target.api_version, "kind": target.kind});
    let Some(kind) = cluster.resolve_object(&named).await? else {
        return Err(ClusterError::NotServed);
    };
    let subject = kind.subject(target.namespace.as_deref(), &target.name);
    let precondition = match (item.operation, &item.live.uid, &item.live.resource_version) {
        (Operation::Update | Operation::Remove, Some(uid), Some(version)) => {
            Precondition::Exactly { uid: uid.clone(), resource_version: version.clone() }
        }
        (Operation::Create, None, None) => Precondition::Absent,
        // An item that changes nothing, or whose object does not match its operation, is not
        // written.
        (Operation::Create | Operation::Update | Operation::Remove, _, _)
        | (Operation::NoChange | Operation::Blocked | Operation::Deferred | Operation::Skipped, _, _) => {
            return Err(ClusterError::Moved);
        }
    };
    let manager = manager(profile);
    let answer = match (&precondition, &item.review.desired) {
        // Nobody else owns fields of it.
        (Precondition::Exactly { uid, resource_version }, Value::Null) if item.operation == Operation::Remove => {
            let place = (target.namespace.as_deref(), target.name.as_str());
            cluster.remove(&kind, place, uid, resource_version, false).await.map(|()| None)
        }
        (precondition, desired) => {
            // Removing our fields takes nothing from anybody.
            let forced = !item.review.conflicts.is_empty() || item.operation == Operation::Remove;
            let mode = if forced { ApplyMode::Forced } else { ApplyMode::Real };
            cluster.apply(&kind, desired, &manager, mode, precondition).await.map(Some)
        }
    };
    let refused = |words: &str| {
        let problem = format!("The API server refuses it: {}", wire::cut_text(words, WORDS_LIMIT));
        Ok(WriteOutcome {
            written: Written::Refused(problem),
            seen: (subject.clone(), item.live.resource_version.clone()),
        })
    };
    match answer {
        Ok(None) => Ok(WriteOutcome { written: Written::Removed, seen: (subject, None) }),
        Ok(Some(object)) => {
            let seen = (subject, super::version(&object));
            if item.operation == Operation::Remove {
                return Ok(WriteOutcome { written: Written::Removed, seen });
            }
            let owned = fields::applied_by(&object, &manager);
            let lens = Lens {
                desired: &item.review.desired,
                quantities: &item.fields.quantities,
                hides_paths: !item.fields.sensitive.is_empty(),
            };
            let applied = applied_view(&object, &owned, lens).ok_or(ClusterError::Moved)?;
            let written = match differing(item, lens, &object) {
                paths if paths.is_empty() => Written::Applied(applied),
                paths => Written::Differs(
                    applied,
                    format!(
                        "It was written, but the result differs from the reviewed preview at {}: admission treats a real \
                         write differently",
                        paths.join(", ")
                    ),
                ),
            };
            Ok(WriteOutcome { written, seen })
        }
        // Its message may quote the object.
        Err(ClusterError::Refused(refusal))
            if !item.fields.sensitive.is_empty() || item.review.shown != item.review.desired =>
        {
            refused(&refusal.to_string())
        }
        Err(ClusterError::Refused(refusal)) => refused(&refusal.message),
        Err(ClusterError::NotFound { message, .. }) => refused(&message),
        Err(error) => Err(error),
    }
}

/// The paths at which `object` differs from the preview: fields of ours with other values, and
/// fields of others that the preview did not have, or that are missing.
fn differing(item: &PlanItem, lens: Lens<'_>, object: &Value) -> Vec<String> {
    let view = lens.view(object, &item.fields.owned);
    let differs = |path: &&fields::FieldPath| {
        let name = path.to_string();
        view.get(&name) != item.fields.expected.get(&name)
    };
    let named = |path: &fields::FieldPath| match lens.hides_paths {
        true => path.pointer_without_values(object),
        false => path.pointer(object),
    };
    let others = beside::differing(&item.fields.beside, object, &item.fields.owned);
    item.fields.owned.iter().filter(differs).chain(&others).take(NAMED).map(named).collect()
}
