//! `make demo`: takes load-aware rebalancing from the advertised profile to drift and back, with
//! the commands that a user would type, on a real API server. Then it stays up, to be tried out;
//! `DEMO_ONCE=1` ends it.
//!
//! However it ends, no process and no file is left.

mod story;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use controlplane::ControlPlane;
use demo::Stage;
use demo::shell::Shell;
use tokio::signal::unix::{SignalKind, signal};

/// How much faster than real machines the simulated ones update.
const SPEED: f64 = 5.0;

/// Shows the operator at work on a control plane of its own; needs kubectl.
#[derive(Parser)]
struct Flags {
    /// The program virt-advisor.
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
}

/// How it came to an end.
enum End {
    Played,
    Interrupted,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let end = runtime.block_on(demo(&flags));
    // Do not wait for the build of a control plane that nobody wants any more.
    runtime.shutdown_background();
    match end {
        Ok(End::Played) => ExitCode::SUCCESS,
        Ok(End::Interrupted) => {
            let _ = writeln!(io::stderr(), "\nThe demo was interrupted; nothing is left of it.");
            // As shells say it of SIGINT.
            ExitCode::from(130)
        }
        Err(error) => failed(&error),
    }
}

async fn demo(flags: &Flags) -> Result<End> {
    let interrupted = interrupted()?;
    tokio::pin!(interrupted);
    let mut shell = Shell::new();
    let stage = tokio::select! {
        biased;
        () = &mut interrupted => return Ok(End::Interrupted),
        played = play(&mut shell, &flags.operator) => played?,
    };
    if std::env::var_os("DEMO_ONCE").is_some_and(|once| !once.is_empty() && once != "0") {
        return Ok(End::Played);
    }
    shell.say(&format!(
        "The cluster stays up. In another terminal:\n\n  export KUBECONFIG={}\n  kubectl describe virtplatformconfigs\n\n\
         The operator's log is {}. Ctrl-C ends everything and leaves nothing behind.",
        stage.plane().kubeconfig().display(),
        stage.log().display()
    ))?;
    tokio::select! {
        () = interrupted => Ok(End::Played),
        () = shell.operator_ended.cancelled() => bail!("the operator has ended by itself; {}", end_of_log(&stage)),
    }
}

/// Starts a cluster and plays the story on it.
async fn play(shell: &mut Shell, operator: &Path) -> Result<Stage> {
    let operator = operator
        .canonicalize()
        .with_context(|| format!("there is no program at {}: build the operator first", operator.display()))?;
    if shell.run("kubectl version --client").await.is_err() {
        bail!("the demo needs kubectl: install it and put it on your PATH");
    }
    shell.progress("starting etcd and kube-apiserver (the first time they are built, which takes minutes)")?;
    let plane = ControlPlane::start().await?;
    shell.use_kubeconfig(&plane.kubeconfig());
    shell.progress("installing CRDs, machines, and the operator's rights")?;
    let mut stage = Stage::set(plane, SPEED).await?;
    shell.progress("ready")?;
    if let Err(error) = story::play(shell, &mut stage, &operator).await {
        bail!("{error:#}\n\n{}", end_of_log(&stage));
    }
    shell.heading("The end")?;
    shell.say(&format!("That took {:.0} seconds.", shell.seconds()))?;
    Ok(stage)
}

fn end_of_log(stage: &Stage) -> String {
    match stage.operator() {
        Some(operator) => format!("the end of the operator's log:\n{}", operator.log_tail()),
        None => "the operator was not started yet".to_owned(),
    }
}

/// Comes back when somebody wants an end: Ctrl-C, SIGTERM, or the terminal was closed.
fn interrupted() -> Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).context("signals can't be received");
    let (mut interrupt, mut terminate, mut hangup) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; then there is nobody to tell.
    let _ = writeln!(io::stderr(), "\ndemo: {error:#}");
    ExitCode::FAILURE
}
