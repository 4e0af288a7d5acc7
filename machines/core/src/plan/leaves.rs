//! Comparing objects by what one of them says: what it leaves out may be anything.

use object::quantity;
use serde_json::Value;

/// A field with another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The field, for example `domain.devices.disks[root].bootOrder`.
    pub path: String,
    /// The value now.
    pub from: Option<Value>,
    /// The value to come.
    pub to: Option<Value>,
}

/// Whether `live` has everything that `desired` says. Lists must be the same but for fields that
/// others have added to their entries.
#[must_use]
pub fn covers(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired.iter().all(|(key, value)| {
            live.get(key).is_some_and(|live| is_same_amount(key, live, value) || covers(live, value))
        }),
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len() && live.iter().zip(desired).all(|(live, desired)| covers(live, desired))
        }
        (live, desired) => live == desired,
    }
}

/// KubeVirt writes amounts of memory in its own spelling: 8192Mi becomes 8Gi.
fn is_same_amount(key: &str, one: &Value, other: &Value) -> bool {
    key == "guest" && quantity::amount(one).is_some() && quantity::amount(one) == quantity::amount(other)
}

/// What `desired` says otherwise than `now`. Entries of lists are compared by name; one that only
/// `now` has is a change as well, because lists are written as a whole.
#[must_use]
pub fn changes(now: &Value, desired: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(now, desired, String::new(), &mut found);
    found
}

fn compare(now: &Value, desired: &Value, path: String, found: &mut Vec<Change>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (now, desired) {
        (Value::Object(now), Value::Object(desired)) => {
            for (key, value) in desired {
                match now.get(key) {
                    Some(now) if is_same_amount(key, now, value) => {}
                    Some(now) => compare(now, value, below(key), found),
                    None => found.push(Change { path: below(key), from: None, to: Some(value.clone()) }),
                }
            }
        }
        (Value::Array(now), Value::Array(desired))
            if desired.iter().chain(now).all(|entry| entry.get("name").is_some()) =>
        {
            for entry in desired {
                let name = entry["name"].as_str().unwrap_or_default();
                let path = format!("{path}[{name}]");
                match now.iter().find(|now| now["name"] == entry["name"]) {
                    Some(now) => compare(now, entry, path, found),
                    None => found.push(Change { path, from: None, to: Some(entry.clone()) }),
                }
            }
            for gone in now.iter().filter(|now| !desired.iter().any(|entry| entry["name"] == now["name"])) {
                let name = gone["name"].as_str().unwrap_or_default();
                found.push(Change { path: format!("{path}[{name}]"), from: Some(gone.clone()), to: None });
            }
        }
        (now, desired) if now == desired => {}
        (now, desired) => {
            let from = (!now.is_null()).then(|| now.clone());
            found.push(Change { path, from, to: Some(desired.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_may_be_anything() {
        let live = json!({"a": 1, "b": 2, "l": [{"name": "x", "added": true}]});
        assert!(covers(&live, &json!({"a": 1, "l": [{"name": "x"}]})));
        assert!(
            !covers(&live, &json!({"a": 2})) && !covers(&live, &json!({"c": 1})) && !covers(&live, &json!({"l": []}))
        );
        assert_eq!(changes(&live, &json!({"a": 1, "l": [{"name": "x"}]})), []);
    }

    #[test]
    fn entries_are_compared_by_name() {
        let now = json!({"l": [{"name": "x", "v": 1}, {"name": "y"}]});
        let found = changes(&now, &json!({"l": [{"name": "z"}, {"name": "x", "v": 2}]}));
        let paths: Vec<_> = found.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["l[z]", "l[x].v", "l[y]"]);
    }
}
