//! One object as an administrator wants it: what the profile wants of it, patched, without the fields that are left to others.

use serde_json::Value;

use super::super::fields::{self, FieldPath};
use super::super::pointer;
use super::{IGNORE, MODE, PATCH, annotation, is_unmanaged};
use crate::api::{Override, TargetRef};

/// What is said of one object.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// By what it is left alone, if it is.
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
    /// What is sent.
    pub desired: Value,
    /// What was overridden and by what, for the reader.
    pub notes: Vec<String>,
    /// Fields that are left to others.
    pub ignored: Vec<FieldPath>,
}

impl From<Value> for Adjusted {
    /// What nobody wants otherwise.
    fn from(desired: Value) -> Self {
        Self { desired, ..Self::default() }
    }
}

impl Overrides {
    /// What the annotations of `live` and the `entries` of `spec.overrides` say.
    ///
    /// # Errors
    ///
    /// What can't be understood, and where it is.
    pub fn of(live: Option<&Value>, entries: &[&Override]) -> Result<Self, String> {
        let by_itself = |name| live.and_then(|live| annotation(live, name));
        let mut all = Self::default();
        if is_unmanaged(entries) {
            all.unmanaged = Some("spec.overrides says Unmanaged".to_owned());
        }
        match by_itself(MODE) {
            None => {}
            Some("unmanaged") => all.unmanaged = Some(format!("its annotation {MODE} is unmanaged")),
            Some(other) => {
                return Err(format!(
                    "its annotation {MODE} is {other:?}; unmanaged is all that it can be: correct it or take it away"
                ));
            }
        }
        let wrong = |by: &str, problem: &dyn std::fmt::Display| {
            format!("{by} can't be understood: {problem}. Correct it or take it away")
        };
        for entry in entries {
            if !entry.patch.is_empty() {
                let operations = serde_json::to_value(&entry.patch).and_then(serde_json::from_value);
                let operations = operations.map_err(|error| wrong("spec.overrides[].patch", &error))?;
                all.patches.push(Patch { by: "spec.overrides", operations });
            }
            let ignored = entry.ignore_fields.iter().cloned();
            all.ignored.extend(ignored.map(|pointer| Ignored { by: "spec.overrides", pointer }));
        }
        if let Some(text) = by_itself(PATCH) {
            let operations =
                serde_json::from_str(text).map_err(|error| wrong(&format!("its annotation {PATCH}"), &error))?;
            all.patches.push(Patch { by: PATCH, operations });
        }
        if let Some(text) = by_itself(IGNORE) {
            let pointers = pointers(text).map_err(|problem| wrong(&format!("its annotation {IGNORE}"), &problem))?;
            all.ignored.extend(pointers.into_iter().map(|pointer| Ignored { by: IGNORE, pointer }));
        }
        for ignored in &all.ignored {
            check_pointer(&ignored.pointer).map_err(|problem| wrong(ignored.by, &problem))?;
        }
        Ok(all)
    }

    /// Whether the field is left to others.
    #[must_use]
    pub fn leave(&self, field: &str) -> bool {
        let is_part =
            |pointer: &str| field.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.ignored.iter().any(|ignored| is_part(&ignored.pointer))
    }

    /// Every pointer that the patches name, by which they write and from which they read.
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

