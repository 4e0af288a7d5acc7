//! The fields that other configurations want of the same objects.
//!
//! Claims are read from the statuses, so they are the same after a restart. A claim can only make
//! an item Blocked: nothing is written because of it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::{Action, Operation, TargetRef, VirtPlatformConfig};
use crate::plan::items::redact;
use object::fields::{FieldPath, Lookup};
use object::quantity::canonical;

/// An object as another configuration wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The name of the configuration.
    pub config: String,
    /// The object.
    pub target: TargetRef,
    /// Whether the object is to exist, as opposed to a removal.
    pub wanted: bool,
    /// The desired object as displayed; null if it is too long for a status.
    desired: Value,
}

impl Claim {
    /// The claims of `config`, removals included. None with action Ignore, or while it is being
    /// deleted.
    #[must_use]
    pub fn all_of(config: &VirtPlatformConfig) -> Vec<Self> {
        let stands_aside = config.spec.action == Action::Ignore || config.metadata.deletion_timestamp.is_some();
        let items = config.status.iter().filter(|_| !stands_aside).flat_map(|status| &status.items);
        let items = items.filter(|item| item.operation != Operation::Skipped);
        let claims = items.map(|item| Self {
            config: config.spec.profile.clone(),
            target: item.target_ref.clone(),
            wanted: !item.prune,
            desired: item.desired_state.clone().unwrap_or_default(),
        });
        claims.collect()
    }

    /// Whether it wants any of these fields. A claim that is too long for a status may want all of
    /// them.
    #[must_use]
    pub fn wants_any_of(&self, paths: &[FieldPath]) -> bool {
        let desired = Lookup::of(&self.desired);
        self.desired.is_null() || paths.iter().any(|path| desired.resolve(path).is_some())
    }

    /// The first of the fields `owned` that this claim and `desired` want to have different values,
    /// where spellings of one amount at `quantities` are equal. Fields in `held` are already
    /// decided and do not count.
    #[must_use]
    pub fn against<'a>(
        &self,
        desired: &Value,
        quantities: &[String],
        owned: &'a [FieldPath],
        held: &[FieldPath],
    ) -> Option<&'a FieldPath> {
        let (ours, theirs) = (canonical(desired, quantities), canonical(&self.desired, quantities));
        let (ours, theirs) = (Lookup::of(&ours), Lookup::of(&theirs));
        let held: BTreeSet<_> = held.iter().collect();
        let differs = |path: &&FieldPath| match (theirs.resolve(path), ours.resolve(path)) {
            (Some(Value::Object(_)), Some(Value::Object(_))) | (None, _) | (_, None) => false,
            (Some(theirs), Some(ours)) => theirs != ours && !redact::is_hidden(theirs),
        };
        owned.iter().filter(|path| !held.contains(path)).find(differs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(desired: Value) -> Claim {
        let target = TargetRef { api_version: "g/v1".into(), kind: "K".into(), name: "x".into(), namespace: None };
        Claim { config: "other".into(), target, wanted: true, desired }
    }

    #[test]
    fn only_another_value_of_a_field_that_nobody_holds_is_contested() {
        let result = json!({"spec": {"size": 1, "map": {}, "list": [{"name": "a", "n": 1}], "secret": "x"}});
        let paths = ["/f:spec/f:size", "/f:spec/f:map", "/f:spec/f:list/k:{\"name\":\"a\"}/f:n", "/f:spec/f:secret"];
        let owned: Vec<_> = paths.iter().map(|path| FieldPath::parse(path)).collect();
        for (desired, contested) in [
            (json!({"spec": {"size": 1}}), None),
            (json!({"spec": {"size": 2}}), Some("/f:spec/f:size")),
            (json!({"spec": {"other": 2, "map": {"theirs": 1}}}), None),
            (json!({"spec": {"list": [{"name": "b", "n": 2}]}}), None),
            (json!({"spec": {"list": [{"name": "a", "n": 2}]}}), Some("/f:spec/f:list/k:{\"name\":\"a\"}/f:n")),
            (json!({"spec": {"secret": "(hidden 1)"}}), None),
        ] {
            let found = claim(desired.clone()).against(&result, &[], &owned, &[]).map(ToString::to_string);
            assert_eq!(found.as_deref(), contested, "{desired}");
        }
        let held = [FieldPath::parse("/f:spec/f:size")];
        assert_eq!(
            claim(json!({"spec": {"size": 2}})).against(&result, &[], &owned, &held),
            None,
            "it is ours already"
        );
        let ours = [FieldPath::parse("/f:spec/f:size")];
        for (desired, wants) in
            [(json!({"spec": {"size": 1}}), true), (json!({"spec": {"other": 1}}), false), (Value::Null, true)]
        {
            assert_eq!(claim(desired.clone()).wants_any_of(&ours), wants, "{desired}");
        }
        let memory = [FieldPath::parse("/f:spec/f:memory")];
        let (ours, theirs) = (json!({"spec": {"memory": "1024Mi"}}), claim(json!({"spec": {"memory": "1Gi"}})));
        assert_eq!(theirs.against(&ours, &["/spec/memory".into()], &memory, &[]), None, "the same amount");
    }
}
