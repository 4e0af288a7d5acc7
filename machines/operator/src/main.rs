//! The `kubevirt-operator` program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubevirt_operator::cli::main()
}
