//! No server and no folder outlives us, however we end: each plane has a guard process that knows
//! its child processes.
//!
//! The guard is a shell in its own process group, so that Ctrl-C does not reach it. It makes the
//! plane's folder, reads from a pipe which processes exist, and acts when the pipe closes: at our
//! orderly end, after a panic, and after SIGKILL alike, because the kernel closes the pipe.
//! (PR_SET_PDEATHSIG would act when the thread that started the server ends, which is too early.)
//! Invariant: the guard makes the folder and knows a child before the child runs its program, so
//! there is no moment at which our death would leave either behind.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::Error;

/// Cleans up after this process. Dropping the last reference waits until it has.
pub(crate) struct Guard {
    shell: Child,
    pipe: Mutex<Option<ChildStdin>>,
    folder: PathBuf,
}

impl Guard {
    pub(crate) fn start() -> Result<Arc<Self>, Error> {
        let failed = |problem: String| Error::Guard { problem };
        let mut shell = Command::new("sh")
            .args(["-c", include_str!("guard.sh"), "controlplane-guard"])
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(format!("could not be started: {error}")))?;
        let mut folder = String::new();
        if let Some(stdout) = shell.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut folder)
                .map_err(|error| failed(format!("could not be heard: {error}")))?;
        }
        let pipe = Mutex::new(shell.stdin.take());
        let folder = PathBuf::from(folder.trim_end_matches('\n'));
        // An Arc even if the start fails, because dropping it ends the shell.
        let guard = Arc::new(Self { shell, pipe, folder });
        if guard.folder.as_os_str().is_empty() {
            return Err(failed("could not make a temporary folder".to_owned()));
        }
        Ok(guard)
    }

    /// The plane's folder, which the guard removes.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn tell(&self, word: &str, pid: u32) -> Result<(), Error> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let pipe = pipe.as_mut().ok_or_else(|| Error::Guard { problem: "has no pipe".to_owned() })?;
        writeln!(pipe, "{word} {pid}").map_err(|error| Error::Guard { problem: format!("is gone: {error}") })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.shell.wait();
        // Only needed if somebody killed the guard.
        if !self.folder.as_os_str().is_empty() && self.folder.exists() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// A program that ends when this is dropped, or when we do.
pub struct Process {
    child: Child,
    guard: Arc<Guard>,
    program: PathBuf,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output is appended to `log` in the plane's folder.
    pub(crate) fn start(guard: &Arc<Guard>, program: &Path, args: &[String], log: &str) -> Result<Self, Error> {
        let log = guard.folder().join(log);
        let output = open(&log).map_err(Error::io(format!("open {}", log.display())))?;
        let errors = output.try_clone().map_err(Error::io(format!("open {}", log.display())))?;
        let mut child = Command::new("sh")
            // Becomes the program once a line arrives, and ends if we do before that.
            .args(["-c", r#"read -r _ && exec "$@" </dev/null"#, "sh"])
            .arg(program)
            .args(args)
            .current_dir(guard.folder())
            // ETCD_* and the like would change what runs; PATH is for a wrapper script in
            // KUBEBUILDER_ASSETS.
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("TMPDIR", guard.folder())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(Error::io(format!("start {}", program.display())))?;
        let go = child.stdin.take();
        let process = Self { child, guard: Arc::clone(guard), program: program.to_owned(), log };
        process.guard.tell("pid", process.child.id())?;
        // If the write fails, the shell has ended, and `exited` reports that better.
        let _ = go.map(|mut pipe| pipe.write_all(b"go\n"));
        Ok(process)
    }

    /// Its process ID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A function that returns when the program has ended for whatever reason; run it in its own
    /// thread.
    pub fn waiter(&self) -> impl FnOnce() + Send + use<> {
        let pid = self.pid();
        // `exited` collects the exit status (hence WNOWAIT); an error means that it already has.
        move || {
            let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        }
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it, and returns once none of its threads runs: a signal alone takes effect a moment
    /// later.
    ///
    /// # Errors
    /// If it has ended.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal(Signal::SIGSTOP)?;
        // `exited` collects the exit status (hence WNOWAIT).
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags).map(drop).map_err(|errno| self.refused("pause", errno))
    }

    /// Resumes it.
    ///
    /// # Errors
    /// If it has ended.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal(Signal::SIGCONT)
    }

    /// Asks it to end, as the kubelet does.
    ///
    /// # Errors
    /// If it has ended.
    pub fn terminate(&self) -> Result<(), Error> {
        self.signal(Signal::SIGTERM)
    }

    /// Asks it to change its log level, which our own programs do on SIGUSR1.
    ///
    /// # Errors
    /// If it has ended.
    pub fn change_log_level(&self) -> Result<(), Error> {
        self.signal(Signal::SIGUSR1)
    }

    /// What it has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        // We have not waited for the child, so the ID cannot belong to another process.
        kill(self.pid(), signal).map_err(|errno| self.refused("send a signal to", errno))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("the kernel's process numbers are positive i32"))
    }

    fn refused(&self, action: &str, errno: Errno) -> Error {
        Error::Io { action: format!("{action} {}", self.program.display()), source: errno.into() }
    }

    /// The error that it ended unexpectedly.
    pub(crate) fn ended(&self, status: ExitStatus) -> Error {
        Error::Exited { path: self.program.clone(), status, log: self.log_tail() }
    }

    /// The error that it does not serve.
    pub(crate) fn not_ready(&self, within: std::time::Duration) -> Error {
        Error::NotReady { path: self.program.clone(), within, log: self.log_tail() }
    }

    /// The last lines of its log, for people.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let tail: Vec<String> = lines[lines.len().saturating_sub(8)..]
            .iter()
            .map(|line| format!("  {}", line.chars().take(400).collect::<String>()))
            .collect();
        if tail.is_empty() { "  (it wrote nothing)".to_owned() } else { tail.join("\n") }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // Before waiting for it, which frees its ID for others.
        let _ = self.guard.tell("gone", self.child.id());
        let _ = self.child.wait();
    }
}

fn open(log: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(log)
}
