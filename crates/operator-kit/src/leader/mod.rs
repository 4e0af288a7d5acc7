//! Leader election: one of several replicas works, by a Lease with the semantics of client-go.
//!
//! ```text
//!   loop ─► lease: whose it is, and until when (pure)
//!     └───► Fence: open for a while after each renewal ─► every write passes it, or fails
//! ```
//!
//! The fence is open for a shorter time than others wait. A leader that can't renew, is suspended
//! or is cut off has stopped writing before another one can start, without being told. This is our
//! own module, because kube has none and in the published ones a holder that can't reach the server
//! still believes that it leads.

mod fence;
mod lease;

use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams, WatchParams};
use kube::core::WatchEvent;
use kube::{Client, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::clock;
use advisor_cluster::ClusterError;
pub use fence::{Fence, NotLeading};
pub use lease::Timing;
use lease::{LeaseStep, claimed, decide, holder, lasts, released};

/// The pause after an error; a standby that learns nothing asks no more often.
const ERROR_PAUSE: Duration = Duration::from_secs(2);
/// The longest time for releasing the lease when the process ends.
const RELEASE_LIMIT: Duration = Duration::from_millis(1500);

/// One replica's part in the election.
pub struct Election {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
    fence: Fence,
}

/// Why a leader no longer leads.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The server did not answer in time, or the process did not run.
    #[error("the lease could not be renewed within {} s; another replica may take over", .0.as_secs())]
    Late(Duration),
    /// Another replica holds it.
    #[error("{0} holds the lease now")]
    Taken(String),
}

impl Election {
    /// An election for the lease `name` in `namespace`, in which this process is called `identity`,
    /// which must be unique.
    ///
    /// `client` must not repeat requests by itself: a renewal that arrives late is worse than one
    /// that fails.
    #[must_use]
    pub fn new(client: Client, namespace: &str, name: &str, identity: String, timing: Timing) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            timing,
            fence: Fence::closed(),
        }
    }

    /// The fence, which is open while this process leads.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until the lease is held. What prevents that is logged once for each change of the
    /// reason.
    pub async fn acquire(&self) -> Held<'_> {
        let mut said = String::new();
        let mut say = |problem: String| {
            if problem != said {
                tracing::warn!("{problem}");
                said = problem;
            }
        };
        let mut seen: Option<(Option<Lease>, Duration)> = None;
        loop {
            // As of when it was first seen; anything later only makes the wait longer.
            let (lease, since) = match seen.take() {
                Some(seen) => seen,
                None => match self.in_time(self.leases.get_opt(&self.name)).await {
                    Ok(lease) => (lease, clock::uptime()),
                    Err(error) => {
                        say(self.problem(&error));
                        tokio::time::sleep(ERROR_PAUSE).await;
                        continue;
                    }
                },
            };
            match decide(lease.as_ref(), clock::uptime().saturating_sub(since)) {
                LeaseStep::Create | LeaseStep::Take => {
                    let sent = clock::uptime();
                    match self.in_time(self.write(lease)).await {
                        Ok(lease) => {
                            self.fence.open_until(sent + self.timing.renew_deadline);
                            tracing::info!(lease = self.name, identity = self.identity, "this replica leads");
                            return Held { election: self, lease };
                        }
                        // Another replica was faster.
                        Err(ClusterError::Moved) => {}
                        Err(error) => {
                            say(self.problem(&error));
                            tokio::time::sleep(ERROR_PAUSE).await;
                        }
                    }
                }
                LeaseStep::Wait(pause) => {
                    let Some(lease) = lease else { continue };
                    let held_for = lasts(&lease);
                    say(format!(
                        "waiting for the lease {}, which {} holds",
                        self.name,
                        holder(&lease).unwrap_or_default()
                    ));
                    seen = match tokio::time::timeout(pause, self.changed(&lease)).await {
                        Ok(Some(change)) => Some((change, clock::uptime())),
                        Ok(None) => {
                            // The watch only makes it faster: without it, the lease is read again.
                            tokio::time::sleep(self.timing.retry_period.min(pause)).await;
                            self.reread(lease, since).await
                        }
                        Err(_) => self.reread(lease, since).await,
                    };
                    if matches!(seen, Some((None, _))) {
                        // Somebody deleted it. Its holder finds out at the next renewal, and may
                        // write until then.
                        tokio::time::sleep(held_for).await;
                        seen = None;
                    }
                }
            }
        }
    }

    /// The lease as it is now, and since when it has been seen like that; `None` if it can't be
    /// read.
    async fn reread(&self, known: Lease, since: Duration) -> Option<(Option<Lease>, Duration)> {
        let found = self.in_time(self.leases.get_opt(&self.name)).await.ok()?;
        let is_same = found
            .as_ref()
            .is_some_and(|found| found.uid() == known.uid() && found.resource_version() == known.resource_version());
        Some((found, if is_same { since } else { clock::uptime() }))
    }

    /// The next change of `lease`; `None` if it can't be watched.
    async fn changed(&self, lease: &Lease) -> Option<Option<Lease>> {
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let version = lease.resource_version()?;
        let mut events = std::pin::pin!(self.leases.watch(&params, &version).await.ok()?);
        loop {
            match events.try_next().await.ok()?? {
                WatchEvent::Added(lease) | WatchEvent::Modified(lease) => return Some(Some(lease)),
                WatchEvent::Deleted(_) => return Some(None),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return None,
            }
        }
    }

    /// Writes the lease as ours, if it has not changed since `found`.
    async fn write(&self, found: Option<Lease>) -> kube::Result<Lease> {
        let is_new = found.is_none();
        let lease = claimed(found, &self.name, &self.identity, &self.timing, clock::now());
        let params = PostParams::default();
        match is_new {
            true => self.leases.create(&params, &lease).await,
            false => self.leases.replace(&self.name, &params, &lease).await,
        }
    }

    /// Gives up a request that hangs, to leave time for another one.
    async fn in_time<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Result<T, ClusterError> {
        let limit = self.timing.retry_period;
        match tokio::time::timeout(limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(ClusterError::Moved),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ClusterError::Transient { message: format!("no answer within {limit:?}") }),
        }
    }

    fn problem(&self, error: &ClusterError) -> String {
        let (name, namespace) = (&self.name, &self.namespace);
        match error {
            ClusterError::Refused(refusal) if matches!(refusal.code, 401 | 403) => format!(
                "nothing is planned or written: this user may not use the lease {name} in namespace {namespace}; it \
                 needs get, create, update and watch on leases of coordination.k8s.io there: {}",
                refusal.message
            ),
            ClusterError::NotFound { .. } => {
                format!("nothing is planned or written: namespace {namespace}, where the lease belongs, does not exist")
            }
            error => format!("the lease {name} in namespace {namespace} can't be used; trying again: {error}"),
        }
    }
}

