//! Paths as the API server writes them in the causes of conflicts.

use serde_json::{Map, Value};

use super::{FieldPath, Lookup};

/// The path of `field`, which is the field of a conflict's cause, such as
/// `.spec.list[name="a"].size`.
///
/// Names are not quoted there and may contain dots, as the keys of labels do: where one of
/// `objects` has a member with such a name, the name is not split.
#[must_use]
pub fn from_cause(field: &str, objects: &[Lookup<'_>]) -> FieldPath {
    let mut segments = Vec::new();
    let mut values: Vec<_> = objects.iter().map(|object| (object, object.object)).collect();
    let mut rest = field;
    while !rest.is_empty() {
        let segment = if let Some(member) = rest.strip_prefix('.') {
            let end = values.iter().filter_map(|(_, value)| longest_member(value, member)).max();
            let end = end.unwrap_or_else(|| member.find(['.', '[']).unwrap_or(member.len()));
            rest = &member[end..];
            format!("f:{}", &member[..end])
        } else {
            let end = closing_bracket(rest);
            let segment = list_segment(rest[..end].trim_start_matches('['));
            rest = rest.get(end + 1..).unwrap_or_default();
            segment
        };
        values = values
            .into_iter()
            .filter_map(|(object, value)| Some((object, object.step(value, &segments, &segment)?.1)))
            .collect();
        segments.push(segment);
    }
    FieldPath(segments)
}

/// The length of the longest name of a member of `value` that `text` begins with.
fn longest_member(value: &Value, text: &str) -> Option<usize> {
    let members = value.as_object()?;
    let ends = text.match_indices(['.', '[']).map(|(end, _)| end).chain([text.len()]);
    ends.filter(|end| text.get(..*end).is_some_and(|name| members.contains_key(name))).max()
}

/// The position of the bracket that closes the first element of `text`; quoted brackets do not
/// count.
fn closing_bracket(text: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return index,
            _ => {}
        }
    }
    text.len()
}

/// The segment for what is between brackets: `name="a",port=80` are keys, `="a"` is a member of a
/// set, a bare number is an index.
fn list_segment(inner: &str) -> String {
    if let Some(value) = inner.strip_prefix('=') {
        return format!("v:{value}");
    }
    let mut keys = Map::new();
    let mut rest = inner;
    while let Some((key, after)) = rest.split_once('=') {
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { break };
        rest = after.get(values.byte_offset()..).unwrap_or_default().trim_start_matches(',');
        keys.insert(key.to_owned(), value);
    }
    if keys.is_empty() { format!("i:{inner}") } else { format!("k:{}", Value::Object(keys)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn causes_of_conflicts_name_the_same_paths() {
        let object = json!({
            "metadata": {"labels": {"a/b": "1", "example.dev/role": "x", "example": "y"}},
            "spec": {"mode": "A", "set": ["w", "x"], "list": [{"name": "a"}, {"name": "b", "size": 3}], "a": {"b": {}}, "a.b": {}},
        });
        for (cause, pointer) in [
            (".spec.mode", "/spec/mode"),
            (".metadata.labels.example.dev/role", "/metadata/labels/example.dev~1role"),
            (".metadata.labels.example", "/metadata/labels/example"),
            (".spec.a.b.c", "/spec/a.b/c"),
            (".spec.a.bc", "/spec/a/bc"),
            (".spec.list[name=\"b\"].size", "/spec/list/1/size"),
            (".spec.set[=\"x\"]", "/spec/set/1"),
            (".spec.list[name=\"odd]name\"]", "/spec/list/k:{\"name\":\"odd]name\"}"),
        ] {
            assert_eq!(from_cause(cause, &[Lookup::of(&object)]).pointer(&object), pointer, "{cause}");
        }
    }
}
