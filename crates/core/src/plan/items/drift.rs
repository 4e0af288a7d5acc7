//! Drift: applied fields that somebody changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::api::{Applied, Replaced};
use crate::plan::items::Moved;
use crate::plan::items::redact::{DOCUMENT, PLACEHOLDER, Redactor};
use crate::plan::wire::REPLACED_LIMIT;
use object::digest;
use object::fields::{self, FieldPath, Lookup};
use object::limits::{cut_text, within_line};
use object::quantity::canonical;

/// The most paths that are remembered of one object.
const PATH_LIMIT: usize = 1000;
/// The most bytes of a field manager's name that are shown. The API server allows 128.
const MANAGER_LIMIT: usize = 128;
/// The longest pointer to a replaced value, as in the CRD.
const REPLACED_PATH: usize = 256;
/// The most bytes of a value that are shown in a report of a change.
const GLIMPSE_LIMIT: usize = 120;

/// How values are compared: amounts in one spelling, and a map that is desired empty only by its
/// existence, since others own what they put into it.
#[derive(Debug, Clone, Copy)]
pub struct Lens<'a> {
    /// The object that is applied.
    pub desired: &'a Value,
    /// Pointers to quantities ([`object::pointer::expand`]).
    pub quantities: &'a [String],
    /// Whether paths are not remembered. Paths into lists contain values, which may be secret.
    pub hides_paths: bool,
}

impl Lens<'_> {
    /// The values of `object` at `paths`, by path.
    #[must_use]
    pub fn view(&self, object: &Value, paths: &[FieldPath]) -> BTreeMap<String, Value> {
        let object = canonical(object, self.quantities);
        let (object, desired) = (Lookup::of(&object), Lookup::of(self.desired));
        paths.iter().map(|path| (path.to_string(), value(path, &object, &desired))).collect()
    }
}

/// The value of `object` at `path` as [`Lens`] compares it.
fn value(path: &FieldPath, object: &Lookup<'_>, desired: &Lookup<'_>) -> Value {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    match object.resolve(path) {
        Some(Value::Object(_)) if desired.resolve(path).is_some_and(is_empty) => Value::Object(Map::new()),
        found => found.cloned().unwrap_or_default(),
    }
}

/// The record of an object that was written: its fields and a digest of their values. `None` if the
/// object has no uid, which no server ever answers.
#[must_use]
pub fn applied_view(object: &Value, owned: &[FieldPath], lens: Lens<'_>) -> Option<Applied> {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str)?.to_owned();
    let view = lens.view(object, owned);
    let mut applied =
        Applied { uid, paths: view.keys().cloned().collect(), paths_hash: None, hash: digest::sha256(&view) };
    if applied.paths.len() > PATH_LIMIT || lens.hides_paths {
        without_paths(&mut applied);
    }
    Some(applied)
}

/// Removes the paths of `applied`, which may be thousands; the beginning of their digest is kept to
/// recognize them.
pub(in crate::plan) fn without_paths(applied: &mut Applied) {
    if applied.paths_hash.is_none() {
        let mut hash = digest::sha256(&applied.paths);
        hash.truncate(16);
        applied.paths_hash = Some(hash);
        applied.paths.clear();
        applied.hash.truncate(32);
    }
}

/// A field of ours at the time of a plan: its value as far as it may be shown, and who wrote it
/// last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glimpse {
    /// The field, as an RFC 6901 pointer.
    pub pointer: String,
    /// The value, as JSON; empty if there is none.
    pub value: String,
    /// The field manager that wrote it last; empty if the object does not record it.
    pub manager: String,
    /// The time of that write, as the API server formats it.
    pub time: String,
}

impl Glimpse {
    fn by(&self) -> String {
        match (self.manager.as_str(), self.time.as_str()) {
            ("", _) => "changed by an unknown field manager".to_owned(),
            (manager, "") => format!("changed by field manager {manager}"),
            (manager, time) => format!("changed by field manager {manager} at {time}"),
        }
    }

    fn is_hidden(&self) -> bool {
        self.value.contains(PLACEHOLDER)
    }

    /// Whether a document that is not shown was written after `before`, which only its manager and
    /// time can tell.
    fn is_rewritten_since(&self, before: &Self) -> bool {
        self.value.contains(DOCUMENT)
            && self.value == before.value
            && (&self.manager, &self.time) != (&before.manager, &before.time)
    }

    fn displayed(&self) -> &str {
        if self.value.is_empty() { "absent" } else { &self.value }
    }
}

/// The name of a field manager for a sentence. It is untrusted: others choose it.
fn named(manager: &str) -> String {
    cut_text(&within_line(manager), MANAGER_LIMIT)
}

/// The fields `owned` of `live`, by path.
pub(in crate::plan) fn glimpses(
    live: &Value,
    owned: &[FieldPath],
    hides_paths: bool,
    redactor: &Redactor,
) -> BTreeMap<String, Glimpse> {
    let shown = redactor.show(live);
    let (live_fields, shown) = (Lookup::of(live), Lookup::of(&shown));
    let owners = fields::Owners::of(live);
    let glimpse = |path: &FieldPath| {
        let pointer = if hides_paths { live_fields.pointer_without_values(path) } else { live_fields.pointer(path) };
        let value = shown.resolve(path).map(|value| cut_text(&value.to_string(), GLIMPSE_LIMIT));
        let (manager, time) = owners.last_of(path).unwrap_or_default();
        let (manager, time) = (named(manager), time.to_owned());
        // By its path, which does not depend on the order of lists.
        (path.to_string(), Glimpse { pointer, value: value.unwrap_or_default(), manager, time })
    };
    owned.iter().take(PATH_LIMIT).map(glimpse).collect()
}

