//! Plans made on a cluster. This is all that `virt-advisor diff` needs.
//!
//! ```text
//!   registry: the profiles ──► engine: drafts ──► previews ──► plan
//!                                 │                  │
//!                                 └── advisor-cluster: read, dry run, write ──► Kubernetes
//! ```

pub mod engine;
pub mod registry;
