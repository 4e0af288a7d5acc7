//! The operator as a process beside the servers of its control plane, which it outlives as little
//! as they outlive us.

use std::path::Path;

use anyhow::{Context, Result};
use controlplane::{ControlPlane, Process};
use tokio_util::sync::CancellationToken;

/// A running operator; dropping it kills it, as a crash does.
pub struct Operator {
    process: Process,
    ended: CancellationToken,
}

impl Operator {
    /// Starts `program run` with a kubeconfig; its log is appended to the file `log` in the plane's
    /// folder.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn start(plane: &ControlPlane, program: &Path, kubeconfig: &Path, log: &str, more: &[&str]) -> Result<Self> {
        let program = program.canonicalize().with_context(|| {
            format!("there is no operator at {}: run `cargo build -p virt-advisor`", program.display())
        })?;
        // As it is deployed, but for the election: it is alone, and each renewal would be a request
        // at rest.
        let args =
            ["run", "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--kubeconfig"];
        let kubeconfig = kubeconfig.display().to_string();
        let more = more.iter().map(|arg| (*arg).to_owned());
        let args: Vec<_> = args.into_iter().map(str::to_owned).chain([kubeconfig]).chain(more).collect();
        let process = plane.spawn(&program, &args, log)?;
        let ended = CancellationToken::new();
        let (wait, told) = (process.waiter(), ended.clone());
        std::thread::spawn(move || {
            wait();
            told.cancel();
        });
        Ok(Self { process, ended })
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Is cancelled when the operator has ended.
    #[must_use]
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// The last lines of its log, for people.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}
