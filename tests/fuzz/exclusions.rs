//! The list of excluded objects.

use std::collections::BTreeSet;

use advisor_core::api::TargetRef;
use advisor_core::plan::overrides::Exclusions;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use crate::harness::run;
use crate::values::{text, value};

/// Whether `name` is what `pattern` means, place by place: as much work as both are long.
fn means(pattern: &str, name: &str) -> bool {
    let name: Vec<_> = name.chars().collect();
    let mut reached = BTreeSet::from([0]);
    for token in pattern.chars() {
        reached = match token {
            '*' => (reached.first().copied().unwrap_or(name.len() + 1)..=name.len()).collect(),
            token => reached
                .iter()
                .filter(|at| name.get(**at).is_some_and(|c| token == '?' || *c == token))
                .map(|at| at + 1)
                .collect(),
        };
    }
    reached.contains(&name.len())
}

fn target(name: &str) -> TargetRef {
    TargetRef {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: name.to_owned(),
        namespace: Some("n".to_owned()),
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let hostile =
        (1_usize..126, select(vec!["*a", "a*", "*?", "?*", "*ab", "*[!b]"]), select(vec!["", "b", "*", "*b"]));
    prop_oneof![
        "([ab?]|\\*[ab]){0,12}\\*?",
        hostile.prop_map(|(times, part, end)| format!("{}{end}", part.repeat(times))),
    ]
}

#[test]
fn an_object_is_excluded_by_what_its_pattern_means() {
    let names = prop_oneof![
        "[ab]{0,20}",
        (200_usize..=253).prop_map(|length| "a".repeat(length)),
        (200_usize..=252).prop_map(|length| format!("{}b", "a".repeat(length)))
    ];
    let odd = prop_oneof![
        text(),
        value().prop_map(|value| json!([{"kind": "ConfigMap", "name": value}]).to_string()),
        (text(), text()).prop_map(|(kind, name)| format!("- kind: {kind}\n  name: {name}\n")),
        (text(), text()).prop_map(|(name, namespace)| {
            json!([{"kind": "ConfigMap", "name": name, "namespace": namespace}]).to_string()
        }),
        (1_usize..40_000).prop_map(|levels| "[".repeat(levels)),
        (1_usize..3000).prop_map(|times| format!("- &a {{kind: A, name: b}}\n{}", "- *a\n".repeat(times))),
    ];
    run("exclusions", (pattern(), names, odd), |(pattern, name, odd)| {
        let list = json!([{"kind": "ConfigMap", "name": pattern}]).to_string();
        let found = Exclusions::parse(Some(&list)).excludes(&target(&name));
        if !pattern.contains('[') && !pattern.contains("**") && !pattern.is_empty() {
            prop_assert_eq!(found.map(|found| found.is_some()), Ok(means(&pattern, &name)), "{} {}", pattern, name);
        }
        let odd = Exclusions::parse(Some(&odd));
        if let Err(problem) = odd.excludes(&target(&name)) {
            prop_assert!(problem.len() < 2048, "{}", problem);
        }
        odd.unused(&[]).for_each(drop);
        Ok(())
    });
}
