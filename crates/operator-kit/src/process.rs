//! The process around an operator: signals, endpoints, and leading from start to end.

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use kube::Client;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Pulse;
use crate::endpoints::{self, Certificate, Problems, Protection};
use crate::flags::EndpointFlags;
use crate::leader::Election;
use crate::logs::Toggle;

/// How often to check, until the operator is ready, whether it may try to lead.
const READY_PAUSE: Duration = Duration::from_millis(50);

/// The addresses that a program serves, opened before anything is served on them: a wrong one is
/// named together with everything else that prevents the start.
#[derive(Default)]
pub struct Endpoints {
    probes: Option<TcpListener>,
    metrics: Option<TcpListener>,
    certificate: Option<Certificate>,
}

impl Endpoints {
    /// Opens what `flags` ask for, and adds what is wrong to `problems`.
    pub async fn open(flags: &EndpointFlags, problems: &mut Vec<String>) -> Self {
        let probes = listen("--health-probe-bind-address", flags.probes(), problems).await;
        let metrics = listen("--metrics-bind-address", flags.metrics(), problems).await;
        let secure = flags.metrics().is_some() && flags.metrics_secure;
        let certificate = secure.then(|| endpoints::certificate(flags.certificate()));
        let certificate = match certificate {
            Some(Err(error)) => {
                problems.push(error.to_string());
                None
            }
            Some(Ok(certificate)) => Some(certificate),
            None => None,
        };
        Self { probes, metrics, certificate }
    }

    /// Serves `/healthz` and `/readyz`, which fails while there are `problems`, on a thread of its
    /// own, and the metrics on the current runtime.
    ///
    /// # Errors
    /// The thread of the probes can't start.
    pub fn serve(self, client: &Client, problems: Problems, pulse: &Pulse, registry: Registry) -> Result<(), String> {
        tokio::spawn(pulse.clone().beat());
        if let Some(listener) = self.probes {
            endpoints::probes(listener, problems, pulse.clone(), endpoints::HANGS)
                .map_err(|error| format!("probes can't be served: {error}"))?;
        }
        if let Some(listener) = self.metrics {
            let protection = self.certificate.map(|certificate| Protection { certificate, client: client.clone() });
            tokio::spawn(endpoints::metrics(listener, protection, registry));
        }
        Ok(())
    }
}

async fn listen(flag: &'static str, address: Option<&str>, problems: &mut Vec<String>) -> Option<TcpListener> {
    let opened = endpoints::listen(flag, address?).await;
    opened.map_err(|error| problems.push(error.to_string())).ok()
}

/// Runs the operator until it is told to stop or may no longer lead. Then the process ends, even if
/// something is in progress: the fence is closed, and a new process remembers nothing that is
/// outdated.
///
/// `operator` ends when it is told to stop. It runs from the start; whether it writes is decided by
/// the fence of the election.
pub async fn lead(operator: impl Future<Output = ()>, problems: Problems, election: Option<Election>) -> ExitCode {
    let Some(election) = election else {
        operator.await;
        return ExitCode::SUCCESS;
    };
    let finished = CancellationToken::new();
    let operator = async {
        operator.await;
        finished.cancel();
        std::future::pending::<()>().await;
    };
    let leading = async {
        let ready = async {
            // A replica that sees nothing must not keep others from leading.
            while !problems().is_empty() {
                tokio::time::sleep(READY_PAUSE).await;
            }
            election.acquire().await
        };
        let held = finished.run_until_cancelled(ready).await?;
        held.hold(finished.clone()).await.err()
    };
    tokio::select! {
        () = operator => ExitCode::SUCCESS,
        lost = leading => match lost {
            None => ExitCode::SUCCESS,
            Some(lost) => {
                tracing::error!("{lost}; exiting, so that this replica restarts as a standby");
                ExitCode::FAILURE
            }
        },
    }
}

/// Cancels `stop` at SIGTERM and at Ctrl-C.
///
/// # Errors
/// The process can't receive signals.
pub fn stop_on_signal(stop: CancellationToken) -> Result<(), String> {
    let listen = |kind| signal(kind).map_err(|error| format!("signals can't be received: {error}"));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(())
}

/// SIGUSR1 switches the log to level debug, and the next one switches it back.
///
/// # Errors
/// The process can't receive signals.
pub fn change_log_level_on_signal(mut toggle: Toggle) -> Result<(), String> {
    let mut asked =
        signal(SignalKind::user_defined1()).map_err(|error| format!("signals can't be received: {error}"))?;
    tokio::spawn(async move {
        while asked.recv().await.is_some() {
            let level = toggle();
            tracing::info!(level, "log level changed");
        }
    });
    Ok(())
}
