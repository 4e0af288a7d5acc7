//! The HTTP endpoints of the process: /healthz and /readyz for the kubelet, /metrics for
//! Prometheus.
//!
//! ```text
//!   kubelet    ─► probes (a thread of their own)
//!   Prometheus ─► server ─► tls: the certificate, and what the cluster demands (demands)
//!                    └────► access: TokenReview and SubjectAccessReview, limited by places
//! ```

mod access;
mod demands;
mod places;
mod probes;
mod server;
mod tls;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::State as With;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use kube::Client;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use access::Reviewer;
use demands::Tls;
pub use probes::{HANGS, probes};
use server::Peer;
pub use tls::{Certificate, CertificateError, CertificateFiles};

/// Prometheus' own text format, which every version of it reads.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The process can't listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("{flag}={address} can't be used: {problem}")]
pub struct AddressError {
    flag: &'static str,
    address: String,
    problem: io::Error,
}

/// Listens on `address` in Go's notation, in which `:8443` means every interface.
///
/// # Errors
///
/// If it is not an address, or is in use. `flag` names it in the error.
pub async fn listen(flag: &'static str, address: &str) -> Result<TcpListener, AddressError> {
    let failed = |problem| AddressError { flag, address: address.to_owned(), problem };
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await.map_err(failed);
    };
    match TcpListener::bind(format!("[::]:{port}")).await {
        // The machine has no IPv6, which it reports in several ways.
        Err(error) if !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
            TcpListener::bind(format!("{}:{port}", Ipv4Addr::UNSPECIFIED)).await.map_err(failed)
        }
        bound => bound.map_err(failed),
    }
}

/// The certificate of the metrics: the one in `files`, or a new self-signed one.
///
/// # Errors
///
/// If the files hold no certificate with its key.
pub fn certificate(files: Option<CertificateFiles>) -> Result<Certificate, CertificateError> {
    tls::certificate(files)
}

/// The protection of the metrics.
pub struct Protection {
    /// The certificate for TLS.
    pub certificate: Certificate,
    /// The client with which the senders of requests are reviewed.
    pub client: Client,
}

/// The problems that keep the process from being ready, a sentence for each; empty if it is.
pub type Problems = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Serves the metrics: to clients that the API server allows, or without `protection` to everybody.
pub async fn metrics(listener: TcpListener, protection: Option<Protection>, registry: Registry) {
    let (tls, access) = match protection {
        Some(Protection { certificate, client }) => {
            (Some(Arc::new(Tls::new(certificate, client.clone()))), Some(Reviewer::new(client)))
        }
        None => (None, None),
    };
    let shared = Arc::new((registry, access));
    let router = Router::new().route("/metrics", get(scrape)).with_state(shared);
    tracing::info!(address = address(&listener), secure = tls.is_some(), "Serving metrics server");
    server::serve(listener, tls, router, server::METRICS).await;
}

fn address(listener: &TcpListener) -> String {
    listener.local_addr().map(|address| address.to_string()).unwrap_or_default()
}

async fn scrape(
    With(shared): With<Arc<(Registry, Option<Reviewer>)>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let (registry, access) = shared.as_ref();
    if let Some(access) = access {
        match access.check(&headers, peer.0.as_ref()).await {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], String::new()).into_response();
            }
            refused => return refused.into_response(),
        }
    }
    let mut text = String::new();
    match prometheus_text::encode(&mut text, registry) {
        Ok(()) => ([(CONTENT_TYPE, TEXT)], text).into_response(),
        // Writing to a String can't fail.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
