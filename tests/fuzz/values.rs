//! Inputs: texts, numbers and JSON as nobody expects them, and real objects with a few changes,
//! which get much further.

use object::limits::beyond;
use object::pointer;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// Texts that have surprised somebody somewhere.
const ODD: &[&str] = &[
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "a\nb",
    "a\n",
    "\n\n a",
    " a",
    "a ",
    "é",
    "€uro",
    "🦀",
    "\u{202e}x",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\\u{202e}",
    "\\",
    "\\\\",
    "~",
    "~0",
    "~1",
    "~01",
    "/",
    "//",
    "-",
    "--- ",
    "---",
    "...",
    "null",
    "true",
    "yes",
    "no",
    "on",
    "0644",
    "0o7",
    "1e3",
    "1_000",
    ".inf",
    ".nan",
    "+1",
    "-0",
    "0x1f",
    "1:30",
    "2026-01-01",
    "=",
    "<<",
    "*",
    "&a",
    "!!str",
    "# c",
    "a: b",
    "a #b",
    "- a",
    "? a",
    ": ",
    "|",
    ">",
    "|-",
    "'",
    "\"",
    "''",
    "{}",
    "[]",
    "{",
    "[",
    "%",
    "@",
    "`",
    "k:",
    "v:",
    "i:",
    "f:",
    ".",
    "k:{}",
    "f:é",
    "k:é",
    "é:x",
];

/// Texts: odd ones, plain words, and any.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => select(ODD).prop_map(str::to_owned),
        3 => "[a-z]{1,8}",
        1 => "[ -~\\n\\t]{0,20}",
        1 => any::<String>(),
        1 => (select(ODD), select(ODD)).prop_map(|(one, other)| format!("{one}{other}")),
    ]
}

/// Names as they are in objects, for members that meet.
pub fn name() -> impl Strategy<Value = String> {
    let usual = &[
        "spec",
        "metadata",
        "status",
        "data",
        "name",
        "labels",
        "annotations",
        "list",
        "a",
        "b",
        "c",
        "kind",
        "path",
        "contents",
    ];
    prop_oneof![4 => select(usual).prop_map(str::to_owned), 1 => text()]
}

/// Numbers at the ends of what can be written.
pub fn number() -> impl Strategy<Value = Value> {
    let odd = vec![
        json!(0),
        json!(1),
        json!(-1),
        json!(i64::MIN),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(u32::MAX),
        json!(0.1),
        json!(1.0),
        json!(1e300),
        json!(5e-324),
        json!(f64::MAX),
        json!(4_294_967_296_i64),
        json!(-62_135_596_800_i64),
    ];
    prop_oneof![2 => select(odd), 1 => any::<i64>().prop_map(Value::from), 1 => (0_i64..20).prop_map(Value::from)]
}

/// Values without parts.
pub fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from),]
}

/// Any JSON, a few levels deep.
pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// `inner`, that many levels deep in lists and maps.
pub fn nested(levels: usize, member: &str, inner: Value) -> Value {
    (0..levels).fold(inner, |inner, level| {
        if level % 2 == 0 {
            Value::Object(Map::from_iter([(member.to_owned(), inner)]))
        } else {
            Value::Array(vec![inner])
        }
    })
}

/// One change of a real object.
#[derive(Debug, Clone)]
enum Change {
    Replace(Value),
    Remove,
    Member(String, Value),
    Entry(Value),
    Double,
    Wrap(usize, String),
    Append(String),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        3 => (name(), value()).prop_map(|(name, value)| Change::Member(name, value)),
        2 => value().prop_map(Change::Entry),
        1 => Just(Change::Double),
        1 => (1_usize..60, name()).prop_map(|(levels, name)| Change::Wrap(levels, name)),
        2 => text().prop_map(Change::Append),
    ]
}

/// `base` with a few changes anywhere.
pub fn mutated(base: Value) -> impl Strategy<Value = Value> {
    few_changes().prop_map(move |changes| {
        let mut object = base.clone();
        for (at, change) in &changes {
            let before = object.clone();
            apply(&mut object, at, change);
            // What is nested deeper is left out where it enters.
            if beyond(&object).is_some() {
                object = before;
            }
        }
        object
    })
}

fn few_changes() -> impl Strategy<Value = Vec<(Index, Change)>> {
    prop::collection::vec((any::<Index>(), change()), 0..6)
}

fn apply(object: &mut Value, at: &Index, change: &Change) {
    let places = places(object);
    let Some(place) = object.pointer_mut(at.get::<String>(&places)) else { return };
    match (change, &mut *place) {
        (Change::Replace(value), place) => *place = value.clone(),
        (Change::Remove, place) => *place = Value::Null,
        (Change::Member(name, value), Value::Object(map)) => drop(map.insert(name.clone(), value.clone())),
        (Change::Entry(value), Value::Array(list)) => list.push(value.clone()),
        (Change::Double, Value::Array(list)) => list.extend(list.clone()),
        (Change::Wrap(levels, name), place) => *place = nested(*levels, name, place.take()),
        (Change::Append(text), Value::String(before)) => before.push_str(text),
        (Change::Member(..) | Change::Entry(_) | Change::Double | Change::Append(_), _) => {}
    }
}

/// The pointers to everything in `object`.
pub fn places(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), object)];
    while let Some((place, value)) = open.pop() {
        let below = |name: &str| {
            let mut below = place.clone();
            pointer::push(&mut below, name);
            below
        };
        match value {
            Value::Object(map) => open.extend(map.iter().map(|(name, value)| (below(name), value))),
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(index, value)| (below(&index.to_string()), value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        found.push(place);
    }
    found
}

/// An object that several managers have a part in, with lists and maps of every kind.
pub fn shared_object() -> Value {
    json!({
        "apiVersion": "example.dev/v1", "kind": "Widget",
        "metadata": {
            "name": "w", "namespace": "n", "uid": "u", "generation": 2, "resourceVersion": "7", "labels": {"a/b": "1", "example.dev/role": "x"},
            "annotations": {"note": "kept"},
            "managedFields": [
                {"manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:a/b": {}}},
                    "f:spec": {
                        "f:list": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:size": {}}},
                        "f:set": {"v:\"x\"": {}}, "f:empty": {".": {}}, "f:whole": {}, "f:deep": {"f:a": {"f:b": {"f:c": {}}}},
                    },
                    "f:status": {"f:phase": {}},
                }},
                {"manager": "them", "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:mode": {}, "f:whole": {}}}},
                {"manager": "widget-controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}},
            ],
        },
        "spec": {
            "mode": "A", "empty": {}, "set": ["w", "x"], "list": [{"name": "a"}, {"name": "b", "size": 3}], "whole": [{"name": "z"}, 1],
            "deep": {"a": {"b": {"c": "1Gi"}}}, "memory": "1Gi", "cpu": 0.5,
        },
        "status": {"phase": "Ready", "observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "message": "m"}]},
    })
}
