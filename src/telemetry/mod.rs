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
    // kube repeats at error what we log once with its context.
    let quiet = format!("virt_advisor={level},{level},kube_client=off,kube_runtime=warn");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(quiet));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match encoder {
        Encoder::Console => lines.with_target(false).init(),
        Encoder::Json => lines.json().flatten_event(true).init(),
    }
}
