//! The operator against a real API server. One binary, one room a subject: each binary would link
//! everything again.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod approvals;
mod changes;
mod executions;
mod fixture;
mod input;
mod plans;
mod profiles;
mod program;
mod security;
mod stage;
