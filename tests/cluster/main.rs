//! The operator against a real API server. One binary, one module a subject: each binary would link everything again.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod advertising;
mod approval;
mod bad_input;
mod baseline;
mod cli;
mod clusters;
mod crash;
mod density;
mod drift;
mod election;
mod endpoints;
mod example;
mod execution;
mod failures;
mod fixture;
mod install;
mod kinds;
mod midway;
mod misuse;
mod odd_objects;
mod offline;
mod options;
mod outage;
mod overrides;
mod plans;
mod prerequisites;
mod pruning;
mod releases;
mod replica;
mod restored;
mod rights;
mod samples;
mod schema;
mod separation;
mod shared_objects;
mod silent_groups;
mod stage;
mod story;
mod sweep;
mod tools;
mod traces;
mod waiting;
mod watches;
mod writes;
