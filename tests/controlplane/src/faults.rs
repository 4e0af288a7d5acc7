//! Faults between a client and its server, one at a time, at the request with a given number.
//!
//! The layer is in the client: it does to a request what a proxy would do on the way, without a
//! second process.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::{BoxError, Service};

/// How long a delayed request waits.
const DELAY: Duration = Duration::from_millis(300);

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is to be killed before the server receives the request.
    KillBefore,
    /// The process is to be killed after the server acted and before it gets the answer.
    KillAfter,
    /// The connection is cut before the server receives the request.
    Cut,
    /// The connection is cut after the server acted.
    LoseAnswer,
    /// The answer ends in the middle.
    Truncate,
    /// The request is delayed.
    Delay,
    /// No answer comes.
    Hang,
    /// The server answers with this code and reason, and does nothing.
    Answer(u16, &'static str),
}

/// Whether a request counts.
pub type Which = fn(&Request<Body>) -> bool;

/// One fault, at one request of a client.
pub struct Script {
    fault: Fault,
    at: usize,
    counted: Which,
    count: AtomicUsize,
    reached: Notify,
}

impl Script {
    /// `fault` at request number `at`, counted from 0.
    #[must_use]
    pub fn new(fault: Fault, at: usize) -> Arc<Self> {
        Self::among(fault, at, |_| true)
    }

    /// `fault` at request number `at`, counted from 0, of those for which `counted` holds.
    #[must_use]
    pub fn among(fault: Fault, at: usize, counted: Which) -> Arc<Self> {
        Arc::new(Self { fault, at, counted, count: AtomicUsize::new(0), reached: Notify::new() })
    }

    /// How many counted requests were made.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns when it is time to kill the process.
    pub async fn killed(&self) {
        self.reached.notified().await;
    }
}

/// Returns the code and body that answer a request; with `None` the server answers.
pub type Rule = Arc<dyn Fn(&Request<Body>) -> Option<(u16, Value)> + Send + Sync>;

/// `client`, with `rule` asked first for each request.
#[must_use]
pub fn ruled(client: Client, rule: Rule) -> Client {
    let answer = Arc::new(move |request: &Request<Body>| match rule(request) {
        Some((code, body)) => Plan::Answer(code, body),
        None => Plan::Pass,
    });
    faulty(client, answer)
}

/// `client` with the fault of `script`.
#[must_use]
pub fn scripted(client: Client, script: Arc<Script>) -> Client {
    let plan = Arc::new(move |request: &Request<Body>| {
        if !(script.counted)(request) {
            return Plan::Pass;
        }
        let number = script.count.fetch_add(1, Ordering::SeqCst);
        if number != script.at {
            return Plan::Pass;
        }
        match script.fault {
            Fault::Answer(code, reason) => {
                let (code, body) = status(code, reason, "a fault of the test");
                Plan::Answer(code, body)
            }
            fault => Plan::Meet(fault, script.clone()),
        }
    });
    faulty(client, plan)
}

/// A Status like the server's.
#[must_use]
pub fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code});
    (code, body)
}

enum Plan {
    Pass,
    Answer(u16, Value),
    Meet(Fault, Arc<Script>),
}

type Planner = Arc<dyn Fn(&Request<Body>) -> Plan + Send + Sync>;

fn faulty(client: Client, plan: Planner) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Faulty { inner: client, plan }, namespace)
}

#[derive(Clone)]
struct Faulty {
    inner: Client,
    plan: Planner,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Service<Request<Body>> for Faulty {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let plan = (self.plan)(&request);
        let inner = self.inner.clone();
        // Sent only when polled: a request with a fault before the server does not reach it.
        let answer = async move {
            let answer = inner.send(request).await?;
            Ok::<_, BoxError>(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
        };
        Box::pin(async move {
            match plan {
                Plan::Pass => answer.await,
                Plan::Answer(code, body) => Ok(answered(code, &body)),
                Plan::Meet(fault, script) => meet(fault, &script, answer).await,
            }
        })
    }
}

fn answered(code: u16, body: &Value) -> Answer {
    let mut response = Response::builder().status(code).header("content-type", "application/json");
    if code == 429 {
        response = response.header("retry-after", "1");
    }
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    response.body(body).expect("a code and a header are a response")
}

async fn meet(
    fault: Fault,
    script: &Script,
    answer: impl Future<Output = Result<Answer, BoxError>>,
) -> Result<Answer, BoxError> {
    let cut = || BoxError::from("the connection was cut by the test");
    match fault {
        Fault::Cut => Err(cut()),
        Fault::LoseAnswer => {
            answer.await?;
            Err(cut())
        }
        Fault::Truncate => {
            let answer = answer.await?;
            Ok(answer.map(|body| Halved { body, ended: false }.boxed_unsync()))
        }
        Fault::Delay => {
            tokio::time::sleep(DELAY).await;
            answer.await
        }
        Fault::KillAfter => {
            let _ = answer.await;
            script.reached.notify_one();
            std::future::pending().await
        }
        Fault::KillBefore => {
            script.reached.notify_one();
            std::future::pending().await
        }
        Fault::Hang | Fault::Answer(..) => std::future::pending().await,
    }
}

/// Half of the first part of a body, and then an error.
struct Halved {
    body: UnsyncBoxBody<Bytes, BoxError>,
    ended: bool,
}

impl http_body::Body for Halved {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(Some(Err("the connection was cut by the test".into())));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.ended = true;
        let half = |bytes: Bytes| bytes.slice(..bytes.len() / 2);
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(half))))
    }
}
