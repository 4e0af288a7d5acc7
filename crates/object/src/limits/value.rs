//! The depth, the size and the number of values of a JSON value.

use serde_json::Value;

use super::{OBJECT_DEPTH, OBJECT_MAPS, OBJECT_VALUES};

/// The levels of maps and lists in `value`; a text or a number has none.
#[must_use]
pub fn depth(value: &Value) -> usize {
    // Not a recursion: callers ask this to learn whether a recursion would be safe.
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, above)) = open.pop() {
        match value {
            Value::Object(map) => {
                deepest = deepest.max(above + 1);
                open.extend(map.values().map(|member| (member, above + 1)));
            }
            Value::Array(list) => {
                deepest = deepest.max(above + 1);
                open.extend(list.iter().map(|member| (member, above + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// The number of values in `value`: itself and everything in it. The keys of maps are not counted.
#[must_use]
pub fn count(value: &Value) -> usize {
    let mut values = 0;
    each(value, |_| values += 1);
    values
}

/// Calls `look` with `value` and everything in it, without recursion.
fn each<'a>(value: &'a Value, mut look: impl FnMut(&'a Value)) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        look(value);
        match value {
            Value::Object(map) => open.extend(map.values()),
            Value::Array(list) => open.extend(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// How an object exceeds the bounds. Such an object is not compared, since part of it may have been
/// left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// It is nested deeper than [`OBJECT_DEPTH`].
    Depth,
    /// It has more than [`OBJECT_VALUES`] values, or more than [`OBJECT_MAPS`] maps and lists.
    Count,
}

/// How `object` exceeds the bounds, if it does.
#[must_use]
pub fn beyond(object: &Value) -> Option<Beyond> {
    if depth(object) > OBJECT_DEPTH {
        return Some(Beyond::Depth);
    }
    let (mut values, mut maps) = (0, 0);
    each(object, |value| {
        values += 1;
        maps += usize::from(value.is_object() || value.is_array());
    });
    (values > OBJECT_VALUES || maps > OBJECT_MAPS).then_some(Beyond::Count)
}

/// The size of `value` in bytes of JSON.
#[must_use]
pub fn size(value: &Value) -> usize {
    /// Counts the bytes written and keeps none.
    struct Count(usize);

    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_counted_wherever_they_are() {
        for (value, levels) in [
            (json!(1), 0),
            (json!("{[["), 0),
            (json!({}), 1),
            (json!([]), 1),
            (json!({"a": [1, {"b": {}}], "c": 1}), 4),
        ] {
            assert_eq!(depth(&value), levels, "{value}");
        }
        let mut deep = json!(1);
        for _ in 0..OBJECT_DEPTH {
            deep = json!([deep]);
        }
        assert_eq!(beyond(&deep), None);
        assert_eq!(beyond(&json!({"spec": deep})), Some(Beyond::Depth));
    }

    #[test]
    fn every_value_is_counted_with_what_it_is_in() {
        for (value, values) in [(json!(1), 1), (json!({}), 1), (json!([1, [2], {"a": {"b": null}}]), 7)] {
            assert_eq!(count(&value), values, "{value}");
        }
    }

    #[test]
    fn t8_an_object_has_so_many_values_and_so_many_maps() {
        for (value, is_beyond) in [
            (json!(vec![0; OBJECT_VALUES - 1]), None),
            (json!(vec![0; OBJECT_VALUES]), Some(Beyond::Count)),
            (json!(vec![json!({}); OBJECT_MAPS - 1]), None),
            (json!(vec![json!([]); OBJECT_MAPS]), Some(Beyond::Count)),
        ] {
            assert_eq!(beyond(&value), is_beyond);
        }
    }

    #[test]
    fn a_size_is_that_of_the_json() {
        for value in [json!(null), json!("ä\n\u{1}"), json!({"a": [1, 2.5, "x"], "b": {}})] {
            assert_eq!(size(&value), value.to_string().len(), "{value}");
        }
    }
}
