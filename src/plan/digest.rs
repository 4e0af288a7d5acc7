//! Digests: SHA-256 over canonical JSON (RFC 8785).

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Version of the digest's contract; a plan hash of another version is never equal to one of this.
const VERSION: &str = "v1:";

/// SHA-256 of `value` in canonical form, as 64 lower-case hexadecimal digits.
///
/// # Panics
///
/// Never for the JSON values that this crate hashes: maps with text keys and finite numbers have a canonical form.
#[must_use]
pub fn sha256(value: &impl Serialize) -> String {
    let canonical = serde_json_canonicalizer::to_vec(value).expect("JSON with text keys and finite numbers");
    let digest = Sha256::digest(&canonical);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a plan: of its profile, options, inputs, and what was reviewed of each item.
#[must_use]
pub fn plan_hash(contents: &impl Serialize) -> String {
    format!("{VERSION}{}", sha256(contents))
}

/// The hexadecimal part of a plan hash.
#[must_use]
pub fn hexadecimal(plan_hash: &str) -> &str {
    plan_hash.strip_prefix(VERSION).unwrap_or(plan_hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A vector that no version may move: approvals of older versions name such digests.
    #[test]
    fn the_digest_is_that_of_the_canonical_form() {
        let value = json!({"b": [1, 2.0, "é"], "a": {"\u{1F600}": null, "\u{FB33}": true}});
        // Canonical: {"a":{"😀":null,"דּ":true},"b":[1,2,"é"]}, hashed with `sha256sum`.
        assert_eq!(sha256(&value), "d6dbb9cf499395b8890bddac9f792d7ccdb510e5c53ea91135ffd91b8866dac8");
    }
}
