//! What somebody changed of what we had applied.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::digest;
use super::fields::{self, FieldPath};
use super::item::Moved;
use super::quantity::canonical;
use super::redact::Redactor;
use crate::api::Applied;

/// As many paths as are remembered of one object.
const PATH_LIMIT: usize = 1000;

/// How values are compared: amounts in one spelling, and of a map that is wanted empty only that it is there, since what
/// others put into it is theirs.
#[derive(Debug, Clone, Copy)]
pub struct Lens<'a> {
    /// What is applied.
    pub desired: &'a Value,
    /// Where quantities are.
    pub quantities: &'a [String],
    /// Whether paths are not remembered, since those into lists hold values, which may be secret ones.
    pub hides_paths: bool,
}

impl Lens<'_> {
    /// The values of `object` at `paths`, by path.
    #[must_use]
    pub fn view(&self, object: &Value, paths: &[FieldPath]) -> BTreeMap<String, Value> {
        let object = canonical(object, self.quantities);
        paths.iter().map(|path| (path.to_string(), self.value(path, &object))).collect()
    }

    fn value(&self, path: &FieldPath, object: &Value) -> Value {
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        match path.resolve(object) {
            Some(Value::Object(_)) if path.resolve(self.desired).is_some_and(is_empty) => Value::Object(Map::new()),
            found => found.cloned().unwrap_or_default(),
        }
    }
}

/// What is remembered of an object that was written: its fields and a digest of their values. `None` if the object has no
/// uid, which no server ever answers.
#[must_use]
pub fn applied_view(object: &Value, owned: &[FieldPath], lens: Lens<'_>) -> Option<Applied> {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str)?.to_owned();
    let view = lens.view(object, owned);
    let mut applied =
        Applied { uid, paths: view.keys().cloned().collect(), paths_hash: None, hash: digest::sha256(&view) };
    if applied.paths.len() > PATH_LIMIT || lens.hides_paths {
        without_paths(&mut applied);
    }
    Some(applied)
}

/// Leaves out the paths of `applied`, which may be thousands; they are recognised by the beginning of their digest.
pub(super) fn without_paths(applied: &mut Applied) {
    if applied.paths_hash.is_none() {
        let mut hash = digest::sha256(&applied.paths);
        hash.truncate(16);
        applied.paths_hash = Some(hash);
        applied.paths.clear();
        applied.hash.truncate(32);
    }
}

/// What differs in `live` from what `applied` remembers. `owned` are the fields that an apply owns now, `result` is what it
/// would make of the object.
pub(super) fn since(
    applied: &Applied,
    live: Option<&Value>,
    result: &Value,
    owned: &[FieldPath],
    lens: Lens<'_>,
    redactor: &Redactor,
) -> Vec<Moved> {
    let whole = |text: &str| vec![Moved { path: String::new(), text: text.to_owned() }];
    let Some(live) = live else {
        return whole("the object was deleted; the API server does not record by whom");
    };
    if live.pointer("/metadata/uid").and_then(Value::as_str) != Some(&applied.uid) {
        return whole("the object was deleted and created again");
    }
    let paths: Vec<_> = match &applied.paths_hash {
        None => applied.paths.iter().map(|path| FieldPath::parse(path)).collect(),
        Some(hash) => {
            let mut names: Vec<_> = owned.iter().map(ToString::to_string).collect();
            // As texts, like those that were remembered.
            names.sort();
            if !digest::sha256(&names).starts_with(hash) {
                // Another set of fields is wanted now: which of the old ones have moved can't be told.
                return Vec::new();
            }
            owned.to_vec()
        }
    };
    if digest::sha256(&lens.view(live, &paths)).starts_with(&applied.hash) {
        return Vec::new();
    }
    let (old, new) = (redactor.show(live), redactor.show(result));
    let owners = fields::Owners::of(live);
    let (before, after) = (canonical(live, lens.quantities), canonical(result, lens.quantities));
    let differing = owned.iter().chain(paths.iter().filter(|path| owned.binary_search(path).is_err()));
    let moved: Vec<_> = differing
        .filter(|path| lens.value(path, &before) != lens.value(path, &after))
        .map(|path| {
            let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
            let by = match owners.last_of(path).filter(|_| path.resolve(live).is_some()) {
                Some((manager, time)) if !time.is_empty() => format!("changed by {manager} at {time}"),
                Some((manager, _)) => format!("changed by {manager}"),
                None => "the API server does not record by whom".to_owned(),
            };
            let pointer = if lens.hides_paths { path.pointer_without_values(live) } else { path.pointer(live) };
            let text =
                format!("{pointer} is {} instead of {}, {by}", show(path.resolve(&old)), show(path.resolve(&new)));
            Moved { path: pointer, text }
        })
        .collect();
    if moved.is_empty() { whole("fields that were applied have other values now") } else { moved }
}
