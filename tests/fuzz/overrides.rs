//! `spec.overrides` and the annotations of an object that say the same.

use std::fmt::Display;

use advisor_core::api::{Override, TargetRef};
use advisor_core::plan::overrides::{IGNORE, MODE, Overrides, PATCH};
use advisor_core::plan::remedy::Remedy;
use object::limits::{OBJECT_DEPTH, OBJECT_SIZE, OPERATIONS, POINTER_SIZE, depth, size};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

use crate::harness::run;
use crate::values::{mutated, name, nested, places, shared_object, text, value};

/// The longest text that says what is wrong.
const TEXT: usize = 2048;

/// A pointer: to something that is there, with something after it, or any text.
#[derive(Debug, Clone)]
enum Place {
    There(Index, String),
    Any(String),
}

impl Place {
    fn of(&self, object: &Value) -> String {
        match self {
            Self::There(at, more) => format!("{}{more}", at.get(&places(object))),
            Self::Any(text) => text.clone(),
        }
    }
}

fn place() -> impl Strategy<Value = Place> {
    let more = prop_oneof![
        6 => Just(String::new()),
        2 => select(vec!["/-", "/0", "/1", "/01", "/-1", "/~", "/~2", "/~1", "/", "//", "/18446744073709551616"]).prop_map(str::to_owned),
        2 => name().prop_map(|name| format!("/{name}")),
        1 => (1_usize..130).prop_map(|levels| "/a".repeat(levels)),
        1 => (900_usize..1100).prop_map(|length| format!("/{}", "x".repeat(length))),
    ];
    prop_oneof![6 => (any::<Index>(), more).prop_map(|(at, more)| Place::There(at, more)), 1 => text().prop_map(Place::Any)]
}

/// One operation, its places still to be found.
#[derive(Debug, Clone)]
struct Step {
    op: &'static str,
    path: Place,
    from: Option<Place>,
    value: Option<Value>,
}

impl Step {
    fn of(&self, object: &Value) -> Value {
        let mut step = json!({"op": self.op, "path": self.path.of(object)});
        if let Some(from) = &self.from {
            step["from"] = json!(from.of(object));
        }
        if let Some(value) = &self.value {
            step["value"] = value.clone();
        }
        step
    }
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        6 => value(),
        1 => (1_usize..110).prop_map(|levels| nested(levels, "a", Value::Null)),
        1 => (1_usize..200_000).prop_map(|length| json!("v".repeat(length))),
    ];
    let op = select(vec!["add", "remove", "replace", "copy", "copy", "move", "test"]);
    (op, place(), prop::option::weighted(0.7, place()), prop::option::weighted(0.8, value))
        .prop_map(|(op, path, from, value)| Step { op, path, from, value })
}

/// All that is said of one object.
#[derive(Debug, Clone)]
struct Said {
    desired: Value,
    live: Option<Value>,
    steps: Vec<Step>,
    ignored: Vec<Place>,
    by_annotation: bool,
    odd: Option<String>,
}

fn said() -> impl Strategy<Value = Said> {
    let desired = json!({
        "apiVersion": "example.dev/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "labels": {"a/b": "1"}, "annotations": {"x": "y"}},
        "spec": {"mode": "B", "set": ["x"], "list": [{"name": "b", "size": 4}], "whole": [1], "deep": {"a": {"b": {"c": 1}}}},
    });
    let steps = prop::collection::vec(step(), 0..6);
    let many = (step(), 1_usize..220).prop_map(|(step, times)| vec![step; times]);
    (
        prop_oneof![3 => Just(desired.clone()).boxed(), 1 => mutated(desired).boxed()],
        prop::option::weighted(0.8, mutated(shared_object())),
        prop_oneof![6 => steps.boxed(), 1 => many.boxed()],
        prop::collection::vec(place(), 0..4),
        any::<bool>(),
        prop::option::weighted(0.1, text()),
    )
        .prop_map(|(desired, live, steps, ignored, by_annotation, odd)| Said {
            desired,
            live,
            steps,
            ignored,
            by_annotation,
            odd,
        })
}

impl Said {
    fn operations(&self) -> Value {
        self.steps.iter().map(|step| step.of(&self.desired)).collect()
    }

    /// What the annotations of the object say, or the entry of `spec.overrides`, if there can be
    /// such an entry.
    fn overrides(&self) -> Option<Result<Overrides, Remedy>> {
        let ignored: Vec<_> = self.ignored.iter().map(|place| place.of(&self.desired)).collect();
        if !self.by_annotation {
            let entry =
                json!({"target": {"kind": "Widget", "name": "w"}, "patch": self.operations(), "ignoreFields": ignored});
            let entry: Override = serde_json::from_value(entry).ok()?;
            return Some(Overrides::of(self.live.as_ref(), &[&entry]));
        }
        let mut live = self.live.clone()?;
        let metadata = live.get_mut("metadata")?.as_object_mut()?;
        let mut annotations = json!({PATCH: self.operations().to_string(), IGNORE: json!(ignored).to_string()});
        if let Some(odd) = &self.odd {
            let key = [PATCH, IGNORE, MODE].get(odd.len() % 3)?;
            annotations[*key] = json!(odd);
        }
        metadata.insert("annotations".to_owned(), annotations);
        Some(Overrides::of(Some(&live), &[]))
    }
}

fn short(text: &dyn Display) -> TestCaseResult {
    let text = text.to_string();
    prop_assert!(text.len() < TEXT, "{} bytes: {text}", text.len());
    Ok(())
}

#[test]
fn what_names_an_object_stays_and_what_is_made_of_it_is_bounded() {
    run("overrides", said(), |said| {
        let Some(overrides) = said.overrides() else { return Ok(()) };
        let adjusted = overrides.and_then(|all| all.adjust(&said.desired, said.live.as_ref(), "us", false));
        let adjusted = match adjusted {
            Ok(adjusted) => adjusted,
            Err(problem) => return short(&problem),
        };
        adjusted.notes.iter().try_for_each(|note| short(note))?;
        prop_assert_eq!(TargetRef::of(&adjusted.desired), TargetRef::of(&said.desired));
        // What was ours alone and is left to others stays as it is there.
        let live = said.live.clone().unwrap_or_default();
        let deepest = OBJECT_DEPTH.max(depth(&said.desired)).max(depth(&live));
        prop_assert!(depth(&adjusted.desired) <= deepest, "{} levels", depth(&adjusted.desired));
        let names = OPERATIONS * POINTER_SIZE;
        let largest = OBJECT_SIZE.max(size(&said.desired)) + size(&live) + names;
        prop_assert!(size(&adjusted.desired) <= largest, "{} bytes", size(&adjusted.desired));
        Ok(())
    });
}

#[test]
fn what_is_patched_is_what_rfc_6902_makes_of_it() {
    run("overrides-unlike", said(), |mut said| {
        said.live = None;
        said.by_annotation = false;
        said.ignored.clear();
        let Some(Ok(overrides)) = said.overrides() else { return Ok(()) };
        let Ok(adjusted) = overrides.adjust(&said.desired, None, "us", false) else { return Ok(()) };
        let operations: Vec<json_patch::PatchOperation> = serde_json::from_value(said.operations()).unwrap();
        let mut expected = said.desired.clone();
        prop_assert!(json_patch::patch(&mut expected, &operations).is_ok());
        prop_assert_eq!(&adjusted.desired, &expected);
        let powerful = overrides.adjust(&said.desired, None, "us", true);
        prop_assert_eq!(powerful.is_err(), !operations.is_empty());
        Ok(())
    });
}
