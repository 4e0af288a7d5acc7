//! The command line: `virt-advisor run` is the operator. The other commands make plans, collect
//! data for a bug report, or print files that are generated from the code.
//!
//! ```text
//!   run ─► controller, leader, endpoints, telemetry
//!   diff (from a cluster), render (from files) ─► printed
//!   must-gather; crd, rbac, metrics
//! ```

mod diff;
mod flags;
mod must_gather;
mod printed;
mod rbac;
mod render;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::telemetry;
use advisor_core::api;
use advisor_engine::registry;
use flags::RunFlags;
use operator_kit::command::{CommandFailure, finish, print};

pub use rbac::{namespaces_yaml, rbac_yaml};

/// The version of this build, which plans record.
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
    /// Print the metrics reference, as Markdown.
    Metrics,
    /// Print the RBAC roles for the operator, from what the core and the profiles declare, and those for its users.
    Rbac {
        /// Print the Roles for other operators' namespaces instead.
        #[arg(long)]
        namespaces: bool,
    },
}

/// Parses the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    // Only the first installation counts; an error means that there was one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = |()| ExitCode::SUCCESS;
    let outcome = match parse().command {
        Command::Run(flags) => run::run(*flags).map_err(CommandFailure::new),
        Command::Diff(flags) => diff::run(flags, print),
        Command::Render(flags) => render::run(flags, print),
        Command::MustGather(flags) => {
            must_gather::run(flags).and_then(|said| print(&said)).map(done).map_err(CommandFailure::new)
        }
        Command::Crd => generated(api::crd_yaml(registry::PROFILES)),
        Command::Metrics => print(&telemetry::definitions::page()).map(done).map_err(CommandFailure::new),
        Command::Rbac { namespaces: true } => generated(namespaces_yaml()),
        Command::Rbac { namespaces: false } => generated(rbac_yaml()),
    };
    finish("virt-advisor", outcome)
}

/// Prints a generated file.
fn generated(yaml: Result<String, serde_saphyr::ser::Error>) -> Result<ExitCode, CommandFailure> {
    let yaml = yaml.map_err(|error| CommandFailure::new(error.to_string()))?;
    print(&yaml).map(|()| ExitCode::SUCCESS).map_err(CommandFailure::new)
}

/// The command line, with this program's defaults for the flags that every operator has.
fn command() -> clap::Command {
    Cli::command().mut_subcommand("run", flags::with_defaults)
}

fn parse() -> Cli {
    // What matched the command line has every argument of `Cli`: another outcome exits here.
    Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
