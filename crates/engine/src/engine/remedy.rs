//! Explains a refusal to a person, with what to do about it.
//!
//! The server's own words are used if they can't quote a secret value; for objects with such values
//! only reason and fields are shown. The texts were observed with kube-apiserver 1.33 to 1.36.

use serde_json::Value;

use advisor_cluster::{Refusal, Served};
use advisor_core::api::{FIELD_MANAGER, TargetRef};
use advisor_core::plan::items::message;
use advisor_core::plan::wire;
use object::fields;

/// The most bytes of the server's message that are shown.
const WORDS_LIMIT: usize = 700;

/// The object that the refusal is about.
pub(super) struct RefusedRequest<'a> {
    pub(super) target: &'a TargetRef,
    /// Whether the server's message may quote a secret.
    pub(super) secretive: bool,
    /// Whether administrators have overridden part of it.
    pub(super) overridden: bool,
}

pub(super) fn not_served(target: &TargetRef) -> String {
    format!("the cluster does not serve {} {}: install its operator", target.api_version, target.kind)
}

pub(super) fn wrong_scope(target: &TargetRef, namespaced: bool) -> String {
    let (is, remedy) = if namespaced { ("namespaced", "has no namespace") } else { ("not namespaced", "has one") };
    format!("{} is {is}, but the draft {remedy}. Report this to the profile's owners", target.kind)
}

pub(super) fn no_namespace(target: &TargetRef) -> String {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    format!("namespace {namespace} does not exist: create it, or install the operator that creates it")
}

pub(super) fn being_deleted(target: &TargetRef, live: &Value) -> String {
    let held = message::held_by(live);
    format!("{target} is being deleted{held}; it will be planned again once it is deleted")
}

/// The remedy for a webhook that does not answer; the server's message names it.
pub(super) fn webhook(message: &str) -> String {
    let words = wire::cut_text(message, WORDS_LIMIT);
    format!("it can't be previewed while a webhook does not respond; retrying. Check that its server runs: {words}")
}

/// The remedy for a conflict with another configuration of this operator: with force, the two would
/// take the field from each other.
pub(super) fn other_configuration(
    conflicts: &[(fields::FieldPath, String)],
    manager: &str,
    result: &Value,
) -> Option<String> {
    let prefix = format!("{FIELD_MANAGER}/");
    let (field, other) = conflicts.iter().find(|(_, other)| other.starts_with(&prefix) && other != manager)?;
    Some(contested(other.trim_start_matches(&prefix), field, result))
}

/// The remedy if configuration `other` wants another value of `field`.
pub(super) fn contested(other: &str, field: &fields::FieldPath, result: &Value) -> String {
    let path = field.pointer(result);
    format!(
        "configuration {other} wants a different value at {path}: change the options of one of the two, or set spec.action of one to Ignore"
    )
}

/// The remedy for a missing right: the rule, as it is written into a Role or ClusterRole.
pub(super) fn missing_right(target: &TargetRef, kind: &Served, verbs: &[&str], refusal: &Refusal) -> String {
    if verbs.is_empty() {
        return format!(
            "the API server forbids it, although the operator seems to have the rights: check its roles and the cluster's authorizers: {}",
            wire::cut_text(&refusal.message, WORDS_LIMIT)
        );
    }
    let place = match &target.namespace {
        Some(namespace) => format!("a Role in namespace {namespace}, or to a ClusterRole"),
        None => "a ClusterRole".to_owned(),
    };
    let quoted: Vec<_> = verbs.iter().map(|verb| format!("{verb:?}")).collect();
    format!(
        "a right is missing. Add this rule to {place} of the operator: {{apiGroups: [{:?}], resources: [{:?}], resourceNames: \
         [{:?}], verbs: [{}]}}",
        kind.resource.group,
        kind.resource.plural,
        target.name,
        quoted.join(", ")
    )
}

