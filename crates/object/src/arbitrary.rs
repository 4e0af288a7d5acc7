//! Random objects for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value};

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        ".*",
        "[ -~\\n\\r\\t]{0,40}",
        "([a-c:# -]{0,6}\n){0,6}[ab]{0,3}",
        "[0-9eE.+xo_~nulltrueyesno-]{0,6}",
        "data:(text/plain)?(;base64)?,[a-zA-Z0-9%]{0,12}",
    ]
}

/// Objects such as APIs have, and some that no API has.
pub fn objects() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 40, 6, |inner| {
        let keys = prop_oneof![
            "[a-z]{1,3}",
            ".{0,4}",
            Just("source".to_owned()),
            Just("compression".to_owned()),
            Just("mode".to_owned()),
            Just("path".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,3}", tree, 1..6)
        .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
}
