//! The operator as a process that cannot outlive us, however we end.
//!
//! Its parent is a shell in a process group of its own, so that Ctrl-C passes both by. The shell waits at a pipe that
//! we hold: it closes when an [`Operator`] is dropped, and when we are killed, and then the shell ends the operator.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use tokio_util::sync::CancellationToken;

/// A running operator; dropping it kills it, as a crash does.
pub struct Operator {
    shell: Child,
    pipe: Option<ChildStdin>,
    pid: u32,
    log: PathBuf,
    ended: CancellationToken,
}

impl Operator {
    /// Starts `program run` with a kubeconfig; its log is appended to `log`.
    ///
    /// # Errors
    /// If there is no such program, or no shell.
    pub fn start(program: &Path, kubeconfig: &Path, log: &Path) -> Result<Self> {
        let program = program.canonicalize().with_context(|| {
            format!("there is no operator at {}: run `cargo build -p virt-advisor`", program.display())
        })?;
        let mut shell = Command::new("sh")
            .args(["-c", include_str!("operator.sh"), "operator-guard"])
            .arg(log)
            .arg(program)
            .arg("run")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("`sh`, which runs the operator, could not be started")?;
        let pipe = shell.stdin.take();
        let mut answers = BufReader::new(shell.stdout.take().context("a piped child has a pipe")?);
        let ended = CancellationToken::new();
        let mut operator = Self { shell, pipe, pid: 0, log: log.to_owned(), ended: ended.clone() };
        let mut line = String::new();
        answers.read_line(&mut line).context("the shell that runs the operator could not be heard")?;
        operator.pid = line.trim().parse().context("the shell that runs the operator did not start it")?;
        std::thread::spawn(move || {
            // Comes back at the end of the operator: nobody writes to this pipe.
            let _ = answers.read(&mut [0]);
            ended.cancel();
        });
        Ok(operator)
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Is cancelled when the operator has ended.
    #[must_use]
    pub fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// The last lines of its log, for people.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(12)..];
        if tail.is_empty() { "(it wrote nothing)".to_owned() } else { tail.join("\n") }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}
