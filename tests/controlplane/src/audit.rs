//! The requests to the API server, read from its audit log.
//!
//! The server appends to the same file after a restart. In the log mode `blocking` it logs that it
//! has received a write before it acts on it. The line of the answer may come a moment after the
//! answer, and after the event of the write.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;

/// The audit policy: every request once it is answered, watches once they begin, and writes also
/// when they are received. Bodies only of deletions, because these have `dryRun` in the body
/// instead of in the address.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Request
  verbs: [delete, deletecollection]
- level: Metadata
  verbs: [create, update, patch]
- level: Metadata
  omitStages: [RequestReceived]
";

/// How long the log may take to have the answer to a received request. Clients and watches get the
/// answer before the log does.
const ANSWERED: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);

/// The audit log of one plane.
#[derive(Clone, Debug)]
pub struct Audit {
    log: PathBuf,
}

/// A position in an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked: the common name of the client certificate.
    pub user: String,
    /// The user's groups: the organisations of the certificate, and what the server adds.
    pub groups: Vec<String>,
    /// The name that the client program gives itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or an
    /// HTTP verb in lower case for a request that is not about an object.
    pub verb: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// The plural of the kind, empty if the request is not about an object.
    pub resource: String,
    /// `status`, `scale` and so on, or empty.
    pub subresource: String,
    /// Empty for cluster-scoped objects, and for lists across namespaces.
    pub namespace: String,
    /// Empty for lists.
    pub name: String,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether authorization refused it. Quotas, admission and deletions in progress also give a
    /// 403.
    pub forbidden: bool,
    /// Path and query.
    pub uri: String,
    /// When the server received it.
    pub at: Timestamp,
    /// How far the request had come when it was logged.
    pub stage: Stage,
}

/// How far a request had come when the server logged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Stage {
    /// Received, not answered; logged only for writes.
    RequestReceived,
    /// The answer has begun and continues: a watch.
    ResponseStarted,
    /// Answered.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

impl Request {
    /// Whether this changed something that is stored: an accepted create, update, patch or delete
    /// without dry run.
    ///
    /// Reviews (`SelfSubjectAccessReview`, `TokenReview` and so on) are questions in the form of a
    /// create, so no writes.
    #[must_use]
    pub fn is_write(&self) -> bool {
        let question = matches!(self.group.as_str(), "authorization.k8s.io" | "authentication.k8s.io");
        let verb = matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        verb && !question && !self.dry_run && self.code < 300
    }

    /// Whether this is a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }
}

impl Audit {
    pub(crate) fn new(log: PathBuf) -> Self {
        Self { log }
    }

    /// The current position: later requests come after it.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.log.metadata().map_or(0, |data| data.len()))
    }

    /// The requests since a mark, each once, in the order of their answers; a watch counts from
    /// when it begins. Waits for the answers to received writes, so that every write with a visible
    /// effect is included.
    ///
    /// # Panics
    /// If the audit log cannot be read, or is not one.
    #[must_use]
    pub fn since(&self, mark: &Mark) -> Vec<Request> {
        let until = Instant::now() + ANSWERED;
        loop {
            let (requests, open) = self.parse(mark);
            if open == 0 || Instant::now() > until {
                return requests;
            }
            std::thread::sleep(POLL);
        }
    }

    /// The answered requests since a mark, and the number of those that have no answer yet.
    fn parse(&self, mark: &Mark) -> (Vec<Request>, usize) {
        let text = self.read(mark.0).unwrap_or_else(|error| panic!("cannot read {}: {error}", self.log.display()));
        let (mut received, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut requests = Vec::new();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let event: Event = serde_json::from_str(line).unwrap_or_else(|error| {
                panic!("{} has a line that is no audit event: {error}: {line}", self.log.display())
            });
            // The end of a watch; its begin is in the log, possibly before the mark.
            let end_of_watch = event.verb == "watch" && event.stage == Stage::ResponseComplete;
            if event.stage == Stage::RequestReceived {
                received.insert(event.audit_id);
            } else if !end_of_watch && seen.insert(event.audit_id.clone()) {
                requests.push(event.into());
            }
        }
        (requests, received.difference(&seen).count())
    }

    /// The lines that begin at `from` or later. A mark may be in the middle of a line that was just
    /// being written: that request was answered before the mark.
    fn read(&self, from: u64) -> std::io::Result<String> {
        match File::open(&self.log) {
            Ok(mut file) => {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start(from.saturating_sub(1)))?;
                file.read_to_end(&mut bytes)?;
                let begin = match from {
                    0 => 0,
                    _ => bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1),
                };
                Ok(String::from_utf8_lossy(&bytes[begin..]).into_owned())
            }
            // The server creates the file with the first line.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }
}

/// The annotation with the decision of authorization.
const DECISION: &str = "authorization.k8s.io/decision";

/// The parts of `audit.k8s.io/v1` Event that are used here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_object: RequestObject,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    request_received_timestamp: Timestamp,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestObject {
    #[serde(default)]
    dry_run: Vec<String>,
}

impl From<Event> for Request {
    fn from(event: Event) -> Self {
        let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
        let dry_run = query.split('&').any(|pair| pair == "dryRun=All") || !event.request_object.dry_run.is_empty();
        let object = event.object_ref;
        Request {
            user: event.user.username,
            groups: event.user.groups,
            user_agent: event.user_agent,
            verb: event.verb,
            group: object.api_group,
            resource: object.resource,
            subresource: object.subresource,
            namespace: object.namespace,
            name: object.name,
            dry_run,
            code: event.response_status.code,
            forbidden: event.annotations.get(DECISION).is_some_and(|decision| decision == "forbid"),
            uri: event.request_uri,
            at: event.request_received_timestamp,
            stage: event.stage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_was_received_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::new(folder.path().join("audit.log"));
        let line = |stage: &str| {
            serde_json::json!({
                "auditID": "a", "verb": "patch", "stage": stage, "requestURI": "/", "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
            })
        };
        std::fs::write(&audit.log, format!("{}\n", line("RequestReceived"))).unwrap();
        let start = audit.mark();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(10 * POLL);
                std::fs::write(&audit.log, format!("{}\n{}\n", line("RequestReceived"), line("ResponseComplete")))
                    .unwrap();
            });
            assert_eq!(audit.since(&Mark(0)).len(), 1);
        });
        assert_eq!(audit.since(&start).len(), 1, "it was answered later");
        std::fs::write(&audit.log, format!("{}\n", line("RequestReceived"))).unwrap();
        assert!(audit.since(&Mark(0)).is_empty(), "what never gets an answer is no request");
    }

    #[test]
    fn a_moment_in_the_middle_of_a_line_comes_after_its_request() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::new(folder.path().join("audit.log"));
        let line = |id: &str| {
            serde_json::json!({
                "auditID": id, "verb": "get", "stage": "ResponseComplete", "requestURI": format!("/é/{id}"),
                "user": {"username": id}, "responseStatus": {"code": 200}, "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
            })
            .to_string()
        };
        let (first, second) = (line("a"), line("b"));
        let whole = format!("{first}\n{second}\n");
        std::fs::write(&audit.log, &whole).unwrap();
        let users = |from: usize| -> Vec<String> {
            audit.since(&Mark(from as u64)).into_iter().map(|request| request.user).collect()
        };
        assert_eq!(users(0), ["a", "b"]);
        for from in 1..=first.len() + 1 {
            assert_eq!(users(from), ["b"], "{from}");
        }
        for from in first.len() + 2..=whole.len() {
            assert!(users(from).is_empty(), "{from}");
        }
    }
}
