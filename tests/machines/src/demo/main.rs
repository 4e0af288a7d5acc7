//! `make demo-machines`: Machines from a template to a deletion that keeps a claim, with the
//! commands that a user would type, on a real API server beside a played KubeVirt. Then it stays
//! up; `DEMO_ONCE=1` ends it.

mod story;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use controlplane::ControlPlane;
use demo::shell::Shell;
use machines_stage::Stage;

/// Shows the Machine operator at work on a control plane of its own; needs kubectl.
#[derive(Parser)]
struct Flags {
    /// The program kubevirt-operator.
    #[arg(long, value_name = "FILE")]
    operator: PathBuf,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let played = tokio::select! {
        played = demo(&flags) => played,
        interrupted = tokio::signal::ctrl_c() => interrupted.context("signals can't be received"),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed; then there is nobody to tell.
            let _ = writeln!(io::stderr(), "\ndemo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo(flags: &Flags) -> Result<()> {
    let program = &flags.operator;
    let program = program.canonicalize().with_context(|| format!("there is no program at {}", program.display()))?;
    let mut shell = Shell::new();
    if shell.run("kubectl version --client").await.is_err() {
        bail!("the demo needs kubectl: install it and put it on your PATH");
    }
    shell.progress("starting etcd and kube-apiserver (the first time they are built, which takes minutes)")?;
    let plane = ControlPlane::start().await?;
    shell.use_kubeconfig(&plane.kubeconfig());
    shell.progress("installing KubeVirt's kinds, Machines, and the operator's rights")?;
    let mut stage = Stage::set(plane, kubevirt_simulator::Settings::default()).await?;
    stage.start_operator(&program)?;
    if let Some(operator) = stage.operator() {
        shell.operator_ended = operator.ended();
    }
    shell.progress("ready")?;
    if let Err(error) = story::play(&shell, &stage, &program).await {
        let log = stage.operator().map(demo::Operator::log_tail).unwrap_or_default();
        bail!("{error:#}\n\nthe end of the operator's log:\n{log}");
    }
    shell.heading("The end")?;
    shell.say(&format!("That took {:.0} seconds.", shell.seconds()))?;
    if std::env::var_os("DEMO_ONCE").is_some_and(|once| !once.is_empty() && once != "0") {
        return Ok(());
    }
    shell.say(&format!(
        "The cluster stays up. In another terminal:\n\n  export KUBECONFIG={}\n  kubectl get machines\n\n\
         The operator's log is {}. Ctrl-C ends everything and leaves nothing behind.",
        stage.plane().kubeconfig().display(),
        stage.log().display()
    ))?;
    shell.operator_ended.cancelled().await;
    bail!("the operator has ended by itself");
}
