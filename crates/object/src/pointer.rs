//! RFC 6901 pointers: building them, and expanding patterns over an object.

use serde_json::Value;

/// Appends the member `name` to `pointer`.
pub fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

/// The names of the members that `pointer` passes through, outermost first.
pub fn segments(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"))
}

/// The pointers into `object` that match `pattern`, in which a segment `*` stands for every member
/// of a map or list. Without one, that is `pattern` itself if it has a value.
#[must_use]
pub fn expand(object: &Value, pattern: &str) -> Vec<String> {
    let mut found = vec![(String::new(), object)];
    for segment in pattern.split('/').skip(1) {
        found = found.into_iter().flat_map(|(pointer, value)| below(&pointer, value, segment)).collect();
    }
    found.into_iter().map(|(pointer, _)| pointer).collect()
}

fn below<'a>(pointer: &str, value: &'a Value, segment: &str) -> Vec<(String, &'a Value)> {
    let member = |name: &str, value: &'a Value| {
        let mut pointer = pointer.to_owned();
        push(&mut pointer, name);
        (pointer, value)
    };
    match (segment, value) {
        ("*", Value::Object(map)) => map.iter().map(|(name, value)| member(name, value)).collect(),
        ("*", Value::Array(list)) => {
            list.iter().enumerate().map(|(index, value)| member(&index.to_string(), value)).collect()
        }
        (segment, value) => {
            let found = value.pointer(&format!("/{segment}"));
            found.map(|found| (format!("{pointer}/{segment}"), found)).into_iter().collect()
        }
    }
}

/// Sets the value at `field`, and creates the maps above it.
pub fn put(desired: &mut Value, field: &str, value: Value) {
    let mut place = desired;
    for segment in segments(field) {
        if !place.is_object() {
            *place = Value::Object(serde_json::Map::new());
        }
        place = &mut place[segment];
    }
    *place = value;
}

/// Removes the field, and the maps above it that become empty.
pub fn take(desired: &mut Value, field: &str) {
    let mut field = field;
    while let Some((parent, key)) = field.rsplit_once('/') {
        let key = key.replace("~1", "/").replace("~0", "~");
        let Some(Value::Object(map)) = desired.pointer_mut(parent) else { return };
        if map.remove(&key).is_none() || !map.is_empty() {
            return;
        }
        field = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_every_member() {
        let object = json!({"a": {"x/y": 1, "z": [2, 3]}, "b": null});
        assert_eq!(expand(&object, "/a/*"), ["/a/x~1y", "/a/z"]);
        assert_eq!(expand(&object, "/a/z/*"), ["/a/z/0", "/a/z/1"]);
        assert_eq!(expand(&object, "/a/x~1y"), ["/a/x~1y"]);
        assert!(expand(&object, "/gone/*").is_empty());
        for pointer in expand(&object, "/a/*") {
            assert!(object.pointer(&pointer).is_some(), "{pointer}");
        }
    }
}
