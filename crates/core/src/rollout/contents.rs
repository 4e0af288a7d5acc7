//! Checks whether a rendered MachineConfig holds the content of another one.
//!
//! A pool's list of sources does not show this: it names an edited object both before and after the
//! edit is rendered (`syncGeneratedMachineConfig` in pkg/controller/render of
//! machine-config-operator, observed). Only the content does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use object::{digest, pointer};

const ARGUMENTS: &str = "/spec/kernelArguments";
const EXTENSIONS: &str = "/spec/extensions";
const FILES: &str = "/spec/config/storage/files";
const UNITS: &str = "/spec/config/systemd/units";
const USERS: &str = "/spec/config/passwd";
/// The member of a unit that holds its drop-ins.
const DROPINS: &str = "dropins";
/// The member of a file that holds its contents.
const CONTENTS: &str = "contents";
/// Lists of `spec.config`, and the member that identifies their entries.
const CONFIG_LISTS: [(&str, &str); 2] = [(FILES, "path"), (UNITS, "name")];

/// The [`claims`] of `object` that `rendered` lacks or has with another value: another source may
/// override them. `None` if it lacks something that no source can override: kernel arguments and
/// extensions are kept in order, duplicates included, among those of others, and some scalars win
/// from any source.
pub(super) fn missing(rendered: &Value, object: &Value) -> Option<BTreeSet<String>> {
    let appended = [ARGUMENTS, EXTENSIONS].iter().all(|path| is_subsequence(list(object, path), list(rendered, path)));
    let scalars = scalar_holds(rendered, object, "/spec/fips", &Value::Bool(false))
        && scalar_holds(rendered, object, "/spec/kernelType", &Value::from("default"));
    if !appended || !scalars {
        return None;
    }
    let [files, units] = CONFIG_LISTS.map(|(path, key)| by_identity(rendered, path, key));
    let mut missing = BTreeSet::new();
    for file in list(object, FILES) {
        let path = identity(file, "path");
        if !files.get(path).is_some_and(|found| covers(found, file)) {
            missing.insert(path.to_owned());
        }
    }
    for unit in list(object, UNITS) {
        missing.extend(missing_of_unit(units.get(identity(unit, "name")).copied(), unit));
    }
    Some(missing)
}

/// The claims of `unit` that `present`, the unit with that name in a rendered configuration, does
/// not meet.
fn missing_of_unit(present: Option<&Value>, unit: &Value) -> Vec<String> {
    let present = present.unwrap_or(&Value::Null);
    let meets = |member: &str, part: &Value| match (member, present.get(member)) {
        (_, None) => false,
        (DROPINS, Some(found)) => has_dropin(found, part),
        (_, Some(found)) => covers(found, part),
    };
    let claims = claims_of_unit(unit).into_iter();
    claims.filter(|(member, part, _)| !meets(member, part)).map(|(_, _, claim)| claim).collect()
}

/// The claims of a MachineConfig, each with a digest of its value: the settings that a later source
/// may override. A file is one claim, named by its path, because it is replaced as a whole. Units
/// are merged, so each member and each drop-in is one (`Merge` of Ignition's config/v3_x, as
/// machine-config-operator calls it).
pub(super) fn claims(object: &Value) -> BTreeMap<String, String> {
    let files = list(object, FILES).iter().map(claim_of_file);
    let units = list(object, UNITS).iter().flat_map(claims_of_unit);
    files.chain(units.map(|(_, part, claim)| (claim, digest::sha256(&compact(part, ""))))).collect()
}

/// The members of files and units, each with a digest of its value, by the name of the file or unit
/// and the name of the member. Rendering merges members one by one, and so the drop-ins of a unit.
/// The member with the empty name means that the file or unit exists.
pub(super) type Members = BTreeMap<(String, String), String>;

/// The members of those files and units of `object` for whose names `wanted` holds.
pub(super) fn members(object: &Value, wanted: impl Fn(&str) -> bool) -> Members {
    let mut found = Members::new();
    for file in list(object, FILES).iter().filter(|file| wanted(identity(file, "path"))) {
        let says = |member: &str, value: &Value| !["path", "overwrite"].contains(&member) && says_something(value);
        for (member, value) in file.as_object().into_iter().flatten().filter(|(member, value)| says(member, value)) {
            let digest = match member.as_str() {
                // Releases that keep an empty compression treat it as part of the content.
                CONTENTS => digest::sha256(&(compact(value, ""), compression(file))),
                _ => digest::sha256(&compact(value, "")),
            };
            found.insert((identity(file, "path").to_owned(), member.clone()), digest);
        }
        found.insert((identity(file, "path").to_owned(), String::new()), String::new());
    }
    for unit in list(object, UNITS).iter().filter(|unit| wanted(identity(unit, "name"))) {
        let name = identity(unit, "name");
        let claims = claims_of_unit(unit).into_iter();
        found.extend(claims.map(|(_, part, claim)| ((name.to_owned(), claim), digest::sha256(&compact(part, "")))));
        found.insert((name.to_owned(), String::new()), String::new());
    }
    found
}

