//! An object in which several features have fields.

use profile_sdk::{Body, Draft};
use serde_json::Value;

use super::planned::PlannedFeature;

/// The spec of one object, merged from the fields of several features.
pub(super) struct SharedObject {
    spec: Value,
    reasons: Vec<&'static str>,
    notes: Vec<String>,
}

impl SharedObject {
    /// An object that no feature has fields in yet.
    pub(super) fn new(spec: Value) -> Self {
        Self { spec, reasons: Vec::new(), notes: Vec::new() }
    }

    /// Adds the fields of a feature.
    pub(super) fn add(&mut self, planned: &PlannedFeature, fields: Value) {
        merge(&mut self.spec, fields);
        self.reasons.push(planned.feature.does);
        self.notes.extend(planned.notes.iter().cloned());
    }

    /// Adds notes that belong to no single feature.
    pub(super) fn add_notes(&mut self, notes: impl Iterator<Item = String>) {
        self.notes.extend(notes);
    }

    /// The draft of `object` with this spec, for the item `name`. None if no feature has fields in
    /// it.
    pub(super) fn draft(self, name: impl Into<String>, mut object: Value) -> Option<Draft> {
        if self.reasons.is_empty() {
            return None;
        }
        object["spec"] = self.spec;
        let draft = Draft::new(name, Body::Ensure(object), self.reasons.join("; "));
        Some(Draft { notes: self.notes, ..draft })
    }
}

/// Adds `more` to `fields`, maps inside of maps. No two features have a field in common.
fn merge(fields: &mut Value, more: Value) {
    match (fields, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (fields, more) => *fields = more,
    }
}
