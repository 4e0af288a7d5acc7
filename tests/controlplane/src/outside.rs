//! Test data and programs that are not part of the repository: CRDs of other projects, `patch`, and
//! the tools of `make tools`.
//!
//! A test that lacks one of them calls [`left_out`] and returns: under CI that fails, and elsewhere
//! `make test` ends with a line that names it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The CRD that its project publishes, as a file to install: `file` is a path such as
/// `hco/hyperconvergeds-main.yaml`, or a folder.
///
/// It is looked for in `ADVISOR_TEST_CRDS`, then, for `openshift/`, in what `make crds` collects,
/// and then beside the checkout in `../shared/crds`. `None` means that the test can't run, which
/// has been reported.
///
/// # Panics
///
/// Where it is missing under CI.
pub fn real_crd(file: &str) -> Option<PathBuf> {
    let named = || std::env::var_os("ADVISOR_TEST_CRDS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let collected = || {
        let rest = Path::new(file).strip_prefix("openshift").ok()?;
        Some(collected()?.join(rest))
    };
    let beside = || Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/crds").join(file));
    let is_there = |path: &PathBuf| path.exists();
    let found = named().map(|folder| folder.join(file)).filter(is_there);
    let found = found.or_else(|| collected().filter(is_there)).or_else(|| beside().filter(is_there));
    if found.is_none() {
        left_out(&format!("the CRD {file}: set ADVISOR_TEST_CRDS to a folder that has it (docs/TESTING.md)"));
    }
    found
}

/// All of them, or none.
///
/// # Panics
///
/// As [`real_crd`].
pub fn real_crds<'a>(files: impl IntoIterator<Item = &'a str>) -> Option<Vec<PathBuf>> {
    files.into_iter().map(real_crd).collect()
}

/// The folder that tests/crds/build.sh prints.
fn collected() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let collect = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/build.sh");
        let output = Command::new("sh").arg(script).output().ok()?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then(|| answer.lines().last().map(PathBuf::from)).flatten()
    };
    FOLDER.get_or_init(collect).as_deref()
}

/// Tells that the test that calls it is left out, or a part of it, because `missing` is: on its own
/// standard error, and in the file that `ADVISOR_TEST_LEFT_OUT` names, which `make test` reads at
/// the end.
///
/// # Panics
///
/// Under CI, where nothing may be left out unseen.
pub fn left_out(missing: &str) {
    let thread = std::thread::current();
    let line = format!("{} left out, without {missing}", thread.name().unwrap_or("a test is"));
    assert!(std::env::var_os("CI").is_none_or(|value| value.is_empty()), "{line}");
    let _ = writeln!(std::io::stderr(), "{line}");
    let file = std::env::var_os("ADVISOR_TEST_LEFT_OUT").map(PathBuf::from);
    if let Some(mut file) = file.and_then(|path| std::fs::OpenOptions::new().append(true).create(true).open(path).ok())
    {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