/// The remedy for any other refusal.
pub(super) fn from_refusal(refusal: &Refusal, about: &RefusedRequest<'_>) -> String {
    let message = refusal.message.as_str();
    let target = about.target;
    if let Some(name) =
        quoted_after(message, "admission webhook ").filter(|_| message.contains("does not support dry run"))
    {
        return format!(
            "webhook {name} does not support dry runs, so the change can't be previewed: declare sideEffects None or \
             NoneOnDryRun in its webhook configuration, or exempt {} from it",
            target.kind
        );
    }
    if let Some(path) = undeclared_field(message) {
        // Entries of lists are named by their values.
        let path = if about.secretive { path.split('[').next().unwrap_or_default() } else { path };
        let (cause, remedy) = if about.overridden {
            ("", "correct the override that sets it, or update the operator that provides this kind")
        } else {
            (", so its operator is older or newer than this profile expects", "update the older of the two")
        };
        return format!(
            "this cluster's {} ({}) does not have the field {path}{cause}: {remedy}",
            target.kind, target.api_version
        );
    }
    if let Some(problem) = type_problem(message) {
        // Entries of lists are named by their values.
        let path = problem.split(['[', ' ']).next().unwrap_or_default().trim_end_matches(':');
        let problem = if about.secretive { format!("{path} has a different type or format") } else { problem };
        let remedy = if about.overridden {
            "Correct the override that sets the field, or update the operator that provides this kind"
        } else {
            "Update the operator that provides this kind, or report this to the profile's owners"
        };
        return format!(
            "the desired object does not match the schema of {} ({}): {problem}. {remedy}",
            target.kind, target.api_version
        );
    }
    if let Some(problem) = live_type_problem(message) {
        let path = problem.split(['[', ' ']).next().unwrap_or_default().trim_end_matches(':');
        let problem = if about.secretive { format!("{path} has a different type or format") } else { problem };
        return format!(
            "the existing object no longer matches the schema of its kind ({}): {problem}. Nothing can be applied to it until that value is \
             removed or has the type that the schema now requires: use kubectl edit, or have its owner change it",
            target.api_version
        );
    }
    if refusal.is_too_large() {
        return "the object is larger than the API server accepts: reduce what overrides, or others, add to it"
            .to_owned();
    }
    if message.contains("failed to convert new object") {
        return format!(
            "a value is not in the format that {} requires, for example base64: correct the option or the override that sets it",
            target.kind
        );
    }
    if refusal.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") {
        let namespace = target.namespace.as_deref().unwrap_or_default();
        return format!("namespace {namespace} is being deleted: wait until it is gone, then create it again");
    }
    if about.secretive {
        return format!(
            "the API server refuses it: {refusal}; its message is not shown, because it may quote secret values. Try the change with kubectl \
             apply --server-side --dry-run=server to read it"
        );
    }
    let words = wire::cut_text(&without_values(refusal), WORDS_LIMIT);
    if message.contains("exceeded quota") {
        return format!(
            "a quota does not allow it: {}. Raise the quota, or free resources",
            words.trim_end_matches('.')
        );
    }
    if message.contains("denied request") || message.contains("denied the request") {
        return format!(
            "admission refuses it: {}. Exempt the operator from that policy, or skip the item in spec.items",
            words.trim_end_matches('.')
        );
    }
    format!(
        "the API server refuses it: {}. Correct the option or the override that sets this, or skip the item in spec.items",
        words.trim_end_matches('.')
    )
}

/// The server's message. Causes that quote a value are cut to what follows it.
fn without_values(refusal: &Refusal) -> String {
    let quoting = |cause: &&advisor_cluster::Cause| {
        matches!(cause.reason.as_str(), "FieldValueInvalid" | "FieldValueNotSupported" | "FieldValueTypeInvalid")
    };
    let is_admission = refusal.message.contains("denied request") || refusal.message.contains("denied the request");
    if is_admission || !refusal.causes.iter().any(|cause| quoting(&cause)) {
        return refusal.message.clone();
    }
    let (named, nameless): (Vec<_>, Vec<_>) =
        refusal.causes.iter().partition(|cause| !cause.field.is_empty() && cause.field != "<nil>");
    if named.is_empty() {
        // Their text names the field, for example if a number is too large for its format.
        return nameless.iter().map(|cause| after_value(&cause.message)).collect::<Vec<_>>().join("; ");
    }
    // Next to others, a cause without a field only says that there may be more.
    let causes = named.iter().map(|cause| format!("{}: {}", cause.field, after_value(&cause.message)));
    causes.collect::<Vec<_>>().join("; ")
}

