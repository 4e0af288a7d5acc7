//! Accepts connections: few, short and limited, since anybody who can reach the address may open
//! some.

use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::demands::Tls;
use super::places::{Place, Places};

/// Limits for clients.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The most connections at the same time.
    connections: usize,
    /// The most of them from one address, so that its requests can't use up all.
    share: usize,
    /// The longest time for a handshake, and for the head of a request.
    patience: Duration,
    /// The longest life of a connection, after which even a slow client makes room.
    lifetime: Duration,
    /// Whether a connection serves more than one request.
    keep_alive: bool,
}

/// For the kubelet, which waits one second and makes a new connection each time. A client that
/// opens many must not keep it out.
pub(super) const PROBES: Limits = Limits {
    connections: 256,
    share: 64,
    patience: Duration::from_secs(1),
    lifetime: Duration::from_secs(3),
    keep_alive: false,
};
/// For Prometheus, which keeps its connection.
pub(super) const METRICS: Limits = Limits {
    connections: 32,
    share: 8,
    patience: Duration::from_secs(10),
    lifetime: Duration::from_secs(300),
    keep_alive: true,
};

/// The verified certificate of the client, if it presented one. Every request of the connection
/// carries it.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer(pub(super) Option<CertificateDer<'static>>);

/// Serves the connections of `listener` with `router` until this future is dropped; over TLS if
/// `tls` is set. Every connection is accepted: if there are too many, `places` decides which one
/// ends.
pub(super) async fn serve(listener: TcpListener, tls: Option<Arc<Tls>>, router: Router, limits: Limits) {
    let places = Places::new(limits.connections, limits.share);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, or a connection that ended before it was accepted: others
                // may follow.
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(place) = places.take(peer.ip()) else { continue };
        let (tls, router, lost) = (tls.clone(), router.clone(), place.lost.clone());
        tokio::spawn(async move {
            let served = tokio::time::timeout(limits.lifetime, connection(stream, tls, router, limits, place));
            let _ = lost.run_until_cancelled(served).await;
        });
        // Each connection gets its turn before the next one is accepted: a request that has already
        // arrived is being handled by then, and its connection is not closed for a later one.
        tokio::task::yield_now().await;
    }
}

async fn connection(stream: TcpStream, tls: Option<Arc<Tls>>, router: Router, limits: Limits, place: Place) {
    let Some(tls) = tls else { return answer(stream, Peer::default(), router, limits, place).await };
    let accept = async { TlsAcceptor::from(tls.config().await).accept(stream).await };
    match tokio::time::timeout(limits.patience, accept).await {
        Ok(Ok(stream)) => {
            let certificates = stream.get_ref().1.peer_certificates();
            let peer = Peer(certificates.and_then(|chain| chain.first()).map(|first| first.clone().into_owned()));
            answer(stream, peer, router, limits, place).await;
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
    place: Place,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .keep_alive(limits.keep_alive)
        .max_buf_size(16 * 1024);
    let router = router.layer(Extension(peer));
    let service = service_fn(move |request: Request<Incoming>| {
        let (busy, router) = (place.busy(), router.clone());
        async move {
            let answered = router.oneshot(request).await;
            drop(busy);
            answered
        }
    });
    let served = http.serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;

    use super::*;

    /// A connection to `server` that comes from `address`.
    async fn connect(address: IpAddr, server: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((address, 0).into())?;
        socket.connect(server).await
    }

    async fn ask(stream: &mut TcpStream) -> std::io::Result<String> {
        stream.write_all(b"GET /answer HTTP/1.1\r\nHost: test\r\n\r\n").await?;
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    async fn serving(limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let router = Router::new().route("/answer", get(|| async { "ok" }));
        tokio::spawn(serve(listener, None, router, limits));
        server
    }

    /// Opens connections from `addresses` one after the other, sends nothing, and keeps more of
    /// them than there are places.
    async fn flood(addresses: Vec<IpAddr>, server: SocketAddr, opened: Arc<AtomicUsize>) {
        let mut open = std::collections::VecDeque::new();
        for address in addresses.iter().cycle() {
            if let Ok(stream) = connect(*address, server).await {
                open.push_back(stream);
                opened.fetch_add(1, Ordering::Relaxed);
            }
            if open.len() > 400 {
                open.pop_front();
            }
        }
    }

    #[tokio::test]
    async fn t18_floods_of_idle_connections_shut_nobody_out() {
        let own = IpAddr::from([127, 0, 0, 1]);
        let others: Vec<_> = (2..=20).map(|last| IpAddr::from([127, 0, 0, last])).collect();
        for (limits, addresses) in [
            (PROBES, others.clone()),
            (METRICS, others),
            // And from the address of the client that asks.
            (PROBES, vec![own]),
            (METRICS, vec![own]),
        ] {
            let server = serving(limits).await;
            let opened = Arc::new(AtomicUsize::new(0));
            let flood = tokio::spawn(flood(addresses, server, opened.clone()));
            for round in 1..=20 {
                while opened.load(Ordering::Relaxed) < 50 * round {
                    tokio::task::yield_now().await;
                }
                let mut stream = connect(own, server).await.unwrap();
                let answer = ask(&mut stream).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 200 OK"), "round {round}: {answer}");
            }
            flood.abort();
        }
    }

    #[tokio::test]
    async fn t18_a_connection_that_is_kept_outlives_a_flood_from_elsewhere() {
        let server = serving(METRICS).await;
        let mut kept = connect([127, 0, 0, 1].into(), server).await.unwrap();
        assert!(ask(&mut kept).await.unwrap().starts_with("HTTP/1.1 200 OK"));
        let opened = Arc::new(AtomicUsize::new(0));
        let flood = tokio::spawn(flood(vec![[127, 0, 0, 2].into()], server, opened.clone()));
        while opened.load(Ordering::Relaxed) < 300 {
            tokio::task::yield_now().await;
        }
        assert!(ask(&mut kept).await.unwrap().starts_with("HTTP/1.1 200 OK"));
        flood.abort();
    }
}
