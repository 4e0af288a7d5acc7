//! The command line: `run` is the operator; `diff` and `render` show before anything is written.
//!
//! ```text
//!   run ─► controller, leader, endpoints
//!   diff (server dry run), render (no cluster) ─► printed
//!   crd, policy, rbac, metrics: generated files
//! ```

mod diff;
mod file;
mod flags;
mod rbac;
mod render;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use flags::RunFlags;
use operator_kit::command::{CommandFailure, finish, print};

pub use rbac::{cluster_role_yaml, rbac_yaml};

/// The version of this build.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// The definitions as they are generated: their schemas need not be computed here.
const CRDS: [&str; 2] = [
    include_str!("../../../../config/machines/crd/vitistack.io_machines.yaml"),
    include_str!("../../../../config/machines/crd/vitistack.io_networkconfigurations.yaml"),
];

/// Makes KubeVirt virtual machines of Machines, and tells before what an edit will do.
#[derive(Debug, Parser)]
#[command(name = "kubevirt-operator", version)]
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
    /// Print the CustomResourceDefinitions.
    Crd,
    /// Print the ValidatingAdmissionPolicy, which refuses mistakes before they are stored.
    Policy,
    /// Print the ClusterRole and the Role of the operator.
    Rbac,
    /// Print the metrics reference, as Markdown.
    Metrics,
}

/// Parses the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    // Only the first installation counts; an error means that there was one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let done = |()| ExitCode::SUCCESS;
    let outcome = match parse().command {
        Command::Run(flags) => run::run(*flags).map_err(CommandFailure::new),
        Command::Diff(flags) => diff::run(flags),
        Command::Render(flags) => render::run(flags),
        Command::Crd => print(&CRDS.join("---\n")).map(done).map_err(CommandFailure::new),
        Command::Policy => print(&documents(&machines_api::policy::objects())).map(done).map_err(CommandFailure::new),
        Command::Rbac => print(&rbac_yaml()).map(done).map_err(CommandFailure::new),
        Command::Metrics => print(&crate::telemetry::page()).map(done).map_err(CommandFailure::new),
    };
    finish("kubevirt-operator", outcome)
}

fn parse() -> Cli {
    let command = Cli::command().mut_subcommand("run", flags::with_defaults);
    // What matched the command line has every argument of `Cli`: another outcome exits here.
    Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

/// Objects as YAML documents.
fn documents(objects: &[serde_json::Value]) -> String {
    objects.iter().map(object::diff::yaml).collect::<Vec<_>>().join("---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().mut_subcommand("run", flags::with_defaults).debug_assert();
    }
}
