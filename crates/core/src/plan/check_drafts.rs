//! Checks whether drafts can be planned at all: finds faults of a profile before anything is sent.

use std::collections::BTreeSet;

use profile_sdk::{Body, Draft};
use serde_json::Value;

use crate::api::{Input, TargetRef};
use crate::plan::items::redact;
use crate::plan::remedy::Remedy;
use crate::plan::status::size;
use crate::plan::target::target;
use crate::plan::wire::{INPUT_LIMIT, LABEL_LIMIT};
use object::pointer;

/// The most items of a plan, as in the CRD.
pub const ITEM_LIMIT: usize = 500;
/// The largest object that etcd stores, in bytes: 1.5 MiB, less what the request itself takes. A
/// dry run does not check this limit (observed: 1,572,000 bytes are stored, 1,575,000 are not).
pub const OBJECT_LIMIT: usize = 1_572_000;
/// The longest name of an object.
const NAME_LIMIT: usize = 253;
/// Metadata that only the server sets.
const SERVER_SET: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
    "generateName",
];
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Whether a plan of `drafts` and `inputs` can be made and shown.
///
/// # Errors
///
/// A sentence: items that can't be told apart, or more than a status holds.
pub fn all(drafts: &[Draft], inputs: &[Input]) -> Result<(), Remedy> {
    let names = |draft: &Draft| draft.name.len() + serde_json::to_string(&target(draft)).unwrap_or_default().len();
    let many = inputs.len();
    if many > INPUT_LIMIT {
        return Err(format!(
            "The profile reads {many} values; a plan remembers at most {INPUT_LIMIT}. Report this to the profile's owners."
        ).into());
    }
    let inputs = serde_json::to_string(inputs).unwrap_or_default().len();
    if !size::can_hold(drafts.len(), drafts.iter().map(names).sum(), inputs) {
        return Err(format!(
            "The plan can't be shown: {} items and {inputs} bytes of inputs are more than a status of {} KiB holds. Report \
             this to the profile's owners.",
            drafts.len(),
            size::STATUS_LIMIT / 1024
        ).into());
    }
    if drafts.len() > ITEM_LIMIT {
        return Err(format!(
            "The profile wants {} objects; a plan has at most {ITEM_LIMIT}. Report this to the profile's owners.",
            drafts.len()
        )
        .into());
    }
    let mut names = BTreeSet::new();
    for draft in drafts {
        if !is_subdomain(&draft.name) {
            return Err(format!(
                "The profile has an item called {:?}: item names are lower-case words with dashes. Report this to the profile's owners.",
                draft.name
            ).into());
        }
        if !names.insert(&draft.name) {
            return Err(format!(
                "The profile has two items called {}. Report this to the profile's owners.",
                draft.name
            )
            .into());
        }
    }
    Ok(())
}

/// The remedy with which `draft`, one of `drafts`, is Blocked, if something is wrong with it.
#[must_use]
pub fn one(draft: &Draft, drafts: &[Draft]) -> Option<String> {
    let problem = match &draft.body {
        Body::Ensure(object) => object_problem(object),
        Body::Remove(target) | Body::Blocked { target, .. } => identity_problem(&target.clone().into()),
    };
    let problem = problem.or_else(|| twice(draft, drafts));
    problem.map(|problem| format!("{problem}. Report this to the profile's owners"))
}

/// The reason why `object` can't be planned once its overrides are applied, if there is one.
#[must_use]
pub fn overridden(object: &Value) -> Option<String> {
    object_problem(object)
}

fn object_problem(object: &Value) -> Option<String> {
    if !object.is_object() {
        return Some("the draft is not an object".to_owned());
    }
    if let Some(problem) = identity_problem(&TargetRef::of(object)) {
        return Some(problem);
    }
    if object.get("status").is_some() {
        return Some("the draft sets status, which an apply ignores".to_owned());
    }
    let set = SERVER_SET.iter().find(|key| object.pointer(&format!("/metadata/{key}")).is_some());
    if let Some(key) = set {
        return Some(format!("the draft sets metadata.{key}, which only the API server sets"));
    }
    if object.pointer(LAST_APPLIED).is_some() {
        return Some("the draft sets kubectl's own annotation last-applied-configuration".to_owned());
    }
    if redact::is_secret(object) && object.get("stringData").is_some() {
        return Some("the draft of a Secret uses stringData, whose fields can't be tracked: use data".to_owned());
    }
    if let Some(path) = null(object, &mut String::new()) {
        return Some(format!(
            "the draft has no value at {path}: null, or a number that JSON can't represent. Leave the field out, or name it as unwanted"
        ));
    }
    let size = object.to_string().len();
    (size > OBJECT_LIMIT).then(|| too_large(size))
}

fn identity_problem(target: &TargetRef) -> Option<String> {
    let TargetRef { api_version, kind, name, namespace } = target;
    let group = api_version.split('/').next().unwrap_or_default();
    if api_version.is_empty() || kind.is_empty() {
        return Some("the draft has no apiVersion or no kind".to_owned());
    }
    if name.is_empty() {
        return Some(format!("the draft of a {kind} has no metadata.name"));
    }
    // Names of RBAC objects need not be DNS names; they must only fit into a URL path.
    let fits = match group {
        "rbac.authorization.k8s.io" => name.len() <= NAME_LIMIT && !name.contains(['/', '%']) && !name.starts_with('.'),
        _ => is_subdomain(name),
    };
    if !fits {
        return Some(format!("{name:?} is not a valid name for a {kind}: it must be a lower-case DNS name"));
    }
    let namespace = namespace.as_deref().filter(|namespace| !is_subdomain(namespace) || namespace.len() > LABEL_LIMIT);
    namespace
        .map(|namespace| format!("{namespace:?} is not a valid name for a namespace: it must be a lower-case DNS name"))
}

