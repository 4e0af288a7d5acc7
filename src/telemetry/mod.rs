//! Logs: structured, one line an event, to standard error.

use tracing_subscriber::EnvFilter;

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Encoder {
    /// For people.
    Console,
    /// For machines.
    Json,
}

/// Starts logging at `level` (`error`, `info`, `debug` or `trace`); `RUST_LOG` overrides it.
pub fn init(encoder: Encoder, level: &str) {
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter(wanted.as_deref(), level)).with_writer(std::io::stderr);
    match encoder {
        Encoder::Console => lines.with_target(false).init(),
        Encoder::Json => lines.json().flatten_event(true).init(),
    }
}

/// What is logged: `wanted` as in `RUST_LOG`, else everything from `level` on.
///
/// Never what kube's client logs: it repeats at error what we log once with its context, and at debug it prints the answers
/// of the API server, which quote objects and their secret values.
#[must_use]
pub fn filter(wanted: Option<&str>, level: &str) -> EnvFilter {
    let usual = format!("virt_advisor={level},{level},kube_runtime=warn");
    let filter = wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok()).unwrap_or_else(|| EnvFilter::new(usual));
    ["kube_client=off", "kube_core=off", "tower=off"]
        .iter()
        .filter_map(|directive| directive.parse().ok())
        .fold(filter, EnvFilter::add_directive)
}
