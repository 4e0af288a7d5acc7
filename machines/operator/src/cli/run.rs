//! `kubevirt-operator run`: puts the operator together from its parts.

use std::process::ExitCode;
use std::time::Duration;

use object::limits;
use operator_kit::process::{Endpoints, change_log_level_on_signal, lead, stop_on_signal};
use operator_kit::{Pulse, logs};
use tokio_util::sync::CancellationToken;

use super::VERSION;
use super::flags::RunFlags;
use crate::controller::{self, Settings};

/// One thread does all the work: it waits nearly all the time, and each further one costs memory.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn run(flags: RunFlags) -> Result<ExitCode, String> {
    let mut problems = flags.logs.problems();
    problems.extend(flags.election.problems());
    let log_level = logs::init("kubevirt_operator", flags.logs.encoder(), flags.logs.level().unwrap_or("info"));
    let client = advisor_cluster::connect(flags.kubeconfig.clone()).await;
    let client = client.map_err(|error| problems.push(error.to_string())).ok();
    let endpoints = Endpoints::open(&flags.endpoints, &mut problems).await;
    let (Some(client), true) = (client, problems.is_empty()) else {
        return Err(problems.join("\nkubevirt-operator: "));
    };

    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    change_log_level_on_signal(log_level)?;
    end_on_panic();
    tracing::info!(version = VERSION, "the operator starts");
    let election = flags.election.election(&client, "kubevirt-operator");
    let mut settings = Settings {
        concurrency: flags.max_concurrent_reconciles,
        longest_pause: flags.reconcile_interval.max(Duration::from_secs(1)),
        disk_deletion: flags.disk_deletion,
        ..Settings::default()
    };
    if let Some(election) = &election {
        settings.fence = election.fence();
    }
    let registry = settings.metrics.registry();
    let (operator, ready) = controller::run(client.clone(), settings, stop);
    endpoints.serve(&client, ready.clone(), &Pulse::default(), registry)?;
    Ok(lead(operator, ready, election).await)
}

/// Logs a panic, and ends the process at once: a new one begins with what the cluster has.
fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let words = limits::cut_text(&panic.to_string(), limits::WORDS);
        tracing::error!(place, words, "internal error: report it");
        std::process::abort();
    }));
}
