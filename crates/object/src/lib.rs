//! One JSON object of the Kubernetes API, whatever its kind. Nothing here knows about plans,
//! clusters or clocks.
//!
//! ```text
//!              pointer ──► quantity ──► one spelling of an amount
//!                 │
//!   object ──► fields ───► who owns which value (managedFields)
//!      │          │
//!      │          └──────► digest: equal objects, equal digests (RFC 8785)
//!      ├──► embedded_files: what is in data URLs, to be read by people
//!      └──► diff ─────────► what changes, as data and as text
//!
//!   duration: 1h30m and the like
//!   limits: how large, deep and long any of it may be
//! ```

#[cfg(any(test, feature = "arbitrary"))]
pub mod arbitrary;
pub mod diff;
pub mod digest;
pub mod duration;
pub mod embedded_files;
pub mod fields;
pub mod limits;
pub mod pointer;
pub mod quantity;
