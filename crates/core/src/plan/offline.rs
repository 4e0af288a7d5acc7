//! Plans made from recorded objects, without an API server: a view of what a profile would do to a
//! cluster of which there is only a copy.
//!
//! Such a plan is approximate. Nothing here predicts defaults, admission or ownership: what only
//! the server knows is left out, and the plan says so (others learned why:
//! <https://github.com/argoproj/argo-cd/issues/11574>). Its digest approves nothing.

use std::sync::Arc;

use profile_sdk::{Body, Declared, Document, Draft, LeftOutFeature, is_powerful};
use serde_json::Value;

use crate::api::TargetRef;
use crate::plan::check_drafts;
use crate::plan::items::document;
use crate::plan::items::from_preview::compose;
use crate::plan::items::{Effect, Preview};
use crate::plan::overrides::{Choices, Overrides, dependants};
use crate::plan::remedy::Remedy;
use crate::plan::target::target;
use crate::plan::{Basis, Plan};
use object::diff;

/// A plan that no API server has previewed: it can be read, and nothing that carries out plans
/// takes it.
#[derive(Debug)]
pub struct ApproximatePlan(Plan);

impl ApproximatePlan {
    /// The same with the features that the profile leaves out.
    #[must_use]
    pub fn with_left_out(self, left_out: Vec<LeftOutFeature>) -> Self {
        Self(Plan { left_out, ..self.0 })
    }

    /// The plan, to be printed.
    #[must_use]
    pub fn to_read(&self) -> &Plan {
        &self.0
    }
}

/// Predicts the effect elsewhere of applying an object, from the object as it is and as it would
/// be. The error says why it must not be applied.
pub type Foresight<'a> = &'a dyn Fn(&TargetRef, Option<&Value>, &Value) -> Result<Effect, Remedy>;

/// The plan of `drafts`, whose profile declares `kinds`, on a cluster that holds only the
/// `recorded` objects.
///
/// # Errors
///
/// A sentence if no plan can be made of the drafts.
pub fn plan(
    basis: Basis,
    drafts: &[Draft],
    kinds: &[Declared],
    choices: &Choices,
    recorded: &[Value],
    foresight: Foresight<'_>,
) -> Result<ApproximatePlan, Remedy> {
    check_drafts::all(drafts, &basis.inputs)?;
    let items = drafts.iter().map(|draft| {
        let set_aside = |why: String, live: Option<&Value>| {
            let needed_by = dependants(draft, drafts).into_iter().map(str::to_owned).collect();
            Preview::SetAside { live: live.cloned().map(Arc::new), why, needed_by }
        };
        let shared = document::declared_for(kinds, &target(draft));
        let aside = choices.set_aside(draft).transpose();
        let aside = aside.map(|aside| aside.map_or_else(Preview::refused, |why| set_aside(why, None)));
        let judged = || match (check_drafts::one(draft, drafts), &draft.body) {
            (Some(problem), _) => Preview::refused(problem),
            (None, Body::Blocked { remedy, .. }) => Preview::refused(remedy.clone()),
            (None, Body::Remove(_)) => {
                Preview::refused("without an API server it is unknown who else owns fields of the object")
            }
            (None, Body::Ensure(desired)) => {
                let target = target(draft);
                let live = find(recorded, &target);
                match Overrides::of(live, &choices.of(&target)) {
                    Err(problem) => Preview::refused(problem),
                    Ok(Overrides { unmanaged: Some(why), .. }) => set_aside(why, live),
                    Ok(overrides) => merged_into(shared, &overrides, desired, live),
                }
            }
        };
        let preview = aside.unwrap_or_else(judged);
        match effect(draft, &preview, foresight) {
            Ok(effect) => compose(draft, shared, "", preview, effect, None),
            Err(remedy) => compose(draft, shared, "", Preview::refused(remedy), Effect::default(), None),
        }
    });
    Ok(ApproximatePlan(Plan::new(basis, items.collect())))
}

/// The effect of an item; none if it changes nothing.
fn effect(draft: &Draft, preview: &Preview, foresight: Foresight<'_>) -> Result<Effect, Remedy> {
    match preview {
        Preview::Approximate { live, result, .. }
            if live.as_deref().map(diff::without_noise) != Some(diff::without_noise(result)) =>
        {
            foresight(&target(draft), live.as_deref(), result)
        }
        _ => Ok(Effect::default()),
    }
}

