//! Values that must never be shown: those of Secrets, of paths that a profile marks as sensitive, of embedded files that
//! only their owner may read, and hashes of passwords.
//!
//! Each is replaced by a placeholder that is another one where the value is another one, so that a change stays visible as
//! a change. Placeholders are numbers and no digests: from a digest a weak password could be guessed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::contents;
use super::pointer;

/// Members of a Secret that hold its values.
const SECRET_VALUES: [&str; 2] = ["/data", "/stringData"];
/// Members that hold what a login or a disk needs, in whatever object (Ignition's users and LUKS devices).
const PASSWORDS: [&str; 3] = ["passwordHash", "password", "keyFile"];
/// How the place of a hidden value begins, as JSON.
pub(super) const PLACEHOLDER: &str = "\"(hidden";
/// Members of an embedded file that hold its contents.
const CONTENTS: [&str; 2] = ["contents", "append"];

/// Shows objects without their secret values. One for all that is shown of a change, so that equal values get equal
/// placeholders and different ones different ones.
#[derive(Debug)]
pub struct Redactor {
    sensitive: Vec<String>,
    /// Files that only their owner may read in one of the states: their contents are hidden in all.
    private: BTreeSet<String>,
    /// The number of each value that is hidden, by the value as JSON.
    hidden: BTreeMap<String, usize>,
}

impl Redactor {
    /// Hides `sensitive` paths ([`pointer::expand`]) and what is always secret. `objects` are those that are shown.
    #[must_use]
    pub fn new(sensitive: &[String], objects: &[&Value]) -> Self {
        let private = objects.iter().flat_map(|object| contents::private_files(object)).collect();
        let mut redactor = Self { sensitive: sensitive.to_vec(), private, hidden: BTreeMap::new() };
        for object in objects {
            for pointer in redactor.secret_pointers(object) {
                if let Some(value) = object.pointer(&pointer) {
                    let number = redactor.hidden.len() + 1;
                    redactor.hidden.entry(value.to_string()).or_insert(number);
                }
            }
        }
        redactor
    }

    /// Whether a profile named paths to hide: then names of list entries may be secret, too.
    #[must_use]
    pub fn is_told_to_hide(&self) -> bool {
        !self.sensitive.is_empty()
    }

    /// `object` as it may be shown.
    #[must_use]
    pub fn show(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        for pointer in self.secret_pointers(object) {
            if let Some(value) = shown.pointer_mut(&pointer) {
                *value = Value::from(match self.hidden.get(&value.to_string()) {
                    Some(number) => format!("(hidden {number})"),
                    None => "(hidden)".to_owned(),
                });
            }
        }
        shown
    }

    fn secret_pointers(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        if is_secret(object) {
            found.extend(SECRET_VALUES.iter().flat_map(|values| pointer::expand(object, &format!("{values}/*"))));
        }
        found.extend(self.sensitive.iter().flat_map(|path| pointer::expand(object, path)));
        self.by_shape(object, &mut String::new(), &mut found);
        found.sort();
        found.dedup();
        found
    }