/// The claim of a file. `overwrite` does not count: rendering sets it for every file.
fn claim_of_file(file: &Value) -> (String, String) {
    let mut part = compact(file, "");
    if let Some(map) = part.as_object_mut() {
        map.remove("overwrite");
        // Releases that keep an empty compression treat it as part of the content.
        map.insert("compression".to_owned(), json!(compression(file)));
    }
    (identity(file, "path").to_owned(), digest::sha256(&part))
}

/// The claims of a unit: the member, its value or the drop-in, and the name of the claim.
fn claims_of_unit(unit: &Value) -> Vec<(&str, &Value, String)> {
    let name = identity(unit, "name");
    let members =
        unit.as_object().into_iter().flatten().filter(|(member, value)| *member != "name" && says_something(value));
    members
        .flat_map(|(member, value)| match (member.as_str(), value) {
            (DROPINS, Value::Array(dropins)) => {
                dropins.iter().map(|dropin| (DROPINS, dropin, format!("{name} {}", identity(dropin, "name")))).collect()
            }
            (member, value) => vec![(member, value, format!("{name} {member}"))],
        })
        .collect()
}

/// Whether `rendered` holds everything that `object` asks for.
#[cfg(test)]
fn holds(rendered: &Value, object: &Value) -> bool {
    missing(rendered, object).is_some_and(|missing| missing.is_empty())
}

/// The compression of a file, if it has that member. Rendering keeps an empty one up to
/// release-4.19, as in files of the operator's own templates; later releases remove it from all
/// files (`ignitionMergeUnsetFilesDefaultCompression`). So an empty one shows which kind of release
/// this is, and that another empty one changes the content.
fn compression(file: &Value) -> Option<&str> {
    file.pointer("/contents/compression").and_then(Value::as_str)
}

/// Members that change a file or unit and that remain when a later source lacks them, because files
/// and units are merged member by member (`Merge` of Ignition's config/v3_x; observed with
/// release-4.17 of the controllers). A checksum of other contents prevents new machines from
/// starting, a mask the unit.
const LASTING: [(&str, &str, &str); 6] = [
    (FILES, "/contents/verification/hash", "contents.verification"),
    (FILES, "/contents/httpHeaders", "contents.httpHeaders"),
    (FILES, "/append", "append"),
    (FILES, "/user", "user"),
    (FILES, "/group", "group"),
    (UNITS, "/mask", "mask"),
];

/// The lasting members that files and units of `object` have, by their names.
pub(super) fn lasting_of(object: &Value) -> BTreeMap<String, Vec<&'static str>> {
    let entries =
        CONFIG_LISTS.into_iter().flat_map(|(path, key)| list(object, path).iter().map(move |entry| (path, key, entry)));
    let nothing = Value::Null;
    let found = entries.map(|(path, key, entry)| (identity(entry, key).to_owned(), lasting(path, entry, &nothing)));
    found.filter(|(_, members)| !members.is_empty()).collect()
}

/// The members of `present` that would remain in `entry`.
fn lasting(list: &str, present: &Value, entry: &Value) -> Vec<&'static str> {
    let says = |value: Option<&Value>| value.is_some_and(|value| says_something(value) && *value != Value::Bool(false));
    let of_list = LASTING.iter().filter(|(of, ..)| *of == list);
    let lasts = of_list.filter(|(_, place, _)| says(present.pointer(place)) && entry.pointer(place).is_none());
    lasts.map(|(.., name)| *name).collect()
}

/// The entries of a list by what identifies them. If several have the same identity, the first.
fn by_identity<'a>(object: &'a Value, path: &str, key: &str) -> BTreeMap<&'a str, &'a Value> {
    let mut found = BTreeMap::new();
    for entry in list(object, path) {
        found.entry(identity(entry, key)).or_insert(entry);
    }
    found
}

