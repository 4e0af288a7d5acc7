//! Tests of the crate with the real programs.

mod leaving;
mod requests;
mod server;
mod shared;
