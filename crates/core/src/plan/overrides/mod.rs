//! Overrides: what administrators want differently from the profile, in annotations of the object
//! itself, in `spec.overrides`, in the list of excluded objects, and in `spec.items`.
//!
//! ```text
//!   spec.items, exclusion ─► skipped: not read, not written
//!   mode unmanaged        ─► skipped: read, not written
//!   patches               ─► adjust ─► the desired object, as the profile drafted it, changed
//!   ignored fields        ─► adjust ─► left as they are, patched ones too
//! ```
//!
//! An override that can't be understood blocks its item: nobody can tell what was meant.

mod adjust;
mod exclusion;

use jiff::Timestamp;
use profile_sdk::{Body, DISABLED_RESOURCES, Draft};
use serde_json::Value;

use crate::api::{Input, ItemChoice, Override, OverrideMode, OverrideTarget, TargetRef};
use crate::plan::remedy::Remedy;
use crate::plan::target::target;
use crate::plan::wire;
pub use adjust::{Adjusted, Overrides};
pub use exclusion::Exclusions;
use object::limits::within_line;

/// Annotation of any target: JSON Patch operations (RFC 6902) on the profile's object.
pub const PATCH: &str = "platform.kubevirt.io/patch";
/// Annotation of any target: fields that are left to others.
pub const IGNORE: &str = "platform.kubevirt.io/ignore-fields";
/// Annotation of any target: `unmanaged` leaves the object alone.
pub const MODE: &str = "platform.kubevirt.io/mode";

/// The pointer to the value of `annotation` in an object.
fn place(annotation: &str) -> String {
    let mut pointer = "/metadata/annotations".to_owned();
    object::pointer::push(&mut pointer, annotation);
    pointer
}

/// The value of `annotation`, if the object has it and it is not blank.
fn annotation<'a>(object: &'a Value, annotation: &str) -> Option<&'a str> {
    let value = object.pointer(&place(annotation)).and_then(Value::as_str).map(str::trim);
    value.filter(|value| !value.is_empty())
}

/// The overriding annotations of `live`, as inputs of a plan.
#[must_use]
pub fn inputs(live: &Value) -> Vec<Input> {
    let found = |name: &&str| {
        annotation(live, name).map(|value| wire::input(TargetRef::of(live), &place(name), Some(value.into())))
    };
    [PATCH, IGNORE, MODE].iter().filter_map(found).collect()
}

/// Whether the input is an overriding annotation or the list of excluded objects.
#[must_use]
pub fn is_override(input: &Input) -> bool {
    [PATCH, IGNORE, MODE, DISABLED_RESOURCES].iter().any(|name| input.path == place(name))
}

/// The choices of one configuration that are in force now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choices {
    /// `spec.overrides`.
    pub overrides: Vec<Override>,
    /// `spec.items`, without those that have expired.
    pub items: Vec<ItemChoice>,
    /// The excluded objects.
    pub exclusions: Exclusions,
}

impl Choices {
    /// The choices that have not expired `now`.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.items.retain(|choice| choice.until.as_ref().is_none_or(|until| until.0 > now));
        self
    }

    /// The time when the next of them expires.
    #[must_use]
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.items.iter().filter_map(|choice| choice.until.as_ref()).map(|until| until.0);
        ends.filter(|end| *end > now).min()
    }

    /// The reason why `draft` is skipped, if it is.
    ///
    /// # Errors
    ///
    /// Why that can't be decided.
    pub fn set_aside(&self, draft: &Draft) -> Result<Option<String>, Remedy> {
        if let Some(choice) = self.items.iter().find(|choice| is_named(draft, &choice.name)) {
            let until = choice.until.as_ref().map(|until| format!(" until {}", until.0)).unwrap_or_default();
            let reason = within_line(&choice.reason);
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            return Ok(Some(format!("spec.items names {}{until}{reason}", within_line(&choice.name))));
        }
        self.exclusions.excludes(&target(draft))
    }

    /// The entries of `spec.overrides` about `target`.
    #[must_use]
    pub fn of(&self, target: &TargetRef) -> Vec<&Override> {
        self.overrides.iter().filter(|choice| is_about(&choice.target, target)).collect()
    }

    /// Entries of the spec that have no effect in a plan of `drafts`: a sentence for each.
    #[must_use]
    pub fn unused(&self, drafts: &[Draft]) -> Vec<String> {
        let items = self.items.iter().filter(|choice| !drafts.iter().any(|draft| is_named(draft, &choice.name)));
        let items = items.map(|choice| {
            format!("spec.items names {}, which is not an item or feature of this plan.", within_line(&choice.name))
        });
        let about = |choice: &&Override| drafts.iter().any(|draft| is_about(&choice.target, &target(draft)));
        let overrides = self.overrides.iter().filter(|choice| !about(choice)).map(|choice| {
            let OverrideTarget { kind, namespace, name, .. } = &choice.target;
            let namespace = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            let object = format!("{kind} {namespace}{name}");
            format!("spec.overrides names {}, which is not an object of this plan.", within_line(&object))
        });
        items.chain(overrides).collect()
    }
}

/// Whether `name` is the draft's name or that of its feature.
fn is_named(draft: &Draft, name: &str) -> bool {
    draft.name == name || draft.feature.as_deref() == Some(name)
}

fn is_about(about: &OverrideTarget, target: &TargetRef) -> bool {
    about.kind == target.kind
        && about.name == target.name
        && about.namespace == target.namespace
        && about.group.as_deref().is_none_or(|group| group == target.group())
}

/// The names of the drafts that need `draft`.
#[must_use]
pub fn dependants<'a>(draft: &Draft, drafts: &'a [Draft]) -> Vec<&'a str> {
    let needs = |other: &&Draft| other.needs.iter().any(|name| is_named(draft, name));
    drafts
        .iter()
        .filter(|other| !matches!(other.body, Body::Remove(_)))
        .filter(needs)
        .map(|other| other.name.as_str())
        .collect()
}

/// Whether the spec leaves the object alone.
fn is_unmanaged(entries: &[&Override]) -> bool {
    entries.iter().any(|entry| entry.mode == Some(OverrideMode::Unmanaged))
}

#[cfg(test)]
mod tests;
