//! Amounts and durations in whatever spelling.

use std::time::Duration;

use advisor_core::api::parse_duration;
use object::quantity::{amount, canonical, keep_spelling};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::harness::run;
use crate::values::{scalar, value};

fn quantity() -> impl Strategy<Value = Value> {
    let suffix = select(vec![
        "",
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "E",
        "Ki",
        "Mi",
        "Ei",
        "e3",
        "E-3",
        "e+2",
        "e-2147483648",
        "e2147483647",
        "x",
        "é",
        "e",
    ]);
    let number = select(vec![
        "0",
        "00",
        "1",
        "1.5",
        ".5",
        "5.",
        "-1",
        "+1",
        "-.0",
        "1024",
        "1000",
        "0.001",
        "1e3",
        "1.2.3",
        "170141183460469231731687303715884105727",
        "9".repeat(60).leak(),
    ]);
    prop_oneof![
        4 => (number, suffix).prop_map(|(number, suffix)| json!(format!("{number}{suffix}"))),
        1 => "[+-]?[0-9.]{0,40}[eE]?[+-]?[0-9]{0,12}[numkMGTPEi]{0,2}".prop_map(Value::from),
        1 => scalar(),
    ]
}

#[test]
fn one_amount_has_one_form_and_two_have_two() {
    run("quantities", (quantity(), quantity(), value()), |(one, other, more)| {
        let paths = ["/spec/a".to_owned(), "/spec/*".to_owned(), "/more/*/*".to_owned()];
        let object = |value: &Value| json!({"spec": {"a": value, "b": [value]}, "more": more});
        let (with_one, with_other) = (object(&one), object(&other));
        let (first, second) = (canonical(&with_one, &paths), canonical(&with_other, &paths));
        prop_assert_eq!(&canonical(&first, &paths), &first);
        let same = match (amount(&one), amount(&other)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => one == other,
            _ => false,
        };
        prop_assert_eq!(first.pointer("/spec/a") == second.pointer("/spec/a"), same);
        // What is kept is as it is there, where it is the same amount, and else as it is wanted.
        let kept = keep_spelling(&with_one, &with_other, &paths);
        let expected = if amount(&one).is_some() && same { &other } else { &one };
        prop_assert_eq!(kept.pointer("/spec/a"), Some(expected));
        Ok(())
    });
}

#[test]
fn a_duration_is_the_sum_of_its_parts() {
    let part = (0_u32..100_000, select(vec![("ms", 1_u64), ("s", 1000), ("m", 60_000), ("h", 3_600_000)]));
    let odd = prop_oneof![
        "[0-9.]{0,30}(ns|us|µs|ms|s|m|h|é|)",
        "([0-9]{1,25}(\\.[0-9]{0,9})?(ns|us|µs|ms|s|m|h)){0,4}",
        any::<String>()
    ];
    run("durations", (prop::collection::vec(part, 1..5), odd), |(parts, odd)| {
        let text: String = parts.iter().map(|(number, (unit, _))| format!("{number}{unit}")).collect();
        let sum: u64 = parts.iter().map(|(number, (_, unit))| u64::from(*number) * unit).sum();
        prop_assert_eq!(parse_duration(&text), Some(Duration::from_millis(sum)));
        if let Some(found) = parse_duration(&odd) {
            prop_assert!(odd.starts_with(|c: char| c.is_ascii_digit() || c == '.'), "{odd}");
            prop_assert!(found.as_millis().to_string().len() <= 32);
        }
        Ok(())
    });
}