    /// `desired` as it is wanted then. `powerful` says that the kind runs code on machines or grants rights.
    ///
    /// # Errors
    ///
    /// What may not be overridden, or can't be.
    pub fn adjust(
        &self,
        desired: &Value,
        live: Option<&Value>,
        manager: &str,
        powerful: bool,
    ) -> Result<Adjusted, String> {
        let mut adjusted = Adjusted::from(desired.clone());
        for Patch { by, operations } in &self.patches {
            if powerful {
                let kind = TargetRef::of(desired).kind;
                return Err(format!(
                    "{by} patches a {kind}, which runs code on machines or grants rights: that is not allowed. Use an option of the profile, or leave the object alone"
                ));
            }
            for operation in operations {
                check_operation(operation).map_err(|problem| format!("{by}: {problem}"))?;
            }
            json_patch::patch(&mut adjusted.desired, operations)
                .map_err(|error| format!("{by} does not fit what the profile wants: {error}"))?;
            let operations = if operations.len() == 1 {
                "1 operation".to_owned()
            } else {
                format!("{} operations", operations.len())
            };
            adjusted.notes.push(format!("{by} patches it ({operations})"));
        }
        let (before, after) = (TargetRef::of(desired), TargetRef::of(&adjusted.desired));
        if before != after {
            return Err(format!("a patch makes {after} of it: what names an object can't be overridden"));
        }
        for Ignored { by, pointer } in &self.ignored {
            leave(&mut adjusted.desired, pointer, live, manager)?;
            adjusted.ignored.push(FieldPath::of_pointer(pointer));
            adjusted.notes.push(format!("{by} leaves {pointer} alone"));
        }
        Ok(adjusted)
    }
}

/// The pointers of the annotation: with commas between them, or as a JSON list where one holds a comma.
fn pointers(text: &str) -> Result<Vec<String>, String> {
    if text.starts_with('[') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    Ok(text.split(',').map(str::trim).filter(|pointer| !pointer.is_empty()).map(str::to_owned).collect())
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    let wrong = |problem: &str| Err(format!("{pointer:?} {problem}"));
    if !pointer.starts_with('/') {
        return wrong("is no RFC 6901 pointer: it begins with /");
    }
    if pointer.split('/').nth(1) == Some("") {
        return wrong("names no field: its first part is empty");
    }
    let escapes = pointer.split('~').skip(1);
    if escapes.into_iter().any(|rest| !rest.starts_with(['0', '1'])) {
        return wrong("has a ~ that is neither ~0 nor ~1");
    }
    if names_the_object(pointer) {
        return wrong("names the object, or all of it: leave the whole object alone with mode unmanaged");
    }
    Ok(())
}

/// Whether the pointer is to the whole object, to what names it, or to what only the server sets.
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
    let path = operation.path();
    let from = match operation {
        Move(moved) => Some(moved.from.as_str()),
        Copy(copied) => Some(copied.from.as_str()),
        Add(_) | Remove(_) | Replace(_) | Test(_) => None,
    };
    let forbidden = [Some(path.as_str()), from].into_iter().flatten().find(|path| names_the_object(path));
    match forbidden {
        Some(path) => Err(format!(
            "{path:?} may not be patched: it names the object, is all of it, or is set by the server alone"
        )),
        None => Ok(()),
    }
}

/// Takes the field out of what is wanted. What the object has of it by us alone stays wanted as it is there: an apply without
/// it would delete it. Whoever changes it has it from then on. What others have of it is theirs alone.
fn leave(desired: &mut Value, field: &str, live: Option<&Value>, manager: &str) -> Result<(), String> {
    if through_list(desired, field) || live.is_some_and(|live| through_list(live, field)) {
        return Err(format!(
            "{field} leads into a list, whose entries have no fixed places: leave the whole list alone"
        ));
    }
    pointer::take(desired, field);
    let Some(live) = live else { return Ok(()) };
    let is_part =
        |part: &str, of: &str| part.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    for owned in fields::owned_alone_by(live, manager) {
        let place = owned.within_maps();
        if is_part(&place, field) {
            owned.copy(live, desired);
        } else if let Some(there) = live.pointer(field).filter(|_| is_part(field, &place)) {
            // It is a part of what is ours as a whole.
            pointer::put(desired, field, there.clone());
        }
    }
    Ok(())
}

fn through_list(desired: &Value, field: &str) -> bool {
    let parents = field.match_indices('/').map(|(end, _)| &field[..end]).filter(|parent| !parent.is_empty());
    parents.into_iter().any(|parent| desired.pointer(parent).is_some_and(Value::is_array))
}
