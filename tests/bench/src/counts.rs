//! What the operator asked of the API server, counted from the audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use controlplane::{Mark, Request};
use demo::{Stage, USER};
use tokio::time::{Instant, sleep};

/// How long nothing must be asked for an answer to count as finished: events follow the status.
const QUIET: Duration = Duration::from_millis(400);
const POLL: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests of the operator within some time.
pub struct Counts {
    requests: Vec<Request>,
}

/// Counts what the operator asks from `mark` until it asks nothing more.
pub async fn settled(stage: &Stage, mark: &Mark) -> Result<Counts> {
    let began = Instant::now();
    let (mut known, mut since) = (0, began);
    loop {
        let counts = now(stage, mark);
        if counts.requests.len() != known {
            (known, since) = (counts.requests.len(), Instant::now());
        } else if since.elapsed() > QUIET {
            return Ok(counts);
        } else if began.elapsed() > PATIENCE {
            bail!("the operator does not come to rest: {known} requests in {} s", PATIENCE.as_secs());
        }
        sleep(POLL).await;
    }
}

/// Counts what the operator has asked since `mark`.
pub fn now(stage: &Stage, mark: &Mark) -> Counts {
    let requests = stage.plane().audit().since(mark);
    Counts { requests: requests.into_iter().filter(|request| request.user == USER).collect() }
}

impl Counts {
    fn count(&self, fits: impl Fn(&Request) -> bool) -> usize {
        self.requests.iter().filter(|request| fits(request)).count()
    }

    /// All but watches, events included.
    pub fn requests(&self) -> usize {
        self.count(|request| !request.is_watch())
    }

    /// The same without the reads of what pools have rendered, which are counted apart: one for
    /// each pool.
    pub fn requests_but_rendered(&self) -> usize {
        self.count(|request| !request.is_watch() && !request.name.starts_with("rendered-"))
    }

    /// When the last of them was received.
    pub fn last(&self) -> Option<jiff::Timestamp> {
        self.requests.iter().map(|request| request.at).max()
    }

    pub fn watches(&self) -> usize {
        self.count(Request::is_watch)
    }

    pub fn status_writes(&self) -> usize {
        self.count(|request| request.is_write() && request.subresource == "status")
    }

    /// Writes to what is neither ours nor an event.
    pub fn target_writes(&self) -> usize {
        self.count(|request| {
            request.is_write() && !matches!(request.group.as_str(), "advisor.kubevirt.io" | "events.k8s.io")
        })
    }

    /// The requests by kind, for people.
    pub fn told(&self) -> String {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for request in &self.requests {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            // What is no object has only its address.
            let what = if request.resource.is_empty() { &request.uri } else { &request.resource };
            let dry_run = if request.dry_run { " (dry run)" } else { "" };
            let refused = if request.code < 400 { String::new() } else { format!(" ({})", request.code) };
            let kind = format!("{} {what}{slash}{}{dry_run}{refused}", request.verb, request.subresource);
            *kinds.entry(kind).or_default() += 1;
        }
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
    }
}
