//! What becomes of Machines: traps of KubeVirt (K), defects of the Go program (V), and what holds
//! for Machines at random.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod defects;
mod properties;
mod sacred;
mod traps;
mod world;
