//! The `virt-advisor` program.
fn main() {
    print!("{}", virt_advisor::api::crd_yaml(virt_advisor::registry::PROFILES).unwrap());
}
