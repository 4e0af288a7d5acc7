//! The difference between two objects: first as data, then as the text that a person reads.

use serde_json::Value;

use super::pointer;
use crate::limits::unambiguous;

mod lines;

/// Metadata that the server maintains and nobody decides.
const NOISE: [&str; 6] = ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"];
/// kubectl's copy of what it applied: it repeats every change and is not a change itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Unchanged lines shown before and after a change.
const CONTEXT: usize = 3;

/// `object` without status and without the metadata that the server maintains.
#[must_use]
pub fn without_noise(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in NOISE {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    object
}

/// One value that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// An RFC 6901 pointer.
    pub path: String,
    /// The value before, if there was one.
    pub from: Option<Value>,
    /// The value after, if there is one.
    pub to: Option<Value>,
}

/// Every value that differs between `from` and `to`, in order of paths. Lists are compared as a
/// whole.
#[must_use]
pub fn changes(from: &Value, to: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(from, to, &mut String::new(), &mut found);
    found
}

fn compare(from: &Value, to: &Value, path: &mut String, found: &mut Vec<FieldChange>) {
    match (from, to) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<_> = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let length = path.len();
                pointer::push(path, key);
                match (before.get(key), after.get(key)) {
                    (Some(from), Some(to)) => compare(from, to, path, found),
                    (from, to) => found.push(FieldChange { path: path.clone(), from: from.cloned(), to: to.cloned() }),
                }
                path.truncate(length);
            }
        }
        (from, to) if from == to => {}
        (from, to) => {
            found.push(FieldChange { path: path.clone(), from: Some(from.clone()), to: Some(to.clone()) });
        }
    }
}

/// `object` with an escape in place of each character that is not displayed as itself. Other
/// characters stay, and no two objects that differ look alike.
#[must_use]
pub fn legible(object: Value) -> Value {
    match object {
        Value::String(text) => Value::String(unambiguous(&text).into_owned()),
        Value::Array(list) => Value::Array(list.into_iter().map(legible).collect()),
        Value::Object(map) => {
            let members = map.into_iter().map(|(key, value)| (unambiguous(&key).into_owned(), legible(value)));
            Value::Object(members.collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// The unified diff between two objects as YAML, with three lines of context; empty if they are
/// equal. A `from` of `None` is an object that does not exist yet, a `to` of `None` one that is
/// deleted: then all lines are shown.
#[must_use]
pub fn unified(name: &str, from: Option<&Value>, to: Option<&Value>) -> String {
    with_context(CONTEXT, name, from, to)
}

/// Like [`unified`], without unchanged lines.
#[must_use]
pub fn changed_lines(name: &str, from: Option<&Value>, to: Option<&Value>) -> String {
    with_context(0, name, from, to)
}

/// Like [`unified`], for two objects that are already text from [`yaml`].
#[must_use]
pub fn of_texts(name: &str, from: Option<&str>, to: Option<&str>) -> String {
    between(CONTEXT, name, from, to)
}

fn with_context(context: usize, name: &str, from: Option<&Value>, to: Option<&Value>) -> String {
    let (before, after) = (from.map(yaml), to.map(yaml));
    between(context, name, before.as_deref(), after.as_deref())
}

fn between(context: usize, name: &str, from: Option<&str>, to: Option<&str>) -> String {
    if from.unwrap_or_default() == to.unwrap_or_default() {
        return String::new();
    }
    let label = |text: Option<&str>, side: &str| match text {
        Some(_) => format!("{side}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let names = [label(from, "live"), label(to, "planned")];
    lines::unified(names.each_ref().map(String::as_str), [from.unwrap_or_default(), to.unwrap_or_default()], context)
}

/// An object as YAML with sorted keys. A value that has no YAML form is shown as JSON, which is
/// valid YAML.
///
/// Multi-line texts are written as such, others on one line however long they are: a change of one
/// word stays a change of one line.
#[must_use]
pub fn yaml(object: &Value) -> String {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(object, options).unwrap_or_else(|_| format!("{object:#}\n"))
}

#[cfg(test)]
pub(crate) mod tests;
