//! Documents that administrators keep: whatever they look like, other lines stay as they are.

use advisor_core::api::TargetRef;
use advisor_core::plan::items::document::{into_document, remains};
use object::limits::{depth, size};
use profile_sdk::Document;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::harness::run;
use crate::values::text;

const FIELD: &str = "/data/config.yaml";
const DOCUMENTS: [Document; 3] = [
    Document { field: FIELD, settings: "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n" },
    Document { field: FIELD, settings: "a: 1\n" },
    Document { field: FIELD, settings: "nodeExporter:\n  a: 1\n  b: text\nc:\n  d: 2\n" },
];

/// A line as it may be in such a document, or what makes it none.
fn line() -> impl Strategy<Value = String> {
    let key = select(vec![
        "nodeExporter",
        "collectors",
        "ksmd",
        "enabled",
        "a",
        "b",
        "c",
        "d",
        "x",
        "\"a\"",
        "? a",
        "é",
        "<<",
        "- a",
        "-",
    ]);
    let rest = select(vec![
        ":",
        ": 1",
        ": true",
        ": false",
        ": {}",
        ": {} # c",
        ": {x: 1}",
        ": [1, 2]",
        ": |",
        ": >-",
        ": &n",
        ": *n",
        ": &n {y: 1}",
        ": \"t\"",
        ": 'é'",
        ": text",
        ": !!str 1",
        ":\t1",
        ":1",
        "",
        ": {",
        ": null",
        ": ~",
        ": 0644",
        " :  1",
        ": \u{a0}",
    ]);
    let other = select(vec![
        "# note",
        "",
        "---",
        "...",
        "%YAML 1.2",
        "\t",
        "}",
        "]",
        "  text",
        "&a",
        "*n",
        "\u{feff}",
        "é: ü",
        "---  # x",
        "--- {}",
    ]);
    let indent = select(vec![0, 0, 0, 2, 2, 2, 4, 4, 6, 1, 3]);
    prop_oneof![
        6 => (indent, key, rest).prop_map(|(indent, key, rest)| format!("{}{key}{rest}", " ".repeat(indent))),
        1 => other.prop_map(str::to_owned),
        1 => text(),
    ]
}

/// The lines of some settings as people write them, with other lines in between.
fn usual() -> impl Strategy<Value = String> {
    let lines = vec![
        "nodeExporter:",
        "  collectors:",
        "    ksmd:",
        "      enabled: true",
        "    cpu: {}",
        "  a: 1",
        "  z: [1]",
        "b: |",
        "  nodeExporter:",
        "c:",
        "  d: 2 # why",
    ];
    let end = select(vec!["\n", "\r\n"]);
    (prop::collection::vec(any::<bool>(), lines.len()), end).prop_map(move |(kept, end)| {
        lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| format!("{line}{end}")).collect()
    })
}

/// Anchors that stand for more and more, and what is nested deep.
fn bomb() -> impl Strategy<Value = String> {
    let anchors = (1_usize..12, 1_usize..12).prop_map(|(levels, times)| {
        let level = |level: usize| {
            let below = level.checked_sub(1).map_or_else(|| "x".to_owned(), |below| format!("*l{below}"));
            format!("l{level}: &l{level} [{}]\n", vec![below; times].join(", "))
        };
        (0..levels).map(level).collect()
    });
    let deep = (1_usize..3000, select(vec!["[", "{a: ", "- ", "? "]))
        .prop_map(|(levels, open)| format!("x: {}", open.repeat(levels)));
    let closed = (1_usize..3000).prop_map(|levels| format!("x: {}{}\n", "[".repeat(levels), "]".repeat(levels)));
    let maps =
        (1_usize..400).prop_map(|levels| (0..levels).map(|level| format!("{}k:\n", " ".repeat(level))).collect());
    prop_oneof![3 => anchors, 1 => deep, 1 => closed, 1 => maps]
}

fn parsed(text: &str) -> Option<Map<String, Value>> {
    match serde_saphyr::from_str::<Option<Value>>(text).ok()? {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(map)) => Some(map),
        Some(_) => None,
    }
}

fn merge(into: &mut Map<String, Value>, settings: &Map<String, Value>) {
    for (key, value) in settings {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(settings)) => merge(into, settings),
            _ => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

/// What no line of `settings` can have been: other lines, each as it is, in order.
fn others<'a>(text: &'a str, settings: &str) -> Vec<&'a str> {
    let keys: Vec<_> = settings.lines().filter_map(|line| line.trim().split(':').next()).collect();
    let is_ours = |line: &&str| {
        keys.iter().any(|key| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
    };
    text.split('\n').map(|line| line.trim_end_matches('\r')).filter(|line| !line.is_empty() && !is_ours(line)).collect()
}

fn object(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": {"config.yaml": text}})
}

#[test]
fn settings_are_merged_and_taken_out_and_no_other_line_is_touched() {
    let lines = (prop::collection::vec(line(), 0..12), select(vec!["\n", "\r\n"]), any::<bool>());
    let lines = lines.prop_map(|(lines, end, ends)| format!("{}{}", lines.join(end), if ends { end } else { "" }));
    let texts = prop_oneof![4 => lines, 4 => usual(), 1 => bomb()];
    run("documents", (texts, select(vec![0_usize, 1, 2])), |(before, document)| {
        let document = &DOCUMENTS[document];
        let settings = parsed(document.settings).unwrap();
        let (live, draft) = (object(&before), object(document.settings));
        let merged = match into_document(document, &draft, Some(&live), true) {
            Ok(merged) => merged,
            Err(problem) => {
                prop_assert!(problem.len() < 2048, "{}", problem);
                return Ok(());
            }
        };
        let after = merged.pointer(FIELD).and_then(Value::as_str).unwrap();
        let mut wanted = parsed(&before).unwrap();
        let whole = Value::Object(wanted.clone());
        prop_assert!(
            size(&whole) < 16 << 20 && depth(&whole) <= 100,
            "{} bytes, {} levels",
            size(&whole),
            depth(&whole)
        );
        merge(&mut wanted, &settings);
        prop_assert_eq!(parsed(after), Some(wanted));
        prop_assert_eq!(others(after, document.settings), others(&before, document.settings));
        let Ok(left) = remains(&TargetRef::of(&live), document, &object(after), false) else { return Ok(()) };
        let left = left.pointer(FIELD).and_then(Value::as_str).unwrap();
        prop_assert_eq!(others(left, document.settings), others(&before, document.settings));
        let is_new = settings.keys().all(|key| parsed(&before).is_some_and(|before| !before.contains_key(key)));
        if is_new {
            prop_assert_eq!(left.trim_end_matches(['\r', '\n']), before.trim_end_matches(['\r', '\n']));
        }
        Ok(())
    });
}
