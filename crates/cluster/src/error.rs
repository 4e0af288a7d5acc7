//! Classifies the answers of the API server: gone, moved, refused for good, or worth a retry.

use std::borrow::Cow;
use std::fmt;

use kube::core::Status;
use serde_json::Value;

use object::limits::{self, Beyond, OBJECT_DEPTH, OBJECT_MAPS, OBJECT_VALUES, cut_text, words};

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// Not answered, or answered with an error that may go away.
    #[error("the API server did not answer the request: {message}")]
    Transient {
        /// The message of the server or the connection.
        message: String,
    },
    /// The kind is not served: the answer is plain text and not a Status.
    #[error("the API server does not serve this kind")]
    NotServed,
    /// The object, or its namespace, does not exist.
    #[error("{message}")]
    NotFound {
        /// Whether it is the namespace that does not exist.
        namespace_missing: bool,
        /// The server's message.
        message: String,
    },
    /// Others own fields with other values: each field as the server names it, and its manager.
    #[error("others own {} of the fields", .0.len())]
    Conflicts(Vec<(String, String)>),
    /// The object is nested so deep that part of it is left out when it is read: it can't be
    /// compared.
    #[error(
        "it is nested more than {OBJECT_DEPTH} levels deep and can't be compared: have its owner flatten the deepest value"
    )]
    TooDeep,
    /// The object has so many values that part of it is left out when it is read: it can't be
    /// compared.
    #[error(
        "it has more than {OBJECT_VALUES} values, or more than {OBJECT_MAPS} maps and lists, and can't be compared: have its owner make it \
         smaller"
    )]
    TooMany,
    /// The object is not the one that the precondition names, or has changed since.
    #[error("the object has changed since it was read")]
    Moved,
    /// A webhook that the server needs for this object does not answer. Other objects are served
    /// all the same.
    #[error("{message}")]
    Webhook {
        /// The server's message: which webhook, and why it failed.
        message: String,
    },
    /// The server will answer this request in the same way until somebody changes something.
    #[error("the API server refuses it: {0}")]
    Refused(Refusal),
}

/// Why the server refuses a request, in its own words.
///
/// They may quote the object, including secret values. Only the parts that can't are displayed:
/// code, reason and fields; and which right is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code; 0 if the request could not be built.
    pub code: u16,
    /// The reason in CamelCase, if the server gives one.
    pub reason: String,
    /// The server's message. It may quote the object.
    pub message: String,
    /// The problems, with their fields.
    pub causes: Vec<Cause>,
}

/// One of the causes of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The kind of problem, in CamelCase.
    pub reason: String,
    /// The field as the server names it; may be empty.
    pub field: String,
    /// The problem with it. It may quote the value.
    pub message: String,
}

impl Refusal {
    /// Whether authorization refuses it, and not admission, a quota or a terminating namespace.
    #[must_use]
    pub fn is_missing_right(&self) -> bool {
        self.code == 403 && self.message.contains("User \"") && self.message.contains("\" cannot ")
    }

    /// Whether the object is larger than the API server, or its store, accepts.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.code == 413 || ["request is too large", "ResourceExhausted"].iter().any(|text| self.message.contains(text))
    }

    /// The fields that are wrong, sorted.
    #[must_use]
    pub fn fields(&self) -> Vec<&str> {
        let mut fields: Vec<_> = self.causes.iter().map(|cause| cause.field.as_str()).collect();
        fields.retain(|field| !field.is_empty());
        fields.sort_unstable();
        fields.dedup();
        fields
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_missing_right() {
            return f.write_str(&self.message);
        }
        let reason = if self.reason.is_empty() { "no reason given" } else { &self.reason };
        write!(f, "{} {reason}", self.code)?;
        match self.fields().as_slice() {
            [] => Ok(()),
            fields => write!(f, ", field {}", fields.join(", ")),
        }
    }
}

impl ClusterError {
    /// The text that may be displayed: what the server says about an object may quote it.
    #[must_use]
    pub fn displayed(&self) -> String {
        match self {
            Self::Transient { .. } => "the API server did not answer".to_owned(),
            Self::NotFound { .. } => "it does not exist".to_owned(),
            Self::Refused(refusal) if refusal.is_missing_right() => {
                format!("{}. Grant that to the operator's service account", refusal.message.trim_end_matches('.'))
            }
            Self::NotServed
            | Self::Conflicts(_)
            | Self::TooDeep
            | Self::TooMany
            | Self::Moved
            | Self::Webhook { .. }
            | Self::Refused(_) => self.to_string(),
        }
    }