fn identity<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The parts that a MachineConfig contributes to a rendered one, without their contents: enough to
/// find superfluous parts of a rendered one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Kernel arguments and extensions as JSON, by their list, with their number.
    appended: BTreeMap<(&'static str, String), usize>,
    /// Identities of files, units and their drop-ins, by their list.
    named: BTreeSet<(&'static str, String)>,
}

impl Parts {
    pub(super) fn of(object: &Value) -> Self {
        let mut parts = Self::default();
        for path in [ARGUMENTS, EXTENSIONS] {
            for entry in list(object, path) {
                *parts.appended.entry((path, entry.to_string())).or_default() += 1;
            }
        }
        for (path, key) in CONFIG_LISTS {
            parts.named.extend(list(object, path).iter().map(|entry| (path, identity(entry, key).to_owned())));
        }
        for unit in list(object, UNITS) {
            let dropins = unit.get(DROPINS).and_then(Value::as_array).into_iter().flatten();
            let named = dropins.map(|dropin| format!("{} {}", identity(unit, "name"), identity(dropin, "name")));
            parts.named.extend(named.map(|name| (DROPINS, name)));
        }
        parts
    }

    /// Whether they include the kernel argument.
    pub(super) fn sets(&self, argument: &str) -> bool {
        self.appended.contains_key(&(ARGUMENTS, Value::from(argument).to_string()))
    }

    /// The paths of the files, and the names of the units and their drop-ins.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(_, name)| name.as_str())
    }

    /// The parts that result from rendering all `sources` together.
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

/// The differences between a planned object and what a pool has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Whether kernel arguments or extensions, or their order, differ. They are appended,
    /// duplicates included, so another one changes the content.
    pub(super) appended: bool,
    /// Whether anything else differs: kernel type, FIPS, the operating system's image, disks, …
    /// Only files and units can be there already; any other difference is a change.
    pub(super) other: bool,
    /// Whether SSH keys differ: no other property of users can change.
    pub(super) keys: bool,
    /// Names of files and units that are removed.
    pub(super) removed: BTreeSet<String>,
    /// Names of files and units that the pool lacks or has with other values, or that the object
    /// had with other values.
    pub(super) entries: Vec<String>,
    /// The entries that the pool has: whether they change depends on the other sources that contain
    /// them.
    pub(super) contested: BTreeSet<String>,
    /// The [`members`] that the object had of contested or removed entries, and those that it
    /// wants.
    pub(super) had: Members,
    pub(super) wants: Members,
    /// Kernel arguments that are new in the object.
    pub(super) new_arguments: Vec<String>,
    /// Kernel arguments that the pool has from other objects.
    pub(super) other_arguments: Vec<String>,
    /// Entries that are files and that the pool has with other values from other objects.
    pub(super) replaced: Vec<String>,
    /// Members of such files and units that come from other objects and that rendering keeps in
    /// them in addition to the object's, by file or unit: see [`LASTING`].
    pub(super) lasting: BTreeMap<String, Vec<&'static str>>,
}

impl Differences {
    /// The differences between `before` (`None` if the object is new) and `after` (`None` if it is
    /// removed), on a pool that has `rendered`.
    pub(super) fn of(before: Option<&Value>, after: Option<&Value>, rendered: &Value) -> Self {
        let nothing = Value::Null;
        let (before, after) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        if before.get("spec") == after.get("spec") {
            return Self::default();
        }
        let mut found = Self {
            appended: [ARGUMENTS, EXTENSIONS].iter().any(|path| list(before, path) != list(after, path)),
            other: remainder(before) != remainder(after),
            keys: users(before) != users(after),
            new_arguments: beyond(list(after, ARGUMENTS), list(before, ARGUMENTS)),
            other_arguments: beyond(list(rendered, ARGUMENTS), list(before, ARGUMENTS)),
            ..Self::default()
        };
        let keeps_empty = list(rendered, FILES).iter().any(|file| compression(file).is_some_and(str::is_empty));
        for (path, key) in CONFIG_LISTS {
            let [had, wanted, present] = [before, after, rendered].map(|object| by_identity(object, path, key));
            for entry in list(after, path) {
                let name = identity(entry, key);
                let (ours, present) = (had.get(name), present.get(name));
                // What the object had and gives up is also in what was rendered from it.
                let there = present.is_some_and(|present| {
                    let brings_empty = compression(entry).is_some() && compression(present).is_none();
                    covers(present, entry) && !(keeps_empty && brings_empty)
                });
                let lasting = present.map(|present| lasting(path, present, entry)).unwrap_or_default();
                if !lasting.is_empty() {
                    found.lasting.insert(name.to_owned(), lasting);
                }
                let is_same =
                    |ours: &Value| *ours == *entry || (!keeps_empty && compact(ours, "") == compact(entry, ""));
                if (there && ours.is_none()) || ours.is_some_and(|ours| is_same(ours)) {
                    continue;
                }
                let by_others = |present: &Value| ours.is_none_or(|ours| !covers(present, ours));
                if present.is_some() {
                    found.contested.insert(name.to_owned());
                }
                if path == FILES && present.copied().is_some_and(by_others) {
                    found.replaced.push(name.to_owned());
                }
                found.entries.push(name.to_owned());
            }
            let names = list(before, path).iter().map(|entry| identity(entry, key));
            found.removed.extend(names.filter(|name| !wanted.contains_key(name)).map(str::to_owned));
        }
        let depends = |name: &str| found.contested.contains(name) || found.removed.contains(name);
        (found.had, found.wants) = (members(before, depends), members(after, depends));
        found
    }
}