    /// Pointers to what is secret by its shape.
    fn by_shape(&self, value: &Value, path: &mut String, found: &mut Vec<String>) {
        let length = path.len();
        match value {
            Value::Object(map) => {
                let file = map.get("path").and_then(Value::as_str);
                let is_private = contents::is_file(map) && file.is_some_and(|file| self.private.contains(file));
                for (name, member) in map {
                    pointer::push(path, name);
                    let contents = is_private && CONTENTS.contains(&name.as_str());
                    let says_something = !member.is_null() && member.as_str() != Some("");
                    if contents || (PASSWORDS.contains(&name.as_str()) && !member.is_boolean() && says_something) {
                        found.push(path.clone());
                    } else {
                        self.by_shape(member, path, found);
                    }
                    path.truncate(length);
                }
            }
            Value::Array(list) => {
                for (index, member) in list.iter().enumerate() {
                    pointer::push(path, &index.to_string());
                    self.by_shape(member, path, found);
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Whether all values of `object` are secret.
#[must_use]
pub fn is_secret(object: &Value) -> bool {
    let is = |key: &str, wanted: &str| object.get(key).and_then(Value::as_str) == Some(wanted);
    is("kind", "Secret") && is("apiVersion", "v1")
}

/// Whether `shown` holds the place of a hidden value: what it means can't be compared with anything.
#[must_use]
pub fn is_hidden(shown: &Value) -> bool {
    shown.to_string().contains(PLACEHOLDER)
}

/// Whether something of `object` is never shown, whatever a profile says.
#[must_use]
pub fn hides_something(object: &Value) -> bool {
    !Redactor::new(&[], &[object]).hidden.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "data": data})
    }

    #[test]
    fn x3_a_changed_secret_is_visible_as_changed_and_nothing_more() {
        let (old, new) = (
            secret(json!({"same": "YQ==", "changed": "b25l", "gone": "Yg=="})),
            secret(json!({"same": "YQ==", "changed": "dHdv", "new": "Yw=="})),
        );
        let redactor = Redactor::new(&[], &[&old, &new]);
        assert_eq!(
            redactor.show(&old)["data"],
            json!({"changed": "(hidden 1)", "gone": "(hidden 2)", "same": "(hidden 3)"})
        );
        assert_eq!(
            redactor.show(&new)["data"],
            json!({"changed": "(hidden 4)", "new": "(hidden 5)", "same": "(hidden 3)"})
        );
        assert_eq!(redactor.show(&secret(json!({"other": "eA=="})))["data"]["other"], "(hidden)");
    }

    #[test]
    fn x3_two_values_that_change_places_are_visible() {
        let (old, new) = (secret(json!({"a": "MQ==", "b": "Mg=="})), secret(json!({"a": "Mg==", "b": "MQ=="})));
        let redactor = Redactor::new(&[], &[&old, &new]);
        assert_ne!(redactor.show(&old), redactor.show(&new));
    }

    #[test]
    fn sensitive_paths_of_any_kind_are_hidden() {
        let object = json!({"kind": "Widget", "spec": {"password": "p", "size": 1, "peers": [{"key": "k"}]}});
        let shown = Redactor::new(&["/spec/peers/*/key".into(), "/spec/absent".into()], &[&object]).show(&object);
        assert_eq!(shown["spec"], json!({"password": "(hidden 1)", "size": 1, "peers": [{"key": "(hidden 2)"}]}));
    }

    /// defect D76: what was in an object before is shown to everybody who may read the plan.
    #[test]
    fn what_a_machine_lets_only_the_owner_read_is_not_shown() {
        let file = |mode: u32| json!({"path": "/etc/f", "mode": mode, "contents": {"source": "data:,canary"}});
        let users = json!([{"name": "core", "passwordHash": "canary"}]);
        let object = json!({"files": [file(0o600), file(0o400)], "users": users});
        assert!(!Redactor::new(&[], &[&object]).show(&object).to_string().contains("canary"));
        // Private in one of the states is private: a plan must not show what it would lay open.
        let (before, after) = (json!({"files": [file(0o600)]}), json!({"files": [file(0o644)]}));
        let redactor = Redactor::new(&[], &[&before, &after]);
        assert!(!redactor.show(&after).to_string().contains("canary"));
        let more = json!({"files": [{"path": "/f", "mode": 0o600, "append": [{"source": "data:,canary"}]}], "luks": [{"keyFile": {"source": "data:,canary"}}]});
        assert!(!Redactor::new(&[], &[&more]).show(&more).to_string().contains("canary"));
        assert!(hides_something(&more));
        let public = json!({"files": [file(0o644)]});
        assert!(Redactor::new(&[], &[&public]).show(&public).to_string().contains("canary"));
    }
}
