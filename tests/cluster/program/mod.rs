//! The process: command line, endpoints, replicas, rights, installing.

pub mod cli;
mod election;
mod endpoints;
mod install;
mod offline;
mod replica;
pub mod rights;
mod tools;
mod traces;
