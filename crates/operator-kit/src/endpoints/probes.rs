//! The probes, on a thread of their own: the kubelet gets its answer at once, even if the working
//! thread is blocked.

use std::io;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::State as With;
use axum::routing::get;
use http::StatusCode;
use tokio::net::TcpListener;

use super::{Problems, server};
use crate::pulse::Pulse;

/// A working thread that has not run for this long hangs. No reconcile takes nearly as long, and
/// one that is only slow must not be killed, since it would begin again. The liveness probe of
/// config/manager fails after three attempts, 20 s apart: the process ends within two minutes of
/// the last activity of its thread, before another replica takes over its lease, after 137 s.
pub const HANGS: Duration = Duration::from_secs(60);

/// Enough even for a debug build. Pages that are never touched take no memory.
const STACK: usize = 256 * 1024;

/// Answers the probes until the process ends. The process is alive while its working thread has run
/// within `limit` according to `pulse`, and ready while there are no `problems`.
///
/// # Errors
///
/// If the system can't provide a thread.
pub fn probes(listener: TcpListener, problems: Problems, pulse: Pulse, limit: Duration) -> io::Result<()> {
    tracing::info!(address = super::address(&listener), "Serving probes");
    // The listener leaves the runtime of the working thread.
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let serve = move || {
        runtime.block_on(async {
            match TcpListener::from_std(listener) {
                Ok(listener) => server::serve(listener, None, router(problems, pulse, limit), server::PROBES).await,
                Err(error) => tracing::error!(%error, "probes can't be served"),
            }
        });
    };
    thread::Builder::new().name("probes".to_owned()).stack_size(STACK).spawn(serve).map(|_| ())
}

fn router(problems: Problems, pulse: Pulse, limit: Duration) -> Router {
    let alive = move || {
        let silence = pulse.silence();
        async move {
            if silence <= limit {
                return (StatusCode::OK, "ok\n".to_owned());
            }
            let silence = silence.as_secs();
            (StatusCode::SERVICE_UNAVAILABLE, format!("the worker thread has not run for {silence} s\n"))
        }
    };
    let ready = |With(problems): With<Problems>| async move {
        match problems() {
            problems if problems.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
            problems => (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n") + "\n"),
        }
    };
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready)).with_state(problems)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use super::*;

    /// The answer to a probe, requested by another thread than the working one.
    fn ask(server: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Serves probes for this thread, which counts as the working thread from now on.
    async fn probed(limit: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (server, pulse) = (listener.local_addr().unwrap(), Pulse::default());
        tokio::spawn(pulse.clone().beat());
        let problems: Problems = std::sync::Arc::new(|| vec!["nothing is listed yet".to_owned()]);
        probes(listener, problems, pulse, limit).unwrap();
        server
    }

    #[tokio::test]
    async fn t8_probes_are_answered_while_the_working_thread_is_held() {
        let server = probed(Duration::from_secs(3600)).await;
        // Nothing else runs on this thread until the answers have arrived.
        let asked = thread::spawn(move || [ask(server, "/healthz"), ask(server, "/readyz")]);
        let [alive, ready] = asked.join().unwrap();
        assert!(alive.starts_with("HTTP/1.1 200 OK"), "{alive}");
        assert!(ready.starts_with("HTTP/1.1 503 ") && ready.contains("nothing is listed yet"), "{ready}");
    }

    #[tokio::test]
    async fn a_working_thread_that_hangs_is_not_alive_until_it_runs_again() {
        let server = probed(Duration::from_secs(1)).await;
        let until = |wanted: &'static str| {
            move || {
                loop {
                    let answer = ask(server, "/healthz");
                    if answer.starts_with(wanted) {
                        return answer;
                    }
                }
            }
        };
        let hung = thread::spawn(until("HTTP/1.1 503 ")).join().unwrap();
        assert!(hung.contains("the worker thread has not run for 1 s"), "{hung}");
        tokio::task::spawn_blocking(until("HTTP/1.1 200 ")).await.unwrap();
    }
}
