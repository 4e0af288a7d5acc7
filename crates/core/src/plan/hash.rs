//! The hash of a plan, by which it is approved.

use object::digest::sha256;
use serde::Serialize;

/// The version of the digest's contract. Plan hashes of different versions are never equal.
const VERSION: &str = "v1:";

/// The digest of a plan: of its profile, options, inputs, and the reviewed contents of each item.
#[must_use]
pub fn plan_hash(contents: &impl Serialize) -> String {
    format!("{VERSION}{}", sha256(contents))
}

/// The hexadecimal part of a plan hash.
#[must_use]
pub fn hexadecimal(plan_hash: &str) -> &str {
    plan_hash.strip_prefix(VERSION).unwrap_or(plan_hash)
}

/// The first twelve digits of a plan hash, the form shown to people.
#[must_use]
pub fn short(plan_hash: &str) -> String {
    hexadecimal(plan_hash).chars().take(12).collect()
}
