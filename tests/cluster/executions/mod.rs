//! Carrying a plan out: waves, waiting, failures, faults from outside, and what came of it.

mod crash;
mod execution;
mod failures;
mod midway;
mod outage;
mod outcomes;
mod owners;
mod policies;
mod story;
mod sweep;
mod taken_back;
mod waiting;
