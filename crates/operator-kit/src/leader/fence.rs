//! Whether this process may write. Checked before every single request that could change something,
//! whichever part sends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tower::BoxError;

use crate::clock;

/// A number of milliseconds of [`clock::uptime`] that is never reached.
const ALWAYS: u64 = u64::MAX;

/// A permission to write that expires by itself: a leader that is cut off, suspended or slow stops
/// in time without being told. Clones share it.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Milliseconds of [`clock::uptime`] until which requests may be sent.
    until: Arc<AtomicU64>,
    opened: Arc<Notify>,
}

/// A request that was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this replica is not the leader, and writes nothing")]
pub struct NotLeading;

impl Fence {
    /// Permanently open, for a process without replicas.
    #[must_use]
    pub fn open() -> Self {
        Self { until: Arc::new(AtomicU64::new(ALWAYS)), opened: Arc::default() }
    }

    /// Closed until a lease is held.
    #[must_use]
    pub fn closed() -> Self {
        Self { until: Arc::default(), opened: Arc::default() }
    }

    /// Whether a write may be sent now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Waits until writes may be sent.
    pub async fn opened(&self) {
        loop {
            let opened = self.opened.notified();
            if self.is_open() {
                return;
            }
            opened.await;
        }
    }

    /// How much longer writes may be sent.
    pub(super) fn remaining(&self) -> Duration {
        let until = Duration::from_millis(self.until.load(Ordering::SeqCst));
        until.saturating_sub(clock::uptime())
    }

    /// Opens the fence until `uptime`.
    pub(super) fn open_until(&self, uptime: Duration) {
        self.until.store(u64::try_from(uptime.as_millis()).unwrap_or(ALWAYS), Ordering::SeqCst);
        self.opened.notify_waiters();
    }

    /// Closes the fence.
    pub(super) fn close(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// `client`, which sends writes only while this is open. Reads and dry runs are always sent.
    #[must_use]
    pub fn guard(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let fence = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, fence) = (client.clone(), fence.clone());
            async move {
                if writes(request.method(), request.uri()) && !fence.is_open() {
                    return Err(BoxError::from(NotLeading));
                }
                Ok::<Response<Body>, BoxError>(client.send(request).await?)
            }
        });
        Client::new(service, namespace)
    }
}

/// Whether a request could change something. A dry run can't, and a review is only a question.
fn writes(method: &Method, uri: &http::Uri) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let parameters = uri.query().unwrap_or_default();
    let is_trial = parameters.split('&').any(|parameter| parameter == "dryRun=All");
    let is_question = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];
    !is_read && !is_trial && !is_question.iter().any(|prefix| uri.path().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_change_something_is_a_write() {
        let path = "/apis/hco.kubevirt.io/v1/namespaces/n/hyperconvergeds/h";
        for (method, path, is_write) in [
            (Method::GET, path.to_owned(), false),
            (Method::PATCH, format!("{path}?&dryRun=All&fieldManager=x"), false),
            (Method::PATCH, format!("{path}?&fieldManager=dryRun"), true),
            (Method::PATCH, path.to_owned(), true),
            (Method::DELETE, path.to_owned(), true),
            (Method::PUT, "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/x/status".to_owned(), true),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(), false),
            (Method::POST, "/apis/events.k8s.io/v1/namespaces/default/events".to_owned(), true),
        ] {
            let uri = path.parse().unwrap();
            assert_eq!(writes(&method, &uri), is_write, "{method} {path}");
        }
    }

    /// The requests that pass a fence to a server that answers everything: of a read, a dry run and
    /// a write.
    async fn passed(fence: &Fence) -> Vec<String> {
        let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = sent.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            seen.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            async { Ok::<_, BoxError>(Response::new(Body::empty())) }
        });
        let client = fence.guard(Client::new(server, "default"));
        for (method, path) in [(Method::GET, "/a"), (Method::PATCH, "/a?dryRun=All"), (Method::PATCH, "/a")] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let _ = client.send(request).await;
        }
        sent.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_closed_fence_lets_no_write_through() {
        let tried = ["GET /a", "PATCH /a?dryRun=All"];
        assert_eq!(passed(&Fence::open()).await, ["GET /a", "PATCH /a?dryRun=All", "PATCH /a"]);
        assert_eq!(passed(&Fence::closed()).await, tried);
        let late = Fence::closed();
        late.open_until(clock::uptime().saturating_sub(Duration::from_millis(1)));
        assert_eq!(passed(&late).await, tried);
    }

    #[test]
    fn a_fence_closes_by_itself() {
        let fence = Fence::closed();
        assert!(!fence.is_open());
        fence.open_until(clock::uptime() + Duration::from_millis(30));
        assert!(fence.clone().is_open());
        std::thread::sleep(Duration::from_millis(40));
        assert!(!fence.is_open());
        assert!(Fence::open().is_open());
    }
}
