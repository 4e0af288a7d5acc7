//! Answers in place of the server's, for what a server of today does not give any more.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::Config;
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service};

/// From a request to the code and body that answer it; `None` lets the server answer.
pub type Rule = Arc<dyn Fn(&Request<Body>) -> Option<(u16, Value)> + Send + Sync>;

/// A client whose requests `rule` answers first.
pub fn client(config: Config, rule: Rule) -> Client {
    ClientBuilder::try_from(config).expect("a client").with_layer(&Faults { rule }).build()
}

/// A Status as the server writes it.
pub fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code});
    (code, body)
}

struct Faults {
    rule: Rule,
}

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty { inner, rule: self.rule.clone() }
    }
}

#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    rule: Rule,
}

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match (self.rule)(&request) {
            Some((code, body)) => {
                let response = Response::builder().status(code).header("content-type", "application/json");
                let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
                let response = response.body(body).expect("a response");
                Box::pin(async { Ok(response) })
            }
            None => {
                let answer = self.inner.call(request);
                Box::pin(async { Ok(answer.await?.map(|body| body.map_err(Into::into).boxed_unsync())) })
            }
        }
    }
}
