//! Paths of fields: pointers, `metadata.managedFields`, and what a conflict says.

use std::collections::BTreeSet;

use object::fields::{self, Copies, FieldPath, Lookup, Owners, Paths};
use object::pointer;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::harness::run;
use crate::values::{mutated, name, places, scalar, shared_object, text, value};

fn segment() -> impl Strategy<Value = String> {
    let odd = select(vec![
        "k:",
        "v:",
        "i:",
        "f:",
        ".",
        "",
        "k:{}",
        "k:[]",
        "k:1",
        "v:null",
        "v:{\"a\":",
        "é",
        "k:é",
        "kéé",
        "i:0",
        "x",
    ]);
    prop_oneof![
        5 => name().prop_map(|name| format!("f:{name}")),
        2 => (name(), scalar()).prop_map(|(name, value)| format!("k:{}", Value::Object(Map::from_iter([(name, value)])))),
        1 => value().prop_map(|value| format!("v:{value}")),
        1 => odd.prop_map(str::to_owned),
        1 => text(),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![4 => Just(Value::Object(Map::new())), 1 => scalar()];
    let fields = leaf.prop_recursive(5, 24, 4, |inner| {
        prop::collection::btree_map(segment(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
    });
    let deep = (segment(), 1_usize..100).prop_map(|(segment, levels)| {
        (0..levels)
            .fold(Value::Object(Map::new()), |inner, _| Value::Object(Map::from_iter([(segment.clone(), inner)])))
    });
    let manager = prop_oneof![3 => select(vec!["us", "them", "widget-controller", "kubectl-edit"]).prop_map(str::to_owned), 1 => text()];
    let operation = select(vec!["Apply", "Apply", "Update", ""]);
    let subresource = select(vec!["", "", "status"]);
    let fields = prop_oneof![4 => fields, 1 => deep, 1 => value()];
    (manager, operation, subresource, text(), fields).prop_map(|(manager, operation, subresource, time, fields)| {
        serde_json::json!({"manager": manager, "operation": operation, "subresource": subresource, "time": time, "fieldsV1": fields})
    })
}

fn object() -> impl Strategy<Value = Value> {
    (mutated(shared_object()), prop::collection::vec(entry(), 0..3)).prop_map(|(mut object, entries)| {
        let known = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        if let Some(known) = known {
            known.extend(entries);
        }
        object
    })
}

/// Whether one of the paths is the other, or part of it, by how they are written.
fn touch(one: &FieldPath, other: &FieldPath) -> bool {
    let (one, other) = (format!("{one}/"), format!("{other}/"));
    one.starts_with(&other) || other.starts_with(&one)
}

#[test]
fn a_path_is_what_is_read_of_what_it_writes() {
    let pointers = prop::collection::vec(name(), 0..6);
    run("paths", (pointers, text(), object(), object()), |(names, text, from, to)| {
        let mut written = String::new();
        names.iter().for_each(|name| pointer::push(&mut written, name));
        let path = FieldPath::of_pointer(&written);
        prop_assert_eq!(&path.within_maps(), &written);
        prop_assert_eq!(&pointer::segments(&written).collect::<Vec<_>>(), &names);
        let parsed = FieldPath::parse(&text);
        prop_assert_eq!(&FieldPath::parse(&parsed.to_string()), &parsed);
        for path in fields::applied_by(&from, "us").iter().chain([&path, &parsed]) {
            prop_assert_eq!(&FieldPath::parse(&path.to_string()), path);
            let _ = (path.dotted(), path.names_values(), path.pointer_without_values(&to));
            let mut copied = to.clone();
            Copies::of(&Lookup::of(&from)).put(path, &mut copied);
            let Some(there) = path.resolve(&from) else {
                prop_assert_eq!(&copied, &to, "{}", path);
                continue;
            };
            prop_assert_eq!(from.pointer(&path.pointer(&from)), Some(there), "{}", path);
            prop_assert_eq!(path.resolve(&copied), Some(there), "{}", path);
        }
        Ok(())
    });
}

#[test]
fn pointers_find_what_they_are_made_from() {
    run(
        "pointers",
        (object(), value(), text(), prop::collection::vec(prop_oneof![name(), Just("*".to_owned())], 0..5)),
        |(object, value, text, pattern)| {
            let all = places(&object);
            for place in &all {
                prop_assert!(object.pointer(place).is_some());
                let expanded = pointer::expand(&object, place);
                prop_assert!(expanded.contains(place) || place.contains('*'), "{place}: {expanded:?}");
                let mut changed = object.clone();
                if place.split('/').all(|name| name.parse::<usize>().is_err()) {
                    pointer::put(&mut changed, place, value.clone());
                    prop_assert_eq!(changed.pointer(place), Some(&value));
                    pointer::take(&mut changed, place);
                    prop_assert!(place.is_empty() || changed.pointer(place).is_none(), "{place}");
                }
            }
            let mut pointer = String::new();
            pattern.iter().for_each(|name| pointer::push(&mut pointer, name));
            for found in pointer::expand(&object, &pointer) {
                prop_assert!(object.pointer(&found).is_some(), "{found}");
            }
            let mut changed = object.clone();
            let _ = pointer::expand(&object, &text);
            pointer::take(&mut changed, &text);
            pointer::put(&mut changed, &text, value);
            Ok(())
        },
    );
}

#[test]
fn owners_are_among_the_managers_and_own_what_is_theirs() {
    run("managed-fields", (object(), object()), |(object, result)| {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
        let managers: BTreeSet<_> = entries.iter().map(|entry| entry["manager"].as_str().unwrap_or_default()).collect();
        let ours = fields::applied_by(&object, "us");
        prop_assert!(ours.is_sorted() && ours.iter().collect::<BTreeSet<_>>().len() == ours.len());
        let alone = fields::owned_alone_by(&object, "us");
        prop_assert!(alone.iter().all(|path| ours.contains(path)));
        let owners = Owners::of(&object);
        let known: Paths = ours.iter().cloned().collect();
        let others = fields::leaves_of(&result);
        for path in ours.iter().chain(&others) {
            prop_assert!(owners.others_of(path, "us").iter().all(|manager| managers.contains(manager)));
            prop_assert!(owners.last_of(path).is_none_or(|(manager, _)| managers.contains(manager)));
            prop_assert_eq!(known.touches(path), ours.iter().any(|other| touch(other, path)), "{}", path);
        }
        prop_assert!(fields::sharers(&object, "us").iter().all(|manager| managers.contains(manager)));
        let _ = managers.iter().filter(|manager| fields::is_controller(&object, manager)).count();
        for (list, entries) in fields::foreign_entries(&object, &ours) {
            let there = FieldPath::parse(&list).resolve(&object).and_then(Value::as_array).map_or(0, Vec::len);
            prop_assert!(entries.len() <= there, "{list}");
        }
        for path in fields::leaves_around(&object, &ours).iter().chain(&fields::leaves_of(&object)) {
            prop_assert!(path.resolve(&object).is_some(), "{path}");
        }
        let view = fields::view(&object, &ours);
        prop_assert_eq!(view.len(), ours.len());
        for (path, manager) in fields::conflicting(&object, &result, "us") {
            prop_assert!(managers.contains(manager.as_str()));
            prop_assert!(path.resolve(&object) != path.resolve(&result));
        }
        prop_assert!(!fields::is_contested(&object, &object, "us"));
        Ok(())
    });
}

#[test]
fn a_cause_of_a_conflict_is_a_path_whatever_it_says() {
    let part = prop_oneof![
        3 => name().prop_map(|name| format!(".{name}")),
        2 => (name(), scalar()).prop_map(|(name, value)| format!("[{name}={value}]")),
        1 => scalar().prop_map(|value| format!("[={value}]")),
        1 => select(vec!["[", "]", "[]", "[[", ".", "..", "[\"", "[a=\"é]\"", "[a=1,b=\"x\",c]", "é", "[=]", "[=é", "[0]", "\\", "\"]"]).prop_map(str::to_owned),
        1 => text(),
    ];
    run("causes", (prop::collection::vec(part, 0..8), object(), object()), |(parts, live, result)| {
        let cause = parts.concat();
        let path = fields::from_cause(&cause, &[Lookup::of(&live), Lookup::of(&result)]);
        prop_assert_eq!(&FieldPath::parse(&path.to_string()), &path);
        let written = path.to_string();
        prop_assert!(
            written.len() <= 3 * cause.len() + 16 * (1 + cause.len()),
            "{} bytes of {}",
            written.len(),
            cause.len()
        );
        let _ = (path.pointer(&live), path.resolve(&live), path.pointer_without_values(&result));
        Ok(())
    });
}
