//! Digests of plans: vectors whose digests must never change.

use object::arbitrary::objects;
use object::fields;
use profile_sdk::{Body, Draft};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::api::{Input, TargetRef};
use crate::plan::items::from_preview::compose;
use crate::plan::items::{Effect, PlanItem, PoolEffect, Preview};
use crate::plan::{Basis, Plan};

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

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
    fn s23_no_object_however_odd_makes_anything_panic(object in objects(), other in objects()) {
        let draft = profile_sdk::Draft {
            sensitive: vec!["/a/*".into()],
            quantities: vec!["/b".into(), "/*/*".into()],
            unwanted: vec!["/c".into()],
            ..profile_sdk::Draft::new("x", profile_sdk::Body::Ensure(object.clone()), "is odd")
        };
        let lookups = [&object, &other].map(fields::Lookup::of);
        let path = |field| fields::from_cause(field, &lookups);
        let conflicts = vec![(path(".a["), String::new()), (path(".spec.x[name=\"y\"].z"), "m".to_owned())];
        let preview = Preview::Known { adjusted: object.clone().into(), live: Some(std::sync::Arc::new(other.clone())), result: object, conflicts };
        let item = compose(&draft, None, "us", preview, Effect::default(), None);
        prop_assert_eq!(item.hash.len(), 64);
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

/// Each vector is a plan with its digest. `scripts` outside this project must be able to compute
/// the same digest, and so must every later version: an approval in a repository names it.
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
