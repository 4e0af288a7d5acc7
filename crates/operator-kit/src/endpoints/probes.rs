//! The probes, on a thread of their own: whatever holds the working thread, the kubelet gets its answer at once.

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

/// A working thread that has not run for so long hangs. No look takes nearly as long, and one that is only slow must not be killed: it
/// would begin again. The liveness probe of config/manager fails after three attempts, 20 s apart: the process ends within two minutes of
/// the last thing that its thread did, before another replica takes over its lease, after 137 s.
pub const HANGS: Duration = Duration::from_secs(60);

/// Plenty, also for a debug build. What is never touched takes no memory.
const STACK: usize = 256 * 1024;

/// Answers the probes until the process ends. It is alive while its working thread has run within `limit`, as `pulse` tells, and ready
/// while there are no `problems`.
///
/// # Errors
///
/// If the system has no thread for it.
pub fn probes(listener: TcpListener, problems: Problems, pulse: Pulse, limit: Duration) -> io::Result<()> {
    tracing::info!(address = super::address(&listener), "Serving probes");
    // It leaves the runtime of the working thread.
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
            (StatusCode::SERVICE_UNAVAILABLE, format!("the working thread has not run for {silence} s\n"))
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

    /// The answer to a probe, by whoever is not the working thread.
    fn ask(server: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Probes of this thread, which works from now on.
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
        // Until the answers are there, nothing else runs on this thread.
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
        assert!(hung.contains("the working thread has not run for 1 s"), "{hung}");
        tokio::task::spawn_blocking(until("HTTP/1.1 200 ")).await.unwrap();
    }
}
