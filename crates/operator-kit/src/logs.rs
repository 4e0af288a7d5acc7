//! Logs: structured, one line for each event, to standard error.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, reload};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Encoder {
    /// For people.
    Console,
    /// For machines.
    Json,
}

/// Targets that are never logged: clients that print the answers they get.
const NEVER: [&str; 3] = ["kube_client", "kube_core", "tower"];

/// Switches between the requested level and debug, and returns the name of the new one.
pub type Toggle = Box<dyn FnMut() -> &'static str + Send>;

/// Starts logging of the crate `program` at `level` (`error`, `info`, `debug` or `trace`);
/// `RUST_LOG` overrides the level.
pub fn init(program: &'static str, encoder: Encoder, level: &'static str) -> Toggle {
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let usual = move || filter(program, wanted.as_deref(), level);
    let (chosen, handle) = reload::Layer::new(usual());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<_> + Send + Sync> = match encoder {
        Encoder::Console => Box::new(lines.with_target(false)),
        Encoder::Json => Box::new(lines.json().flatten_event(true)),
    };
    tracing_subscriber::registry().with(chosen).with(lines).init();
    let mut is_debug = false;
    Box::new(move || {
        is_debug = !is_debug;
        // It fails only after the subscriber is gone, together with the process.
        let _ = handle.reload(if is_debug { filter(program, None, "debug") } else { usual() });
        if is_debug { "debug" } else { "the configured one" }
    })
}

/// The filter of log lines: `wanted` in the format of `RUST_LOG`, for example
/// `info,virt_advisor=debug`, or else everything from `level` on.
///
/// Lines of kube's client are never logged: it repeats as an error what we log once with its
/// context, and at debug it prints the answers of the API server, which quote objects and their
/// secret values.
#[must_use]
pub fn filter(program: &str, wanted: Option<&str>, level: &str) -> Targets {
    let usual = format!("{program}={level},{level},kube_runtime=warn");
    // Nor if only a part of one is named: the more specific directive would win.
    let allowed = |wanted: &str| {
        let directives = wanted.split(',').filter(|directive| !NEVER.iter().any(|name| directive.contains(name)));
        directives.collect::<Vec<_>>().join(",")
    };
    let chosen = wanted.map(allowed).and_then(|wanted| wanted.parse().ok()).or_else(|| usual.parse().ok());
    let never = NEVER.map(|name| (name, LevelFilter::OFF));
    chosen.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO)).with_targets(never)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x7_nothing_that_is_asked_for_makes_the_client_log() {
        let filter =
            filter("virt_advisor", Some("trace,kube_client::client=debug,virt_advisor=debug"), "info").to_string();
        assert!(!filter.contains("kube_client::client"), "{filter}");
        assert!(filter.contains("kube_client=off") && filter.contains("virt_advisor=debug"), "{filter}");
    }
}
