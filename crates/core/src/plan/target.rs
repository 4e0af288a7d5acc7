//! The object that a draft is about, and what the profile declares of it.

use profile_sdk::{Body, Declared, Draft};

use crate::api::TargetRef;

impl From<profile_sdk::ObjectRef> for TargetRef {
    fn from(object: profile_sdk::ObjectRef) -> Self {
        Self { api_version: object.api_version, kind: object.kind, name: object.name, namespace: object.namespace }
    }
}

/// The object that a draft is about.
#[must_use]
pub fn target(draft: &Draft) -> TargetRef {
    match &draft.body {
        Body::Ensure(object) => TargetRef::of(object),
        Body::Remove(target) | Body::Blocked { target, .. } => target.clone().into(),
    }
}

/// The declaration in `kinds` of exactly this object, or else the first one of its kind.
#[must_use]
pub fn declared<'a>(kinds: &'a [Declared], target: &TargetRef) -> Option<&'a Declared> {
    let kind = (target.group(), target.kind.as_str());
    let mut of_kind = kinds.iter().filter(|declared| (declared.kind.group, declared.kind.kind) == kind);
    let first = of_kind.clone().next();
    of_kind.find(|declared| declared.name == Some(&target.name)).or(first)
}
