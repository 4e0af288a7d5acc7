//! Which manager owns which field: `metadata.managedFields` read as paths.
//!
//! A path is a list of segments in the notation of `fieldsV1`: `f:NAME` for a member of a map,
//! `k:{…}` for the entry of a list with these keys, `v:VALUE` for that member of a set. Ownership
//! is about leaves: a value, or a map or list that is owned as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

pub use self::cause::from_cause;
pub use self::copies::Copies;
pub use self::lookup::Lookup;
use super::pointer;

mod cause;
mod copies;
mod lookup;

/// The path of a field. It stays the same when lists are reordered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// The last segment, a field or an entry of a list: other versions of a kind usually give it
    /// the same name.
    fn last_name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// Parses what [`fmt::Display`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect())
    }

    /// The value at this path, if `object` has one.
    #[must_use]
    pub fn resolve<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, segment| Some(step(value, segment)?.1))
    }

    /// The path as an RFC 6901 pointer into `object`. Entries that the list does not have keep
    /// their `fieldsV1` notation.
    #[must_use]
    pub fn pointer(&self, object: &Value) -> String {
        self.written(object, |value, _, segment| step(value, segment), str::to_owned)
    }

    /// Like [`FieldPath::pointer`], but hides the values that name an entry the list does not have:
    /// they may be secret.
    #[must_use]
    pub fn pointer_without_values(&self, object: &Value) -> String {
        self.written(object, |value, _, segment| step(value, segment), an_entry)
    }

    fn written<'a>(
        &self,
        object: &'a Value,
        step: impl Fn(&'a Value, &[String], &str) -> Option<(usize, &'a Value)>,
        absent: impl Fn(&str) -> String,
    ) -> String {
        let mut pointer = String::new();
        let mut value = Some(object);
        for (depth, segment) in self.0.iter().enumerate() {
            let above = self.0.get(..depth).unwrap_or_default();
            let found = value.and_then(|value| step(value, above, segment));
            let name = match (&found, segment.strip_prefix("f:")) {
                (_, Some(name)) => name.to_owned(),
                (Some((index, _)), None) => index.to_string(),
                (None, None) => absent(segment),
            };
            pointer::push(&mut pointer, &name);
            value = found.map(|(_, value)| value);
        }
        pointer
    }

    /// The path with dots, as the Go implementation writes it. Names that contain dots are
    /// ambiguous: for display only.
    #[must_use]
    pub fn dotted(&self) -> String {
        let names = self.0.iter().map(|segment| segment.strip_prefix("f:").unwrap_or(segment));
        names.collect::<Vec<_>>().join(".")
    }

    /// Whether the path names an entry of a list by its keys or its value.
    #[must_use]
    pub fn names_values(&self) -> bool {
        self.0.iter().any(|segment| segment.starts_with("k:") || segment.starts_with("v:"))
    }

    /// The path of an RFC 6901 pointer. For maps only: a pointer does not hold what identifies the
    /// entry of a list.
    #[must_use]
    pub fn of_pointer(pointer: &str) -> Self {
        let segments = pointer.split('/').skip(1);
        Self(segments.map(|segment| format!("f:{}", segment.replace("~1", "/").replace("~0", "~"))).collect())
    }

    /// The RFC 6901 pointer to the field, or to the outermost list that contains it.
    #[must_use]
    pub fn within_maps(&self) -> String {
        let mut pointer = String::new();
        self.0
            .iter()
            .map_while(|segment| segment.strip_prefix("f:"))
            .for_each(|name| pointer::push(&mut pointer, name));
        pointer
    }

    /// Whether the field is outside the status: every writer of the object's status owns fields
    /// there.
    fn matters(&self) -> bool {
        self.0.first().is_none_or(|first| first != "f:status")
    }
}

/// Stands for an entry that the list does not have, without the values that name it.
fn an_entry(_: &str) -> String {
    "(an entry)".to_owned()
}

/// A set of paths, for checking many other paths against it.
#[derive(Debug, Clone, Default)]
pub struct Paths(BTreeSet<FieldPath>);

impl FromIterator<FieldPath> for Paths {
    fn from_iter<I: IntoIterator<Item = FieldPath>>(paths: I) -> Self {
        Self(paths.into_iter().collect())
    }
}

impl Paths {
    /// Whether the set contains `path`, part of it, or a map or list that contains it.
    #[must_use]
    pub fn touches(&self, path: &FieldPath) -> bool {
        let below = self.0.range::<FieldPath, _>(path..).next().is_some_and(|next| next.0.starts_with(&path.0));
        below || (0..path.0.len()).any(|end| path.0.get(..end).is_some_and(|head| self.0.contains::<[String]>(head)))
    }
}

