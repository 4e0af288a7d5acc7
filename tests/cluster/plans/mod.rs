//! Plans of drafts on a real API server, without a profile and without the operator.

mod deferral;
mod golden;
mod kubelet;
mod machines;
mod ownership;
mod refusals;
mod secrets;
mod size;
mod truth;
mod world;
