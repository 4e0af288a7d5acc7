//! How a command of a program ends: with what it prints, or with a sentence and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command ends, and with which exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFailure {
    /// The exit code.
    pub code: u8,
    /// A sentence for the person who has typed the command.
    pub problem: String,
}

impl CommandFailure {
    /// A failure of a command that has only one kind of failure.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { code: 1, problem: problem.into() }
    }

    /// A failure of a command whose exit codes are those of `kubectl diff`: 2, because 1 says that
    /// something differs.
    pub fn of_comparison(problem: impl Into<String>) -> Self {
        Self { code: FAILED, problem: problem.into() }
    }
}

/// Exit code of a comparison: nothing differs.
pub const SAME: u8 = 0;
/// Exit code of a comparison: something differs.
pub const DIFFERENT: u8 = 1;
/// Exit code of a comparison that failed.
pub const FAILED: u8 = 2;

/// Prints to standard output. If nobody reads any more, that is no failure.
///
/// # Errors
/// The output can't be written, for example because a disk is full.
pub fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("writing to standard output failed: {error}"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The exit code of `program`; a failure is told on standard error.
#[must_use]
pub fn finish(program: &str, outcome: Result<ExitCode, CommandFailure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(CommandFailure { code, problem }) => {
            // If standard error is closed, nobody can be told.
            let _ = writeln!(io::stderr(), "{program}: {problem}");
            ExitCode::from(code)
        }
    }
}
