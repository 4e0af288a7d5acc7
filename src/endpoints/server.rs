//! Accepting connections: few, short and limited, since whoever reaches the address may open some.

use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::demands::Tls;

/// How much is left to whoever connects.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Connections at the same time.
    connections: usize,
    /// How long a handshake and the head of a request may take.
    patience: Duration,
    /// How long a connection may live: whoever is slow makes room in the end.
    lifetime: Duration,
    /// Whether a connection serves more than one request.
    keep_alive: bool,
}

/// For the kubelet, which waits a second and makes a connection each time. Whoever opens many must not keep it out.
pub(super) const PROBES: Limits =
    Limits { connections: 256, patience: Duration::from_secs(1), lifetime: Duration::from_secs(3), keep_alive: false };
/// For Prometheus, which keeps its connection.
pub(super) const METRICS: Limits =
    Limits { connections: 32, patience: Duration::from_secs(10), lifetime: Duration::from_secs(300), keep_alive: true };

/// The verified certificate of whoever is connected, if one was shown. Every request of the connection carries it.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer(pub(super) Option<CertificateDer<'static>>);

/// Answers the connections of `listener` by `router` until it is dropped; over TLS if `tls` says how.
pub(super) async fn serve(listener: TcpListener, tls: Option<Arc<Tls>>, router: Router, limits: Limits) {
    let free = Arc::new(Semaphore::new(limits.connections));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, or a connection that ended before it was accepted: others may come.
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (tls, router) = (tls.clone(), router.clone());
        tokio::spawn(async move {
            let _ = tokio::time::timeout(limits.lifetime, connection(stream, tls, router, limits)).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<Arc<Tls>>, router: Router, limits: Limits) {
    let Some(tls) = tls else { return answer(stream, Peer::default(), router, limits).await };
    let accept = async { TlsAcceptor::from(tls.config().await).accept(stream).await };
    match tokio::time::timeout(limits.patience, accept).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let peer = Peer(certificates.and_then(|chain| chain.first()).map(|first| first.clone().into_owned()));
            answer(stream, peer, router, limits).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => {}
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    limits: Limits,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .keep_alive(limits.keep_alive)
        .max_buf_size(16 * 1024);
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let served = http.serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
