//! What runs on machines: its own tests, which run each script against a folder in place of the
//! machine.

use std::process::Command;

#[test]
fn the_scripts_for_machines_pass_their_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/node-tests");
    let mut python = Command::new("python3");
    // Nothing is left in the sources.
    python.args(["-B", "-m", "unittest", "discover", "--start-directory", folder]);
    let output = python.output().expect("python3 is needed to test the scripts for machines");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(
        told.lines().any(|line| line.starts_with("Ran ") && !line.starts_with("Ran 0 ")),
        "no test was found: {told}"
    );
}
