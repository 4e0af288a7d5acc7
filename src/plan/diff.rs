//! What changes: first as data, then as the text that a person reads.

use serde_json::Value;
use similar::TextDiff;

/// Metadata that the server keeps and nobody decides.
const NOISE: [&str; 6] = ["managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"];
/// kubectl's copy of what it applied; it repeats every change and is no change itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// `object` without what the server keeps for itself.
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
pub struct Change {
    /// An RFC 6901 pointer.
    pub path: String,
    /// The value before, if there was one.
    pub from: Option<Value>,
    /// The value after, if there is one.
    pub to: Option<Value>,
}

/// Every value that differs between `from` and `to`, in order of paths. Lists are compared as wholes.
#[must_use]
pub fn changes(from: &Value, to: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(from, to, &mut String::new(), &mut found);
    found
}

fn compare(from: &Value, to: &Value, path: &mut String, found: &mut Vec<Change>) {
    match (from, to) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<_> = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let length = path.len();
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                match (before.get(key), after.get(key)) {
                    (Some(from), Some(to)) => compare(from, to, path, found),
                    (from, to) => found.push(Change { path: path.clone(), from: from.cloned(), to: to.cloned() }),
                }
                path.truncate(length);
            }
        }
        (from, to) if from == to => {}
        (from, to) => {
            found.push(Change { path: path.clone(), from: Some(from.clone()), to: Some(to.clone()) });
        }
    }
}

/// Members of lists that `from` has and `to` has not, as (pointer to the list, member). Where a list is atomic and not ours
/// these are entries of others that an apply silently replaces.
#[must_use]
pub fn lost_entries(from: &Value, to: &Value) -> Vec<(String, Value)> {
    let lists = changes(from, to).into_iter().filter_map(|change| match (change.from, change.to) {
        (Some(Value::Array(before)), Some(Value::Array(after))) => Some((change.path, before, after)),
        _ => None,
    });
    lists
        .flat_map(|(path, before, after)| {
            let lost = before.into_iter().filter(move |entry| !after.contains(entry));
            lost.map(move |entry| (path.clone(), entry)).collect::<Vec<_>>()
        })
        .collect()
}

/// The unified diff between two objects as YAML, with three lines of context; empty if they are equal. `None` for `from`
/// is an object that does not exist: all lines are shown.
#[must_use]
pub fn unified(name: &str, from: Option<&Value>, to: &Value) -> String {
    let before = from.map(yaml).unwrap_or_default();
    let after = yaml(to);
    if before == after {
        return String::new();
    }
    let old_name = if from.is_some() { format!("live/{name}") } else { "/dev/null".to_owned() };
    TextDiff::from_lines(before.as_str(), after.as_str())
        .unified_diff()
        .context_radius(3)
        .header(&old_name, &format!("planned/{name}"))
        .to_string()
}

/// An object as YAML with sorted keys. A value that has no YAML form is shown as JSON, which is YAML too.
fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).unwrap_or_else(|_| format!("{object:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn server_noise_is_no_change() {
        let noisy = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "x", "managedFields": [], "annotations": {LAST_APPLIED: "{}"}}, "status": {"a": 1}, "spec": {}});
        assert_eq!(without_noise(&noisy), json!({"metadata": {"name": "a"}, "spec": {}}));
    }

    #[test]
    fn changes_name_every_value() {
        let from = json!({"a": 1, "b": {"c/d": [1]}, "gone": true});
        let to = json!({"a": 1, "b": {"c/d": [2]}, "new": {}});
        let paths: Vec<_> = changes(&from, &to).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["/b/c~1d", "/gone", "/new"]);
        assert_eq!(lost_entries(&from, &to), [("/b/c~1d".to_owned(), json!(1))]);
    }

    #[test]
    fn the_text_is_a_unified_diff() {
        let from = json!({"spec": {"interval": 3600, "mode": "Automatic"}});
        let to = json!({"spec": {"interval": 60, "mode": "Automatic"}});
        assert_eq!(
            unified("X", Some(&from), &to),
            "--- live/X\n+++ planned/X\n@@ -1,3 +1,3 @@\n spec:\n-  interval: 3600\n+  interval: 60\n   mode: Automatic\n"
        );
        assert_eq!(unified("X", Some(&to), &to), "");
        let new = unified("X", None, &json!({"a": "line\n\nline"}));
        assert!(new.starts_with("--- /dev/null\n+++ planned/X\n@@ -0,0 +1,"), "{new}");
    }
}
