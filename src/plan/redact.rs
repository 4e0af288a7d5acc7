//! Values that must never be shown: those of Secrets, of paths that a profile marks as sensitive, of embedded files that
//! only their owner may read, and hashes of passwords.
//!
//! Each is replaced by a placeholder that is another one where the value is another one, so that a change stays visible as
//! a change. Placeholders are numbers and no digests: from a digest a weak password could be guessed.

use serde_json::Value;

use super::contents;
use super::pointer;

/// Members of a Secret that hold its values.
const SECRET_VALUES: [&str; 2] = ["/data", "/stringData"];
/// Members that hold what a login needs, in whatever object (Ignition's users).
const PASSWORDS: [&str; 2] = ["passwordHash", "password"];

/// Shows objects without their secret values. One for all that is shown of a change, so that equal values get equal
/// placeholders and different ones different ones.
#[derive(Debug)]
pub struct Redactor {
    sensitive: Vec<String>,
    /// The values that are hidden, in the order of their numbers.
    hidden: Vec<Value>,
}

impl Redactor {
    /// Hides `sensitive` paths ([`pointer::expand`]) and what is always secret. `objects` are those that are shown.
    #[must_use]
    pub fn new(sensitive: &[String], objects: &[&Value]) -> Self {
        let mut redactor = Self { sensitive: sensitive.to_vec(), hidden: Vec::new() };
        for object in objects {
            for pointer in redactor.secret_pointers(object) {
                if let Some(value) = object.pointer(&pointer)
                    && !redactor.hidden.contains(value)
                {
                    redactor.hidden.push(value.clone());
                }
            }
        }
        redactor
    }

    /// `object` as it may be shown.
    #[must_use]
    pub fn show(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        for pointer in self.secret_pointers(object) {
            if let Some(value) = shown.pointer_mut(&pointer) {
                *value = Value::from(match self.hidden.iter().position(|hidden| hidden == value) {
                    Some(index) => format!("(hidden {})", index + 1),
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
        private(object, &mut String::new(), &mut found);
        found.sort();
        found.dedup();
        found
    }
}

/// Whether all values of `object` are secret.
#[must_use]
pub fn is_secret(object: &Value) -> bool {
    let is = |key: &str, wanted: &str| object.get(key).and_then(Value::as_str) == Some(wanted);
    is("kind", "Secret") && is("apiVersion", "v1")
}

/// Pointers to what is secret by its shape.
fn private(value: &Value, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            for (name, member) in map {
                pointer::push(path, name);
                let contents = name == "contents" && contents::is_private(map);
                if contents || (PASSWORDS.contains(&name.as_str()) && member.is_string()) {
                    found.push(path.clone());
                } else {
                    private(member, path, found);
                }
                path.truncate(length);
            }
        }
        Value::Array(list) => {
            for (index, member) in list.iter().enumerate() {
                pointer::push(path, &index.to_string());
                private(member, path, found);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
        let public = json!({"files": [file(0o644)]});
        assert!(Redactor::new(&[], &[&public]).show(&public).to_string().contains("canary"));
    }
}
