//! The command line: `virt-advisor run` is the operator; the other commands print what is generated from the code.

mod diff;
mod flags;
mod must_gather;
mod printed;
mod rbac;
mod render;
mod run;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::telemetry;
use advisor_core::api;
use advisor_engine::registry;
use flags::RunFlags;

pub use rbac::{namespaces_yaml, rbac_yaml};

/// The version of this build, which plans name.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Reviewed, approved changes to the components of a KubeVirt or OpenShift Virtualization cluster.
#[derive(Debug, Parser)]
#[command(name = "virt-advisor", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator until it is told to stop (SIGTERM or Ctrl-C).
    Run(Box<RunFlags>),
    Diff(diff::DiffFlags),
    Render(render::RenderFlags),
    MustGather(must_gather::MustGatherFlags),
    /// Print the CustomResourceDefinition, with the options of every profile.
    Crd,
    /// Print the page of its metrics.
    Metrics,
    /// Print the roles of the operator, from what core and profiles declare, and those of people.
    Rbac {
        /// Those that end at a namespace of others instead.
        #[arg(long)]
        namespaces: bool,
    },
}

/// Reads the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    // Only the first installation counts; an error says that there was one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |problem: String| (1, problem);
    let done = |()| ExitCode::SUCCESS;
    let result = match Cli::parse().command {
        Command::Run(flags) => run::run(*flags).map_err(failed),
        Command::Diff(flags) => diff::run(flags, print),
        Command::Render(flags) => render::run(flags, print),
        Command::MustGather(flags) => must_gather::run(flags).and_then(|said| print(&said)).map(done).map_err(failed),
        Command::Crd => {
            let yaml = api::crd_yaml(registry::PROFILES).map_err(|error| error.to_string());
            yaml.and_then(|yaml| print(&yaml)).map(done).map_err(failed)
        }
        Command::Metrics => print(&telemetry::definitions::page()).map(done).map_err(failed),
        Command::Rbac { namespaces } => {
            let yaml = if namespaces { namespaces_yaml() } else { rbac_yaml() };
            let yaml = yaml.map_err(|error| error.to_string());
            yaml.and_then(|yaml| print(&yaml)).map(done).map_err(failed)
        }
    };
    match result {
        Ok(code) => code,
        Err((code, problem)) => {
            // Standard error may be closed; then there is nobody to tell.
            let _ = writeln!(io::stderr(), "virt-advisor: {problem}");
            ExitCode::from(code)
        }
    }
}

fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("writing to standard output failed: {error}"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
