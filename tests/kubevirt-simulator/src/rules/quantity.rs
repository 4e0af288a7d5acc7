//! Quantities such as `2Gi`, as whole numbers.

const SUFFIXES: [(&str, u64); 11] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("", 1),
];

/// The value of a quantity, rounded up; `None` if it is not one, or below one.
pub(crate) fn value(text: &str) -> Option<u64> {
    if let Some(thousandths) = text.strip_suffix('m') {
        return Some(thousandths.parse::<u64>().ok()?.div_ceil(1000));
    }
    let (number, factor) = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))?;
    match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => {
            let value = number.parse::<f64>().ok()? * factor as f64;
            (value >= 0.0 && value < u64::MAX as f64).then_some(value.ceil() as u64)
        }
    }
}

/// As Kubernetes writes a binary quantity.
pub(crate) fn binary(value: u64) -> String {
    let fits = |factor: &u64| value > 0 && value.is_multiple_of(*factor);
    let found = SUFFIXES[..5].iter().rev().find(|(_, factor)| fits(factor));
    match found {
        Some((suffix, factor)) => format!("{}{suffix}", value / factor),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{binary, value};

    #[test]
    fn quantities_are_read_and_written_as_kubernetes_does() {
        for (text, bytes) in [("2Gi", 2 << 30), ("1.5Gi", 3 << 29), ("1G", 1_000_000_000), ("1500m", 2), ("7", 7)] {
            assert_eq!(value(text), Some(bytes), "{text}");
        }
        assert_eq!(value("many"), None);
        for (bytes, text) in [(8 << 30, "8Gi"), (1536 << 20, "1536Mi"), (1000, "1000"), (0, "0")] {
            assert_eq!(binary(bytes), text);
        }
    }
}