/// The result of applying `desired`. If the object holds a document that others keep too, the
/// settings are merged into it.
fn merged_into(
    shared: Option<&'static Document>,
    overrides: &Overrides,
    desired: &Value,
    live: Option<&Value>,
) -> Preview {
    let touched = shared.and_then(|document| document::touched_by(document, &overrides.pointers()));
    if let Some(problem) = touched {
        return Preview::refused(format!("{}: {problem}.", TargetRef::of(desired)));
    }
    match shared.filter(|document| !overrides.leave(document.field)) {
        Some(document) => match document::into_document(document, desired, live, false) {
            Ok(merged) => approximate(overrides, &merged, live),
            Err(problem) => Preview::refused(problem),
        },
        None => approximate(overrides, desired, live),
    }
}

fn approximate(overrides: &Overrides, desired: &Value, live: Option<&Value>) -> Preview {
    let target = TargetRef::of(desired);
    match overrides.adjust(desired, live, "", is_powerful(target.group(), &target.kind)) {
        Err(problem) => Preview::refused(problem),
        Ok(adjusted) => {
            let result = live.map_or_else(|| adjusted.desired.clone(), |live| merged(live, &adjusted.desired));
            Preview::Approximate { adjusted, live: live.cloned().map(Arc::new), result }
        }
    }
}

/// The recorded object that `target` refers to, in whatever version it was recorded.
fn find<'a>(recorded: &'a [Value], target: &TargetRef) -> Option<&'a Value> {
    recorded.iter().find(|object| TargetRef::of(object).is_same_object(target))
}

/// `live` with the fields of `desired`: maps are merged, everything else is replaced.
fn merged(live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut merged_map = live.clone();
            for (key, value) in desired {
                let value = live.get(key).map_or_else(|| value.clone(), |live| merged(live, value));
                merged_map.insert(key.clone(), value);
            }
            Value::Object(merged_map)
        }
        (_, desired) => desired.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Operation;
    use serde_json::json;

    fn widget(spec: Value) -> Value {
        json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
    }

    fn planned(desired: Value, recorded: &[Value]) -> Plan {
        plan(
            Basis::default(),
            &[Draft::new("w", Body::Ensure(desired), "sizes it")],
            &[],
            &Choices::default(),
            recorded,
            &|_, _, _| Ok(Effect::default()),
        )
        .unwrap()
        .0
    }

    #[test]
    fn s23_a_plan_from_recorded_objects_says_that_it_is_approximate() {
        let mut live = widget(json!({"size": 1, "colour": "red"}));
        live["apiVersion"] = json!("example.dev/v1alpha1");
        let plan = planned(widget(json!({"size": 2})), &[live]);
        let item = &plan.items[0];
        assert_eq!(item.operation, Operation::Update);
        assert!(
            item.review.diff.contains("-  size: 1\n+  size: 2\n") && item.review.diff.contains(" colour: red"),
            "{}",
            item.review.diff
        );
        assert!(item.review.message.contains("Approximate"), "{}", item.review.message);
    }

    #[test]
    fn w1_the_digest_of_an_approximate_plan_approves_no_other() {
        let draft = Draft::new("w", Body::Ensure(widget(json!({"size": 2}))), "sizes it");
        let desired = widget(json!({"size": 2}));
        let preview = Preview::Known {
            adjusted: desired.clone().into(),
            live: None,
            result: desired.clone(),
            conflicts: Vec::new(),
        };
        let real = Plan::new(Basis::default(), vec![compose(&draft, None, "us", preview, Effect::default(), None)]);
        assert_ne!(planned(desired, &[]).digest, real.digest);
    }

    #[test]
    fn what_is_as_wanted_and_what_is_new_are_told_apart() {
        assert_eq!(planned(widget(json!({"size": 2})), &[]).items[0].operation, Operation::Create);
        let live = widget(json!({"size": 2, "more": true}));
        assert_eq!(planned(widget(json!({"size": 2})), &[live]).items[0].operation, Operation::NoChange);
        let draft = Draft::new("w", Body::Ensure(json!({})), "is broken");
        assert_eq!(
            plan(Basis::default(), &[draft], &[], &Choices::default(), &[], &|_, _, _| Ok(Effect::default()))
                .unwrap()
                .0
                .items[0]
                .operation,
            Operation::Blocked
        );
    }
}
