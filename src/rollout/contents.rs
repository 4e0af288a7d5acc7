//! Whether a rendered MachineConfig holds the content of another one.
//!
//! A pool's list of sources does not tell: it names an edited object before the edit is rendered, and after
//! (facts/machine-config-pools.md, traps 2 and 3). Only the content does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const FILES: &str = "/spec/config/storage/files";
const UNITS: &str = "/spec/config/systemd/units";
/// Lists of `spec.config` and the member that identifies their entries.
const CONFIG_LISTS: [(&str, &str); 2] = [(FILES, "path"), (UNITS, "name")];

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

    /// The kernel arguments among them.
    pub(super) fn arguments(&self) -> impl Iterator<Item = String> {
        let entries = self.appended.keys().filter_map(|entry| entry.strip_prefix("/spec/kernelArguments "));
        entries.filter_map(|argument| serde_json::from_str(argument).ok())
    }

    /// Whether a file or unit of that name is among them.
    pub(super) fn names(&self, entry: &str) -> bool {
        let ending = format!(" {:?}", Some(Value::from(entry)));
        self.named.iter().any(|named| named.ends_with(&ending))
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

/// How an object that is planned differs from what a pool has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Kernel arguments or extensions are not the same ones in the same order. They are appended, duplicates included, so
    /// another one is another content.
    pub(super) appended: bool,
    /// Anything else that is not the same: kernel type, FIPS, the operating system's image, users, disks, … Only files and
    /// units can be there already; of all else a difference is a change.
    pub(super) other: bool,
    /// Files and units that go.
    pub(super) removed: Vec<String>,
    /// Files and units that the pool has not, or has otherwise, or that the object had otherwise.
    pub(super) entries: Vec<String>,
    /// Kernel arguments that the object brings newly.
    pub(super) new_arguments: Vec<String>,
    /// Kernel arguments that the pool has from other objects.
    pub(super) other_arguments: Vec<String>,
    /// Of the entries, files that the pool has otherwise, from other objects. A unit is merged member by member, a file is
    /// replaced as a whole.
    pub(super) replaced: Vec<String>,
}

impl Differences {
    /// Between `before` (`None` if it is new) and `after` (`None` if it goes), on a pool that has `rendered`.
    pub(super) fn of(before: Option<&Value>, after: Option<&Value>, rendered: &Value) -> Self {
        let nothing = Value::Null;
        let (before, after) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        let mut found = Self::default();
        if before.get("spec") == after.get("spec") {
            return found;
        }
        found.appended =
            ["/spec/kernelArguments", "/spec/extensions"].iter().any(|path| list(before, path) != list(after, path));
        found.other = remainder(before) != remainder(after);
        for (path, key) in CONFIG_LISTS {
            let identity = |entry: &Value| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let named = |object: &'_ Value, name: &str| -> Option<Value> {
                list(object, path).iter().find(|other| identity(other) == name).cloned()
            };
            for entry in list(after, path) {
                let name = identity(entry);
                let ours = named(before, &name);
                let present = named(rendered, &name);
                // What the object had and gives up is in what was rendered from it, too.
                let there = present.as_ref().is_some_and(|present| covers(present, entry));
                if (there && ours.is_none()) || ours.as_ref() == Some(entry) {
                    continue;
                }
                let by_others = |present: &Value| ours.as_ref().is_none_or(|ours| !covers(present, ours));
                if path == FILES && present.as_ref().is_some_and(by_others) {
                    found.replaced.push(name.clone());
                }
                found.entries.push(name);
            }
            let gone = list(before, path).iter().filter(|entry| named(after, &identity(entry)).is_none());
            found.removed.extend(gone.map(identity));
        }
        let arguments = |object: &Value| list(object, "/spec/kernelArguments").to_vec();
        found.new_arguments = texts(without(arguments(after), &arguments(before)));
        found.other_arguments = texts(without(arguments(rendered), &arguments(before)));
        found
    }
}

/// What is left of the spec beside the lists that are judged entry by entry, without what says nothing.
fn remainder(object: &Value) -> Value {
    const JUDGED: [&str; 4] = ["/spec/kernelArguments", "/spec/extensions", FILES, UNITS];
    // Rendering converts all to one version.
    const VERSION: &str = "/spec/config/ignition";
    let mut object = object.clone();
    for path in JUDGED.into_iter().chain([VERSION]) {
        if let Some(value) = object.pointer_mut(path) {
            *value = Value::Null;
        }
    }
    let defaults = [("/spec/fips", Value::Bool(false)), ("/spec/kernelType", Value::from("default"))];
    for (path, default) in defaults {
        if let Some(value) = object.pointer_mut(path).filter(|value| **value == default) {
            *value = Value::Null;
        }
    }
    let nothing = Value::Object(serde_json::Map::new());
    compact(object.pointer("/spec").unwrap_or(&nothing))
}