/// A lease that this process holds.
pub struct Held<'a> {
    election: &'a Election,
    lease: Lease,
}

impl Held<'_> {
    /// Renews the lease until it is lost, or until `done`; then it is released so that another
    /// replica need not wait.
    ///
    /// # Errors
    ///
    /// If it is lost. The fence is closed then.
    pub async fn hold(mut self, done: CancellationToken) -> Result<(), Lost> {
        let election = self.election;
        loop {
            let pause = election.timing.retry_period.min(election.fence.remaining());
            if done.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                self.release().await;
                return Ok(());
            }
            match done.run_until_cancelled(self.renew()).await {
                None => {
                    self.release().await;
                    return Ok(());
                }
                Some(Ok(())) => {}
                Some(Err(lost)) => {
                    election.fence.close();
                    return Err(lost);
                }
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Lost> {
        let election = self.election;
        let late = || Lost::Late(election.timing.renew_deadline);
        if !election.fence.is_open() {
            return Err(late());
        }
        let sent = clock::uptime();
        match election.in_time(election.write(Some(self.lease.clone()))).await {
            Ok(lease) => {
                self.lease = lease;
                election.fence.open_until(sent + election.timing.renew_deadline);
            }
            // Edited, deleted, or taken by somebody.
            Err(ClusterError::Moved | ClusterError::NotFound { .. }) => {
                match election.in_time(election.leases.get_opt(&election.name)).await {
                    Ok(Some(found)) => match holder(&found) {
                        Some(me) if me == election.identity => {
                            self.lease = found;
                            self.renew_again(sent).await;
                        }
                        other => return Err(Lost::Taken(other.unwrap_or("nobody").to_owned())),
                    },
                    // After a deletion, the first replica that creates it again leads.
                    Ok(None) => return Err(Lost::Taken("nobody".to_owned())),
                    Err(error) => tracing::warn!(%error, "the lease can't be read; trying again"),
                }
            }
            Err(error) => {
                tracing::warn!(%error, remaining = ?election.fence.remaining(), "the lease could not be renewed; trying again");
            }
        }
        if election.fence.is_open() { Ok(()) } else { Err(late()) }
    }

    /// Repeats a refused renewal once: the lease was edited, but is still ours.
    async fn renew_again(&mut self, sent: Duration) {
        let election = self.election;
        match election.in_time(election.write(Some(self.lease.clone()))).await {
            Ok(lease) => {
                self.lease = lease;
                // Counted from the first attempt, which is the safe side.
                election.fence.open_until(sent + election.timing.renew_deadline);
            }
            Err(error) => tracing::warn!(%error, "the lease could not be renewed; trying again"),
        }
    }

    /// Releases the lease, even if it was edited since it was renewed.
    async fn release(self) {
        let election = self.election;
        election.fence.close();
        let write = async {
            let params = PostParams::default();
            let give =
                async |lease| election.leases.replace(&election.name, &params, &released(lease, clock::now())).await;
            match give(self.lease).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    let found = election.leases.get(&election.name).await?;
                    if holder(&found) == Some(&election.identity) { give(found).await } else { Ok(found) }
                }
                written => written,
            }
        };
        match tokio::time::timeout(RELEASE_LIMIT, write).await {
            Ok(Ok(_)) => tracing::info!(lease = election.name, "the lease is released"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease could not be released; other replicas wait until it expires")
            }
            Err(_) => tracing::warn!("the lease could not be released in time; other replicas wait until it expires"),
        }
    }
}