impl std::borrow::Borrow<[String]> for FieldPath {
    fn borrow(&self) -> &[String] {
        &self.0
    }
}

/// The owners of the fields of an object.
#[derive(Debug)]
pub struct Owners<'a>(Vec<Owner<'a>>);

#[derive(Debug)]
struct Owner<'a> {
    manager: &'a str,
    applies: bool,
    time: &'a str,
    paths: Paths,
    /// The names of the leaves that were written through another version than the object has: their
    /// paths mean nothing here.
    names: BTreeSet<String>,
}

impl Owner<'_> {
    /// Whether it owns the field at `path`, part of it, or a map or list that contains it. What was
    /// written through another version is recognized by its name only.
    fn touches(&self, path: &FieldPath) -> bool {
        self.paths.touches(path) || path.last_name().is_some_and(|name| self.names.contains(name))
    }
}

impl<'a> Owners<'a> {
    /// Reads the owners from `object`.
    #[must_use]
    pub fn of(object: &'a Value) -> Self {
        let owner = |entry: &'a Value| {
            let leaves = leaves(entry.get("fieldsV1"));
            let is_foreign =
                text(entry, "apiVersion") != text(object, "apiVersion") && !text(entry, "apiVersion").is_empty();
            // Metadata is the same in all versions.
            let is_known = |path: &FieldPath| !is_foreign || path.0.first().is_some_and(|first| first == "f:metadata");
            let (paths, others): (Vec<_>, Vec<_>) = leaves.into_iter().partition(is_known);
            // Names in a status are too common to tell anything.
            let of_spec = text(entry, "subresource").is_empty();
            let others = others.iter().filter(|path| of_spec && path.matters());
            Owner {
                manager: text(entry, "manager"),
                applies: text(entry, "operation") == "Apply",
                time: text(entry, "time"),
                paths: paths.into_iter().collect(),
                names: others.filter_map(|path| path.last_name().map(str::to_owned)).collect(),
            }
        };
        Self(entries(object).map(owner).collect())
    }

    /// The manager that last wrote the field at `path`, and the time, as far as `managedFields`
    /// tells. It tells nothing about deleted fields.
    #[must_use]
    pub fn last_of(&self, path: &FieldPath) -> Option<(&'a str, &'a str)> {
        let owners = self.0.iter().filter(|owner| owner.touches(path));
        owners.max_by_key(|owner| owner.time).map(|owner| (owner.manager, owner.time))
    }

    /// The managers that own the field at `path`, part of it, or a map or list that contains it;
    /// sorted. `manager` itself is listed only if it owns it other than by server-side apply.
    #[must_use]
    pub fn others_of(&self, path: &FieldPath, manager: &str) -> Vec<&'a str> {
        let others = self.0.iter().filter(|owner| owner.manager != manager || !owner.applies);
        let mut found: Vec<_> = others.filter(|owner| owner.touches(path)).map(|owner| owner.manager).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Owners<'_> {
    /// Whether a manager other than `manager` (by server-side apply) owns exactly the field at
    /// `path`, not just fields below it.
    #[must_use]
    pub fn is_leaf_of_others(&self, path: &FieldPath, manager: &str) -> bool {
        let mut others = self.0.iter().filter(|owner| owner.manager != manager || !owner.applies);
        others.any(|owner| owner.paths.0.contains(path))
    }
}

/// The conflicts of applying `result` by force: each field whose value changes and that another
/// manager owns, with that manager. As on the server, an owner is a manager of exactly this field,
/// by whatever operation.
#[must_use]
pub fn conflicting(live: &Value, result: &Value, manager: &str) -> Vec<(FieldPath, String)> {
    let owners = Owners::of(live);
    let (before, after) = (Lookup::of(live), Lookup::of(result));
    let mut found = Vec::new();
    for path in applied_by(result, manager) {
        if before.resolve(&path) != after.resolve(&path) {
            let others = owners.0.iter().filter(|owner| owner.manager != manager || !owner.applies);
            let others = others.filter(|owner| owner.paths.0.contains(&path));
            found.extend(others.map(|owner| (path.clone(), owner.manager.to_owned())));
        }
    }
    found
}

/// Whether others have written `live` through another version of its kind. The paths of this
/// version do not show what they own: only the server knows, because it converts between versions.
#[must_use]
pub fn has_other_versions(live: &Value) -> bool {
    let version = text(live, "apiVersion");
    entries(live)
        .filter(|entry| text(entry, "subresource").is_empty())
        .any(|entry| !text(entry, "apiVersion").is_empty() && text(entry, "apiVersion") != version)
}

