//! Looks up many fields of one object: each of its lists is indexed once, not searched for every
//! path that leads into it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FieldPath;

/// The most sets of keys by which the entries of one list are indexed. A kind uses one set for a
/// list, but `managedFields` that were edited by hand may name any: entries named by further sets
/// are not found.
const KEY_SETS: usize = 8;

/// An object and an index of its lists, for looking up many paths.
#[derive(Debug)]
pub struct Lookup<'a> {
    pub(super) object: &'a Value,
    /// The indexes made so far, by the path of the list.
    lists: RefCell<BTreeMap<Vec<String>, List>>,
}

/// The indexes of one list. Of equal entries, the first is found.
#[derive(Debug, Default)]
struct List {
    /// Entries by their value.
    by_value: Option<EntryPlaces>,
    /// Entries by the values of their keys; one index for each set of key names.
    by_keys: BTreeMap<Vec<String>, EntryPlaces>,
}

type EntryPlaces = BTreeMap<String, usize>;

impl<'a> Lookup<'a> {
    /// Looks up fields of `object`.
    #[must_use]
    pub fn of(object: &'a Value) -> Self {
        Self { object, lists: RefCell::default() }
    }

    /// Like [`FieldPath::resolve`].
    #[must_use]
    pub fn resolve(&self, path: &FieldPath) -> Option<&'a Value> {
        let mut segments = path.0.iter().enumerate();
        segments.try_fold(self.object, |value, (depth, segment)| {
            let above = path.0.get(..depth).unwrap_or_default();
            Some(self.step(value, above, segment)?.1)
        })
    }

    /// Like [`FieldPath::pointer`].
    #[must_use]
    pub fn pointer(&self, path: &FieldPath) -> String {
        path.written(self.object, |value, above, segment| self.step(value, above, segment), str::to_owned)
    }

    /// Like [`FieldPath::pointer_without_values`].
    #[must_use]
    pub fn pointer_without_values(&self, path: &FieldPath) -> String {
        path.written(self.object, |value, above, segment| self.step(value, above, segment), super::an_entry)
    }

    /// The value that `segment` leads to from `value`, whose path is `above`; with its index if it
    /// is in a list.
    pub(super) fn step(&self, value: &'a Value, above: &[String], segment: &str) -> Option<(usize, &'a Value)> {
        if let Some(name) = segment.strip_prefix("f:") {
            return value.get(name).map(|value| (0, value));
        }
        let list = value.as_array()?;
        let wanted: Value = serde_json::from_str(segment.get(2..)?).ok()?;
        let mut lists = self.lists.borrow_mut();
        if !lists.contains_key(above) {
            lists.insert(above.to_vec(), List::default());
        }
        let known = lists.get_mut(above)?;
        let index = match (segment.get(..2)?, &wanted) {
            ("k:", Value::Object(keys)) => known.with_keys(list, keys)?,
            ("v:", wanted) => known.with_value(list, wanted)?,
            _ => return None,
        };
        list.get(index).map(|value| (index, value))
    }
}

impl List {
    fn with_value(&mut self, list: &[Value], wanted: &Value) -> Option<usize> {
        let places = self.by_value.get_or_insert_with(|| places(list, |entry| Some(entry.to_string())));
        places.get(&wanted.to_string()).copied()
    }

    fn with_keys(&mut self, list: &[Value], keys: &Map<String, Value>) -> Option<usize> {
        let names: Vec<_> = keys.keys().cloned().collect();
        if !self.by_keys.contains_key(&names) {
            if self.by_keys.len() >= KEY_SETS {
                return None;
            }
            let found = places(list, |entry| text(names.iter().map(|name| entry.get(name))));
            self.by_keys.insert(names.clone(), found);
        }
        self.by_keys.get(&names)?.get(&text(keys.values().map(Some))?).copied()
    }
}

/// The index of each entry of `list` that has a name, by that name.
fn places(list: &[Value], name: impl Fn(&Value) -> Option<String>) -> EntryPlaces {
    let mut found = EntryPlaces::new();
    for (index, entry) in list.iter().enumerate() {
        if let Some(name) = name(entry) {
            found.entry(name).or_insert(index);
        }
    }
    found
}

/// The values as one text, if all are present. Line breaks separate them: JSON on one line contains
/// none.
fn text<'v>(values: impl Iterator<Item = Option<&'v Value>>) -> Option<String> {
    let texts: Option<Vec<_>> = values.map(|value| value.map(Value::to_string)).collect();
    texts.map(|texts| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_lookup_finds_what_each_path_finds_by_itself() {
        let object = json!({
            "list": [
                {"name": "a", "port": 1}, {"name": "a", "port": 2, "sub": [{"id": 1, "x": {}}]}, {"name": "b"},
                {"port": 2}, 5, null, {"key": {"b": 1, "a": [2]}}, {"name": "a\"\nb"}, {"name": null},
            ],
            "set": ["x", 1, "1", 1.0, {"b": 1, "a": 2}, "x", null], "map": {"k:{}": 1}, "text": "x",
        });
        let lookup = Lookup::of(&object);
        for segments in [
            vec![],
            vec!["f:list"],
            vec!["f:list", "k:{\"name\":\"a\"}"],
            vec!["f:list", "k:{\"name\":\"a\",\"port\":2}", "f:sub", "k:{\"id\":1}", "f:x"],
            vec!["f:list", "k:{\"port\":2,\"name\":\"a\"}"],
            vec!["f:list", "k:{\"port\":2}"],
            vec!["f:list", "k:{\"name\":\"b\",\"port\":2}"],
            vec!["f:list", "k:{\"name\":\"gone\"}", "f:x"],
            vec!["f:list", "k:{\"key\":{\"a\":[2],\"b\":1}}"],
            vec!["f:list", "k:{\"name\":\"a\\\"\\nb\"}"],
            vec!["f:list", "k:{\"name\":null}"],
            vec!["f:list", "k:{}"],
            vec!["f:list", "k:5"],
            vec!["f:list", "v:5"],
            vec!["f:list", "i:1"],
            vec!["f:list", "k:{broken"],
            vec!["f:list", ""],
            vec!["f:list", "ä"],
            vec!["f:set", "v:\"x\""],
            vec!["f:set", "v:1"],
            vec!["f:set", "v:1.0"],
            vec!["f:set", "v:\"1\""],
            vec!["f:set", "v:{\"a\":2,\"b\":1}"],
            vec!["f:set", "v:null"],
            vec!["f:set", "v:2"],
            vec!["f:map", "k:{}"],
            vec!["f:text", "v:\"x\""],
            vec!["f:gone", "f:below"],
        ] {
            let path = FieldPath(segments.into_iter().map(str::to_owned).collect());
            assert_eq!(lookup.resolve(&path), path.resolve(&object), "{path}");
            assert_eq!(lookup.pointer(&path), path.pointer(&object), "{path}");
            assert_eq!(lookup.pointer_without_values(&path), path.pointer_without_values(&object), "{path}");
        }
    }

    #[test]
    fn of_a_list_with_more_sets_of_keys_than_any_kind_has_nothing_more_is_found() {
        let object = json!({"list": [(0..20).map(|n| (format!("k{n:02}"), json!(1))).collect::<Map<_, _>>()]});
        let lookup = Lookup::of(&object);
        let found = (0..20).map(|n| FieldPath(vec!["f:list".into(), format!("k:{{\"k{n:02}\":1}}")]));
        assert_eq!(found.filter(|path| lookup.resolve(path).is_some()).count(), KEY_SETS);
    }
}
