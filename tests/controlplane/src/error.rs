//! The errors, as told to the person who runs the tests: what failed, where, and what to do about
//! it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a control plane could not be started, used or emptied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `build.sh` refused, and says what to do.
    #[error("{problem}")]
    Unbuildable {
        /// What it said.
        problem: String,
    },

    /// The build failed.
    #[error(
        "etcd and kube-apiserver could not be built: run `sh tests/controlplane/build.sh` to see why, or set \
         KUBEBUILDER_ASSETS to a folder of envtest binaries; the end of its log:\n{log}"
    )]
    Build {
        /// The last lines that it wrote.
        log: String,
    },

    /// One of the two programs is not in the folder, or is not executable.
    #[error(
        "{} {problem}: unset KUBEBUILDER_ASSETS to build etcd and kube-apiserver, or point it to a folder of envtest \
         binaries; if it is not set, delete that folder and run `sh tests/controlplane/build.sh`", path.display()
    )]
    Program {
        /// Where the program was looked for.
        path: PathBuf,
        /// The problem with it, as the rest of a sentence.
        problem: &'static str,
    },

    /// One of the two programs ended unexpectedly.
    #[error(
        "{} ended by itself ({status}): check that it is the program its name says and is built for this machine \
         (delete its folder to build it anew, or change KUBEBUILDER_ASSETS); the end of its log:\n{log}", path.display()
    )]
    Exited {
        /// The program.
        path: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },

    /// One of the two programs runs but does not serve.
    #[error(
        "{} was not ready within {}s: check that it is the program its name says (change KUBEBUILDER_ASSETS if not) \
         and that the machine is not overloaded; the end of its log:\n{log}", path.display(), within.as_secs()
    )]
    NotReady {
        /// The program.
        path: PathBuf,
        /// How long we waited.
        within: Duration,
        /// The last lines of its log.
        log: String,
    },

    /// The server is stopped, and the call needs it.
    #[error("kube-apiserver is stopped: call start_server() first")]
    Stopped,

    /// The operating system refused something.
    #[error("could not {action}: {source}")]
    Io {
        /// What was attempted.
        action: String,
        /// The refusal.
        source: io::Error,
    },

    /// The process that cleans up after us could not be started, or is gone.
    #[error(
        "the process that ends etcd and kube-apiserver after a crash {problem}: check that `sh`, `mktemp` and `rm` are \
         in PATH and that TMPDIR is writable"
    )]
    Guard {
        /// What happened, as the rest of a sentence.
        problem: String,
    },

    /// A certificate or key could not be made.
    #[error("could not make a certificate for {subject:?}: {source}")]
    Certificate {
        /// The subject of the certificate or key.
        subject: String,
        /// The reason.
        source: rcgen::Error,
    },

    /// More groups than a certificate made here can have.
    #[error("user {user:?} has too many groups: a client certificate made here holds at most {most}")]
    Groups {
        /// The user.
        user: String,
        /// The greatest possible number.
        most: usize,
    },

    /// A file or text is not YAML, or not a Kubernetes object.
    #[error("{origin} is not a Kubernetes object in YAML: {problem}")]
    Yaml {
        /// The file, or a name for the text.
        origin: String,
        /// What is wrong.
        problem: String,
    },

    /// The API server refused something, or could not be reached.
    #[error("could not {action}: {}", told(source))]
    Api {
        /// What was attempted.
        action: String,
        /// The answer.
        source: Box<kube::Error>,
    },

    /// Something the server accepted did not take effect in time.
    #[error("{what} after {}s: {last}", within.as_secs())]
    Unsettled {
        /// What has not happened yet.
        what: String,
        /// How long we waited.
        within: Duration,
        /// The last observation.
        last: String,
    },
}

impl Error {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Error::Io { action, source }
    }

    pub(crate) fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Error::Api { action, source: Box::new(source) }
    }
}

/// An API error for people: kube prints the whole `Status` as debug text, of which only the message
/// is readable.
pub(crate) fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message.trim(), status.code),
        other => other.to_string(),
    }
}