/// `value` without members that are null or empty.
fn compact(value: &Value) -> Value {
    let Value::Object(map) = value else {
        return value.clone();
    };
    let members = map.iter().map(|(key, value)| (key.clone(), compact(value)));
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let members: serde_json::Map<_, _> = members.filter(|(_, value)| says_something(value)).collect();
    Value::Object(members)
}

/// `all` without one occurrence of each of `some`.
fn without(mut all: Vec<Value>, some: &[Value]) -> Vec<Value> {
    for entry in some {
        if let Some(index) = all.iter().position(|other| other == entry) {
            all.remove(index);
        }
    }
    all
}

fn texts(values: Vec<Value>) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
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

    /// defect D40
    #[test]
    fn a_kernel_argument_that_is_there_already_is_another_content_all_the_same() {
        let found = Differences::of(None, Some(&kargs(&["psi=1"])), &kargs(&["a", "psi=1"]));
        assert!(found.appended);
        assert_eq!(
            (found.new_arguments, found.other_arguments),
            (vec!["psi=1".into()], vec!["a".into(), "psi=1".into()])
        );
        let same = Some(&kargs(&["psi=1"])).cloned();
        assert_eq!(Differences::of(same.as_ref(), same.as_ref(), &kargs(&["psi=1"])), Differences::default());
    }

    #[test]
    fn a_file_that_is_there_byte_for_byte_changes_nothing() {
        let file = |mode: u32| json!({"spec": {"config": {"storage": {"files": [{"path": "/a", "mode": mode}]}}}});
        assert!(Differences::of(None, Some(&file(1)), &file(1)).entries.is_empty());
        let found = Differences::of(None, Some(&file(1)), &json!({"spec": {}}));
        assert_eq!((found.entries, found.replaced), (vec!["/a".to_owned()], vec![]));
        let found = Differences::of(None, Some(&file(1)), &file(2));
        assert_eq!((found.entries, found.replaced), (vec!["/a".to_owned()], vec!["/a".to_owned()]));
        let found = Differences::of(Some(&file(2)), Some(&file(1)), &file(2));
        assert_eq!((found.entries, found.replaced), (vec!["/a".to_owned()], vec![]), "our own of before");
        // What was ours and loses a member is not there already.
        let less = json!({"spec": {"config": {"storage": {"files": [{"path": "/a"}]}}}});
        assert_eq!(Differences::of(Some(&file(1)), Some(&less), &file(1)).entries, ["/a"]);
        assert_eq!(Differences::of(Some(&file(1)), None, &file(1)).removed, ["/a"]);
    }

    #[test]
    fn what_is_not_understood_is_a_change_and_defaults_are_none() {
        let psi = |more: Value| {
            let mut object = kargs(&["psi=1"]);
            object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object
        };
        let other = |more: Value| Differences::of(Some(&psi(json!({}))), Some(&psi(more)), &json!({})).other;
        for change in [
            json!({"osImageURL": "quay.io/other"}),
            json!({"fips": true}),
            json!({"kernelType": "realtime"}),
            json!({"config": {"passwd": {"users": [{"name": "core"}]}}}),
            json!({"config": {"storage": {"directories": [{"path": "/d"}]}}}),
            json!({"config": {"storage": {"luks": [{"name": "l"}]}}}),
            json!({"somethingNew": 1}),
        ] {
            assert!(other(change.clone()), "{change}");
        }
        for same in [
            json!({"fips": false, "kernelType": "default", "osImageURL": ""}),
            json!({"kernelType": "", "extensions": [], "config": {"ignition": {"version": "3.2.0"}}}),
            json!({"config": {"storage": {"files": [], "directories": []}, "passwd": {}}}),
        ] {
            assert!(!other(same.clone()), "{same}");
        }
    }

    #[test]
    fn a_unit_is_merged_and_never_overridden_as_a_whole() {
        let unit = |dropin: &str| json!({"spec": {"config": {"systemd": {"units": [{"name": "k.service", "dropins": [{"name": dropin}]}]}}}});
        let found = Differences::of(None, Some(&unit("10-y")), &unit("20-x"));
        assert_eq!((found.entries, found.replaced), (vec!["k.service".to_owned()], vec![]));
    }
}