/// Whether another manager owns a field of `live` that `desired` changes.
#[must_use]
pub fn is_contested(live: &Value, desired: &Value, manager: &str) -> bool {
    let owners = Owners::of(live);
    let (before, after) = (Lookup::of(live), Lookup::of(desired));
    leaves_of(desired)
        .iter()
        .any(|path| before.resolve(path) != after.resolve(path) && !owners.others_of(path, manager).is_empty())
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1")))
    }
}

/// The value that one segment leads to, with its index if it is in a list.
fn step<'a>(value: &'a Value, segment: &str) -> Option<(usize, &'a Value)> {
    if let Some(name) = segment.strip_prefix("f:") {
        return value.get(name).map(|value| (0, value));
    }
    let list = value.as_array()?;
    let wanted: Value = serde_json::from_str(segment.get(2..)?).ok()?;
    let matches = |entry: &Value| match (segment.get(..2), &wanted) {
        (Some("k:"), Value::Object(keys)) => keys.iter().all(|(key, value)| entry.get(key) == Some(value)),
        (Some("v:"), wanted) => entry == wanted,
        (Some("i:"), _) => false,
        _ => false,
    };
    let index = list.iter().position(matches)?;
    list.get(index).map(|value| (index, value))
}

/// The leaves that `manager` owns by server-side apply, sorted. Status is left out.
#[must_use]
pub fn applied_by(object: &Value, manager: &str) -> Vec<FieldPath> {
    let mut paths: Vec<_> = entries(object)
        .filter(|entry| text(entry, "manager") == manager && text(entry, "operation") == "Apply")
        .filter(|entry| text(entry, "subresource").is_empty())
        .flat_map(|entry| leaves(entry.get("fieldsV1")))
        .filter(FieldPath::matters)
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The version through which `manager` last applied `object`.
#[must_use]
pub fn applied_in<'a>(object: &'a Value, manager: &str) -> Option<&'a str> {
    let mut ours = entries(object).filter(|entry| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    });
    ours.next().map(|entry| text(entry, "apiVersion"))
}

/// The leaves that `manager` owns by server-side apply and that no other manager owns, sorted.
#[must_use]
pub fn owned_alone_by(object: &Value, manager: &str) -> Vec<FieldPath> {
    let others: BTreeSet<_> = entries(object)
        .filter(|entry| text(entry, "manager") != manager || text(entry, "operation") != "Apply")
        .flat_map(|entry| leaves(entry.get("fieldsV1")))
        .collect();
    let mut alone = applied_by(object, manager);
    alone.retain(|path| !others.contains(path));
    alone
}

/// The managers besides `manager` that own part of what `object` is for, sorted. Status,
/// finalizers, owner references and annotations do not count: the kind's own controller leaves
/// those behind.
#[must_use]
pub fn sharers<'a>(object: &'a Value, manager: &str) -> Vec<&'a str> {
    const LEFT_BEHIND: [&str; 3] = ["f:finalizers", "f:ownerReferences", "f:annotations"];
    let counts = |path: &FieldPath| {
        let segments: Vec<_> = path.0.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["f:metadata", below, ..] => !LEFT_BEHIND.contains(below),
            ["f:metadata"] => false,
            _ => path.matters(),
        }
    };
    let others = entries(object)
        .filter(|entry| text(entry, "manager") != manager || text(entry, "operation") != "Apply")
        .filter(|entry| text(entry, "subresource") != "status")
        .filter(|entry| leaves(entry.get("fieldsV1")).iter().any(counts));
    let mut found: Vec<_> = others.map(|entry| text(entry, "manager")).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether `manager` looks like a controller, which would set its value again: it writes the
/// object's status, or has a name like one. Command-line tools and browsers are not controllers.
#[must_use]
pub fn is_controller(object: &Value, manager: &str) -> bool {
    const TOOLS: [&str; 5] = ["kubectl", "oc", "Mozilla", "node-fetch", "helm"];
    const CONTROLLERS: [&str; 3] = ["controller", "operator", "controller-manager"];
    if TOOLS.iter().any(|tool| manager.split(['-', '/']).next() == Some(tool)) && !manager.ends_with("controller") {
        return false;
    }
    let of_manager = |entry: &&Value| text(entry, "manager") == manager;
    let writes_status = entries(object)
        .filter(of_manager)
        .any(|entry| text(entry, "subresource") == "status" || entry.pointer("/fieldsV1/f:status").is_some());
    writes_status || CONTROLLERS.iter().any(|name| manager == *name || manager.ends_with(&format!("-{name}")))
}

