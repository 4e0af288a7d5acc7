//! Forms that the API demands: times in whole seconds, texts of bounded length.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The longest text of a summary, as in the CRD.
pub const SUMMARY_LIMIT: usize = 1024;

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