    /// A word for events and logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Transient { .. } => "Unavailable",
            Self::NotServed => "KindNotServed",
            Self::NotFound { .. } => "NotFound",
            Self::Conflicts(_) => "FieldConflict",
            Self::TooDeep => "TooDeep",
            Self::TooMany => "TooMany",
            Self::Moved => "Moved",
            Self::Webhook { .. } => "WebhookUnavailable",
            Self::Refused(_) => "Refused",
        }
    }
}

/// `object`, if it was read completely and can be compared.
pub(super) fn within_bounds(object: Value) -> Result<Value, ClusterError> {
    match limits::beyond(&object) {
        None => Ok(object),
        Some(Beyond::Depth) => Err(ClusterError::TooDeep),
        Some(Beyond::Count) => Err(ClusterError::TooMany),
    }
}

impl From<kube::Error> for ClusterError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => of_status(&status),
            kube::Error::Discovery(_) => Self::NotServed,
            other => Self::Transient { message: words(&other.to_string()) },
        }
    }
}

/// The most causes of a refusal that are kept.
const CAUSES: usize = 50;

/// Texts of 5xx answers that no retry changes (observed on kube-apiserver 1.36).
const PERMANENT: [&str; 6] = [
    "failed to create typed patch object",
    "failed to create typed live object",
    "failed to convert new object",
    "failed to convert live object",
    "etcdserver: request is too large",
    "code = ResourceExhausted",
];

/// Texts of answers that are caused by a webhook that does not answer (observed on kube-apiserver
/// 1.36).
const WEBHOOK: [&str; 2] = ["failed calling webhook", "conversion webhook for "];

/// Texts of a webhook that denies a request because something changed while the webhook itself
/// asked the server: HyperConverged's does a dry run of what it would make of KubeVirt
/// (kubevirt/hyperconverged-cluster-operator pkg/webhooks/validator, `updateOperatorCr`; up to 1.18
/// it passes on the server's answer, k8s.io/apiserver pkg/registry/generic/registry,
/// `OptimisticLockErrorMsg`).
const MOVED_WITHIN: [&str; 2] = [
    "due to persistent conflicts",
    "the object has been modified; please apply your changes to the latest version and try again",
];

/// Beginnings of messages of a server that is not ready, or can't answer in time (apiserver and
/// etcd, observed on kube-apiserver 1.36). Other messages with such a code may quote an object, and
/// are left out.
const NOT_READY: [&str; 9] = [
    "etcdserver: ",
    "context deadline exceeded",
    "Timeout: ",
    "Too many requests",
    "the server is currently unable to handle the request",
    "the server was unable to return a response in time",
    "The provided continue parameter is too old",
    "storage is (re)initializing",
    "too old resource version",
];

/// The error for an answer that may be different later.
fn transient(status: &Status) -> ClusterError {
    let told = NOT_READY.iter().any(|text| status.message.starts_with(text));
    let reason = if status.reason.is_empty() { "no reason given" } else { &status.reason };
    let said = if told { format!(": {}", cut_text(&status.message, SHORT_WORDS)) } else { String::new() };
    ClusterError::Transient { message: words(&format!("it answers {} {reason}{said}", status.code)) }
}

/// The most bytes kept of the message of a server that is not ready.
const SHORT_WORDS: usize = 200;

fn of_status(status: &Status) -> ClusterError {
    let causes = || status.details.iter().flat_map(|details| &details.causes);
    let conflicts: Vec<_> = causes()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| (cause.field.clone(), words(manager(&cause.message))))
        .collect();
    let refused = || {
        let causes = causes().map(|cause| Cause {
            reason: words(&cause.reason),
            field: words(&cause.field),
            message: words(&cause.message),
        });
        ClusterError::Refused(Refusal {
            code: status.code,
            reason: words(&status.reason),
            message: words(&in_order(&status.message)),
            causes: causes.take(CAUSES).collect(),
        })
    };
    let is_denied = ["denied the request", "denied request:"].iter().any(|text| status.message.contains(text));
    if is_denied && MOVED_WITHIN.iter().any(|text| status.message.contains(text)) {
        return ClusterError::Moved;
    }
    // Admission may refuse with any code.
    if is_denied {
        return refused();
    }
    match status.code {
        // The answer for a kind that is not served is plain text, which kube can't parse as a
        // Status.
        404 if status.reason != "NotFound" => ClusterError::NotServed,
        404 => ClusterError::NotFound {
            namespace_missing: status.details.as_ref().is_some_and(|details| details.kind == "namespaces"),
            message: words(&status.message),
        },
        409 if !conflicts.is_empty() => ClusterError::Conflicts(conflicts),
        409 => ClusterError::Moved,
        422 if causes().any(|cause| cause.field == "metadata.uid") => ClusterError::Moved,
        500.. if PERMANENT.iter().any(|text| status.message.contains(text)) => refused(),
        500 if WEBHOOK.iter().any(|text| status.message.contains(text)) => {
            ClusterError::Webhook { message: words(&status.message) }
        }
        // 410: what was asked for has expired, for example a place in a list. It is requested
        // again.
        401 | 408 | 410 | 429 | 500.. => transient(status),
        _ => refused(),
    }
}

