//! The crate against the real programs.

mod leaving;
mod requests;
mod server;
mod shared;
