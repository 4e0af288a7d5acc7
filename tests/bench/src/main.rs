//! `make bench`: what the operator costs, measured from outside: requests from the audit log of a
//! real API server, times as a client sees them, memory as the kernel counts it. Prints one table,
//! beside the bounds of the project and the figures of the Go program.
//!
//! A missed bound is said in its row and does not fail the program.

mod bench;
mod counts;
mod measure;
mod observer;
mod scale;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use bench::Bench;
use table::Table;

/// Measures the operator on a control plane of its own.
#[derive(Parser)]
struct Flags {
    /// The program virt-advisor, built with --release.
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
    /// Seconds for which requests at rest are counted.
    #[arg(long, env = "BENCH_REST", value_name = "SECONDS", default_value_t = 60)]
    rest: u64,
    /// Measure on a large cluster instead.
    #[arg(long)]
    scale: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let mut table = Table::default();
    let outcome = runtime.block_on(async {
        let interrupted = interrupted()?;
        tokio::select! {
            biased;
            () = interrupted => bail!("interrupted; nothing is left of it"),
            outcome = run(&flags, &mut table) => outcome,
        }
    });
    runtime.shutdown_background();
    // What was measured before a failure counts too.
    let printed = io::stdout().lock().write_all(table.to_string().as_bytes());
    match outcome.and(printed.context("nobody reads the output any more")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

async fn run(flags: &Flags, table: &mut Table) -> Result<()> {
    if flags.scale {
        return scale::measure(&flags.operator, flags.rest, table).await;
    }
    measure::size::measure(&flags.operator, table)?;
    let mut bench = Bench::start(&flags.operator).await?;
    let measured = measure_all(&mut bench, flags, table).await;
    measured.map_err(|error| match bench.stage.operator() {
        Some(operator) => error.context(format!("the end of the operator's log:\n{}\n", operator.log_tail())),
        None => error,
    })
}

/// In this order: each leaves behind the world that the next one needs.
async fn measure_all(bench: &mut Bench, flags: &Flags, table: &mut Table) -> Result<()> {
    measure::engine::measure(bench, table).await?;
    measure::start::measure(bench, table).await?;
    measure::plan::measure(bench, table).await?;
    measure::apply::measure(bench, table).await?;
    measure::drift::measure(bench, table).await?;
    measure::rest::measure(bench, flags.rest, table).await?;
    measure::memory::measure(bench, table).await?;
    measure::catalogue::measure(bench, table).await?;
    measure::hostile::measure(bench, table).await
}

/// Comes back when somebody wants an end.
fn interrupted() -> Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).context("signals can't be received");
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; then there is nobody to tell.
    let _ = writeln!(io::stderr(), "\nbench: {error:#}");
    ExitCode::FAILURE
}
