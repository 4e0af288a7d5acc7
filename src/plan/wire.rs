//! Forms that the API demands: times in whole seconds, texts and values of bounded length.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::digest;
use crate::api::{Input, TargetRef};

/// The longest text of a summary, as in the CRD.
pub const SUMMARY_LIMIT: usize = 1024;

/// The longest value of an input that is shown as it is; of longer ones only the digest is, which tells a change as well.
const VALUE_LIMIT: usize = 1024;
/// The longest path of an input, as in the CRD.
const PATH_LIMIT: usize = 1024;

/// The value at `path` of `target` as an input of a plan.
#[must_use]
pub fn input(target: TargetRef, path: &str, value: Option<Value>) -> Input {
    let secret = target.kind == "Secret" && target.api_version == "v1";
    let value = value.filter(|value| !value.is_null()).map(|value| {
        let size = value.to_string().len();
        let hidden = || Value::from(format!("sha256 {}", digest::sha256(&value)));
        if secret || size > VALUE_LIMIT { hidden() } else { value }
    });
    Input { target, path: cut_text(path, PATH_LIMIT), value, changed_from: None }
}

/// `now` as the API writes it, in whole seconds.
#[must_use]
pub fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// `text` in at most `limit` bytes, ending in an ellipsis if it was longer.
#[must_use]
pub fn cut_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit.saturating_sub('…'.len_utf8())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut_text("short", 10), "short");
        assert_eq!(cut_text("ääääää", 8), "ää…");
        assert!(cut_text("ääääää", 2).len() <= 3);
    }
}
