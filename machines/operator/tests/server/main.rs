//! The operator against a real API server, with the real CRDs of KubeVirt and CDI, their webhooks
//! as policies, and a simulator in place of their controllers.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod deletion;
mod edits;
mod faults;
mod lifecycle;
mod names;
mod policy;
mod preview;
mod states;
mod story;
mod world;