/// The rest of the spec, without the lists that are compared entry by entry and without empty
/// values.
fn remainder(object: &Value) -> Value {
    let nothing = Value::Object(serde_json::Map::new());
    compact(object.pointer("/spec").unwrap_or(&nothing), "/spec")
}

/// The users of an object.
fn users(object: &Value) -> Option<Value> {
    object.pointer(USERS).map(|users| compact(users, "")).filter(says_something)
}

/// Whether the member at `path` is compared separately, or has no effect.
fn is_beside(path: &str, value: &Value) -> bool {
    match path {
        ARGUMENTS | EXTENSIONS | FILES | UNITS => true,
        USERS => true,
        // Rendering converts all of them to one version.
        "/spec/config/ignition" => true,
        "/spec/fips" => *value == Value::Bool(false),
        "/spec/kernelType" => value == "default",
        _ => false,
    }
}

/// `value`, which is at `path`, without members that are null, empty or [`is_beside`].
fn compact(value: &Value, path: &str) -> Value {
    let Value::Object(map) = value else {
        return value.clone();
    };
    let members = map.iter().filter_map(|(key, value)| {
        let mut path = path.to_owned();
        pointer::push(&mut path, key);
        (!is_beside(&path, value)).then(|| (key.clone(), compact(value, &path)))
    });
    let members: serde_json::Map<_, _> = members.filter(|(_, value)| says_something(value)).collect();
    Value::Object(members)
}

/// The texts in `all`, minus one occurrence of each text in `some`.
fn beyond(all: &[Value], some: &[Value]) -> Vec<String> {
    let mut rest: BTreeMap<&str, usize> = BTreeMap::new();
    for text in some.iter().filter_map(Value::as_str) {
        *rest.entry(text).or_default() += 1;
    }
    let mut found = Vec::new();
    for text in all.iter().filter_map(Value::as_str) {
        match rest.get_mut(text).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => found.push(text.to_owned()),
        }
    }
    found
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

/// Whether `found` includes everything in `wanted`. Rendering adds defaults such as `overwrite:
/// true`, and removes empty values: `compression: ""` from files that the controllers make
/// (`ignitionMergeUnsetFilesDefaultCompression`, pkg/controller/common/helpers.go of
/// machine-config-operator, release-4.20 and later). The contents of a file are compared as a
/// whole: up to release-4.19, merging leaves the compression of an earlier file in a later one that
/// has none, which is then read wrongly.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .filter(|(_, wanted)| says_something(wanted))
            .all(|(key, wanted)| match (key.as_str(), found.get(key), wanted) {
                (_, None, _) => false,
                (DROPINS, Some(found), Value::Array(wanted)) => wanted.iter().all(|wanted| has_dropin(found, wanted)),
                (CONTENTS, Some(found), Value::Object(_)) => compact(found, "") == compact(wanted, ""),
                (_, Some(found), wanted) => covers(found, wanted),
            }),
        (found, wanted) => found == wanted,
    }
}

/// Whether `there` includes the drop-in. Drop-ins are merged by name, like units (`Merge` of
/// Ignition's config/v3_x).
fn has_dropin(there: &Value, wanted: &Value) -> bool {
    let there = there.as_array().into_iter().flatten();
    there.filter(|found| identity(found, "name") == identity(wanted, "name")).any(|found| covers(found, wanted))
}

