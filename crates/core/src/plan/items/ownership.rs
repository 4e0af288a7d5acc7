//! Ownership of an object's fields: what an apply takes from others, what others keep, and what
//! earlier versions owned.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::{Conflict, FIELD_MANAGER};
use crate::plan::items::redact::Redactor;
use object::diff;
use object::fields::{self, FieldPath, Lookup, Owners};
use object::limits::{cut_text, within_line};

/// The longest value that is shown with a conflict, in bytes of JSON. The diff shows longer ones.
const VALUE_LIMIT: usize = 1024;
/// The longest path and name, as in the CRD.
const PATH_LIMIT: usize = 1024;
const MANAGER_LIMIT: usize = 256;
/// The most bytes of a value that a sentence quotes.
const QUOTE_LIMIT: usize = 200;

/// The conflicts that the server reports, with both values, in a stable order. The first member of
/// each pair is the path, which does not depend on the order of lists.
pub(in crate::plan) fn conflicts(
    live: Option<&Value>,
    result: &Value,
    named: &[(FieldPath, String)],
    redactor: &Redactor,
) -> Vec<(String, Conflict)> {
    let nothing = Value::Null;
    let live = live.unwrap_or(&nothing);
    let shown = [redactor.show(live), redactor.show(result)];
    let [shown_live, shown_result] = shown.each_ref().map(|shown| Lookup::of(shown));
    let places = Lookup::of(live);
    let mut controllers: BTreeMap<&str, bool> = BTreeMap::new();
    let mut list: Vec<_> = named
        .iter()
        .map(|(path, manager)| {
            let fits = |value: &&Value| !value.is_null() && value.to_string().len() <= VALUE_LIMIT;
            let value = |object: &Lookup<'_>| object.resolve(path).filter(fits).cloned().map(diff::legible);
            let pointer =
                if redactor.is_told_to_hide() { places.pointer_without_values(path) } else { places.pointer(path) };
            let is_controller = || fields::is_controller(live, manager);
            let conflict = Conflict {
                path: cut_text(&within_line(&pointer), PATH_LIMIT),
                manager: cut_text(&within_line(manager), MANAGER_LIMIT),
                live: value(&shown_live),
                desired: value(&shown_result),
                controller: *controllers.entry(manager).or_insert_with(is_controller),
            };
            (path.to_string(), conflict)
        })
        .collect();
    // The server reports them in random order.
    list.sort_by(|(a, one), (b, other)| (a, &one.manager).cmp(&(b, &other.manager)));
    list
}

/// The entries of lists and maps that are replaced as a whole and whose replacement lacks them, as
/// `/path: entry`. Not those of a list or map that we own alone.
pub(in crate::plan) fn lost_entries(live: &Value, result: &Value, manager: &str, redactor: &Redactor) -> Vec<String> {
    let alone = fields::owned_alone_by(live, manager);
    let shown = [redactor.show(live), redactor.show(result)];
    let [shown_live, shown_result] = shown.each_ref().map(|shown| Lookup::of(shown));
    let places = Lookup::of(live);
    let owned = fields::applied_by(result, manager);
    let replaced = owned.iter().filter(|path| alone.binary_search(path).is_err());
    let mut lost = Vec::new();
    for path in replaced {
        let pointer = places.pointer(path);
        match (shown_live.resolve(path), shown_result.resolve(path)) {
            (Some(Value::Array(before)), Some(Value::Array(after))) => {
                // Each entry as often as it disappears. An entry that stays with other contents is
                // a change and not lost.
                let mut rest: BTreeMap<String, usize> = BTreeMap::new();
                for entry in after {
                    *rest.entry(told_apart(entry)).or_default() += 1;
                }
                for entry in before {
                    match rest.get_mut(&told_apart(entry)).filter(|count| **count > 0) {
                        Some(count) => *count -= 1,
                        None => lost.push(format!("{pointer}: {}", brief(entry))),
                    }
                }
            }
            (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) => {
                let gone = diff::changes(before, after).into_iter().filter(|change| change.to.is_none());
                lost.extend(gone.map(|change| {
                    let value = change.from.as_ref().map(brief).unwrap_or_default();
                    format!("{pointer}{}: {value}", change.path)
                }));
            }
            _ => {}
        }
    }
    lost
}

/// Fields that stay although they are not desired: fields that we give up and others own too, and
/// `unwanted` ones that an apply can't remove. A sentence for each.
pub(in crate::plan) fn kept_fields(
    live: Option<&Value>,
    result: &Value,
    manager: &str,
    unwanted: &[String],
    redactor: &Redactor,
) -> Vec<String> {
    let shown = redactor.show(result);
    let (shown_fields, places) = (Lookup::of(&shown), Lookup::of(result));
    let owners = Owners::of(result);
    let mut kept = Vec::new();
    if let Some(live) = live {
        let ours = fields::applied_by(result, manager);
        let given_up = fields::applied_by(live, manager).into_iter().filter(|path| ours.binary_search(path).is_err());
        for path in given_up {
            // If others own fields below a map, it stays because of those, which were never ours.
            let is_parent = |value: &Value| value.is_object() && !owners.is_leaf_of_others(&path, manager);
            if let Some(value) = shown_fields.resolve(&path).filter(|value| !is_parent(value)) {
                kept.push(stays(&places.pointer(&path), value, &owners.others_of(&path, manager)));
            }
        }
    }
    for pointer in unwanted {
        if let Some(value) = shown.pointer(pointer) {
            kept.push(stays(pointer, value, &owners.others_of(&FieldPath::of_pointer(pointer), manager)));
        }
    }
    kept
}

fn stays(pointer: &str, value: &Value, owners: &[&str]) -> String {
    let value = brief(value);
    match owners {
        [] => format!("{pointer} stays {value}: no field manager owns it, so it is a default of the kind"),
        owners => {
            format!("{pointer} stays {value}: {} owns it, and an apply can't remove it", owners.join(", "))
        }
    }
}

/// A sentence about the fields owned under the manager name without a profile, which the Go program
/// and earlier versions used, and how many of them are in `owned`. Empty if there are none.
pub(in crate::plan) fn earlier(live: Option<&Value>, owned: &[FieldPath]) -> String {
    let before = live.map(|live| fields::applied_by(live, FIELD_MANAGER)).unwrap_or_default();
    let taken = before.iter().filter(|path| owned.binary_search(path).is_ok()).count();
    match (before.len(), taken) {
        (0, _) => String::new(),
        (all, taken) => format!(
            "An earlier version of this operator (field manager {FIELD_MANAGER}) owns {all} of its fields; {taken} of them \
             are taken over, the others stay as they are."
        ),
    }
}

/// `value` as short as distinguishes it: an entry of a list by what identifies it.
fn brief(value: &Value) -> String {
    match identity(value) {
        Some((key, name)) => format!("{key} {}", cut_text(name, QUOTE_LIMIT)),
        None => cut_text(&value.to_string(), QUOTE_LIMIT),
    }
}

/// The member that identifies an entry of a list, by the conventions of Kubernetes and Ignition.
fn identity(value: &Value) -> Option<(&'static str, &str)> {
    ["name", "path", "key", "id"].into_iter().find_map(|key| Some((key, value.get(key)?.as_str()?)))
}

/// A text that distinguishes an entry of a list from the others: what identifies it, or else all of
/// it.
fn told_apart(entry: &Value) -> String {
    identity(entry).map_or_else(|| entry.to_string(), |(key, name)| format!("{key}\n{name}"))
}
