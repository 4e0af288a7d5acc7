//! The paths of the two programs: `build.sh` decides, this file only asks it and checks the answer.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::Error;

/// The two programs of a control plane.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    pub(crate) etcd: PathBuf,
    pub(crate) apiserver: PathBuf,
}

impl Binaries {
    /// The programs in the folder that KUBEBUILDER_ASSETS names, or else those of the cache, built
    /// first if missing.
    pub(crate) fn find() -> Result<Self, Error> {
        // One build at a time in this process, and none after the first has succeeded.
        static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
        let mut known = FOLDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let folder = match &*known {
            Some(folder) => folder.clone(),
            None => build()?,
        };
        let found = Self::in_folder(&folder)?;
        *known = Some(folder);
        Ok(found)
    }

    /// The programs in one folder.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, Error> {
        Ok(Self { etcd: program(folder, "etcd")?, apiserver: program(folder, "kube-apiserver")? })
    }
}

/// The absolute path of a program, because it runs in another working directory.
fn program(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    let Ok(absolute) = path.canonicalize() else {
        return Err(Error::Program { path, problem: "does not exist" });
    };
    let executable = absolute.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    if !executable {
        return Err(Error::Program { path, problem: "is not an executable file" });
    }
    Ok(absolute)
}

fn build() -> Result<PathBuf, Error> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.sh");
    let action = || format!("run sh {}", script.display());
    let mut child = Command::new("sh")
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io(action()))?;
    let mut log = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Four silent minutes would look like a hang, so the announcement of a build is passed
            // on at once.
            if line.starts_with("controlplane: building ") {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            log.push(line);
        }
    }
    let output = child.wait_with_output().map_err(Error::io(action()))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    match answer.lines().last() {
        Some(folder) if output.status.success() => Ok(PathBuf::from(folder)),
        _ => Err(match log.last().and_then(|line| line.strip_prefix("controlplane: ")) {
            Some(problem) if !problem.starts_with("building ") => Error::Unbuildable { problem: problem.to_owned() },
            _ => Error::Build { log: log[log.len().saturating_sub(5)..].join("\n") },
        }),
    }
}
