//! One object as an administrator wants it: the profile's object, patched, without the fields that
//! are left to others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{IGNORE, MODE, PATCH, annotation, is_unmanaged};
use crate::api::{Override, PatchOp, PatchOperation, TargetRef};
use crate::plan::remedy::Remedy;
use object::fields::{self, Copies, FieldPath, Lookup};
use object::limits::{
    ANNOTATION_SIZE, OBJECT_DEPTH, OBJECT_SIZE, OPERATIONS, PATCH_VALUES, POINTER_SIZE, POINTERS, count, cut_text,
    depth, size,
};
use object::pointer;

/// The most bytes of somebody else's text that a sentence quotes.
const QUOTED: usize = 200;
/// The most ignored fields that are named.
const NAMED: usize = 20;

/// The overrides of one object.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The setting that leaves the object alone, if one does.
    pub unmanaged: Option<String>,
    patches: Vec<Patch>,
    ignored: Vec<Ignored>,
}

#[derive(Debug, Clone)]
struct Patch {
    by: &'static str,
    operations: Vec<json_patch::PatchOperation>,
}

#[derive(Debug, Clone)]
struct Ignored {
    by: &'static str,
    pointer: String,
}

/// The desired object after the overrides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adjusted {
    /// The object that is sent.
    pub desired: Value,
    /// What was overridden and by which setting, for the reader.
    pub notes: Vec<String>,
    /// Fields that are left to others.
    pub ignored: Vec<FieldPath>,
}

impl From<Value> for Adjusted {
    /// An object without overrides.
    fn from(desired: Value) -> Self {
        Self { desired, ..Self::default() }
    }
}

impl Overrides {
    /// Reads the overrides from the annotations of `live` and from its `entries` in
    /// `spec.overrides`.
    ///
    /// # Errors
    ///
    /// A sentence: what can't be parsed, or is too much, and where.
    pub fn of(live: Option<&Value>, entries: &[&Override]) -> Result<Self, Remedy> {
        let by_itself = |name| live.map_or(Ok(None), |live| bounded(live, name));
        let mut all = Self::default();
        if is_unmanaged(entries) {
            all.unmanaged = Some("spec.overrides sets mode Unmanaged".to_owned());
        }
        match by_itself(MODE)? {
            None => {}
            Some("unmanaged") => all.unmanaged = Some(format!("its annotation {MODE} is unmanaged")),
            Some(other) => {
                return Err(format!(
                    "its annotation {MODE} is {:?}, but the only valid value is \"unmanaged\". Correct or remove it",
                    cut_text(other, QUOTED)
                )
                .into());
            }
        }
        for entry in entries {
            if let Some(index) = entry.patch.iter().position(lacks_value) {
                return Err(format!(
                    "spec.overrides, operation {} of {}: the value is missing (null can't be stored there). Set a value, or remove the field \
                     with op remove",
                    index + 1,
                    entry.patch.len()
                ).into());
            }
            if !entry.patch.is_empty() {
                let operations = serde_json::to_value(&entry.patch).and_then(serde_json::from_value);
                let operations = operations.map_err(|error| wrong("spec.overrides[].patch", &error))?;
                all.patches.push(Patch { by: "spec.overrides", operations });
            }
            let ignored = entry.ignore_fields.iter().cloned();
            all.ignored.extend(ignored.map(|pointer| Ignored { by: "spec.overrides", pointer }));
        }
        if let Some(text) = by_itself(PATCH)? {
            let operations =
                serde_json::from_str(text).map_err(|error| wrong(&format!("its annotation {PATCH}"), &error))?;
            all.patches.push(Patch { by: PATCH, operations });
        }
        if let Some(text) = by_itself(IGNORE)? {
            let pointers = pointers(text).map_err(|problem| wrong(&format!("its annotation {IGNORE}"), &problem))?;
            all.ignored.extend(pointers.into_iter().map(|pointer| Ignored { by: IGNORE, pointer }));
        }
        all.check()
    }

