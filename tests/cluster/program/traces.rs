//! What a collector of traces gets, and what one that does not answer costs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use advisor_core::api::Phase;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use virt_advisor::telemetry::Traces;

use crate::fixture::{Fixture, PATIENCE, Setup};

/// A collector that keeps what it gets.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

impl Collector {
    fn keep(&self, body: Bytes) {
        let request = ExportTraceServiceRequest::decode(body).expect("what the standard says");
        let resources = request.resource_spans.into_iter();
        let spans = resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        self.0.lock().unwrap().extend(spans);
    }
}

async fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    format!("{:?}", found.and_then(|found| found.value.as_ref()).and_then(|value| value.value.as_ref()))
}

/// One trace for the plan and one for its execution, with the digest that was approved, across a
/// restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_and_its_execution_are_a_trace_each() {
    let address = free().await;
    let collector = Collector::default();
    let keeper = collector.clone();
    let router = Router::new().route("/v1/traces", post(move |body: Bytes| async move { keeper.keep(body) }));
    tokio::spawn(async move { axum::serve(TcpListener::bind(address).await.unwrap(), router).await });
    let mut fixture = Fixture::without_operator(Setup { workers: 1, ..Setup::default() }).await;
    fixture.traces = Traces::to(&format!("http://{address}/v1/traces"), None).unwrap();
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait("the first write", |status| status.items.iter().any(|item| item.applied.is_some())).await;
    // Whoever goes on continues the same trace.
    fixture.kill_operator();
    fixture.start_operator();
    fixture.wait_for(Phase::Completed).await;
    fixture.stop_operator().await;
    fixture.traces.flush().await;

    let until = Instant::now() + PATIENCE;
    let spans = loop {
        let spans = collector.0.lock().unwrap().clone();
        if spans.iter().any(|span| span.name == "execution") {
            break spans;
        }
        assert!(Instant::now() < until, "{spans:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let named = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let digest = plan.plan_hash.unwrap();
    let (plans, writes, executions) = (named("plan"), named("write"), named("execution"));
    assert!(attribute(&plans[0], "advisor.plan.digest").contains(&digest), "{plans:#?}");
    assert_eq!((writes.len(), executions.len()), (2, 1), "{spans:#?}");
    let root = &executions[0];
    assert!(
        attribute(root, "advisor.plan.digest").contains(&digest)
            && attribute(root, "advisor.outcome").contains("Completed")
    );
    for write in &writes {
        assert_eq!((&write.trace_id, &write.parent_span_id), (&root.trace_id, &root.span_id), "{write:#?}");
        assert!(write.start_time_unix_nano >= root.start_time_unix_nano);
        assert!(write.end_time_unix_nano <= root.end_time_unix_nano);
    }
    assert!(plans.iter().all(|plan| plan.trace_id != root.trace_id && plan.parent_span_id.is_empty()));
}

/// Over TLS to a collector that the named authority vouches for; to another one nothing is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_go_over_tls_to_whom_the_authority_vouches_for() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) =
        (vec![made.cert.der().clone()], PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap());
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://localhost:{}/v1/traces", listener.local_addr().unwrap().port());
    let collector = Collector::default();
    let keeper = collector.clone();
    let router = Router::new().route("/v1/traces", post(move |body: Bytes| async move { keeper.keep(body) }));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = TowerToHyperService::new(router);
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .unwrap();
            });
        }
    });
    let (ours, other) = (folder.path().join("ours.crt"), folder.path().join("other.crt"));
    std::fs::write(&ours, made.cert.pem()).unwrap();
    std::fs::write(&other, rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem()).unwrap();
    for (authority, arrives) in [(other, false), (ours, true)] {
        let mut fixture = Fixture::without_operator(Setup { workers: 1, ..Setup::default() }).await;
        fixture.traces = Traces::to(&endpoint, Some(&authority)).unwrap();
        fixture.start_operator();
        fixture.wait_for(Phase::Ignored).await;
        fixture.patch(json!({"action": "DryRun"})).await;
        fixture.wait_for(Phase::ReviewRequired).await;
        fixture.stop_operator().await;
        fixture.traces.flush().await;
        assert_eq!(!collector.0.lock().unwrap().is_empty(), arrives, "{}", authority.display());
    }
}

/// A collector that is down, or takes everything and answers nothing, costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_does_not_answer_costs_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for address in [free().await, silent.local_addr().unwrap()] {
        let mut fixture = Fixture::without_operator(Setup { workers: 1, ..Setup::default() }).await;
        fixture.traces = Traces::to(&format!("http://{address}/v1/traces"), None).unwrap();
        fixture.start_operator();
        fixture.wait_for(Phase::Ignored).await;
        fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
        fixture.wait_for(Phase::Completed).await;
        // Long enough for a batch to be sent in vain.
        tokio::time::sleep(Duration::from_secs(6)).await;
        fixture.rest().await;
        let asked = Instant::now();
        fixture.stop_operator().await;
        fixture.traces.flush().await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    }
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_named_with_the_remedy() {
    for endpoint in ["collector:4318", "http://", "unix:///run/collector"] {
        let Err(problem) = Traces::to(endpoint, None) else { panic!("{endpoint} is accepted") };
        assert!(problem.contains(endpoint) && problem.contains("https://HOST:4318"), "{problem}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing.crt"), folder.path().join("empty.crt"));
    std::fs::write(&empty, "nothing").unwrap();
    for file in [missing, empty] {
        let Err(problem) = Traces::to("https://collector:4318", Some(&file)) else { panic!("accepted") };
        assert!(problem.contains("https://collector:4318") && problem.contains("CA certificates"), "{problem}");
    }
}
