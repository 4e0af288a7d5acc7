//! Chores of this repository: `cargo xtask new-profile NAME` makes the crate of a new profile,
//! `cargo xtask manifests` makes of config/ what is installed from.

mod bundle;
mod chart;
mod dashboards;
mod machines;
mod manifests;
mod profile;
mod source;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask new-profile NAME | manifests [--check]\n\nNAME: lower-case letters, digits and dashes, for example numa-aware-placement";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let outcome = match arguments[..] {
        ["new-profile", name] => profile::create(&root, name),
        ["manifests"] => manifests::write(&root),
        ["manifests", "--check"] => manifests::check(&root),
        _ => Err(USAGE.to_owned()),
    };
    // Where nobody reads what is printed, there is nobody to tell.
    match outcome {
        Ok(text) => {
            let _ = writeln!(io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            let _ = writeln!(io::stderr(), "xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
