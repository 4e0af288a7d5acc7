//! Runs the commands that a user would type, and prints them with what they really show.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

/// The longest time that a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A user's shell, whose kubectl talks to the plane.
pub struct Shell {
    kubeconfig: PathBuf,
    colours: bool,
    began: Instant,
    /// Is cancelled when the operator has ended, which no step survives.
    pub operator_ended: CancellationToken,
}

/// A command that goes on until it is dropped.
pub struct Watching {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Watching {
    /// The next line of its output.
    ///
    /// # Errors
    /// If the command has ended.
    pub async fn line(&mut self) -> Result<String> {
        self.lines.next_line().await?.context("kubectl has stopped to watch")
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

impl Shell {
    /// A shell that talks to no cluster yet.
    pub fn new() -> Self {
        Self {
            kubeconfig: PathBuf::new(),
            colours: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            began: Instant::now(),
            operator_ended: CancellationToken::new(),
        }
    }

    /// Which cluster kubectl talks to from now on.
    pub fn use_kubeconfig(&mut self, kubeconfig: &Path) {
        kubeconfig.clone_into(&mut self.kubeconfig);
    }

    /// Seconds since the beginning.
    pub fn seconds(&self) -> f32 {
        self.began.elapsed().as_secs_f32()
    }

    /// A heading.
    ///
    /// # Errors
    /// If nobody reads the output any more; so for all that prints.
    pub fn heading(&self, text: &str) -> Result<()> {
        self.line(&format!("\n{}", self.painted("1;36", &format!("== {text}"))))
    }

    /// A paragraph.
    ///
    /// # Errors
    /// As for [`Shell::heading`].
    pub fn say(&self, text: &str) -> Result<()> {
        self.line(text)
    }

    /// A line with the seconds since the beginning.
    ///
    /// # Errors
    /// As for [`Shell::heading`].
    pub fn progress(&self, text: &str) -> Result<()> {
        self.line(&format!("{} {text}", self.painted("2", &format!("{:5.1}s", self.seconds()))))
    }

    /// Prints a command and what it shows, and returns that.
    ///
    /// # Errors
    /// If the command fails, or does not end in a minute.
    pub async fn show(&self, command: &str) -> Result<String> {
        self.prompt(command)?;
        let shown = self.run(command).await?;
        self.line(shown.trim_end())?;
        Ok(shown)
    }

    /// Prints a command that goes on, and starts it.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn watch(&self, command: &str) -> Result<Watching> {
        self.prompt(command)?;
        let mut child = self.command(&format!("exec {command}")).spawn().context("`sh` could not be started")?;
        let stdout = child.stdout.take().context("a piped child has a pipe")?;
        Ok(Watching { lines: BufReader::new(stdout).lines(), _child: child })
    }

    /// What a command shows, both its output and its errors.
    ///
    /// # Errors
    /// If the command fails, or does not end in a minute.
    pub async fn run(&self, command: &str) -> Result<String> {
        let child = self.command(command).output();
        let output = tokio::select! {
            output = tokio::time::timeout(PATIENCE, child) => output,
            () = self.operator_ended.cancelled() => bail!("the operator has ended by itself during `{command}`"),
        };
        let output = output
            .with_context(|| format!("`{command}` did not end within {} s", PATIENCE.as_secs()))?
            .context("`sh` could not be started")?;
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        if !output.status.success() {
            bail!("`{command}` failed ({}): {}", output.status, shown.trim());
        }
        Ok(shown)
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", text])
            .env("KUBECONFIG", &self.kubeconfig)
            // Neither the user's preferences nor their cache: nothing of this shall be left in
            // their home.
            .env("KUBERC", "off")
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us: we end the command.
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    fn prompt(&self, command: &str) -> Result<()> {
        self.line(&format!("{}{}", self.painted("32", "$ "), self.painted("1", command)))
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).context("nobody reads the output any more")
    }
}