/// The values that an apply replaces in the item called `item`: those of `before` that differ in
/// `after`, both by path.
pub(in crate::plan) fn replaced(
    item: &str,
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
    glimpses: &BTreeMap<String, Glimpse>,
) -> Vec<Replaced> {
    let differing = before.iter().filter(|(path, value)| after.get(*path) != Some(value));
    let glimpses = differing.filter_map(|(path, _)| glimpses.get(path)).take(REPLACED_LIMIT);
    let replaced = |glimpse: &Glimpse| Replaced {
        item: item.to_owned(),
        path: cut_text(&within_line(&glimpse.pointer), REPLACED_PATH),
        was: cut_text(&within_line(&glimpse.value), GLIMPSE_LIMIT),
    };
    glimpses.map(replaced).collect()
}

/// The differences between two plans' views of an object, a sentence for each field.
#[must_use]
pub fn between(before: &BTreeMap<String, Glimpse>, after: &BTreeMap<String, Glimpse>) -> Vec<String> {
    let nothing = Glimpse::default();
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let pairs = paths.into_iter().map(|path| (path, before.get(path), after.get(path)));
    pairs
        .map(|(path, from, to)| (path, from.unwrap_or(&nothing), to.unwrap_or(&nothing)))
        // Placeholders of two plans can't be compared.
        .filter(|(_, from, to)| {
            to.is_rewritten_since(from) || (from.value != to.value && !(from.is_hidden() && to.is_hidden()))
        })
        .map(|(_, from, to)| {
            let pointer = if to.pointer.is_empty() { &from.pointer } else { &to.pointer };
            if to.is_rewritten_since(from) {
                return format!("{pointer} was rewritten, {}", to.by());
            }
            format!("{pointer} from {} to {}, {}", from.displayed(), to.displayed(), to.by())
        })
        .collect()
}

/// Fields last written at or after `since` by a manager whose name does not start with `manager`: a
/// sentence for each. For use when the earlier values are unknown.
#[must_use]
pub fn later_than(since: &str, manager: &str, fields: &BTreeMap<String, Glimpse>) -> Vec<String> {
    let later = fields.iter().filter(|(_, field)| field.time.as_str() >= since && !field.manager.starts_with(manager));
    let told = |field: &Glimpse| {
        format!(
            "{} is {}, last written by field manager {} at {}",
            field.pointer,
            field.displayed(),
            field.manager,
            field.time
        )
    };
    later.map(|(_, field)| told(field)).collect()
}

/// The changes in `live` since `applied` was recorded. `owned` are the fields that an apply owns
/// now, `result` is the object that it would produce.
pub(in crate::plan) fn moved_since(
    applied: &Applied,
    live: Option<&Value>,
    result: &Value,
    owned: &[FieldPath],
    lens: Lens<'_>,
    redactor: &Redactor,
) -> Vec<Moved> {
    let whole = |text: &str| vec![Moved { path: String::new(), text: text.to_owned() }];
    let Some(live) = live else {
        return whole("the object was deleted; the API server does not record by whom");
    };
    if live.pointer("/metadata/uid").and_then(Value::as_str) != Some(&applied.uid) {
        return whole("the object was deleted and created again");
    }
    let paths: Vec<_> = match &applied.paths_hash {
        None => applied.paths.iter().map(|path| FieldPath::parse(path)).collect(),
        Some(hash) => {
            let mut names: Vec<_> = owned.iter().map(ToString::to_string).collect();
            // Sorted as texts, like those that were remembered.
            names.sort();
            if !digest::sha256(&names).starts_with(hash) {
                // The desired fields are others now: it can't be determined which of the old ones
                // have changed.
                return Vec::new();
            }
            owned.to_vec()
        }
    };
    if digest::sha256(&lens.view(live, &paths)).starts_with(&applied.hash) {
        return Vec::new();
    }
    let (old, new) = (redactor.show(live), redactor.show(result));
    let owners = fields::Owners::of(live);
    let (before, after) = (canonical(live, lens.quantities), canonical(result, lens.quantities));
    let [live, desired, before, after, old, new] = [live, lens.desired, &before, &after, &old, &new].map(Lookup::of);
    // Otherwise the desired values differ from what was applied, and nobody changed a field away
    // from them.
    let restores = digest::sha256(&lens.view(result, owned)).starts_with(&applied.hash);
    let differing = owned.iter().chain(paths.iter().filter(|path| owned.binary_search(path).is_err()));
    let moved: Vec<_> = differing
        .filter(|path| value(path, &before, &desired) != value(path, &after, &desired))
        .map(|path| {
            let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
            let did = if restores { "changed" } else { "last written" };
            let by = match owners.last_of(path).filter(|_| live.resolve(path).is_some()) {
                Some((manager, time)) if !time.is_empty() => {
                    format!("{did} by field manager {} at {time}", named(manager))
                }
                Some((manager, _)) => format!("{did} by field manager {}", named(manager)),
                None if restores => "changed by an unknown field manager".to_owned(),
                None => "owned by no field manager".to_owned(),
            };
            let pointer = if lens.hides_paths { live.pointer_without_values(path) } else { live.pointer(path) };
            let (is, wanted) = (show(old.resolve(path)), show(new.resolve(path)));
            let text = match is == wanted {
                // The values are hidden.
                true => format!("{pointer} differs from what was applied, {by}"),
                false if restores => format!("{pointer} is {is} instead of {wanted}, {by}"),
                false => format!("{pointer} is {is}, {by}, and becomes {wanted} under this plan"),
            };
            Moved { path: pointer, text }
        })
        .collect();
    if moved.is_empty() { whole("fields that were applied now have other values") } else { moved }
}
