//! What is shown on terminals: nothing is hidden, and two things that differ look different.

use advisor_core::plan::status::cut_diffs;
use object::diff;
use object::limits::{cut_text, is_plain, unambiguous, visible, within_line};
use proptest::prelude::*;
use serde_json::Value;

use crate::harness::run;
use crate::values::{mutated, shared_object, text, value};

#[test]
fn every_text_is_visible_and_of_its_length() {
    run("texts", (text(), text(), 3_usize..64), |(one, other, limit)| {
        for text in [&one, &other] {
            let shown = visible(text);
            prop_assert!(is_plain(&shown));
            prop_assert_eq!(visible(&shown), shown.clone());
            let line = within_line(text);
            prop_assert!(is_plain(&line) && !line.contains(['\n', '\t', '\r']));
            let short = cut_text(text, limit);
            prop_assert!(short.len() <= limit && (short == *text || short.ends_with('…')));
            prop_assert!(is_plain(&unambiguous(text)));
        }
        prop_assert_eq!(unambiguous(&one) == unambiguous(&other), one == other);
        Ok(())
    });
}

/// Two objects that are often equal, or nearly so.
fn pair() -> impl Strategy<Value = (Value, Value)> {
    prop_oneof![
        value().prop_map(|value| (value.clone(), value)),
        (value(), value()),
        (mutated(shared_object()), mutated(shared_object())),
        value().prop_flat_map(|value| (Just(value.clone()), mutated(value))),
    ]
}

#[test]
fn a_diff_is_empty_where_nothing_changes_and_only_there() {
    run("diffs", (pair(), 0_usize..2000), |((one, other), budget)| {
        let (shown, planned) = (diff::legible(one.clone()), diff::legible(other.clone()));
        let text = diff::unified("X", Some(&shown), Some(&planned));
        prop_assert_eq!(text.is_empty(), one == other, "{}", text);
        prop_assert!(is_plain(&text.replace('\r', "")), "{text:?}");
        let changes = diff::changes(&one, &other);
        prop_assert_eq!(changes.is_empty(), one == other);
        let (part, truncated) = cut_diffs::one(&text, budget);
        prop_assert!(cut_diffs::cost(&part) <= budget);
        prop_assert_eq!(truncated.is_none(), part == text);
        let parts = cut_diffs::to_budget(&[&text, &text, "x\n"], budget);
        prop_assert!(parts.iter().map(|(part, _)| cut_diffs::cost(part)).sum::<usize>() <= budget);
        Ok(())
    });
}

#[test]
fn what_is_shown_as_yaml_reads_as_it_is() {
    run("yaml", value(), |value| {
        let shown = diff::legible(value);
        let text = diff::yaml(&shown);
        let read: Result<Value, _> = serde_saphyr::from_str(&text);
        prop_assert_eq!(read.ok(), Some(shown), "{}", text);
        Ok(())
    });
}
