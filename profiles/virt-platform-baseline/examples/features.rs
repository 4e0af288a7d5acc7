//! Prints the page of the features, for `make generate`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(virt_platform_baseline::page().as_bytes())
}
