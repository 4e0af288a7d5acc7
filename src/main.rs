//! The `virt-advisor` program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    virt_advisor::cli::main()
}