/// The message of a refusal, with the errors of a typed patch sorted: the server lists them in the
/// random order of a map (structured-merge-diff typed/helpers.go, `ValidationErrors`), and each
/// order would be another status.
fn in_order(message: &str) -> Cow<'_, str> {
    let Some((head, errors)) = message.split_once("errors:\n") else { return Cow::Borrowed(message) };
    let mut errors: Vec<_> = errors.lines().map(str::trim).collect();
    errors.sort_unstable();
    Cow::Owned(format!("{head}{}", errors.join("; ")))
}

/// The manager that a conflict's message names: `conflict with "NAME" using VERSION`, or without a
/// version.
fn manager(message: &str) -> &str {
    let quoted = message.strip_prefix("conflict with \"").unwrap_or(message);
    quoted.rsplit_once('"').map_or(quoted, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manager_of_a_conflict() {
        assert_eq!(manager("conflict with \"kubectl-create\" using operator.openshift.io/v1"), "kubectl-create");
        assert_eq!(manager("conflict with \"them\""), "them");
        assert_eq!(manager("conflict with \"odd \\\"name\" using v1"), "odd \\\"name");
    }

    /// Fault R13: two errors of one patch, in either order.
    #[test]
    fn r13_errors_of_a_typed_patch_have_one_order() {
        let told = |one: &str, other: &str| {
            let message = format!(
                "failed to create typed patch object (/w; example.dev/v1, Kind=Widget): errors:\n  {one}\n  {other}"
            );
            match of_status(&serde_json::from_value(json!({"code": 500, "message": message})).unwrap()) {
                ClusterError::Refused(refusal) => refusal.message,
                other => panic!("{other:?}"),
            }
        };
        let [one, other] = [".spec.a: field not declared in schema", ".spec.b: expected list, got &{x}"];
        assert_eq!(told(one, other), told(other, one));
        let in_order = in_order("x): errors:\n  .spec.b: no\n  .spec.a: no");
        assert_eq!(in_order, "x): .spec.a: no; .spec.b: no");
    }

    #[test]
    fn x1_what_is_displayed_of_a_refusal_quotes_no_value() {
        let cause = Cause {
            reason: "FieldValueInvalid".into(),
            field: "spec.password".into(),
            message: "Invalid value: \"hunter2\"".into(),
        };
        let refusal = Refusal {
            code: 422,
            reason: "Invalid".into(),
            message: "Widget \"w\" is invalid: map[password:hunter2]".into(),
            causes: vec![cause],
        };
        assert_eq!(refusal.to_string(), "422 Invalid, field spec.password");
        let right = "secrets \"a\" is forbidden: User \"u\" cannot get resource \"secrets\"";
        let refusal = Refusal { code: 403, message: right.into(), ..Refusal::default() };
        assert_eq!(refusal.to_string(), right);
    }

    /// K4: which answers are worth a retry, which are not, and which are no error at all.
    #[test]
    fn k4_every_answer_is_of_one_class() {
        let conflict = json!({"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"them\"", "field": ".spec"}]});
        let uid = json!({"causes": [{"reason": "FieldValueInvalid", "message": "", "field": "metadata.uid"}]});
        let namespace = json!({"kind": "namespaces", "name": "gone"});
        for (code, reason, message, details, class) in [
            (400, "BadRequest", "strict decoding error", json!(null), "refused"),
            (401, "Unauthorized", "", json!(null), "again"),
            (403, "Forbidden", "exceeded quota", json!(null), "refused"),
            (
                403,
                "Forbidden",
                "admission webhook \"validate-hco.kubevirt.io\" denied the request: no",
                json!(null),
                "refused",
            ),
            // Fault R13, as HyperConverged's webhook words it from 1.19 on and before.
            (
                403,
                "Forbidden",
                "admission webhook \"validate-hco.kubevirt.io\" denied the request: failed to dry-run update \
                kubevirt.io/v1, Kind=KubeVirt after 3 retries due to persistent conflicts",
                json!(null),
                "moved",
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"validate-hco.kubevirt.io\" denied the request: Operation cannot be fulfilled on \
                kubevirts.kubevirt.io \"kubevirt-kubevirt-hyperconverged\": the object has been modified; please apply your changes to \
                the latest version and try again",
                json!(null),
                "moved",
            ),
            (404, "", "page not found", json!(null), "not served"),
            (404, "NotFound", "", json!(null), "absent"),
            (404, "NotFound", "", namespace, "absent"),
            (405, "MethodNotAllowed", "", json!(null), "refused"),
            (408, "", "", json!(null), "again"),
            (409, "Conflict", "", json!(null), "moved"),
            (409, "Conflict", "", conflict, "conflicts"),
            (410, "Expired", "", json!(null), "again"),
            (413, "RequestEntityTooLarge", "", json!(null), "refused"),
            (422, "Invalid", "", json!(null), "refused"),
            (422, "Invalid", "", uid, "moved"),
            (429, "TooManyRequests", "", json!(null), "again"),
            (500, "InternalError", "failed calling webhook \"w\"", json!(null), "webhook"),
            (500, "", "etcdserver: request is too large", json!(null), "refused"),
            (500, "InternalError", "", json!(null), "again"),
            (503, "ServiceUnavailable", "", json!(null), "again"),
            (504, "Timeout", "", json!(null), "again"),
        ] {
            let status = json!({"code": code, "reason": reason, "message": message, "details": details});
            let status: Status = serde_json::from_value(status).unwrap();
            let found = match of_status(&status) {
                ClusterError::Transient { .. } => "again",
                ClusterError::Webhook { .. } => "webhook",
                ClusterError::Refused(_) => "refused",
                ClusterError::NotFound { .. } => "absent",
                ClusterError::NotServed => "not served",
                ClusterError::Moved => "moved",
                ClusterError::TooDeep => "too deep",
                ClusterError::TooMany => "too many",
                ClusterError::Conflicts(_) => "conflicts",
            };
            assert_eq!(found, class, "{code} {reason} {message}");
        }
    }

    /// T12: an error of 700 KB that quotes the object is neither logged nor kept as it is.
    #[test]
    fn t12_an_error_is_short_and_quotes_nothing_unless_it_is_known_to() {
        let message = format!("panic: map[password:hunter2] {}", "x".repeat(700_000));
        let status = Status { code: 500, reason: "InternalError".into(), message, ..Status::default() };
        let error = of_status(&status);
        assert_eq!(error.to_string(), "the API server did not answer the request: it answers 500 InternalError");
        let known = Status { code: 503, message: "etcdserver: leader changed".into(), ..Status::default() };
        assert!(of_status(&known).to_string().ends_with("503 no reason given: etcdserver: leader changed"));
        let denied =
            Status { code: 403, message: format!("denied the request: \u{1b}[8m{}", "x".repeat(700_000)), ..status };
        let ClusterError::Refused(refusal) = of_status(&denied) else { panic!("refused") };
        assert!(
            refusal.message.len() < object::limits::WORDS + 20
                && refusal.message.starts_with("denied the request: \\u{1b}[8m")
        );
    }

    #[test]
    fn refusals_without_a_reason_are_permanent_only_where_no_retry_helps() {
        let answer = |message: &str| {
            let status = Status { code: 500, message: message.to_owned(), ..Status::default() };
            matches!(of_status(&status), ClusterError::Refused(_))
        };
        assert!(answer("failed to create typed patch object (a/b; v1, Kind=C): .spec.x: field not declared in schema"));
        assert!(answer("etcdserver: request is too large"));
        assert!(answer("failed to create typed live object (a/b; v1, Kind=C): .spec.x: field not declared in schema"));
        assert!(!answer("etcdserver: leader changed"));
        for code in [400, 404, 409, 410, 429, 500, 503] {
            let message = "admission webhook \"h\" denied the request: map[password:hunter2]".to_owned();
            let denied = of_status(&Status { code, message, ..Status::default() });
            assert!(matches!(denied, ClusterError::Refused(_)), "{code}: {denied:?}");
            assert!(!denied.to_string().contains("hunter2"), "{denied}");
        }
    }
}
