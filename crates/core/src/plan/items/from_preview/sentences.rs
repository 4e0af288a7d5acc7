//! Sentences of items: each is said where it is true, and nowhere else.
//!
//! Objects with random fields and owners are applied by the rules of server-side apply, on which
//! the code under test has no influence: a field that is desired is set and owned, one that is no
//! longer desired is given up, and removed if nobody else owns it
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/>).

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::Map;

use super::tests::{US, World, draft, entry, served};
use super::*;
use crate::plan::items::one_by_one;

const FIELDS: [&str; 3] = ["a", "b", "list"];
const MANAGERS: [&str; 3] = [US, "them", "their-operator"];

/// A field as it is: its value and who owns it.
type Field = (Value, Vec<&'static str>);
type Fields = BTreeMap<&'static str, Field>;

fn value(field: &str, number: u8) -> Value {
    match field {
        // An atomic list of one to three entries.
        "list" => json!((0..=number).collect::<Vec<_>>()),
        _ => json!(number),
    }
}

fn fields() -> impl Strategy<Value = Fields> {
    let owners = subsequence(MANAGERS.to_vec(), 0..=3);
    prop::collection::btree_map(select(FIELDS.to_vec()), (0_u8..3, owners), 0..=3).prop_map(|fields| {
        fields.into_iter().map(|(field, (number, owners))| (field, (value(field, number), owners))).collect()
    })
}

/// What applying `desired` with force makes of `live`.
fn applied_to(live: &Fields, desired: &BTreeMap<&'static str, Value>) -> Fields {
    let mut result = live.clone();
    for (field, (_, owners)) in &mut result {
        if !desired.contains_key(field) {
            owners.retain(|owner| *owner != US);
        }
    }
    result.retain(|field, (_, owners)| !owners.is_empty() || !live[field].1.contains(&US));
    for (field, value) in desired {
        let same = live.get(field).filter(|(before, _)| before == value);
        let mut owners = same.map(|(_, owners)| owners.clone()).unwrap_or_default();
        if !owners.contains(&US) {
            owners.push(US);
        }
        result.insert(*field, (value.clone(), owners));
    }
    result
}

fn object(fields: &Fields) -> Value {
    let spec: Map<_, _> = fields.iter().map(|(field, (value, _))| ((*field).to_owned(), value.clone())).collect();
    let entries = MANAGERS.iter().filter_map(|manager| {
        let of = |(field, (_, owners)): (&&'static str, &Field)| owners.contains(manager).then_some(*field);
        let owned: Vec<_> = fields.iter().filter_map(of).collect();
        let operation = if *manager == US { "Apply" } else { "Update" };
        (!owned.is_empty()).then(|| entry(manager, operation, &owned))
    });
    served(Value::Object(spec), "1", &entries.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_sentence_of_an_item_is_true(
        exists in any::<bool>(),
        live in fields(),
        desired in prop::collection::btree_map(select(FIELDS.to_vec()), 0_u8..3, 1..=3),
        pools in subsequence(vec![("infra", 2), ("worker", 3)], 0..=2),
    ) {
        let live = if exists { live } else { Fields::new() };
        let desired: BTreeMap<_, _> = desired.into_iter().map(|(field, number)| (field, value(field, number))).collect();
        let result = applied_to(&live, &desired);
        let taken: Vec<_> = desired
            .iter()
            .filter_map(|(field, value)| live.get(field).filter(|(before, _)| before != value).map(|(_, owners)| (*field, owners)))
            .flat_map(|(field, owners)| owners.iter().filter(|owner| **owner != US).map(move |owner| (field, *owner)))
            .collect();
        let world = World {
            draft: draft(json!(desired)),
            live: exists.then(|| object(&live)),
            result: object(&result),
            conflicts: taken.iter().map(|(field, owner)| (format!(".spec.{field}"), (*owner).to_owned())).collect(),
            effect: Effect { pools: one_by_one(&pools), ..Effect::default() },
        };
        let item = world.item();
        let message = &item.review.message;
        let values = |fields: &Fields| fields.iter().map(|(field, (value, _))| (*field, value.clone())).collect::<BTreeMap<_, _>>();
        let changes = !exists || values(&live) != values(&result);
        prop_assert_eq!(message.starts_with("No change. "), !changes, "{}", message);
        prop_assert!(message.contains("Does something."), "{}", message);
        let fields = if taken.len() == 1 { "field" } else { "fields" };
        prop_assert_eq!(message.contains(&format!("Takes {} {fields} over from ", taken.len())), !taken.is_empty(), "{}", message);
        prop_assert_eq!(message.contains(" over from "), !taken.is_empty(), "{}", message);
        let from = |owner: &str| taken.iter().any(|(_, other)| *other == owner);
        let named = message.split_once(" over from ").and_then(|(_, rest)| rest.split_once('.')).map_or("", |(named, _)| named);
        for owner in &MANAGERS[1..] {
            prop_assert_eq!(named.split(", ").any(|name| name == *owner), from(owner), "{}", message);
        }
        // Its name ends like that of a controller.
        let is_contested = from("their-operator");
        let told = message.contains("their-operator looks like a controller and will probably set its own value again.");
        prop_assert_eq!(told, is_contested, "{}", message);
        prop_assert_eq!(message.contains("looks like a controller"), is_contested, "{}", message);
        let entries = |fields: &Fields| fields.get("list").and_then(|(list, _)| list.as_array().cloned()).unwrap_or_default();
        let is_ours_alone = live.get("list").is_some_and(|(_, owners)| owners.as_slice() == [US]);
        let gone: Vec<_> = entries(&live).into_iter().filter(|entry| !entries(&result).contains(entry)).collect();
        let is_lost = desired.contains_key("list") && !is_ours_alone;
        for entry in entries(&live) {
            let told = message.contains(&format!("/spec/list: {entry}"));
            prop_assert_eq!(told, is_lost && gone.contains(&entry), "{} of {}", entry, message);
        }
        let is_said = message.contains("This removes entries that this configuration does not own alone: ");
        prop_assert_eq!(is_said, is_lost && !gone.is_empty(), "{}", message);
        for field in FIELDS {
            let stays = live.get(field).is_some_and(|(_, owners)| owners.contains(&US))
                && !desired.contains_key(field)
                && result.contains_key(field);
            prop_assert_eq!(message.contains(&format!("/spec/{field} stays ")), stays, "{}: {}", field, message);
        }
        for (pool, machines) in [("infra", 2), ("worker", 3)] {
            let reboots = changes && pools.contains(&(pool, machines));
            let told = message.contains(&format!("Reboots the {machines} machines of pool {pool}, one by one."));
            prop_assert_eq!(told, reboots, "{}", message);
        }
        // A sentence never ends in two full stops, nor lacks a space after one.
        prop_assert!(!message.contains("..") && !message.contains("  ") && message.ends_with('.'), "{}", message);
    }
}
