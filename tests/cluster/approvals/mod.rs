//! Who may start what, and what is no approval.

mod approval;
mod by_hash;
mod misuse;
pub mod separation;
