//! Digests: SHA-256 over canonical JSON (RFC 8785).

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of `value` in canonical form, as 64 lower-case hexadecimal digits.
///
/// # Panics
///
/// Never for the JSON values that this crate hashes: maps with text keys and finite numbers have a
/// canonical form.
#[must_use]
pub fn sha256(value: &impl Serialize) -> String {
    const PROMISE: &str = "JSON with text keys and finite numbers";
    let mut value = serde_json::to_value(value).expect(PROMISE);
    keep_large_integers(&mut value);
    let canonical = serde_json_canonicalizer::to_vec(&value).expect(PROMISE);
    of_bytes(&canonical)
}

/// SHA-256 of `bytes`, as 64 lower-case hexadecimal digits.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The largest integer that RFC 8785, whose numbers are IEEE 754 doubles, can tell from its
/// neighbours.
const LARGEST: u64 = (1 << 53) - 1;

/// Writes larger integers as text, as the RFC advises (appendix D): otherwise two of them could
/// have the same digest.
fn keep_large_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if magnitude.is_some_and(|magnitude| magnitude > LARGEST) {
                *value = serde_json::json!({"integer": number.to_string()});
            }
        }
        Value::Array(list) => list.iter_mut().for_each(keep_large_integers),
        Value::Object(map) => map.values_mut().for_each(keep_large_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