    /// Checks that there are not too many overrides and that every pointer is valid.
    fn check(self) -> Result<Self, Remedy> {
        let operations: usize = self.patches.iter().map(|patch| patch.operations.len()).sum();
        if operations > OPERATIONS {
            return Err(
                format!("{operations} operations patch it, but at most {OPERATIONS} are allowed. Remove some").into()
            );
        }
        if self.ignored.len() > POINTERS {
            return Err(format!(
                "{} of its fields are to be ignored, but at most {POINTERS} are allowed. Name their parent fields, or leave the whole object \
                 alone with mode unmanaged",
                self.ignored.len()
            ).into());
        }
        for ignored in &self.ignored {
            check_pointer(&ignored.pointer).map_err(|problem| wrong(ignored.by, &problem))?;
        }
        Ok(self)
    }

    /// Whether the field is left to others.
    #[must_use]
    pub fn leave(&self, field: &str) -> bool {
        self.ignored.iter().any(|ignored| is_part(field, &ignored.pointer))
    }

    /// Every pointer that the patches read from or write to.
    #[must_use]
    pub fn pointers(&self) -> Vec<&str> {
        use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
        let operations = self.patches.iter().flat_map(|patch| &patch.operations);
        let named = operations.flat_map(|operation| match operation {
            Move(moved) => vec![moved.path.as_str(), moved.from.as_str()],
            Copy(copied) => vec![copied.path.as_str(), copied.from.as_str()],
            Add(_) | Remove(_) | Replace(_) | Test(_) => vec![operation.path().as_str()],
        });
        named.collect()
    }

    /// `desired` after the overrides. `powerful` means that the kind runs code on machines or
    /// grants rights.
    ///
    /// # Errors
    ///
    /// A sentence: what may not be overridden, or can't be.
    pub fn adjust(
        &self,
        desired: &Value,
        live: Option<&Value>,
        manager: &str,
        powerful: bool,
    ) -> Result<Adjusted, Remedy> {
        let mut adjusted = Adjusted::from(desired.clone());
        let mut room = Room::beside(desired);
        for Patch { by, operations } in &self.patches {
            if powerful {
                let kind = TargetRef::of(desired).kind;
                return Err(format!(
                    "{by} patches a {kind}, which is not allowed for kinds that run code on machines or grant rights. Use an option of the profile, or leave the object alone"
                ).into());
            }
            for (index, operation) in operations.iter().enumerate() {
                let told = |problem: String| {
                    let (number, all) = (index + 1, operations.len());
                    format!("{by}, operation {number} of {all}: {problem}")
                };
                check_operation(operation).and_then(|()| room.take(operation, &adjusted.desired)).map_err(told)?;
                // One at a time: undoing several can panic (json-patch 4.2), and the result of a
                // failure is not used.
                json_patch::patch_unsafe(&mut adjusted.desired, std::slice::from_ref(operation)).map_err(|error| {
                    let path = cut_text(operation.path().as_str(), QUOTED);
                    told(format!(
                        "{path:?} can't be applied to what the profile wants: {}. Correct or remove the operation",
                        error.kind
                    ))
                })?;
            }
            let operations = match operations.len() {
                1 => "1 operation".to_owned(),
                many => format!("{many} operations"),
            };
            adjusted.notes.push(format!("{by} patches it ({operations})"));
        }
        let (before, after) = (TargetRef::of(desired), TargetRef::of(&adjusted.desired));
        if before != after {
            return Err(format!(
                "a patch turns it into {after}, but the fields that identify an object can't be overridden. Remove them from the patch"
            ).into());
        }
        let ours = live.map(|live| Ours::of(live, manager));
        let named: BTreeSet<_> = self.ignored.iter().map(|ignored| ignored.pointer.as_str()).collect();
        // A field within another ignored one is left alone with that.
        let is_whole = |pointer: &&&str| !pointer.match_indices('/').any(|(end, _)| named.contains(&pointer[..end]));
        for pointer in named.iter().filter(is_whole) {
            leave(&mut adjusted.desired, pointer, live, ours.as_ref())?;
        }
        for (index, Ignored { by, pointer }) in self.ignored.iter().enumerate() {
            adjusted.ignored.push(FieldPath::of_pointer(pointer));
            if index < NAMED {
                adjusted.notes.push(format!("{by} leaves {pointer} alone"));
            }
        }
        let more = self.ignored.len().saturating_sub(NAMED);
        if more > 0 {
            adjusted.notes.push(format!("{more} more fields are left alone"));
        }
        Ok(adjusted)
    }
}