/// `Invalid value: "x": must be shorter` without the value.
fn after_value(message: &str) -> String {
    for kind in ["Invalid value: ", "Unsupported value: "] {
        if let Some(rest) = message.strip_prefix(kind) {
            let mut value = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let end = if value.next().is_some_and(|value| value.is_ok()) { value.byte_offset() } else { 0 };
            let rest = rest.get(end..).unwrap_or_default().trim_start_matches(": ");
            return format!("{}{rest}", kind.to_lowercase());
        }
    }
    message.to_owned()
}

/// `.spec.foo` of `…: .spec.foo: field not declared in schema`.
fn undeclared_field(message: &str) -> Option<&str> {
    let before = message.strip_suffix(": field not declared in schema").or_else(|| {
        message.split(": field not declared in schema").next().filter(|before| before.len() < message.len())
    })?;
    before.rsplit(": ").next()
}

/// Like [`type_problem`], of an existing object: it was stored before its kind got its schema.
fn live_type_problem(message: &str) -> Option<String> {
    typed(message.strip_prefix("failed to create typed live object ")?)
}

/// `.spec.x: expected numeric (int or float)` from the message about a typed patch that does not
/// fit, without the value.
fn type_problem(message: &str) -> Option<String> {
    typed(message.strip_prefix("failed to create typed patch object ")?)
}

fn typed(rest: &str) -> Option<String> {
    let problem = rest.split_once("): ").map_or(rest, |(_, problem)| problem);
    let problem = problem.split(", got ").next().unwrap_or_default();
    Some(wire::cut_text(problem, WORDS_LIMIT))
}

