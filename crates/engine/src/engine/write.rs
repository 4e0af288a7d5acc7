//! Carrying out one item, exactly as it was planned or not at all.

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

/// As many fields as a sentence names.
const NAMED: usize = 10;
/// As much of the server's words as is kept.
const WORDS_LIMIT: usize = 1000;

/// What became of a write.
#[derive(Debug)]
pub struct WriteOutcome {
    /// What is remembered of it.
    pub written: Written,
    /// The object, and its version from now on; `None` if it is gone, or as it was.
    pub seen: (Subject, Option<String>),
}

/// Writes `item` of the plan of `profile`. With both uid and resourceVersion, or only if nothing is there yet; by force only
/// if the plan listed conflicts.
///
/// # Errors
///
/// [`ClusterError::Moved`] if the object is not what it was when the item was planned; transient ones. What the server
/// refuses for good is [`Written::Refused`].
pub async fn write(cluster: &Cluster, profile: &str, item: &PlanItem) -> Result<WriteOutcome, ClusterError> {
    let target = &item.target;
    let named = json!({"apiVersion": target.api_version, "kind": target.kind});
    let Some(kind) = cluster.resolve_object(&named).await? else {
        return Err(ClusterError::NotServed);
    };
    let subject = kind.subject(target.namespace.as_deref(), &target.name);
    let precondition = match (item.operation, &item.uid, &item.resource_version) {
        (Operation::Update | Operation::Remove, Some(uid), Some(version)) => {
            Precondition::Exactly { uid: uid.clone(), resource_version: version.clone() }
        }
        (Operation::Create, None, None) => Precondition::Absent,
        // An item that changes nothing, or whose object is not what its operation says, is not written.
        (Operation::Create | Operation::Update | Operation::Remove, _, _)
        | (Operation::NoChange | Operation::Blocked | Operation::Deferred | Operation::Skipped, _, _) => {
            return Err(ClusterError::Moved);
        }
    };
    let manager = manager(profile);
    let answer = match (&precondition, &item.desired) {
        // Nobody else has a part in it.
        (Precondition::Exactly { uid, resource_version }, Value::Null) if item.operation == Operation::Remove => {
            let place = (target.namespace.as_deref(), target.name.as_str());
            cluster.remove(&kind, place, uid, resource_version, false).await.map(|()| None)
        }
        (precondition, desired) => {
            // Taking our fields back takes nothing from anybody.
            let forced = !item.conflicts.is_empty() || item.operation == Operation::Remove;
            let mode = if forced { ApplyMode::Forced } else { ApplyMode::Real };
            cluster.apply(&kind, desired, &manager, mode, precondition).await.map(Some)
        }
    };
    let refused = |words: &str| {
        let problem = format!("The API server refuses it: {}", wire::cut_text(words, WORDS_LIMIT));
        Ok(WriteOutcome { written: Written::Refused(problem), seen: (subject.clone(), item.resource_version.clone()) })
    };
    match answer {
        Ok(None) => Ok(WriteOutcome { written: Written::Removed, seen: (subject, None) }),
        Ok(Some(object)) => {
            let seen = (subject, super::version(&object));
            if item.operation == Operation::Remove {
                return Ok(WriteOutcome { written: Written::Removed, seen });
            }
            let owned = fields::applied_by(&object, &manager);
            let lens =
                Lens { desired: &item.desired, quantities: &item.quantities, hides_paths: !item.sensitive.is_empty() };
            let applied = applied_view(&object, &owned, lens).ok_or(ClusterError::Moved)?;
            let written = match differing(item, lens, &object) {
                paths if paths.is_empty() => Written::Applied(applied),
                paths => Written::Differs(
                    applied,
                    format!(
                        "It was written, and the result differs from the reviewed preview at {}: admission treats a real \
                         write differently",
                        paths.join(", ")
                    ),
                ),
            };
            Ok(WriteOutcome { written, seen })
        }
        // Its words may quote the object.
        Err(ClusterError::Refused(refusal)) if !item.sensitive.is_empty() || item.shown != item.desired => {
            refused(&refusal.to_string())
        }
        Err(ClusterError::Refused(refusal)) => refused(&refusal.message),
        Err(ClusterError::NotFound { message, .. }) => refused(&message),
        Err(error) => Err(error),
    }
}

/// The fields of ours whose values are not those that the preview showed, and what else there is that it did not show, or not any more.
fn differing(item: &PlanItem, lens: Lens<'_>, object: &Value) -> Vec<String> {
    let view = lens.view(object, &item.owned);
    let differs = |path: &&fields::FieldPath| {
        let name = path.to_string();
        view.get(&name) != item.expected.get(&name)
    };
    let named = |path: &fields::FieldPath| match lens.hides_paths {
        true => path.pointer_without_values(object),
        false => path.pointer(object),
    };
    let others = beside::differing(&item.beside, object, &item.owned);
    item.owned.iter().filter(differs).chain(&others).take(NAMED).map(named).collect()
}
