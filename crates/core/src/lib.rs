//! The decisions of virt-advisor, as data: the API, plans and their approval, and how changes roll
//! out. Everything here is a function of its arguments: no client, no clock, nothing that waits.
//!
//! ```text
//!   api ◄── plan: drafts and previews ──► items ──► plan ──► decision ──► status
//!    ▲        ▲
//!    └────────┴── rollout: the effects of a change, and how far it is
//! ```

pub mod api;
pub mod plan;
pub mod rollout;
