//! Whether a rendered MachineConfig holds the content of another one.
//!
//! A pool's list of sources does not tell: it names an edited object before the edit is rendered, and after
//! (facts/machine-config-pools.md, traps 2 and 3). Only the content does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Lists of `spec.config` and the member that identifies their entries.
const CONFIG_LISTS: [(&str, &str); 2] =
    [("/spec/config/storage/files", "path"), ("/spec/config/systemd/units", "name")];

/// Whether everything that `object` asks for is in `rendered`: kernel arguments and extensions (kept with duplicates, in
/// order, among others), files and units by their identity, and the scalars that win anywhere.
pub(super) fn holds(rendered: &Value, object: &Value) -> bool {
    ["/spec/kernelArguments", "/spec/extensions"]
        .iter()
        .all(|path| is_subsequence(list(object, path), list(rendered, path)))
        && CONFIG_LISTS.iter().all(|(path, key)| {
            list(object, path).iter().all(|entry| {
                let found = list(rendered, path).iter().find(|other| other.get(key) == entry.get(key));
                found.is_some_and(|found| covers(found, entry))
            })
        })
        && scalar_holds(rendered, object, "/spec/fips", &Value::Bool(false))
        && scalar_holds(rendered, object, "/spec/kernelType", &Value::from("default"))
}

/// What a MachineConfig brings into a rendered one, without the contents: enough to see what a rendered one has too much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Kernel arguments and extensions, duplicates included.
    appended: BTreeMap<String, usize>,
    /// Identities of files and units.
    named: BTreeSet<String>,
}

impl Parts {
    pub(super) fn of(object: &Value) -> Self {
        let mut parts = Self::default();
        for path in ["/spec/kernelArguments", "/spec/extensions"] {
            for entry in list(object, path) {
                *parts.appended.entry(format!("{path} {entry}")).or_default() += 1;
            }
        }
        for (path, key) in CONFIG_LISTS {
            parts.named.extend(list(object, path).iter().map(|entry| format!("{path} {:?}", entry.get(key))));
        }
        parts
    }

    /// What rendering all of `sources` together brings.
    pub(super) fn sum<'a>(sources: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for source in sources {
            for (entry, count) in &source.appended {
                *sum.appended.entry(entry.clone()).or_default() += count;
            }
            sum.named.extend(source.named.iter().cloned());
        }
        sum
    }
}

/// Whether replacing `before` by `after` changes what a pool that already has `before` renders. `None` for `before` is a
/// new object. `rendered` is what the pool has now, where it is known.
pub(super) fn would_change(before: Option<&Value>, after: &Value, rendered: Option<&Value>) -> bool {
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    let empty = Value::Object(serde_json::Map::new());
    let (old, new) = (before.map_or(empty, spec), spec(after));
    if old == new {
        return false;
    }
    // Kernel arguments and extensions are appended, duplicates included: another one is another content.
    let appended = ["/kernelArguments", "/extensions"].iter().any(|path| list(&old, path) != list(&new, path));
    appended || rendered.is_none_or(|rendered| !holds(rendered, after))
}

fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_subsequence(wanted: &[Value], all: &[Value]) -> bool {
    let mut rest = all.iter();
    wanted.iter().all(|entry| rest.any(|other| other == entry))
}

fn scalar_holds(rendered: &Value, object: &Value, path: &str, default: &Value) -> bool {
    match object.pointer(path) {
        None => true,
        Some(wanted) if wanted == default || wanted == "" => true,
        Some(wanted) => rendered.pointer(path) == Some(wanted),
    }
}

/// Whether `found` says everything that `wanted` says. Rendering adds defaults such as `overwrite: true`.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted)))
        }
        (found, wanted) => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kargs(args: &[&str]) -> Value {
        json!({"spec": {"kernelArguments": args}})
    }

    #[test]
    fn kernel_arguments_must_be_there_as_often_as_they_are_wanted() {
        assert!(holds(&kargs(&["a", "psi=1", "b"]), &kargs(&["psi=1"])));
        assert!(!holds(&kargs(&["a"]), &kargs(&["psi=1"])));
        assert!(!holds(&kargs(&["psi=1"]), &kargs(&["psi=1", "psi=1"])));
        assert!(holds(&kargs(&["a"]), &json!({"spec": {}})), "an empty object is held by all");
    }

    #[test]
    fn what_a_rendering_has_too_much_shows_in_its_parts() {
        let sources = [Parts::of(&kargs(&["psi=1"])), Parts::of(&kargs(&["a"]))];
        assert_eq!(Parts::sum(&sources), Parts::of(&kargs(&["a", "psi=1"])), "the order does not matter");
        assert_ne!(Parts::sum(&sources), Parts::of(&kargs(&["a", "psi=1", "debug"])));
        assert_ne!(Parts::sum(&sources), Parts::of(&kargs(&["a", "psi=1", "psi=1"])));
    }

    #[test]
    fn an_edited_file_is_not_held_by_the_old_rendering() {
        let file = |content: &str, extra: Value| {
            let mut file = json!({"path": "/etc/a", "contents": {"source": content}});
            file.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            json!({"spec": {"config": {"storage": {"files": [file]}}}})
        };
        assert!(holds(&file("data:,1", json!({"overwrite": true})), &file("data:,1", json!({}))));
        assert!(!holds(&file("data:,1", json!({})), &file("data:,2", json!({}))));
    }

    #[test]
    fn a_kernel_argument_that_is_there_already_is_another_content_all_the_same() {
        assert!(would_change(None, &kargs(&["psi=1"]), Some(&kargs(&["psi=1"]))));
        assert!(!would_change(Some(&kargs(&["psi=1"])), &kargs(&["psi=1"]), None));
    }

    #[test]
    fn a_file_that_is_there_byte_for_byte_changes_nothing() {
        let object = json!({"spec": {"config": {"storage": {"files": [{"path": "/a", "mode": 1}]}}}});
        assert!(!would_change(None, &object, Some(&object)));
        assert!(would_change(None, &object, Some(&json!({"spec": {}}))));
    }
}
