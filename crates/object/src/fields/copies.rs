//! Copies many fields of one object into another.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{FieldPath, Lookup, step};

/// Copies fields from one object into another. Each entry of a list is found once, not once for
/// every path that leads into it.
#[derive(Debug)]
pub struct Copies<'a> {
    from: &'a Lookup<'a>,
    /// The index of each entry that fields were copied to, by its path.
    entries: BTreeMap<Vec<String>, usize>,
    /// The number of entries that each list had before, by its path.
    lists: BTreeMap<Vec<String>, usize>,
}

impl<'a> Copies<'a> {
    /// Copies the fields of the object that `from` looks up.
    #[must_use]
    pub fn of(from: &'a Lookup<'a>) -> Self {
        Self { from, entries: BTreeMap::new(), lists: BTreeMap::new() }
    }

    /// Copies the field at `path` into `to`: into the same maps, and in lists into the entry with
    /// the same keys. Creates those that do not exist.
    pub fn put(&mut self, path: &FieldPath, to: &mut Value) {
        let Some(there) = self.from.resolve(path) else { return };
        let mut place = to;
        for (depth, segment) in path.0.iter().enumerate() {
            if let Some(name) = segment.strip_prefix("f:") {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = &mut place[name];
                continue;
            }
            let Some(identity) = segment.get(2..).and_then(|text| serde_json::from_str(text).ok()) else { return };
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            let (above, known) = (path.0.get(..depth).unwrap_or_default(), path.0.get(..=depth).unwrap_or_default());
            let length = place.as_array().map_or(0, Vec::len);
            let before = *self.lists.entry(above.to_vec()).or_insert(length);
            // Only entries that were there before are searched: those added since are in `entries`.
            let search = before > 0 && !self.entries.contains_key(known);
            let there_before = if search { step(place, segment).map(|(index, _)| index) } else { None };
            let Value::Array(list) = place else { return };
            let index = *self.entries.entry(known.to_vec()).or_insert_with(|| {
                there_before.unwrap_or_else(|| {
                    list.push(identity);
                    list.len() - 1
                })
            });
            let Some(entry) = list.get_mut(index) else { return };
            place = entry;
        }
        *place = there.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_come_with_the_maps_and_entries_that_they_are_in() {
        let from = json!({"spec": {"list": [{"name": "a", "n": 1, "m": 2}, {"name": "b", "n": 3}], "set": ["x", "y"], "map": {"k": 1}}});
        let from = Lookup::of(&from);
        let mut copies = Copies::of(&from);
        let mut to = json!({"spec": {"map": {"other": 0}}});
        for path in [
            "/f:spec/f:list/k:{\"name\":\"b\"}/f:n",
            "/f:spec/f:list/k:{\"name\":\"a\"}/f:n",
            "/f:spec/f:list/k:{\"name\":\"a\"}/f:m",
            "/f:spec/f:set/v:\"y\"",
            "/f:spec/f:map/f:k",
            "/f:spec/f:gone",
        ] {
            copies.put(&FieldPath::parse(path), &mut to);
        }
        let wanted = json!({"spec": {"list": [{"name": "b", "n": 3}, {"name": "a", "n": 1, "m": 2}], "set": ["y"], "map": {"other": 0, "k": 1}}});
        assert_eq!(to, wanted);
    }
}
