//! The digest: vectors that no version may move, and an independent implementation of the canonical form.

use profile_sdk::{Body, Draft};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::{Input, TargetRef};
use crate::plan::compose::compose;
use crate::plan::diff::tests::objects;
use crate::plan::fields;
use crate::plan::item::{Effect, PlanItem, PoolEffect, Preview};
use crate::plan::{Basis, Plan};

/// Approvals of older versions name such digests.
#[test]
fn the_digest_is_that_of_the_canonical_form() {
    let value = json!({"b": [1, 2.0, "é"], "a": {"\u{1F600}": null, "\u{FB33}": true}});
    // Canonical: {"a":{"😀":null,"דּ":true},"b":[1,2,"é"]}, hashed with `sha256sum`.
    assert_eq!(sha256(&value), "d6dbb9cf499395b8890bddac9f792d7ccdb510e5c53ea91135ffd91b8866dac8");
}

/// RFC 8785, section 3.2.2 and appendix B.
#[test]
fn the_examples_of_the_rfc() {
    let canonical = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        String::from_utf8(serde_json_canonicalizer::to_vec(&value).unwrap()).unwrap()
    };
    assert_eq!(
        canonical(
            r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#
        ),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    for (bits, text) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
    ] {
        assert_eq!(canonical(&json!([f64::from_bits(bits)]).to_string()), format!("[{text}]"), "{bits:x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_implementation_gives_the_same_canonical_form(object in objects()) {
        let mut object = object;
        keep_large_integers(&mut object);
        let ours = String::from_utf8(serde_json_canonicalizer::to_vec(&object).unwrap()).unwrap();
        prop_assert_eq!(&ours, &json_canon::to_string(&object).unwrap());
        // It is JSON of the same value, and canonical already.
        let back: Value = serde_json::from_str(&ours).unwrap();
        prop_assert_eq!(&ours, &String::from_utf8(serde_json_canonicalizer::to_vec(&back).unwrap()).unwrap());
    }

    #[test]
    fn equal_worlds_have_equal_digests_and_one_value_makes_another(object in objects(), other in objects()) {
        let item = |desired: &Value| {
            let draft = Draft::new("x", Body::Ensure(desired.clone()), "is planned");
            let result = desired.clone();
            let preview = Preview::Known { adjusted: result.clone().into(), live: None, result, conflicts: Vec::new() };
            compose(&draft, None, "us", preview, Effect::default(), None).hash
        };
        let again: Value = serde_json::from_str(&object.to_string()).unwrap();
        prop_assert_eq!(item(&object), item(&again));
        prop_assert_eq!(object == other, item(&object) == item(&other));
    }

    #[test]
    fn neighbours_among_large_integers_have_digests_of_their_own(number in any::<i64>(), wide in any::<u64>()) {
        prop_assert_ne!(sha256(&json!([number])), sha256(&json!([number.wrapping_add(1)])));
        prop_assert_ne!(sha256(&json!([wide])), sha256(&json!([wide.wrapping_add(1)])));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn item(vector: &Value) -> PlanItem {
    let draft = Draft {
        quantities: vector["quantities"].as_array().into_iter().flatten().map(text).collect(),
        wave: u32::try_from(vector["wave"].as_u64().unwrap_or_default()).unwrap(),
        ..Draft::new(text(&vector["name"]), Body::Ensure(vector["desired"].clone()), "is planned")
    };
    let desired = vector["desired"].clone();
    let live = vector.get("live").cloned();
    let conflicts = vector["conflicts"].as_array().into_iter().flatten();
    let objects = [&vector["result"], live.as_ref().unwrap_or(&Value::Null)].map(fields::Lookup::of);
    let path = |pair: &Value| fields::from_cause(&text(&pair[0]), &objects);
    let conflicts = conflicts.map(|pair| (path(pair), text(&pair[1]))).collect();
    let three = PoolEffect { machines: 3, at_once: 1, ..PoolEffect::default() };
    let pools = vector["pools"].as_array().into_iter().flatten().map(|pool| (text(pool), three.clone())).collect();
    let preview = match vector.get("after") {
        Some(after) => Preview::Deferred { desired, after: text(after) },
        None => Preview::Known {
            adjusted: desired.into(),
            live: live.map(std::sync::Arc::new),
            result: vector["result"].clone(),
            conflicts,
        },
    };
    compose(&draft, None, "virt-advisor-operator/p", preview, Effect { pools, ..Effect::default() }, None)
}

/// Each vector is a plan with its digest. `scripts` outside of this project must be able to compute the same, and every later
/// version must: an approval in a repository names them.
#[test]
fn p3_committed_vectors_keep_their_digests() {
    let vectors: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() >= 4);
    for vector in vectors {
        let inputs = vector["inputs"].as_array().into_iter().flatten().map(|input| Input {
            target: TargetRef::of(&input["target"]),
            path: text(&input["path"]),
            value: input.get("value").cloned(),
            changed_from: None,
        });
        let basis = Basis {
            profile: text(&vector["profile"]),
            options: vector.get("options").cloned(),
            inputs: inputs.collect(),
            ..Basis::default()
        };
        let items: Vec<_> = vector["items"].as_array().unwrap().iter().map(item).collect();
        for (item, wanted) in items.iter().zip(vector["items"].as_array().unwrap()) {
            assert_eq!(json!(item.hash), wanted["hash"], "{}: item {}", vector["name"], item.name);
        }
        assert_eq!(json!(Plan::new(basis, items).digest), vector["digest"], "{}", vector["name"]);
    }
}