/// For each list of `object` of which `owned` names single entries: the entries that are not among
/// them, by the path of the list.
#[must_use]
pub fn foreign_entries(object: &Value, owned: &[FieldPath]) -> BTreeMap<String, Vec<Value>> {
    let lookup = Lookup::of(object);
    // Only maps lie above the first entry.
    let at = |head: &[String]| head.iter().try_fold(object, |value, segment| Some(step(value, segment)?.1));
    let mut ours: BTreeMap<&[String], BTreeSet<usize>> = BTreeMap::new();
    for path in owned {
        let names_entry = |segment: &String| segment.starts_with("k:") || segment.starts_with("v:");
        let Some(depth) = path.0.iter().position(names_entry) else { continue };
        let (Some(head), Some(segment)) = (path.0.get(..depth), path.0.get(depth)) else { continue };
        let known = ours.entry(head).or_default();
        known.extend(at(head).and_then(|list| lookup.step(list, head, segment)).map(|(index, _)| index));
    }
    let lists = ours.into_iter().map(|(head, known)| {
        let entries = at(head).and_then(Value::as_array).into_iter().flatten().enumerate();
        let foreign = entries.filter(|(index, _)| !known.contains(index)).map(|(_, entry)| entry.clone());
        (FieldPath(head.to_vec()).to_string(), foreign.collect())
    });
    lists.collect()
}

/// The leaves of `object` itself, as if it were applied and every list had one owner: for objects
/// that no server has seen.
#[must_use]
pub fn leaves_of(object: &Value) -> Vec<FieldPath> {
    leaves_around(object, &[])
}

/// Like [`leaves_of`], but descends into the list entries that `owned` names by key: the fields
/// next to ours in these entries are leaves of their own.
#[must_use]
pub fn leaves_around(object: &Value, owned: &[FieldPath]) -> Vec<FieldPath> {
    let mut entries: BTreeMap<&[String], BTreeSet<&str>> = BTreeMap::new();
    for path in owned {
        for (depth, segment) in path.0.iter().enumerate().filter(|(_, segment)| segment.starts_with("k:")) {
            let list = path.0.get(..depth).unwrap_or_default();
            entries.entry(list).or_default().insert(segment);
        }
    }
    let mut found = Vec::new();
    below(object, &Named { entries, lookup: Lookup::of(object) }, &mut Vec::new(), &mut found);
    // Nobody owns the fields that identify an object.
    let identity = ["/f:apiVersion", "/f:kind", "/f:metadata/f:name", "/f:metadata/f:namespace"];
    found.retain(|path: &FieldPath| !identity.contains(&path.to_string().as_str()));
    found.sort();
    found
}

/// Entries of lists that `owned` names by key.
struct Named<'a> {
    /// The segments that name them, by the path of their list.
    entries: BTreeMap<&'a [String], BTreeSet<&'a str>>,
    lookup: Lookup<'a>,
}

fn below<'a>(value: &'a Value, named: &Named<'a>, path: &mut Vec<String>, found: &mut Vec<FieldPath>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, member) in map {
                path.push(format!("f:{name}"));
                below(member, named, path, found);
                path.pop();
            }
        }
        Value::Array(_) if named.entries.contains_key(path.as_slice()) => {
            for segment in named.entries.get(path.as_slice()).into_iter().flatten() {
                if let Some((_, entry)) = named.lookup.step(value, path, segment) {
                    path.push((*segment).to_owned());
                    below(entry, named, path, found);
                    path.pop();
                }
            }
        }
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.push(FieldPath(path.clone()));
        }
    }
}

