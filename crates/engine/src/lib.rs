//! Plans made on a cluster. `virt-advisor diff` needs this and no more.
//!
//! ```text
//!   registry: the profiles ──► engine: drafts ──► previews ──► plan
//!                                 │                  │
//!                                 └── advisor-cluster: read, dry run, write ──► Kubernetes
//! ```

pub mod engine;
pub mod registry;
