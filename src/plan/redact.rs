//! Values that must never be shown: those of Secrets, and of paths that a profile marks as sensitive.
//!
//! Each is replaced by a placeholder that differs where the value differs, so that a change stays visible as a change.

use serde_json::Value;

use super::digest;

/// Members of a Secret that hold its values.
const SECRET_VALUES: [&str; 2] = ["/data", "/stringData"];

/// `object` with placeholders for secret values. `salt` keeps equal values of different plans apart.
#[must_use]
pub fn redacted(object: &Value, sensitive: &[String], salt: &str) -> Value {
    let mut object = object.clone();
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
    if is_secret {
        for pointer in SECRET_VALUES {
            if let Some(Value::Object(values)) = object.pointer_mut(pointer) {
                values.values_mut().for_each(|value| hide(value, salt));
            }
        }
    }
    for pointer in sensitive {
        if let Some(value) = object.pointer_mut(pointer) {
            hide(value, salt);
        }
    }
    object
}

fn hide(value: &mut Value, salt: &str) {
    let digest = digest::sha256(&[&Value::from(salt), value]);
    *value = Value::from(format!("(hidden {})", &digest[..8]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_secret_is_visible_as_changed_and_nothing_more() {
        let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "data": {"token": value}});
        let (one, two) = (redacted(&secret("b25l"), &[], "s"), redacted(&secret("dHdv"), &[], "s"));
        assert_ne!(one, two);
        assert_eq!(one, redacted(&secret("b25l"), &[], "s"));
        assert!(!one.to_string().contains("b25l"), "{one}");
    }

    #[test]
    fn sensitive_paths_of_any_kind_are_hidden() {
        let object = json!({"kind": "Widget", "spec": {"password": "p", "size": 1}});
        let shown = redacted(&object, &["/spec/password".into(), "/spec/absent".into()], "s");
        assert_eq!(shown["spec"]["size"], 1);
        assert!(shown["spec"]["password"].as_str().unwrap().starts_with("(hidden "), "{shown}");
    }
}
