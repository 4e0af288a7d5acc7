//! Durations in the notation of Go's `time.ParseDuration`, such as `90s` and `1h30m`.

use std::time::Duration;

/// What the CRD's schema accepts: one or more numbers with units, largest unit hours.
pub const PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/// Parses `1h30m`, `90s`, `1.5h`; `None` for anything else, also for values beyond about 584 years.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_length = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..unit_length] {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &rest[unit_length..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_of_go() {
        for (text, want) in [
            ("90s", Some(90.0)),
            ("1h30m", Some(5400.0)),
            ("1.5h", Some(5400.0)),
            ("250ms", Some(0.25)),
            ("", None),
            ("2 hours", None),
            ("-1m", None),
            ("5", None),
            ("h", None),
        ] {
            assert_eq!(parse(text).map(|d| d.as_secs_f64()), want, "{text:?}");
        }
    }
}
