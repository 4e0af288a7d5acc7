//! Reuse: an item whose plan can't have changed is not previewed again.

use serde_json::Value;

use profile_sdk::{Body, Draft};

use super::items::is_to_write;
use super::{GatherError, Gathering};
use crate::controller::memory::{CachedItem, Circumstances, Drafted};
use advisor_cluster::{LookUpError, Subject};
use advisor_core::api::{Operation, TargetRef};
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::items::document;
use advisor_core::plan::items::from_preview;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::target;
use advisor_engine::engine::version;

impl Gathering<'_> {
    /// The cached item, if neither its draft nor anything else that its plan depends on has
    /// changed.
    pub(super) async fn reused(
        &self,
        draft: &Draft,
        choices: &Choices,
        drafted: &Drafted,
        known: Option<&CachedItem>,
    ) -> Result<Option<PlanItem>, GatherError> {
        let Some(known) = known else {
            return Ok(None);
        };
        // Whether it can be previewed now depends on an earlier item.
        if known.item.operation == Operation::Deferred || (self.due && known.item.operation == Operation::Blocked) {
            return Ok(None);
        }
        let (now, then) = (self.circumstances(draft, choices, drafted), &known.circumstances);
        // An item that changes nothing has no effect, whatever the state of the rollouts.
        let same = known.draft == *draft
            && then.definition == now.definition
            && then.unwatched == now.unwatched
            && (then.rollouts == now.rollouts || known.item.operation == Operation::NoChange)
            && then.claims == now.claims
            && then.set_aside == now.set_aside
            && then.overrides == now.overrides;
        if !same {
            return Ok(None);
        }
        let remembered = self.status.items.iter().find(|item| item.name == draft.name);
        let to_write = remembered.is_some_and(is_to_write);
        let changed = self.changed.iter().any(|subject| is_of(subject, &known.item.target));
        if !self.all && !to_write && !changed {
            return Ok(Some(known.item.clone()));
        }
        // What was refused may be allowed now without any change of the object. And what remains of
        // a removal depends on other objects.
        let may_differ =
            self.all && known.item.operation == Operation::Remove && self.ctx.rollouts.has_effects(&known.item.target);
        if known.item.operation == Operation::Blocked || may_differ {
            return Ok(None);
        }
        let target = &known.item.target;
        let kind = match self.ctx.cluster.look_up_object(&target.empty()).await {
            Ok(Some(kind)) => kind,
            // If its group does not answer, the engine reports that.
            Ok(None) | Err(LookUpError::Group(_)) => return Ok(None),
            Err(LookUpError::Cluster(source)) => {
                return Err(GatherError::Object { object: target.to_string(), source });
            }
        };
        // If the object can't be read, the engine decides what that means.
        let Ok(live) = self.engine.get(&kind, target.namespace.as_deref(), &target.name).await else {
            return Ok(None);
        };
        if known.item.live.resource_version == live.as_deref().and_then(version) {
            return Ok(Some(known.item.clone()));
        }
        // Somebody edited fields that do not concern us: no request is needed. Except when this
        // decides what reboots machines.
        let plain = !self.all && draft.unwanted.is_empty() && !self.ctx.rollouts.has_effects(target);
        let document = document::declared_for(self.profile.kinds(), target);
        Ok(live.filter(|_| plain).and_then(|live| from_preview::unmoved(draft, document, &known.item, &live)))
    }

    /// The present state of what the plan of `draft` depends on besides its object.
    pub(super) fn circumstances(&self, draft: &Draft, choices: &Choices, drafted: &Drafted) -> Circumstances {
        let desired = desired(draft);
        let target = target::target(draft);
        Circumstances {
            unwatched: drafted.unwatched.contains_key(&draft.name),
            definition: desired.and_then(|desired| self.definition(desired)),
            rollouts: self.fingerprint(&target),
            claims: self.claims.iter().filter(|claim| claim.target.is_same_object(&target)).cloned().collect(),
            set_aside: choices.set_aside(draft),
            overrides: choices.of(&target).into_iter().cloned().collect(),
        }
    }

    /// What the rollouts look like, if the plan for `target` depends on them.
    fn fingerprint(&self, target: &TargetRef) -> String {
        let rollouts = &self.ctx.rollouts;
        if rollouts.has_effects(target) { rollouts.plan_fingerprint() } else { String::new() }
    }

    /// The version of the object's CRD, if a watch has reported it.
    fn definition(&self, desired: &Value) -> Option<String> {
        let kind = desired.get("kind").and_then(Value::as_str);
        let declared = self.profile.kinds().iter().find(|declared| Some(declared.kind.kind) == kind)?;
        self.ctx.watches.crd_version(&declared.kind.crd_name())
    }
}

/// Whether `subject` is the object `target`.
fn is_of(subject: &Subject, target: &TargetRef) -> bool {
    (subject.group.as_str(), &subject.kind, &subject.namespace, &subject.name)
        == (target.group(), &target.kind, &target.namespace, &target.name)
}

/// The object that a draft wants.
fn desired(draft: &Draft) -> Option<&Value> {
    match &draft.body {
        Body::Ensure(object) => Some(object),
        Body::Remove(_) | Body::Blocked { .. } => None,
    }
}
