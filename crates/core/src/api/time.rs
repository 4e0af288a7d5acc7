//! Times that others write, in spec and in status: whatever the API server takes for a time is one
//! here too.
//!
//! Its `format: date-time` takes every year from 0000 to 9999 and offsets such as `+99:99`; the
//! library counts from the year -9999 to the end of December 9999, and knows offsets of less than
//! 26 hours. One value of one object that can't be parsed would make the whole object unreadable.

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What the CRD's schema accepts, within `format: date-time`, where a time is to be understood.
pub(super) const PATTERN: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";

/// The last year that the library knows in part.
const LAST_YEAR: i16 = 9999;
/// As much of a text that is no time as is told.
const WORDS_LIMIT: usize = 64;

/// The time that `text` says; the first or the last one there is where it is beyond those. `None`
/// if it is no time.
fn parse(text: &str) -> Option<Time> {
    if let Ok(time) = text.parse() {
        return Some(Time(time));
    }
    let pieces = Pieces::parse(text).ok()?;
    let (year, _, _) = (pieces.date().year(), pieces.time()?, pieces.offset()?);
    let end = match year {
        LAST_YEAR.. => Timestamp::MAX,
        ..=-9999 => Timestamp::MIN,
        _ => return None,
    };
    Some(Time(Timestamp::from_second(end.as_second()).unwrap_or(end)))
}

/// A time that a person may have written.
///
/// # Errors
///
/// If it is no time, with the way to write one.
pub(super) fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| {
        let start: String = text.chars().take(WORDS_LIMIT).collect();
        D::Error::custom(format!("{start:?} is not a valid time: write it in the form 2027-01-04T08:00:00Z"))
    })
}

/// A time that was remembered: what is no time is not remembered.
pub(super) fn remembered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let found = Option::<Value>::deserialize(deserializer)?;
    Ok(found.as_ref().and_then(Value::as_str).and_then(parse))
}

/// The same where there must be one.
pub(super) fn or_unknown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    Ok(remembered(deserializer)?.unwrap_or_else(unknown))
}

/// The time of what has none.
pub(super) fn unknown() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

/// Conditions, those of others among them. What is no condition is left out.
pub(super) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let found = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    let read = |mut condition: Value| {
        let since = condition.get("lastTransitionTime").and_then(Value::as_str).and_then(parse);
        let since = serde_json::to_value(since.unwrap_or_else(unknown)).ok()?;
        condition.as_object_mut()?.insert("lastTransitionTime".to_owned(), since);
        serde_json::from_value(condition).ok()
    };
    Ok(found.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t12_a_time_beyond_what_can_be_counted_is_the_last_or_the_first_one() {
        let last = Timestamp::from_second(Timestamp::MAX.as_second()).unwrap();
        for (text, want) in [
            ("9999-12-31T23:59:59Z", Some(last)),
            ("9999-12-31T23:59:59.999999999-12:00", Some(last)),
            ("2027-01-04T08:00:00Z", Some("2027-01-04T08:00:00Z".parse().unwrap())),
            ("2027-01-04t08:00:00z", Some("2027-01-04T08:00:00Z".parse().unwrap())),
            ("2027-01-04T08:00:00+23:59", Some("2027-01-03T08:01:00Z".parse().unwrap())),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z".parse().unwrap())),
            ("-009999-01-01T00:00:00Z", Some(Timestamp::MIN)),
            ("2027-01-04T08:00:00+99:99", None),
            ("2027-01-04T08:00:00x5Z", None),
            ("2027-01-04T08:00:00", None),
            ("soon", None),
        ] {
            let found = parse(text).map(|time| time.0);
            assert_eq!(found.map(Timestamp::as_second), want.map(Timestamp::as_second), "{text}");
        }
    }

    #[test]
    fn t12_what_is_no_time_is_told_in_words_of_ours() {
        let error = written(&json!("2027-01-04T08:00:00+99:99\u{202e}")).unwrap_err().to_string();
        assert_eq!(
            error,
            r#""2027-01-04T08:00:00+99:99\u{202e}" is not a valid time: write it in the form 2027-01-04T08:00:00Z"#
        );
        assert_eq!(remembered(&json!("soon")).unwrap(), None);
        assert_eq!(or_unknown(&json!(7)).unwrap(), unknown());
    }

    #[test]
    fn t12_a_condition_of_others_makes_no_object_unreadable() {
        let of = |time: Value| json!([{"type": "Theirs", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time}]);
        for time in [json!("9999-12-31T23:59:59Z"), json!("2027-01-04T08:00:00+99:99"), Value::Null] {
            assert_eq!(conditions(&of(time)).unwrap()[0].type_, "Theirs");
        }
        assert!(conditions(&json!(["text", null])).unwrap().is_empty());
    }
}