fn quoted_after<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(before)?;
    rest.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_cluster::Cause;

    fn target() -> TargetRef {
        TargetRef { api_version: "example.dev/v1".into(), kind: "Widget".into(), name: "w".into(), namespace: None }
    }

    fn remedy(code: u16, message: &str, causes: &[(&str, &str, &str)], secretive: bool) -> String {
        let causes = causes.iter().map(|(reason, field, message)| Cause {
            reason: (*reason).into(),
            field: (*field).into(),
            message: (*message).into(),
        });
        let refusal = Refusal { code, reason: "R".into(), message: message.into(), causes: causes.collect() };
        from_refusal(&refusal, &RefusedRequest { target: &target(), secretive, overridden: true })
    }

    /// Fault R23: booleans of a ForkliftController that were stored before its CRD required text.
    #[test]
    fn r23_a_value_of_another_type_that_is_there_already_is_named_with_the_remedy() {
        let said = "failed to create typed live object (/w; example.dev/v1, Kind=Widget): .spec.feature: expected string, got &value.valueUnstructured{Value:true}";
        let told = remedy(500, said, &[], false);
        assert!(told.starts_with("the existing object no longer matches the schema of its kind (example.dev/v1): .spec.feature: expected string. Nothing can be applied"), "{told}");
        assert!(told.contains("kubectl edit") && !told.contains("valueUnstructured"), "{told}");
    }

    /// The texts were observed.
    #[test]
    fn each_refusal_says_what_to_do() {
        let cases = [
            (
                500,
                "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): .spec.foo: field not declared in schema",
                "does not have the field .spec.foo: correct the override that sets it",
            ),
            (
                500,
                "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): .spec.x: expected list, got &{password=hunter2}",
                "does not match the schema of Widget (example.dev/v1): .spec.x: expected list",
            ),
            (
                400,
                "admission webhook \"h.example\" does not support dry run",
                "webhook h.example does not support dry runs",
            ),
            (
                403,
                "configmaps \"a\" is forbidden: exceeded quota: q, requested: count/configmaps=1",
                "a quota does not allow it",
            ),
            (500, "etcdserver: request is too large", "larger than the API server accepts"),
            (413, "limit is 3145728", "larger than the API server accepts"),
            (
                422,
                "ValidatingAdmissionPolicy 'P' with binding 'B' denied request: no",
                "admission refuses it: ValidatingAdmissionPolicy 'P'",
            ),
            (400, "admission webhook \"h\" denied the request: no", "admission refuses it: admission webhook \"h\""),
            (500, "failed to convert new object (a; v1, Kind=Secret): illegal base64", "base64"),
        ];
        let remedies: Vec<_> = cases.iter().map(|(code, message, _)| remedy(*code, message, &[], false)).collect();
        for (remedy, (_, message, says)) in remedies.iter().zip(&cases) {
            assert!(remedy.contains(says), "{message}: {remedy}");
            assert!(!remedy.contains("hunter2"), "{remedy}");
            // What is said of one refusal is said of no other.
            let others = remedies.iter().zip(&cases).filter(|(_, (.., other))| other != says);
            for (other, (_, message, _)) in others {
                assert!(!other.contains(says), "{message}: {other}");
            }
        }
    }

    /// Who has overridden nothing is not told to correct an override.
    #[test]
    fn only_an_override_is_blamed_on_an_override() {
        let message = "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): .spec.foo: field not declared in schema";
        let refusal = Refusal { code: 500, reason: "R".into(), message: message.into(), causes: Vec::new() };
        for overridden in [true, false] {
            let told = from_refusal(&refusal, &RefusedRequest { target: &target(), secretive: false, overridden });
            assert_eq!(told.contains("correct the override"), overridden, "{told}");
            assert_eq!(
                told.contains("older or newer than this profile expects: update the older"),
                !overridden,
                "{told}"
            );
        }
    }

    /// As kube-apiserver 1.36 answers if a number of a custom resource does not fit its format.
    #[test]
    fn a_cause_that_names_its_field_in_its_text_alone_is_told() {
        let cause = "Invalid value: \"\": Checked value must be of type integer with format int32 in spec.seconds";
        let told = remedy(422, "Widget.example.dev \"w\" is invalid", &[("FieldValueInvalid", "<nil>", cause)], false);
        assert!(
            told.contains(
                "Checked value must be of type integer with format int32 in spec.seconds. Correct the option"
            ),
            "{told}"
        );
    }

    #[test]
    fn x1_no_value_of_the_object_is_quoted() {
        let message = "Widget.example.dev \"w\" is invalid: spec.mode: Unsupported value: \"hunter2\": supported values: \"A\", \"B\"";
        let cause =
            [("FieldValueNotSupported", "spec.mode", "Unsupported value: \"hunter2\": supported values: \"A\", \"B\"")];
        let open = remedy(422, message, &cause, false);
        assert!(
            open.contains("spec.mode: unsupported value: supported values: \"A\", \"B\"") && !open.contains("hunter2"),
            "{open}"
        );
        let closed = remedy(422, message, &cause, true);
        assert!(closed.contains("field spec.mode") && !closed.contains("hunter2"), "{closed}");
        let twice = "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): .spec.set: duplicate entries for key [=\"hunter2\"]";
        assert!(remedy(500, twice, &[], false).contains("duplicate entries"));
        let closed = remedy(500, twice, &[], true);
        assert!(closed.contains(".spec.set has a different type or format") && !closed.contains("hunter2"), "{closed}");
        let unknown = "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): .spec.map[name=\"hunter2\"].x: field not declared in schema";
        assert!(!remedy(500, unknown, &[], true).contains("hunter2"));
        let denied = remedy(422, "ValidatingAdmissionPolicy 'P' denied request: map[password:hunter2]", &[], true);
        assert!(!denied.contains("hunter2"), "{denied}");
    }
}
