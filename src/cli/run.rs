//! `virt-advisor run`: puts the operator together from its parts.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::VERSION;
use super::flags::RunFlags;
use crate::controller::{self, Settings};
use crate::telemetry::Traces;
use object::limits;
use operator_kit::endpoints::{self, Protection};
use operator_kit::leader::Election;
use operator_kit::{Pulse, logs};

/// How often to check, until the operator is ready, whether it may try to lead.
const READY_PAUSE: Duration = Duration::from_millis(50);

/// One thread does all the work: it waits nearly all the time, and each further one costs memory.
/// The probes have a small one of their own, so that a long reconcile is not mistaken for a process
/// that hangs.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn run(flags: RunFlags) -> Result<ExitCode, String> {
    let mut problems = flags.problems();
    // The flags may be wrong, but that can be logged in any case.
    let log_level = logs::init("virt_advisor", flags.encoder(), flags.level().unwrap_or("info"));
    let mut note = |problem: String| problems.push(problem);
    let client = advisor_cluster::connect(flags.kubeconfig()).await.map_err(|error| note(error.to_string())).ok();
    let probes = match flags.probes() {
        Some(address) => endpoints::listen("--health-probe-bind-address", address)
            .await
            .map_err(|error| note(error.to_string()))
            .ok(),
        None => None,
    };
    let metrics = match flags.metrics() {
        Some(address) => {
            endpoints::listen("--metrics-bind-address", address).await.map_err(|error| note(error.to_string())).ok()
        }
        None => None,
    };
    let secure = flags.metrics().is_some() && flags.metrics_secure;
    let certificate = if secure {
        endpoints::certificate(flags.certificate()).map_err(|error| note(error.to_string())).ok()
    } else {
        None
    };
    let traces = Traces::from_env().map_err(&mut note).unwrap_or_default();
    let (Some(client), true) = (client, problems.is_empty()) else {
        return Err(problems.join("\nvirt-advisor: "));
    };

    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    change_log_level_on_signal(log_level)?;
    end_on_panic();
    tracing::info!(version = VERSION, "the operator starts");
    let election = flags.leader_elect.then(|| election(&flags, &client));
    let mut settings = Settings { traces: traces.clone(), ..Settings::new(VERSION) };
    if let Some(election) = &election {
        settings.fence = election.fence();
    }
    let pulse = Pulse::default();
    tokio::spawn(pulse.clone().beat());
    if let Some(listener) = probes {
        let health = settings.health.clone();
        let problems: endpoints::Problems = Arc::new(move || health.problems());
        endpoints::probes(listener, problems, pulse.clone(), endpoints::HANGS)
            .map_err(|error| format!("probes can't be served: {error}"))?;
    }
    if let Some(listener) = metrics {
        let protection = certificate.map(|certificate| Protection { certificate, client: client.clone() });
        let sources = controller::Sources {
            version: VERSION,
            health: settings.health.clone(),
            fence: settings.fence.clone(),
            metrics: settings.metrics.clone(),
            pulse,
        };
        tokio::spawn(endpoints::metrics(listener, protection, sources.registry()));
    }
    let code = lead(client, settings, election, stop).await;
    traces.flush().await;
    Ok(code)
}

/// Runs the operator until it is told to stop or may no longer lead. Then the process ends, even if
/// something is in progress: the fence is closed, and a new process remembers nothing that is
/// outdated.
async fn lead(client: Client, settings: Settings, election: Option<Election>, stop: CancellationToken) -> ExitCode {
    let health = settings.health.clone();
    let operator = controller::run(client, settings, stop.clone());
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
            while !health.problems().is_empty() {
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

/// Logs a panic, and ends the process at once, unless the panic is in a reconcile, which catches
/// it.
fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let words = limits::cut_text(&panic.to_string(), limits::WORDS);
        tracing::error!(place, words, "internal error: report it");
        if !controller::is_caught() {
            std::process::abort();
        }
    }));
}

fn election(flags: &RunFlags, client: &Client) -> Election {
    let namespace = flags.lease_namespace(client.default_namespace());
    Election::new(client.clone(), namespace, &flags.leader_election_id, flags.identity(), flags.timing())
}

fn stop_on_signal(stop: CancellationToken) -> Result<(), String> {
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
fn change_log_level_on_signal(mut toggle: logs::Toggle) -> Result<(), String> {
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
