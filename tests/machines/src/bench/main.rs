//! `make bench-machines`: requests, times and memory of the Machine operator's release build, as a
//! table.

mod measure;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Measures the Machine operator on a control plane of its own.
#[derive(Parser)]
struct Flags {
    /// The program kubevirt-operator, built for release.
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
    /// How many Machines are created at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    machines: usize,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    match measure::all(&flags.operator, flags.machines).await {
        Ok(table) => {
            let _ = writeln!(io::stdout(), "{table}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
