//! `virt-advisor run`: puts the operator together from its parts.

use std::process::ExitCode;
use std::sync::Arc;

use object::limits;
use operator_kit::endpoints::Problems;
use operator_kit::process::{Endpoints, change_log_level_on_signal, lead, stop_on_signal};
use operator_kit::{Pulse, logs};
use tokio_util::sync::CancellationToken;

use super::VERSION;
use super::flags::RunFlags;
use crate::controller::{self, Settings};
use crate::telemetry::Traces;

/// One thread does all the work: it waits nearly all the time, and each further one costs memory.
/// The probes have a small one of their own, so that a long reconcile is not mistaken for a process
/// that hangs.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn run(flags: RunFlags) -> Result<ExitCode, String> {
    let mut problems = flags.problems();
    // The flags may be wrong, but that can be logged in any case.
    let log_level = logs::init("virt_advisor", flags.logs.encoder(), flags.logs.level().unwrap_or("info"));
    let client = advisor_cluster::connect(flags.kubeconfig.clone()).await;
    let client = client.map_err(|error| problems.push(error.to_string())).ok();
    let endpoints = Endpoints::open(&flags.endpoints, &mut problems).await;
    let traces = Traces::from_env().map_err(|problem| problems.push(problem)).unwrap_or_default();
    let (Some(client), true) = (client, problems.is_empty()) else {
        return Err(problems.join("\nvirt-advisor: "));
    };

    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    change_log_level_on_signal(log_level)?;
    end_on_panic();
    tracing::info!(version = VERSION, "the operator starts");
    let election = flags.election.election(&client, "virt-advisor");
    let mut settings = Settings { traces: traces.clone(), ..Settings::new(VERSION) };
    if let Some(election) = &election {
        settings.fence = election.fence();
    }
    let health = settings.health.clone();
    let ready: Problems = Arc::new(move || health.problems());
    let pulse = Pulse::default();
    let sources = controller::Sources {
        version: VERSION,
        health: settings.health.clone(),
        fence: settings.fence.clone(),
        metrics: settings.metrics.clone(),
        pulse: pulse.clone(),
    };
    endpoints.serve(&client, ready.clone(), &pulse, sources.registry())?;
    let operator = controller::run(client, settings, stop.clone());
    let code = lead(operator, ready, election).await;
    traces.flush().await;
    Ok(code)
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
