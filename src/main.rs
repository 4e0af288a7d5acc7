//! The `virt-advisor` program.
fn main() {}