/// Whether the value is not empty: null, or an empty text, list or map.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
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
        // An entry of ours that loses a member is not there already.
        let less = json!({"spec": {"config": {"storage": {"files": [{"path": "/a"}]}}}});
        assert_eq!(Differences::of(Some(&file(1)), Some(&less), &file(1)).entries, ["/a"]);
        assert!(Differences::of(Some(&file(1)), None, &file(1)).removed.contains("/a"));
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
            json!({"config": {"storage": {"directories": [{"path": "/d"}]}}}),
            json!({"config": {"storage": {"luks": [{"name": "l"}]}}}),
            json!({"somethingNew": 1}),
        ] {
            assert!(other(change.clone()), "{change}");
        }
        let user = json!({"config": {"passwd": {"users": [{"name": "core"}]}}});
        let found = Differences::of(Some(&psi(json!({}))), Some(&psi(user)), &json!({}));
        assert!(found.keys && !found.other);
        for same in [
            json!({"fips": false, "kernelType": "default", "osImageURL": ""}),
            json!({"kernelType": "", "extensions": [], "config": {"ignition": {"version": "3.2.0"}}}),
            json!({"config": {"storage": {"files": [], "directories": []}, "passwd": {}}}),
        ] {
            assert!(!other(same.clone()), "{same}");
        }
    }

    /// R2: a value that the controllers write and rendering removes counts as held.
    #[test]
    fn r2_what_says_nothing_is_held_by_all() {
        let file = |contents: Value| json!({"spec": {"config": {"storage": {"files": [{"path": "/etc/a", "contents": contents}]}}}});
        let rendered = file(json!({"source": "data:,1"}));
        for nothing in [json!(""), json!(null), json!([]), json!({})] {
            assert!(holds(&rendered, &file(json!({"source": "data:,1", "compression": nothing}))), "{nothing}");
        }
        assert!(!holds(&rendered, &file(json!({"source": "data:,1", "compression": "gzip"}))));
        assert!(!holds(&rendered, &file(json!({"source": "data:,2", "compression": ""}))));
    }

    /// Fault R7: up to release-4.19 a later file without compression gets that of an earlier one.
    #[test]
    fn r7_contents_are_judged_as_a_whole() {
        let file = |contents: Value| json!({"spec": {"config": {"storage": {"files": [{"path": "/etc/a", "contents": contents}]}}}});
        let (plain, empty) =
            (file(json!({"source": "data:,1"})), file(json!({"source": "data:,1", "compression": ""})));
        let survived = file(json!({"source": "data:,1", "compression": "gzip"}));
        for wanted in [&plain, &empty] {
            assert!(!holds(&survived, wanted), "what is read is unpacked first");
            assert_eq!(Differences::of(None, Some(wanted), &survived).entries, ["/etc/a"]);
        }
        // Whether an empty one changes the content depends on the release.
        assert!(Differences::of(None, Some(&empty), &plain).entries.is_empty());
        let mut keeps = plain.clone();
        let files = keeps.pointer_mut(FILES).and_then(Value::as_array_mut).unwrap();
        files.push(json!({"path": "/etc/b", "contents": {"source": "data:,", "compression": ""}}));
        assert_eq!(Differences::of(None, Some(&empty), &keeps).entries, ["/etc/a"]);
        assert!(Differences::of(None, Some(&plain), &keeps).entries.is_empty());
    }

    /// R27: drop-ins of one unit are merged by name, such as a user's with ours.
    #[test]
    fn r27_a_drop_in_is_held_beside_others() {
        let unit = |dropins: Value| json!({"spec": {"config": {"systemd": {"units": [{"name": "system.slice", "dropins": dropins}]}}}});
        let (theirs, ours) =
            (json!({"name": "05-user.conf", "contents": "a"}), json!({"name": "10-ours.conf", "contents": "b"}));
        let (rendered, wanted) = (unit(json!([theirs, ours])), unit(json!([ours])));
        assert!(holds(&rendered, &wanted));
        assert!(Differences::of(None, Some(&wanted), &rendered).entries.is_empty(), "no machine reboots for it");
        assert!(!holds(&unit(json!([theirs])), &wanted));
        assert!(!holds(&unit(json!([{"name": "10-ours.conf", "contents": "c"}])), &wanted));
        // When one is removed again, the rendered configuration has a superfluous part.
        assert_ne!(Parts::of(&rendered), Parts::of(&wanted));
    }

    #[test]
    fn a_unit_is_merged_and_never_overridden_as_a_whole() {
        let unit = |dropin: &str| json!({"spec": {"config": {"systemd": {"units": [{"name": "k.service", "dropins": [{"name": dropin}]}]}}}});
        let found = Differences::of(None, Some(&unit("10-y")), &unit("20-x"));
        assert_eq!((found.entries, found.replaced), (vec!["k.service".to_owned()], vec![]));
    }
}
