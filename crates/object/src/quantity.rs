//! Resource quantities: `1Gi` and `1024Mi` are one amount in two spellings.
//!
//! Kubernetes normalizes the quantities of its own kinds. In custom resources they are texts, and
//! another spelling looks like a change. Only the profile knows which fields are quantities: a
//! scheduling profile may be called `1000m`.

use std::borrow::Cow;

use serde_json::Value;

use super::pointer;

/// Suffixes, and the power of ten that each stands for.
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Suffixes, and the power of two that each stands for.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The amount in billionths, the smallest unit that Kubernetes knows. `None` if `value` is not a
/// quantity, or one that is too large or too fine to be represented exactly: it is then compared as
/// written.
#[must_use]
pub fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn parse(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let decimals = i32::try_from(fraction.len()).ok()?;
    let (tens, twos) = scale(suffix)?;
    let mut amount = digits.checked_mul(1_i128.checked_shl(twos)?)?;
    let tens = tens.checked_add(9)?.checked_sub(decimals)?;
    let power = 10_i128.checked_pow(tens.unsigned_abs())?;
    if tens >= 0 {
        amount = amount.checked_mul(power)?;
    } else if amount % power == 0 {
        amount /= power;
    } else {
        return None;
    }
    Some(if text.starts_with('-') { -amount } else { amount })
}

/// The powers of ten and two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    if suffix.is_empty() {
        return Some((0, 0));
    }
    if let Some((_, twos)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((0, *twos));
    }
    if let Some((_, tens)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((*tens, 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    exponent.parse().ok().filter(|_| plain).map(|tens| (tens, 0))
}

/// `object` with one spelling for each amount at `paths` ([`pointer::expand`]), for comparing and
/// digesting. Copied only if it has amounts, because objects may be large.
#[must_use]
pub fn canonical<'a>(object: &'a Value, paths: &[String]) -> Cow<'a, Value> {
    let mut canonical = Cow::Borrowed(object);
    for pointer in paths.iter().flat_map(|path| pointer::expand(object, path)) {
        if let Some(amount) = object.pointer(&pointer).and_then(amount)
            && let Some(value) = canonical.to_mut().pointer_mut(&pointer)
        {
            *value = Value::from(format!("{amount}n"));
        }
    }
    canonical
}

/// `desired` with the spelling of `live` wherever both are the same amount at `paths`: another
/// spelling of the same amount is not a change, and takes no field from its owner.
#[must_use]
pub fn keep_spelling(desired: &Value, live: &Value, paths: &[String]) -> Value {
    let mut desired = desired.clone();
    for pointer in paths.iter().flat_map(|path| pointer::expand(&desired, path)).collect::<Vec<_>>() {
        if let (Some(wanted), Some(found)) = (desired.pointer_mut(&pointer), live.pointer(&pointer))
            && amount(wanted).is_some_and(|wanted| Some(wanted) == amount(found))
        {
            wanted.clone_from(found);
        }
    }
    desired
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// From the grammar and the examples of k8s.io/apimachinery/pkg/api/resource/quantity.go.
    #[test]
    fn s6_spellings_of_one_amount_are_equal_and_others_are_not() {
        for (one, other) in [
            (json!("1024Mi"), json!("1Gi")),
            (json!("500m"), json!("0.5")),
            (json!("2000m"), json!("2")),
            (json!("16384Mi"), json!("16Gi")),
            (json!("1000m"), json!(1)),
            (json!("0"), json!(0)),
            (json!("0"), json!("0Gi")),
            (json!("1e3"), json!("1k")),
            (json!("1E3"), json!(1000)),
            (json!("1e-3"), json!("1m")),
            (json!(".5"), json!("500m")),
            (json!("5."), json!(5)),
            (json!("+1"), json!(1)),
            (json!("-1"), json!("-1000m")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1000u"), json!("1m")),
            (json!("1000n"), json!("1u")),
            (json!("1Ei"), json!("1024Pi")),
            (json!("1E"), json!("1000P")),
            (json!(0.5), json!("500m")),
            (json!("1Ki"), json!(1024)),
        ] {
            assert!(amount(&one).is_some(), "{one}");
            assert_eq!(amount(&one), amount(&other), "{one} {other}");
        }
        for (one, other) in [("1G", "1Gi"), ("500m", "500Mi"), ("1k", "1Ki"), ("1M", "1m"), ("1E", "1Ei"), ("1", "-1")]
        {
            assert_ne!(amount(&json!(one)), amount(&json!(other)), "{one} {other}");
        }
        for none in ["", "-", ".", "1.2.3", "Gi", "1gi", "1 Gi", "1e", "1e+", "1e1.5", "0x10", "1Gi ", "ten", "1_000"] {
            assert_eq!(amount(&json!(none)), None, "{none}");
        }
        for too_much in ["1e40", "999999999999999999999999Ei", "0.0000000001", "1e999999999999"] {
            assert_eq!(amount(&json!(too_much)), None, "{too_much}");
        }
    }

    #[test]
    fn s6_only_where_the_profile_says_so() {
        let paths = ["/spec/reserved/*".to_owned()];
        let live = json!({"spec": {"reserved": {"memory": "1Gi", "cpu": "500m"}, "profile": "1"}});
        let desired = json!({"spec": {"reserved": {"memory": "1024Mi", "cpu": "600m"}, "profile": "1000m"}});
        assert_eq!(
            keep_spelling(&desired, &live, &paths),
            json!({"spec": {"reserved": {"memory": "1Gi", "cpu": "600m"}, "profile": "1000m"}})
        );
        assert_ne!(canonical(&live, &paths), canonical(&desired, &paths));
        assert_eq!(
            canonical(&live, &paths)["spec"]["reserved"],
            json!({"memory": "1073741824000000000n", "cpu": "500000000n"})
        );
    }
}
