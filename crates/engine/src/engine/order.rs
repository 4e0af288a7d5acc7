//! Which items need others before they can be previewed: those whose namespace or kind is created
//! by another item.

use std::collections::BTreeSet;

use profile_sdk::{Body, Draft};
use serde_json::Value;

use advisor_core::api::TargetRef;
use advisor_core::plan::target::target;

/// The draft that creates the namespace or the kind of another one, and whether it comes before
/// that one.
pub(super) struct BroughtKind<'a> {
    pub(super) draft: &'a Draft,
    pub(super) is_earlier: bool,
    /// What it creates, for a sentence.
    pub(super) what: String,
}

/// The names of the drafts that create a namespace or a kind.
pub(super) fn providers(drafts: &[Draft]) -> BTreeSet<&str> {
    let brings = drafts.iter().filter(|draft| ensured(draft).is_some_and(|object| brought(object).is_some()));
    brings.map(|draft| draft.name.as_str()).collect()
}

/// The drafts without which `draft` can't be previewed: those that create its namespace or its
/// kind.
pub(super) fn needed<'a>(draft: &Draft, drafts: &'a [Draft]) -> Vec<BroughtKind<'a>> {
    let object = target(draft);
    let place = |wanted: &Draft| {
        let index = drafts.iter().position(|other| other.name == wanted.name);
        (wanted.wave, index)
    };
    let others = drafts.iter().filter(|other| other.name != draft.name);
    let needed = others.filter_map(|other| {
        let brought = brought(ensured(other)?)?;
        brought.is_for(&object).then(|| BroughtKind {
            draft: other,
            is_earlier: place(other) < place(draft),
            what: brought.text(),
        })
    });
    needed.collect()
}

fn ensured(draft: &Draft) -> Option<&Value> {
    match &draft.body {
        Body::Ensure(object) => Some(object),
        Body::Remove(_) | Body::Blocked { .. } => None,
    }
}

enum Brought<'a> {
    Namespace(&'a str),
    Kind { group: &'a str, kind: &'a str },
}

/// The namespace or kind that `object` creates.
fn brought(object: &Value) -> Option<Brought<'_>> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    match (text("/apiVersion")?, text("/kind")?) {
        ("v1", "Namespace") => Some(Brought::Namespace(text("/metadata/name")?)),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            Some(Brought::Kind { group: text("/spec/group")?, kind: text("/spec/names/kind")? })
        }
        _ => None,
    }
}

impl Brought<'_> {
    fn is_for(&self, target: &TargetRef) -> bool {
        match self {
            Self::Namespace(name) => target.namespace.as_deref() == Some(name),
            Self::Kind { group, kind } => (target.group(), target.kind.as_str()) == (*group, *kind),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Namespace(name) => format!("namespace {name}"),
            Self::Kind { kind, .. } => format!("kind {kind}"),
        }
    }
}