fn wrong(by: &str, problem: &dyn std::fmt::Display) -> String {
    format!("{by} can't be understood: {}. Correct or remove it", cut_text(&problem.to_string(), 3 * QUOTED))
}

/// Whether the operation needs a value and has none.
fn lacks_value(operation: &PatchOperation) -> bool {
    operation.value.is_none() && matches!(operation.op, PatchOp::Add | PatchOp::Replace | PatchOp::Test)
}

/// The value of the annotation, if it is not too long.
fn bounded<'a>(live: &'a Value, name: &str) -> Result<Option<&'a str>, Remedy> {
    match annotation(live, name) {
        Some(text) if text.len() > ANNOTATION_SIZE => Err(format!(
            "its annotation {name} has {} bytes, but at most {ANNOTATION_SIZE} are allowed. Shorten or remove it",
            text.len()
        )
        .into()),
        found => Ok(found),
    }
}

/// The room that is left for patches: bytes and values that they may add to an object, and bytes
/// that they may move in it. Something that is copied again and again doubles each time.
struct Room {
    bytes: usize,
    values: usize,
    work: usize,
}

impl Room {
    fn beside(desired: &Value) -> Self {
        Self { bytes: OBJECT_SIZE.saturating_sub(size(desired)), values: PATCH_VALUES, work: 2 * OBJECT_SIZE }
    }

    /// Uses up the room that `operation` needs in `object`.
    fn take(&mut self, operation: &json_patch::PatchOperation, object: &Value) -> Result<(), String> {
        use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
        let (value, grows) = match operation {
            Add(add) => (Some(&add.value), true),
            Replace(replace) => (Some(&replace.value), true),
            Copy(copy) => (object.pointer(copy.from.as_str()), true),
            Move(moved) => (object.pointer(moved.from.as_str()), false),
            Test(test) => (Some(&test.value), false),
            Remove(_) => (None, false),
        };
        let path = operation.path().as_str();
        let Some(value) = value else { return Ok(()) };
        if path.matches('/').count() + depth(value) > OBJECT_DEPTH {
            return Err(format!(
                "the object would be nested more than {OBJECT_DEPTH} levels deep at {:?}. Use a flatter value",
                cut_text(path, QUOTED)
            ));
        }
        let bytes = size(value);
        let left = (self.bytes.checked_sub(if grows { bytes } else { 0 }), self.work.checked_sub(bytes));
        let (Some(left_bytes), Some(work)) = left else {
            return Err(format!(
                "the object would be larger than the {OBJECT_SIZE} bytes that the API server stores. Make the patch smaller"
            ));
        };
        let Some(values) = self.values.checked_sub(if grows { count(value) } else { 0 }) else {
            return Err(format!(
                "its patches add more than {PATCH_VALUES} values, maps and lists. Make them smaller, or have the object's owner set the values"
            ));
        };
        (self.bytes, self.values, self.work) = (left_bytes, values, work);
        Ok(())
    }
}

/// The fields that are ours alone, by their place; read once for all pointers.
struct Ours<'a> {
    places: BTreeMap<String, Vec<FieldPath>>,
    live: Lookup<'a>,
}

impl<'a> Ours<'a> {
    fn of(live: &'a Value, manager: &str) -> Self {
        let mut places: BTreeMap<String, Vec<FieldPath>> = BTreeMap::new();
        for owned in fields::owned_alone_by(live, manager) {
            places.entry(owned.within_maps()).or_default().push(owned);
        }
        Self { places, live: Lookup::of(live) }
    }

    /// Our fields at `field` and below it.
    fn within(&self, field: &str) -> impl Iterator<Item = &FieldPath> {
        let below = format!("{field}/");
        let parts = self.places.range(below.clone()..).take_while(move |(place, _)| place.starts_with(&below));
        self.places.get(field).into_iter().chain(parts.map(|(_, owned)| owned)).flatten()
    }