/// The message for an object of `size` bytes, which no server would store.
#[must_use]
pub fn too_large(size: usize) -> String {
    format!("the object would have {size} bytes, but the API server stores at most {OBJECT_LIMIT}")
}

/// Whether `name` is an RFC 1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= NAME_LIMIT && name.split('.').all(label)
}

fn null(value: &Value, path: &mut String) -> Option<String> {
    let length = path.len();
    let mut below = |name: &str, member: &Value| {
        pointer::push(path, name);
        let found = null(member, path);
        path.truncate(length);
        found
    };
    match value {
        Value::Null => Some(path.clone()),
        Value::Object(map) => map.iter().find_map(|(name, member)| below(name, member)),
        Value::Array(list) => list.iter().enumerate().find_map(|(index, member)| below(&index.to_string(), member)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The problem that another draft is about the same object, in whatever version.
fn twice(draft: &Draft, drafts: &[Draft]) -> Option<String> {
    let own = target(draft);
    let is_twin = |other: &&Draft| other.name != draft.name && target(other).is_same_object(&own);
    let other = drafts.iter().find(is_twin)?;
    Some(format!("items {} and {} are about the same object, {own}", draft.name, other.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn draft(name: &str, object: Value) -> Draft {
        Draft::new(name, Body::Ensure(object), "does something")
    }

    fn widget() -> Value {
        json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}})
    }

    #[test]
    fn faults_of_a_profile_are_named_before_anything_is_sent() {
        let with = |pointer: &str, value: Value| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let mut object = widget();
            object.pointer_mut(parent).unwrap()[key] = value;
            object
        };
        for (object, says) in [
            (json!("text"), "not an object"),
            (json!({"metadata": {"name": "w"}}), "no apiVersion or no kind"),
            (json!({"apiVersion": "v1", "kind": "Widget", "metadata": {}}), "no metadata.name"),
            (with("/metadata/name", json!("Not_DNS")), "\"Not_DNS\" is not a valid name for a Widget"),
            (with("/metadata/name", json!("a/../b")), "is not a valid name for a Widget"),
            (with("/metadata/name", json!("x".repeat(254))), "is not a valid name for a Widget"),
            (with("/metadata/namespace", json!("A b")), "is not a valid name for a namespace"),
            (with("/metadata/namespace", json!("n".repeat(64))), "is not a valid name for a namespace"),
            (with("/metadata/generateName", json!("w-")), "metadata.generateName"),
            (with("/metadata/uid", json!("1")), "metadata.uid"),
            (with("/metadata/resourceVersion", json!("1")), "metadata.resourceVersion"),
            (with("/metadata/managedFields", json!([])), "metadata.managedFields"),
            (
                with("/metadata/annotations", json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"})),
                "kubectl's own",
            ),
            (with("/status", json!({})), "sets status"),
            (with("/spec/size", json!(f64::NAN)), "no value at /spec/size"),
            (with("/spec/list", json!([1, null])), "no value at /spec/list/1"),
            (with("/spec/text", json!("x".repeat(2 << 20))), "stores at most"),
            (
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}),
                "use data",
            ),
        ] {
            let draft = draft("a", object);
            let problem = one(&draft, std::slice::from_ref(&draft)).unwrap_or_default();
            assert!(problem.contains(says) && problem.contains("profile's owners"), "{says}: {problem}");
        }
        let fine = draft("a", widget());
        assert_eq!(one(&fine, std::slice::from_ref(&fine)), None);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:x"}});
        let role = draft("a", role);
        assert_eq!(one(&role, std::slice::from_ref(&role)), None);
    }

    #[test]
    fn two_drafts_for_one_object_are_both_named_whatever_their_version() {
        let mut other = widget();
        other["apiVersion"] = json!("example.dev/v2");
        let drafts = [draft("a", widget()), draft("b", other)];
        assert!(all(&drafts, &[]).is_ok());
        for draft in &drafts {
            assert!(one(draft, &drafts).unwrap().contains("Widget w"));
        }
    }

    #[test]
    fn items_must_be_told_apart() {
        let drafts = [draft("a", widget()), draft("a", widget())];
        assert!(all(&drafts, &[]).unwrap_err().contains("two items called a"));
        assert!(all(&[draft("", widget())], &[]).is_err());
        let many: Vec<_> = (0..501).map(|index| draft(&format!("i{index}"), widget())).collect();
        assert!(all(&many, &[]).unwrap_err().contains("501"));
        assert!(all(&many[..400], &[]).is_ok());
        let long = draft(&"x".repeat(250), widget());
        let long: Vec<_> =
            (0..400).map(|index| Draft { name: format!("{}{index}", &long.name[..200]), ..long.clone() }).collect();
        assert!(all(&long, &[]).unwrap_err().contains("can't be shown"));
    }
}