/// The values of `object` at `paths`. A path without a value is kept as null, so that a deletion is
/// visible.
#[must_use]
pub fn view(object: &Value, paths: &[FieldPath]) -> BTreeMap<String, Value> {
    let object = Lookup::of(object);
    paths.iter().map(|path| (path.to_string(), object.resolve(path).cloned().unwrap_or_default())).collect()
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn leaves(fields: Option<&Value>) -> Vec<FieldPath> {
    let mut found = Vec::new();
    if let Some(Value::Object(map)) = fields {
        collect(map, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(map: &Map<String, Value>, path: &mut Vec<String>, found: &mut Vec<FieldPath>) {
    // `.` means that the container itself is owned; this matters only if nothing in it is.
    let members = map.iter().filter(|(segment, _)| segment.as_str() != ".");
    let mut empty = true;
    for (segment, below) in members {
        empty = false;
        path.push(segment.clone());
        match below {
            Value::Object(below) => collect(below, path, found),
            _ => found.push(FieldPath(path.clone())),
        }
        path.pop();
    }
    if empty && !path.is_empty() {
        found.push(FieldPath(path.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> Value {
        json!({
            "metadata": {"labels": {"a/b": "1", "example.dev/role": "x"}, "managedFields": [
                {"manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:a/b": {}}},
                    "f:spec": {
                        "f:list": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:size": {}}},
                        "f:set": {"v:\"x\"": {}},
                        "f:empty": {".": {}},
                    },
                    "f:status": {"f:phase": {}},
                }},
                {"manager": "them", "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:spec": {"f:mode": {}}}},
            ]},
            "spec": {"mode": "A", "empty": {}, "set": ["w", "x"], "list": [{"name": "a"}, {"name": "b", "size": 3}]},
        })
    }

    /// Fault R17: HyperConverged as observed after alice had written through v1beta1, with the real
    /// conversion webhook.
    #[test]
    fn r17_who_wrote_through_another_version_is_known_by_the_names_of_fields() {
        let entry = |manager: &str, version: &str, operation: &str, time: &str, fields: Value| json!({"manager": manager, "apiVersion": format!("hco.kubevirt.io/{version}"), "operation": operation, "time": time, "fieldsV1": {"f:spec": fields}});
        let ratio = json!({"f:memoryOvercommitPercentage": {}});
        let object = json!({"apiVersion": "hco.kubevirt.io/v1", "metadata": {"managedFields": [
            entry("us", "v1", "Apply", "2026-11-30T13:04:24Z", json!({"f:virtualization": {"f:ksmConfiguration": {"f:nodeLabelSelector": {}}}})),
            entry("kubectl-create", "v1", "Update", "2026-11-30T13:00:33Z", json!({"f:virtualization": {"f:higherWorkloadDensity": {}}})),
            entry("alice", "v1beta1", "Update", "2026-11-30T13:04:37Z", json!({"f:enableApplicationAwareQuota": {}, "f:higherWorkloadDensity": ratio})),
            json!({"manager": "operator", "apiVersion": "hco.kubevirt.io/v1beta1", "operation": "Update", "subresource": "status", "time": "2026-11-30T14:00:00Z",
                "fieldsV1": {"f:status": {"f:memoryOvercommitPercentage": {}, "f:nodeLabelSelector": {}}}}),
        ]}, "spec": {"virtualization": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 110}}}});
        assert!(has_other_versions(&object));
        let path = FieldPath::parse("/f:spec/f:virtualization/f:higherWorkloadDensity/f:memoryOvercommitPercentage");
        let owners = Owners::of(&object);
        assert_eq!(owners.last_of(&path), Some(("alice", "2026-11-30T13:04:37Z")));
        assert_eq!(owners.others_of(&path, "us"), ["alice", "kubectl-create"]);
        let other = FieldPath::parse("/f:spec/f:virtualization/f:ksmConfiguration/f:nodeLabelSelector");
        assert_eq!(owners.last_of(&other), Some(("us", "2026-11-30T13:04:24Z")));
    }

    #[test]
    fn leaves_of_all_three_list_kinds_resolve_to_their_values() {
        let object = object();
        let paths = applied_by(&object, "us");
        let found: Vec<_> =
            paths.iter().map(|path| (path.pointer(&object), path.resolve(&object).cloned().unwrap())).collect();
        assert_eq!(
            found,
            [
                ("/metadata/labels/a~1b".to_owned(), json!("1")),
                ("/spec/empty".to_owned(), json!({})),
                ("/spec/list/1/name".to_owned(), json!("b")),
                ("/spec/list/1/size".to_owned(), json!(3)),
                ("/spec/set/1".to_owned(), json!("x")),
            ]
        );
        for path in paths {
            assert_eq!(FieldPath::parse(&path.to_string()), path, "{path}");
        }
    }

    #[test]
    fn the_last_writer_is_named() {
        let path = FieldPath::parse("/f:spec/f:mode");
        let object = object();
        assert_eq!(Owners::of(&object).last_of(&path), Some(("them", "2026-01-02T00:00:00Z")));
        assert_eq!(Owners::of(&object).last_of(&FieldPath::parse("/f:spec/f:gone")), None);
    }

    #[test]
    fn a_value_that_is_gone_shows_in_the_view() {
        let view = view(&object(), &[FieldPath::parse("/f:spec/f:gone")]);
        assert_eq!(view.get("/f:spec/f:gone"), Some(&Value::Null));
    }
}
