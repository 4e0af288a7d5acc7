//! Traces in OTLP: one for each plan and one for each execution, with the digest of the plan. Off
//! unless the standard environment variables enable them; then spans are passed to a separate
//! thread, and those that a slow collector does not accept are dropped.
//!
//! They are sent over HTTP with the client that is already linked: gRPC would add HTTP/2, a
//! megabyte of program.

use std::cell::Cell;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use sha2::{Digest, Sha256};

use advisor_core::api::Approval;

/// The value of `service.name`, unless OTEL_SERVICE_NAME is set.
const SERVICE: &str = "virt-advisor";
/// The longest time for sending the last spans when the process ends.
const FLUSH_LIMIT: std::time::Duration = std::time::Duration::from_secs(1);
/// The longest time for an answer of the collector.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
/// Either of these enables traces: the complete address, or the common beginning for all signals.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Either of these names a file with the authorities that may sign the collector's certificate.
const TRACES_CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE";
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// The destination of spans. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Traces(Option<Exported>);

#[derive(Debug, Clone)]
struct Exported {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
}

impl Traces {
    /// Configured by the environment: off if it names no endpoint.
    ///
    /// # Errors
    ///
    /// A sentence: what is wrong with the environment, and what to do.
    pub fn from_env() -> Result<Self, String> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        let general = || set(ENDPOINT).map(|endpoint| format!("{}/v1/traces", endpoint.trim_end_matches('/')));
        let Some(endpoint) = set(TRACES_ENDPOINT).or_else(general).filter(|_| !off) else {
            return Ok(Self::default());
        };
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(protocol) = set(name).filter(|protocol| protocol != "http/protobuf") {
                return Err(format!(
                    "{name}={protocol} is not supported: set it to http/protobuf, and the endpoint to the port for it, 4318"
                ));
            }
        }
        let authorities = set(TRACES_CERTIFICATE).or_else(|| set(CERTIFICATE)).map(PathBuf::from);
        Self::to(&endpoint, authorities.as_deref())
    }

    /// Sends to the collector at `endpoint`, such as `https://collector:4318/v1/traces`, whose
    /// certificate must be signed by one of the authorities in the file `authorities`, or without
    /// it by one of the system's. Call it within the runtime that will send the spans.
    ///
    /// # Errors
    ///
    /// If it is not such an address, or there are no authorities. Whether a collector answers there
    /// is found out later, and does no harm.
    pub fn to(endpoint: &str, authorities: Option<&Path>) -> Result<Self, String> {
        let unfit = |problem: String| {
            format!(
                "traces can't be sent to {endpoint}: {problem}. Use an endpoint such as https://HOST:4318 or http://HOST:4318"
            )
        };
        let scheme = endpoint.parse::<Uri>().ok().and_then(|uri| uri.scheme_str().map(str::to_owned));
        let roots = match scheme.as_deref() {
            Some("https") => roots(authorities).map_err(unfit)?,
            Some("http") => RootCertStore::empty(),
            Some(_) | None => return Err(unfit("it is not an HTTP URL".to_owned())),
        };
        let sender = Sender::new(roots);
        let exporter = SpanExporter::builder().with_http().with_http_client(sender).with_endpoint(endpoint).build();
        let exporter = exporter.map_err(|error| unfit(error.to_string()))?;
        let resource = match std::env::var("OTEL_SERVICE_NAME") {
            Ok(_) => Resource::builder(),
            Err(_) => Resource::builder().with_service_name(SERVICE),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_id_generator(Ids::default())
            .with_resource(resource.build())
            .build();
        Ok(Self(Some(Exported { tracer: provider.tracer(SERVICE), provider })))
    }

    /// Records a plan of `profile` that was made between `began` and `ended`, has this digest, and
    /// led to `outcome`.
    pub(crate) fn planned(&self, profile: &str, digest: &str, outcome: &str, began: Timestamp, ended: Timestamp) {
        let Some(Exported { tracer, .. }) = &self.0 else { return };
        let attributes = [
            KeyValue::new("advisor.profile", profile.to_owned()),
            KeyValue::new("advisor.plan.digest", digest.to_owned()),
            KeyValue::new("advisor.outcome", outcome.to_owned()),
        ];
        let span = span("plan", began, attributes).start_with_context(tracer, &Context::new());
        end(span, ended, Ok(()));
    }

    /// Records the write of an item under `approval`.
    pub(crate) fn wrote(
        &self,
        approval: &Approval,
        item: &str,
        target: &str,
        (began, ended): (Timestamp, Timestamp),
        outcome: Result<(), &str>,
    ) {
        let Some(Exported { tracer, .. }) = &self.0 else { return };
        let (trace, root) = ids(approval);
        let parent = SpanContext::new(trace, root, TraceFlags::SAMPLED, true, TraceState::default());
        let attributes = [
            KeyValue::new("advisor.item", item.to_owned()),
            KeyValue::new("advisor.target", target.to_owned()),
            KeyValue::new("advisor.plan.digest", approval.plan_hash.clone()),
        ];
        let within = Context::new().with_remote_span_context(parent);
        let span = span("write", began, attributes).start_with_context(tracer, &within);
        end(span, ended, outcome);
    }

    /// Records the end of the execution under `approval`.
    pub(crate) fn executed(&self, profile: &str, approval: &Approval, outcome: &str, ended: Timestamp, failed: bool) {
        let Some(Exported { tracer, .. }) = &self.0 else { return };
        let attributes = [
            KeyValue::new("advisor.profile", profile.to_owned()),
            KeyValue::new("advisor.plan.digest", approval.plan_hash.clone()),
            KeyValue::new("advisor.outcome", outcome.to_owned()),
        ];
        NEXT.set(Some(ids(approval)));
        let span = span("execution", approval.at.0, attributes).start_with_context(tracer, &Context::new());
        NEXT.set(None);
        end(span, ended, if failed { Err(outcome) } else { Ok(()) });
    }

    /// Sends the remaining spans, within a short time.
    pub async fn flush(&self) {
        let Some(Exported { provider, .. }) = self.0.clone() else { return };
        // It blocks its thread, and the connection lives on this one.
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_LIMIT)).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::debug!("the last spans could not be sent");
        }
    }
}