    /// Whether something that contains `field` is ours as a whole.
    fn around(&self, field: &str) -> bool {
        field.match_indices('/').any(|(end, _)| self.places.contains_key(&field[..end]))
    }
}

/// The pointers in the annotation: separated by commas, or as a JSON list if a pointer contains a
/// comma.
fn pointers(text: &str) -> Result<Vec<String>, String> {
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    Ok(text.split(',').map(str::trim).filter(|pointer| !pointer.is_empty()).map(str::to_owned).collect())
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    let wrong = |problem: &str| Err(format!("{:?} {problem}", cut_text(pointer, QUOTED)));
    if pointer.len() > POINTER_SIZE || pointer.matches('/').count() > OBJECT_DEPTH {
        return wrong("is too long: name a parent of the field");
    }
    if !pointer.starts_with('/') {
        return wrong("is not an RFC 6901 pointer: it must begin with /");
    }
    if pointer.split('/').nth(1) == Some("") {
        return wrong("names no field: its first part is empty");
    }
    let escapes = pointer.split('~').skip(1);
    if escapes.into_iter().any(|rest| !rest.starts_with(['0', '1'])) {
        return wrong("has a ~ that is neither ~0 nor ~1");
    }
    if names_the_object(pointer) {
        return wrong(
            "names the object as a whole, or a part that identifies it or that only the server sets: to leave the whole object alone, use mode unmanaged",
        );
    }
    Ok(())
}

/// Whether the pointer is to the whole object, to what identifies it, or to what only the server
/// sets.
fn names_the_object(pointer: &str) -> bool {
    let segments: Vec<_> = pointer.split('/').skip(1).collect();
    match segments.as_slice() {
        [] | ["apiVersion" | "kind" | "status", ..] | ["metadata"] => true,
        ["metadata", part, ..] => !matches!(*part, "labels" | "annotations"),
        _ => false,
    }
}

fn check_operation(operation: &json_patch::PatchOperation) -> Result<(), String> {
    use json_patch::PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
    let from = match operation {
        Move(moved) => Some(moved.from.as_str()),
        Copy(copied) => Some(copied.from.as_str()),
        Add(_) | Remove(_) | Replace(_) | Test(_) => None,
    };
    let paths = [Some(operation.path().as_str()), from];
    if let Some(path) = paths.into_iter().flatten().find(|path| path.len() > POINTER_SIZE) {
        return Err(format!(
            "{:?} is too long for a pointer: at most {POINTER_SIZE} bytes are allowed. Replace a parent of the field",
            cut_text(path, QUOTED)
        ));
    }
    match paths.into_iter().flatten().find(|path| names_the_object(path)) {
        Some(path) => Err(format!(
            "{:?} may not be patched: it is the whole object, identifies it, or is set only by the server. Remove the operation",
            cut_text(path, QUOTED)
        )),
        None => Ok(()),
    }
}

/// Removes `field` from `desired`. Where the object has a value in it that is ours alone, that
/// value is desired instead: an apply without it would delete it. Anyone who changes it becomes its
/// owner. Values of others are left to them.
fn leave(desired: &mut Value, field: &str, live: Option<&Value>, ours: Option<&Ours<'_>>) -> Result<(), Remedy> {
    if through_list(desired, field) || live.is_some_and(|live| through_list(live, field)) {
        return Err(format!(
            "{field} points into a list, whose entries have no fixed positions. Ignore the whole list instead"
        )
        .into());
    }
    pointer::take(desired, field);
    let (Some(live), Some(ours)) = (live, ours) else { return Ok(()) };
    let mut copies = Copies::of(&ours.live);
    ours.within(field).for_each(|owned| copies.put(owned, desired));
    if let Some(there) = live.pointer(field).filter(|_| ours.around(field)) {
        pointer::put(desired, field, there.clone());
    }
    Ok(())
}

/// Whether the field at `pointer` is the one at `whole`, or a part of it.
fn is_part(pointer: &str, whole: &str) -> bool {
    pointer.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn through_list(desired: &Value, field: &str) -> bool {
    let parents = field.match_indices('/').map(|(end, _)| &field[..end]).filter(|parent| !parent.is_empty());
    parents.into_iter().any(|parent| desired.pointer(parent).is_some_and(Value::is_array))
}
