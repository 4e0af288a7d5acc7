//! Redaction of values that must never be shown: those of Secrets, those at paths that a profile
//! marks as sensitive, and secrets in Ignition configurations. They are found by kind and place and
//! never by a name anywhere: plain text elsewhere is shown. Of a document that others keep too,
//! only the changed lines are shown, in the diff.
//!
//! Each value is replaced by a placeholder, and different values by different ones, so that a
//! change stays visible as a change. Placeholders are numbers and not digests: a weak password
//! could be guessed from its digest.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use profile_sdk::Document;
use serde_json::Value;

use crate::plan::items::ignition;
use object::pointer;

/// Members of a Secret that hold its values.
const SECRET_VALUES: [&str; 2] = ["/data", "/stringData"];
/// The beginning of a placeholder.
const HIDDEN: &str = "(hidden ";
/// The same, as JSON.
pub(in crate::plan) const PLACEHOLDER: &str = "\"(hidden";
/// Shown in place of a document that others keep too.
pub(in crate::plan) const DOCUMENT: &str = "(a document that others keep too; its changed lines are in the diff)";

/// Shows objects without their secret values. Use one for everything shown of a change, so that
/// equal values get equal placeholders, and different values different ones.
#[derive(Debug)]
pub struct Redactor {
    sensitive: Vec<String>,
    /// Pointers to the Ignition configurations of all states.
    configs: BTreeSet<String>,
    /// Files that only their owner may read in one of the states: their contents are hidden in all
    /// of them.
    private: BTreeSet<String>,
    /// The number of each hidden value, by the value as JSON.
    hidden: BTreeMap<String, usize>,
    /// The document that others keep too.
    document: Option<&'static Document>,
}

impl Redactor {
    /// Hides `sensitive` paths ([`pointer::expand`]) and everything that is always secret.
    /// `objects` are those that will be shown.
    #[must_use]
    pub fn new(sensitive: &[String], objects: &[&Value]) -> Self {
        let configs: BTreeSet<_> = objects.iter().flat_map(|object| ignition::configs(object)).collect();
        let private = |object: &Value| -> Vec<_> {
            configs.iter().flat_map(|config| ignition::private_files(object, config)).collect()
        };
        let private = objects.iter().flat_map(|object| private(object)).collect();
        let sensitive = sensitive.to_vec();
        let mut redactor = Self { sensitive, configs, private, hidden: BTreeMap::new(), document: None };
        for object in objects {
            for pointer in redactor.secret_pointers(object) {
                if let Some(value) = object.pointer(&pointer) {
                    let number = redactor.hidden.len() + 1;
                    redactor.hidden.entry(value.to_string()).or_insert(number);
                }
            }
        }
        redactor
    }

    /// Hides `document` as well.
    #[must_use]
    pub fn closing(self, document: Option<&'static Document>) -> Self {
        Self { document, ..self }
    }

    /// Whether a profile named paths to hide: then names of list entries may be secret too.
    #[must_use]
    pub fn is_told_to_hide(&self) -> bool {
        !self.sensitive.is_empty()
    }

    /// `object` as it may be shown. Copied only if something is hidden, because objects may be
    /// large.
    #[must_use]
    pub fn show<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let mut shown = self.show_with_document(object);
        let field = self.document.map(|document| document.field);
        if let Some(field) = field.filter(|field| shown.pointer(field).is_some_and(|text| !text.is_null()))
            && let Some(text) = shown.to_mut().pointer_mut(field)
        {
            *text = Value::from(DOCUMENT);
        }
        shown
    }

    /// Like [`Redactor::show`], but with the document, of which only changed lines may be shown.
    pub(in crate::plan) fn show_with_document<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let mut shown = Cow::Borrowed(object);
        for pointer in self.secret_pointers(object) {
            if let Some(value) = shown.to_mut().pointer_mut(&pointer) {
                *value = Value::from(match self.hidden.get(&value.to_string()) {
                    Some(number) => format!("{HIDDEN}{number})"),
                    None => "(hidden)".to_owned(),
                });
            }
        }
        shown
    }

    /// The places in `object` that are hidden: only those whose placeholder is one of `numbers`, or
    /// all of them.
    pub(in crate::plan) fn places(&self, object: &Value, numbers: Option<&BTreeSet<usize>>) -> BTreeSet<String> {
        let is_shown = |pointer: &String| {
            let number = object.pointer(pointer).and_then(|value| self.hidden.get(&value.to_string()));
            numbers.is_none_or(|numbers| number.is_some_and(|number| numbers.contains(number)))
        };
        let pointers = self.secret_pointers(object).into_iter().filter(is_shown);
        pointers.map(|pointer| place(object, &pointer)).collect()
    }

    fn secret_pointers(&self, object: &Value) -> Vec<String> {
        let mut found = Vec::new();
        if is_secret(object) {
            found.extend(SECRET_VALUES.iter().flat_map(|values| pointer::expand(object, &format!("{values}/*"))));
        }
        found.extend(self.sensitive.iter().flat_map(|path| pointer::expand(object, path)));
        found.extend(self.configs.iter().flat_map(|config| ignition::secrets(object, config, &self.private)));
        // What is below another hidden value is hidden with it.
        let all: BTreeSet<_> = found.into_iter().collect();
        let is_first = |pointer: &&String| !pointer.match_indices('/').any(|(end, _)| all.contains(&pointer[..end]));
        all.iter().filter(is_first).cloned().collect()
    }
}

/// The place of `pointer`, independent of the order of lists: entries by their path or name, if
/// they have one.
fn place(object: &Value, pointer: &str) -> String {
    let (mut place, mut value) = (String::new(), Some(object));
    for segment in pointer::segments(pointer) {
        let within = value;
        value = within.and_then(|value| match value {
            Value::Array(list) => segment.parse().ok().and_then(|index: usize| list.get(index)),
            value => value.get(&segment),
        });
        let told_apart = within
            .filter(|within| within.is_array())
            .and(value)
            .and_then(|entry| ["path", "name"].into_iter().find_map(|key| entry.get(key).and_then(Value::as_str)));
        pointer::push(&mut place, told_apart.unwrap_or(&segment));
    }
    place
}

/// The numbers of the placeholders in `text`.
pub(in crate::plan) fn numbers(text: &str) -> BTreeSet<usize> {
    let numbers = text.split(HIDDEN).skip(1).filter_map(|rest| rest.split_once(')'));
    numbers.filter_map(|(number, _)| number.parse().ok()).collect()
}

/// Whether all values of `object` are secret.
#[must_use]
pub fn is_secret(object: &Value) -> bool {
    let is = |key: &str, wanted: &str| object.get(key).and_then(Value::as_str) == Some(wanted);
    is("kind", "Secret") && is("apiVersion", "v1")
}

/// Whether `shown` contains a placeholder: its real value can't be compared with anything.
#[must_use]
pub fn is_hidden(shown: &Value) -> bool {
    let shown = shown.to_string();
    shown.contains(PLACEHOLDER) || shown.contains(DOCUMENT)
}

/// Whether something in `object` is never shown, whatever the profile declares.
#[must_use]
pub fn hides_something(object: &Value) -> bool {
    !Redactor::new(&[], &[object]).hidden.is_empty()
}

#[cfg(test)]
mod tests;