fn span(name: &'static str, began: Timestamp, attributes: impl IntoIterator<Item = KeyValue>) -> SpanBuilder {
    SpanBuilder::from_name(name).with_start_time(SystemTime::from(began)).with_attributes(attributes)
}

fn end(mut span: impl opentelemetry::trace::Span, ended: Timestamp, outcome: Result<(), &str>) {
    span.set_status(outcome.map_or_else(|problem| Status::error(problem.to_owned()), |()| Status::Ok));
    span.end_with_timestamp(SystemTime::from(ended));
}

/// The ids of an execution's trace and its first span: the same for every process that carries it
/// out.
fn ids(approval: &Approval) -> (TraceId, SpanId) {
    let digest = Sha256::digest(format!("{} {} {}", approval.plan_hash, approval.generation, approval.at.0));
    let (mut trace, mut root) = ([0; 16], [0; 8]);
    trace.copy_from_slice(&digest[..16]);
    root.copy_from_slice(&digest[16..24]);
    (TraceId::from_bytes(trace), SpanId::from_bytes(root))
}

thread_local! {
    /// The ids of the next span that is created on this thread.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// Random ids, except where an execution has its own.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT.get().map_or_else(|| self.0.new_trace_id(), |(trace, _)| trace)
    }

    fn new_span_id(&self) -> SpanId {
        NEXT.get().map_or_else(|| self.0.new_span_id(), |(_, span)| span)
    }
}

/// The authorities in the file, or those of the system.
fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let read =
                |error: &dyn Display| format!("the CA certificates in {} can't be used: {error}", file.display());
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| read(&error))? {
                roots.add(certificate.map_err(|error| read(&error))?).map_err(|error| read(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(format!("there are no CA certificates to verify it with: set {CERTIFICATE} to a file with some"));
    }
    Ok(roots)
}

/// Sends requests on the runtime of the program, on behalf of the exporter's thread.
#[derive(Debug, Clone)]
struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: tokio::runtime::Handle,
}

impl Sender {
    fn new(roots: RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for every version of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, runtime: tokio::runtime::Handle::current() }
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let answer = tokio::time::timeout(PATIENCE, client.request(request.map(Full::new))).await??;
            let (head, body) = answer.into_parts();
            let body = tokio::time::timeout(PATIENCE, body.collect()).await??;
            Ok(Response::from_parts(head, body.to_bytes()))
        });
        sent.await?
    }
}
