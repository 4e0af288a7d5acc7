//! The places at which an object has fields that are not ours: whether there is a value, not which
//! one, since it may differ each time.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use object::fields::{self, FieldPath, Paths};
use object::{diff, pointer};

/// The leaves of `object` that are neither `ours` nor maintained by the server, written like
/// [`FieldPath`]. In a list of which some entries are ours, entries of others are named by the same
/// keys; members of a set are numbered.
#[must_use]
pub fn paths(object: &Value, ours: &[FieldPath]) -> BTreeSet<String> {
    let object = diff::without_noise(object);
    let owned: Paths = ours.iter().cloned().collect();
    let leaves = fields::leaves_around(&object, ours).into_iter().filter(|path| !owned.touches(path));
    let names: Vec<_> = ours.iter().map(ToString::to_string).collect();
    let lists = fields::foreign_entries(&object, ours);
    let entries = lists.iter().flat_map(|(list, entries)| {
        let keys = keys(list, &names);
        entries.iter().enumerate().flat_map(move |(index, entry)| entry_paths(list, &keys, index, entry))
    });
    leaves.map(|path| path.to_string()).chain(entries.collect::<Vec<_>>()).collect()
}

/// The paths not in `ours` at which `now` has a value and the preview, whose paths are `before`,
/// had none, or the reverse.
#[must_use]
pub fn differing(before: &BTreeSet<String>, now: &Value, ours: &[FieldPath]) -> Vec<FieldPath> {
    before.symmetric_difference(&paths(now, ours)).map(|path| FieldPath::parse(path)).collect()
}

/// The members that identify the entries of `list`, as one of our entries shows; none for a set.
fn keys(list: &str, ours: &[String]) -> Vec<String> {
    let segment = |path: &String| {
        let rest = path.strip_prefix(list)?.strip_prefix("/k:")?;
        let segment = rest.split('/').next()?.replace("~1", "/").replace("~0", "~");
        serde_json::from_str::<Map<String, Value>>(&segment).ok()
    };
    ours.iter().find_map(segment).map(|keys| keys.into_iter().map(|(key, _)| key).collect()).unwrap_or_default()
}

fn entry_paths(list: &str, keys: &[String], index: usize, entry: &Value) -> Vec<String> {
    let mut place = list.to_owned();
    if keys.is_empty() {
        pointer::push(&mut place, &format!("i:{index}"));
        return vec![place];
    }
    let identity: Map<_, _> = keys.iter().filter_map(|key| Some((key.clone(), entry.get(key)?.clone()))).collect();
    pointer::push(&mut place, &format!("k:{}", Value::Object(identity)));
    fields::leaves_of(entry).into_iter().map(|leaf| format!("{place}{leaf}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours() -> Vec<FieldPath> {
        ["/f:spec/f:size", "/f:spec/f:list/k:{\"name\":\"a~1b\"}/f:name", "/f:spec/f:set/v:\"x\""]
            .map(FieldPath::parse)
            .to_vec()
    }

    fn object() -> Value {
        json!({
            "apiVersion": "v1", "kind": "K",
            "metadata": {"name": "n", "uid": "u", "labels": {"theirs": "1"}},
            "spec": {"size": 1, "mode": "default", "list": [{"name": "a/b", "more": 1}, {"name": "c", "size": 2}], "set": ["x", "y"]},
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn everything_has_a_place_but_what_is_ours_and_what_the_server_keeps() {
        let found: Vec<_> = paths(&object(), &ours()).into_iter().collect();
        assert_eq!(
            found,
            [
                "/f:metadata/f:labels/f:theirs",
                "/f:spec/f:list/k:{\"name\":\"a~1b\"}/f:more",
                "/f:spec/f:list/k:{\"name\":\"c\"}/f:name",
                "/f:spec/f:list/k:{\"name\":\"c\"}/f:size",
                "/f:spec/f:mode",
                "/f:spec/f:set/i:0",
            ]
        );
    }

    #[test]
    fn t12_paths_that_are_new_or_gone_are_told_and_other_values_are_not() {
        let before = paths(&object(), &ours());
        let pointers =
            |now: &Value| -> Vec<_> { differing(&before, now, &ours()).iter().map(|path| path.pointer(now)).collect() };
        let mut now = object();
        now["metadata"]["labels"]["theirs"] = json!("2");
        now["metadata"]["resourceVersion"] = json!("7");
        now["spec"]["size"] = json!(9);
        now["spec"]["list"].as_array_mut().unwrap().reverse();
        assert!(pointers(&now).is_empty(), "{:?}", pointers(&now));
        now["metadata"]["annotations"] = json!({"added": "1"});
        now["spec"].as_object_mut().unwrap().remove("mode");
        now["spec"]["list"].as_array_mut().unwrap().push(json!({"name": "d"}));
        now["spec"]["set"] = json!(["x", "y", "z"]);
        assert_eq!(pointers(&now), ["/metadata/annotations/added", "/spec/list/2/name", "/spec/mode", "/spec/set/i:1"]);
    }
}
