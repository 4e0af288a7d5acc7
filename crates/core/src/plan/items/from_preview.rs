//! Turns the preview of a draft into the item that a person reviews.

use std::borrow::Cow;
use std::collections::BTreeSet;

use profile_sdk::{Body, Document, Draft, Impact};
use serde_json::{Value, json};

use crate::api::{Item, Operation, Severity, TargetRef};
use crate::plan::items::beside;
use crate::plan::items::document;
use crate::plan::items::drift::{self, Lens, applied_view};
use crate::plan::items::health::{self, Rollout};
use crate::plan::items::message;
use crate::plan::items::ownership;
use crate::plan::items::redact::{self, Redactor};
use crate::plan::items::{Effect, LiveObject, OwnedFields, PlanItem, Preview, Review};
use crate::plan::overrides::{self, Adjusted};
use crate::plan::remedy::Remedy;
use crate::plan::target::target;
use object::embedded_files::Texts;
use object::fields::{self, FieldPath, Lookup, Paths};
use object::limits::is_plain;
use object::quantity::canonical;
use object::{diff, digest, pointer};

/// Makes the item of `draft` from its `preview`. `document` is the field of its object that others
/// keep too ([`document::declared_for`]), `manager` the field manager that applies it, `remembered`
/// the item with that name in the status.
#[must_use]
pub fn compose(
    draft: &Draft,
    document: Option<&'static Document>,
    manager: &str,
    preview: Preview,
    effect: Effect,
    remembered: Option<&Item>,
) -> PlanItem {
    match preview {
        Preview::Known { adjusted, live, result, conflicts } => {
            let states = States { live: live.as_deref(), result: Some(&result), document };
            let item = applied(draft, manager, &adjusted, &states, &conflicts, effect, remembered);
            overridden(item, adjusted, live.as_deref())
        }
        Preview::Approximate { adjusted, live, result } => {
            let states = States { live: live.as_deref(), result: Some(&result), document };
            let item = approximate(draft, &adjusted.desired, &states, effect);
            overridden(item, adjusted, live.as_deref())
        }
        Preview::SetAside { live, why, needed_by } => set_aside(draft, live.as_deref(), &why, &needed_by),
        Preview::Removal { live, result, leaves, stays_for } => {
            let states = States { live: live.as_deref(), result: result.as_ref(), document };
            let item = removal(draft, manager, &states, stays_for, effect);
            match leaves.filter(|_| item.operation == Operation::Remove) {
                None => item,
                // Others keep the remaining text, so it is reviewed too.
                Some(leaves) => {
                    let hash = digest::sha256(&json!([item.hash, leaves]));
                    let message = format!(
                        "{} The rest of the shared document keeps this configuration's field manager until somebody else writes it.",
                        item.review.message
                    );
                    PlanItem { hash, review: Review { message, desired: leaves, ..item.review }, ..item }
                }
            }
        }
        Preview::Deferred { desired, after } => deferred(draft, &desired, &after),
        Preview::Refused { remedy, passing } => refused(draft, remedy, passing),
    }
}

/// `item`, which was unchanged, updated to its object as it is now. `None` if any applied field has
/// moved or the item needs a new preview. Needs no request: only values are compared.
#[must_use]
pub fn unmoved(draft: &Draft, document: Option<&'static Document>, item: &PlanItem, live: &Value) -> Option<PlanItem> {
    let simple = item.operation == Operation::NoChange
        && item.review.kept.is_empty()
        && item.review.overriding == overrides::inputs(live);
    let applied = item.live.applied.as_ref().filter(|_| simple)?;
    let hides_paths = !draft.sensitive.is_empty();
    let lens = Lens { desired: &item.review.desired, quantities: &draft.quantities, hides_paths };
    let now = applied_view(live, &item.fields.owned, lens)?;
    let redactor = Redactor::new(&draft.sensitive, &[live]).closing(document);
    let being_deleted = metadata(live, "deletionTimestamp").is_some();
    (now.uid == applied.uid && now.hash == applied.hash && !being_deleted).then(|| {
        let live = LiveObject {
            resource_version: metadata(live, "resourceVersion"),
            glimpses: drift::glimpses(live, &item.fields.owned, hides_paths, &redactor),
            rollout: match item.live.has_status {
                true => health::as_reported(health::rollout_of(live), live),
                false => health::rollout_of(live),
            },
            speaks: health::speaks(live),
            trouble: health::trouble(live),
            ..item.live.clone()
        };
        PlanItem { live, ..item.clone() }
    })
}

/// The object before and after the change.
struct States<'a> {
    live: Option<&'a Value>,
    result: Option<&'a Value>,
    /// The field of it that others keep too.
    document: Option<&'static Document>,
}

/// The normalized states of a change, from which its operation, its severity and its diff are made.
struct BeforeAfter {
    before: Option<Value>,
    after: Option<Value>,
    redactor: Redactor,
    document: Option<&'static Document>,
}

impl BeforeAfter {
    fn of(states: &States<'_>, draft: &Draft) -> Self {
        let before = states.live.map(diff::without_noise);
        let after = states.result.map(diff::without_noise);
        let both: Vec<_> = before.iter().chain(&after).collect();
        let redactor = Redactor::new(&draft.sensitive, &both).closing(states.document);
        Self { before, after, redactor, document: states.document }
    }

    /// The operation that applying it amounts to.
    fn operation(&self) -> Operation {
        match (&self.before, &self.after) {
            (None, _) => Operation::Create,
            (before, after) if before == after => Operation::NoChange,
            (Some(_), _) => Operation::Update,
        }
    }

    /// The diff as a person reads it.
    fn text(&self, target: &TargetRef) -> String {
        let shown = [&self.before, &self.after]
            .map(|object| object.as_ref().map(|object| self.redactor.show_with_document(object)));
        let texts = Texts::of(shown.iter().flatten().map(AsRef::as_ref));
        let readable = |shown: Cow<'_, Value>| diff::legible(texts.readable(shown.into_owned()));
        let name = target.to_string();
        let Some(document) = self.document else {
            // One after the other: each may be large.
            let [before, after] = shown.map(|shown| shown.map(|shown| diff::yaml(&readable(shown))));
            return diff::of_texts(&name, before.as_deref(), after.as_deref());
        };
        let exists = shown.each_ref().map(Option::is_some);
        let [before, after] = document::by_lines(document, shown.map(|shown| shown.map(readable).unwrap_or_default()));
        diff::changed_lines(&name, exists[0].then_some(&before), exists[1].then_some(&after))
    }

    /// `item`, which was made from this change, with a message that says which values are not
    /// shown.
    fn with_hidden_values(&self, mut item: PlanItem) -> PlanItem {
        let Review { conflicts, lost, kept, diff, shown, desired, .. } = &item.review;
        let conflicts = conflicts.iter().flat_map(|conflict| [&conflict.live, &conflict.desired]).flatten();
        let values = conflicts.map(Value::to_string).chain(item.live.moved.iter().map(|moved| moved.text.clone()));
        let said = values.chain(lost.iter().chain(kept).cloned()).chain([diff.clone()]);
        let numbers = said.flat_map(|text| redact::numbers(&text)).collect();
        let states = self.before.iter().chain(&self.after);
        let mut places: BTreeSet<_> = states.flat_map(|state| self.redactor.places(state, Some(&numbers))).collect();
        if !shown.is_null() {
            places.extend(Redactor::new(&item.fields.sensitive, &[desired]).places(desired, None));
        }
        let document = self.document.filter(|_| self.before.is_some() && !diff.is_empty());
        let document = document.map(|document| document.field);
        let message = std::mem::take(&mut item.review.message);
        item.review.message = message::with_what_is_not_shown(message, places.len(), document);
        item
    }
}

/// `desired` without the fields left to others: changes that others make to them must not change
/// the plan hash.
fn without(desired: &Value, ignored: &[FieldPath]) -> Value {
    let mut rest = desired.clone();
    ignored.iter().for_each(|path| pointer::take(&mut rest, &path.within_maps()));
    rest
}

/// The largest desired object that is shown in a status, in bytes of JSON. A larger one is not
/// shown, nor one with characters that are not displayed as themselves: the diff shows it.
const SHOWN_LIMIT: usize = 8 * 1024;

/// The desired object as displayed in a status; null if it can't be.
fn desired_for_status(draft: &Draft, document: Option<&'static Document>, desired: &Value) -> Value {
    let shown = Redactor::new(&draft.sensitive, &[desired]).closing(document).show(desired);
    let text = shown.to_string();
    if text.len() <= SHOWN_LIMIT && is_plain(&text) { shown.into_owned() } else { Value::Null }
}

fn applied(
    draft: &Draft,
    manager: &str,
    adjusted: &Adjusted,
    states: &States<'_>,
    conflicts: &[(FieldPath, String)],
    effect: Effect,
    remembered: Option<&Item>,
) -> PlanItem {
    let change = BeforeAfter::of(states, draft);
    let (desired, nothing) = (&adjusted.desired, Value::Null);
    let (live, result) = (states.live, states.result.unwrap_or(&nothing));
    let operation = change.operation();
    let changes = operation != Operation::NoChange;
    let effect = if changes { effect } else { Effect::default() };

    // The fields that the apply will own, and those that we own now and it removes.
    let mut owned = fields::applied_by(result, manager);
    owned.extend(live.map(|live| fields::applied_by(live, manager)).unwrap_or_default());
    owned.sort();
    owned.dedup();
    // Changes to fields that are left to others are not drift.
    let ignored: Paths = adjusted.ignored.iter().cloned().collect();
    owned.retain(|path| !ignored.touches(path));

    let target = TargetRef::of(result);
    let uid = live.and_then(|live| metadata(live, "uid"));
    let conflicts = if changes { ownership::conflicts(live, result, conflicts, &change.redactor) } else { Vec::new() };
    let lost = match live {
        Some(live) if changes => ownership::lost_entries(live, result, manager, &change.redactor),
        _ => Vec::new(),
    };
    let kept = ownership::kept_fields(live, result, manager, &draft.unwanted, &change.redactor);
    let lens = Lens { desired, quantities: &draft.quantities, hides_paths: !draft.sensitive.is_empty() };
    let view = |object: &Option<Value>| object.as_ref().map(|object| lens.view(object, &owned));
    let mut review = json!({
        "target": target,
        "uid": uid,
        "operation": operation,
        "desired": canonical(&without(desired, &adjusted.ignored), &draft.quantities),
        "live": view(&change.before),
        "result": view(&change.after),
        "beside": beside(&change, &owned),
        "conflicts": conflicts.iter().map(|(path, conflict)| (path, &conflict.manager)).collect::<Vec<_>>(),
        "pools": effect.pools.keys().collect::<Vec<_>>(),
    });
    if !effect.overridden.is_empty() {
        review["overridden"] = json!(effect.overridden);
    }
    if !effect.drained.is_empty() {
        review["drained"] = json!(effect.drained.keys().collect::<Vec<_>>());
    }
    let conflicts: Vec<_> = conflicts.into_iter().map(|(_, conflict)| conflict).collect();
    let sentences = message::Sentences { conflicts: &conflicts, lost: &lost, kept: &kept, effect: &effect };
    let message = message::of_apply(draft, operation, &sentences, &ownership::earlier(live, &owned));
    let memory = remembered.and_then(|item| item.applied.as_ref());
    let moved = memory.map(|memory| drift::moved_since(memory, live, result, &owned, lens, &change.redactor));
    let glimpses = live.map(|live| drift::glimpses(live, &owned, lens.hides_paths, &change.redactor));
    let (glimpses, expected) = (glimpses.unwrap_or_default(), view(&change.after).unwrap_or_default());
    let replaced = match view(&change.before).filter(|_| changes) {
        Some(before) => drift::replaced(&draft.name, &before, &expected, &glimpses),
        None => Vec::new(),
    };
    let mut item = PlanItem::new(draft, target, operation);
    item.hash = digest::sha256(&review);
    item.live = LiveObject {
        uid,
        resource_version: live.and_then(|live| metadata(live, "resourceVersion")),
        applied: live.filter(|_| !changes).and_then(|live| applied_view(live, &owned, lens)),
        moved: moved.unwrap_or_default(),
        glimpses,
        speaks: live.is_some_and(health::speaks),
        trouble: live.and_then(health::trouble),
        ..LiveObject::unknown(live.map_or_else(|| waiting("does not exist yet"), health::rollout_of))
    };
    item.review = Review {
        severity: severity(draft.impact, operation, &change, &effect),
        diff: change.text(&item.target),
        desired: desired.clone(),
        shown: desired_for_status(draft, states.document, desired),
        message,
        conflicts,
        lost,
        kept,
        replaced,
        effect,
        ..Review::default()
    };
    item.fields = OwnedFields {
        beside: change.after.iter().filter(|_| changes).flat_map(|after| beside::paths(after, &owned)).collect(),
        owned,
        expected,
        ..item.fields
    };
    change.with_hidden_values(item)
}

/// `item` with its overrides and their inputs.
fn overridden(mut item: PlanItem, adjusted: Adjusted, live: Option<&Value>) -> PlanItem {
    if !adjusted.notes.is_empty() {
        item.review.message.push_str(&format!(" Overridden: {}.", adjusted.notes.join("; ")));
    }
    item.review.overrides = adjusted.notes;
    item.review.overriding = live.map(overrides::inputs).unwrap_or_default();
    item
}

/// The item of an object that an administrator skips. Its record of what was applied stays as it
/// is.
fn set_aside(draft: &Draft, live: Option<&Value>, why: &str, needed_by: &[String]) -> PlanItem {
    let target = target(draft);
    let needed = match needed_by {
        [] => String::new(),
        [item] => format!(" Item {item} depends on it: skip both, or change the options."),
        items => format!(" These items depend on it: {}. Skip all of them, or change the options.", items.join(", ")),
    };
    let mut item = PlanItem::new(draft, target, Operation::Skipped);
    item.hash = digest::sha256(&json!({"target": item.target, "operation": Operation::Skipped}));
    item.review.message = format!("Skipped: {why}. It is neither applied nor monitored for drift.{needed}");
    item.review.overrides = vec![why.to_owned()];
    item.review.overriding = live.map(overrides::inputs).unwrap_or_default();
    item.live.rollout = Rollout::Done("skipped".to_owned());
    // Distinguishes it from an object that does not exist: an item skipped by an annotation is
    // planned again when the object is gone.
    item.live.resource_version = live.and_then(|live| metadata(live, "resourceVersion"));
    item
}

/// The item of a plan from recorded objects. Its digest is never that of a plan that a server has
/// previewed.
fn approximate(draft: &Draft, desired: &Value, states: &States<'_>, effect: Effect) -> PlanItem {
    let change = BeforeAfter::of(states, draft);
    let operation = change.operation();
    let target = TargetRef::of(desired);
    let review = json!({
        "approximate": true,
        "target": target,
        "operation": operation,
        "desired": canonical(desired, &draft.quantities),
        "before": change.before,
        "pools": effect.pools.keys().collect::<Vec<_>>(),
    });
    let kept =
        ownership::kept_fields(states.live, states.result.unwrap_or(desired), "", &draft.unwanted, &change.redactor);
    let sentences = message::Sentences { conflicts: &[], lost: &[], kept: &kept, effect: &effect };
    let mut item = PlanItem::new(draft, target, operation);
    item.hash = digest::sha256(&review);
    item.fields.owned = fields::leaves_of(desired);
    item.review = Review {
        severity: severity(draft.impact, operation, &change, &effect),
        diff: change.text(&item.target),
        desired: desired.clone(),
        shown: desired_for_status(draft, states.document, desired),
        message: format!(
            "{} Approximate: no API server was asked, so defaults, admission and field ownership are not included.",
            message::of_apply(draft, operation, &sentences, "")
        ),
        kept,
        effect,
        ..Review::default()
    };
    change.with_hidden_values(item)
}

fn removal(draft: &Draft, manager: &str, states: &States<'_>, stays_for: Vec<String>, effect: Effect) -> PlanItem {
    let change = BeforeAfter::of(states, draft);
    // In the version that is served now.
    let target = states.live.map_or_else(|| target(draft), TargetRef::of);
    let Some(live) = states.live else {
        return already_gone(draft, target, waiting_for_nothing());
    };
    if metadata(live, "deletionTimestamp").is_some() && states.result.is_none() {
        let mut item =
            already_gone(draft, target, waiting(&format!("its deletion is not complete{}", message::held_by(live))));
        // Without it, the object would look absent: that it has gone since must be told from that
        // it is held.
        item.live.resource_version = metadata(live, "resourceVersion");
        return item;
    }
    // No field of it is ours: there is nothing to remove.
    let operation = if change.before == change.after { Operation::NoChange } else { Operation::Remove };
    let effect = if operation == Operation::NoChange { Effect::default() } else { effect };
    let owned = fields::applied_by(live, manager);
    let uid = metadata(live, "uid");
    let mut review = json!({
        "target": target,
        "uid": uid,
        "operation": operation,
        "goes": states.result.is_none(),
        "live": match states.result {
            // The object is deleted, so all of it is reviewed.
            None => change.before.clone(),
            Some(_) => change.before.as_ref().map(|before| json!(fields::view(before, &owned))),
        },
        "pools": effect.pools.keys().collect::<Vec<_>>(),
    });
    if !effect.drained.is_empty() {
        review["drained"] = json!(effect.drained.keys().collect::<Vec<_>>());
    }
    let lead = message::of_removal(draft, operation, states.result.is_none(), &stays_for, &effect);
    let mut item = PlanItem::new(draft, target, operation);
    item.hash = digest::sha256(&review);
    item.fields.owned = owned;
    item.live = LiveObject {
        uid,
        resource_version: metadata(live, "resourceVersion"),
        ..LiveObject::unknown(waiting_for_nothing())
    };
    item.review = Review {
        severity: severity(draft.impact, operation, &change, &effect),
        diff: change.text(&item.target),
        // What remains is what an apply without fields leaves.
        desired: states.result.map(|_| item.target.empty()).unwrap_or_default(),
        message: lead,
        effect,
        ..Review::default()
    };
    change.with_hidden_values(item)
}

/// The item of a removal whose object does not exist, or will not for long.
fn already_gone(draft: &Draft, target: TargetRef, rollout: Rollout) -> PlanItem {
    let state = if matches!(rollout, Rollout::Done(_)) { "deleted" } else { "being deleted" };
    let reason = message::capitalised(&draft.reason);
    let mut item = PlanItem::new(draft, target, Operation::NoChange);
    item.hash = digest::sha256(&json!({"target": item.target, "operation": Operation::NoChange}));
    item.review.message = format!("{}: the object is already {state}. {reason}.", message::NO_CHANGE);
    item.live.rollout = rollout;
    item
}

fn deferred(draft: &Draft, desired: &Value, after: &str) -> PlanItem {
    let target = TargetRef::of(desired);
    let change = BeforeAfter::of(&States { live: None, result: Some(desired), document: None }, draft);
    let review = json!({
        "target": target,
        "operation": Operation::Deferred,
        "desired": canonical(desired, &draft.quantities),
        "after": after,
    });
    let mut item = PlanItem::new(draft, target, Operation::Deferred);
    item.hash = digest::sha256(&review);
    item.live.rollout = waiting("waiting for an earlier item");
    item.review = Review {
        severity: severity(draft.impact, Operation::Deferred, &change, &Effect::default()),
        diff: change.text(&item.target),
        desired: desired.clone(),
        shown: desired_for_status(draft, change.document, desired),
        message: format!(
            "{}. Not previewed yet: the API server can't preview it before item {after} is applied. The diff shows what the profile \
             wants. It is not written under this plan: after {after}, it is planned again, for another review.",
            message::capitalised(&draft.reason)
        ),
        ..Review::default()
    };
    change.with_hidden_values(item)
}

fn refused(draft: &Draft, remedy: Remedy, is_temporary: bool) -> PlanItem {
    let desired = match &draft.body {
        Body::Ensure(object) => object.clone(),
        Body::Remove(_) | Body::Blocked { .. } => Value::Null,
    };
    let mut item = PlanItem::new(draft, target(draft), Operation::Blocked);
    // Without the remedy: wording is not reviewed, and a blocked plan can't be approved.
    let review = json!({"target": item.target, "operation": Operation::Blocked, "desired": desired});
    item.hash = digest::sha256(&review);
    item.review = Review {
        shown: desired_for_status(draft, None, &desired),
        desired,
        message: remedy.into(),
        blocked_temporarily: is_temporary,
        ..Review::default()
    };
    item
}

/// The paths at which the server changes more than our fields: defaults, and what admission adds.
/// Without values, since some of them differ each time.
fn beside(change: &BeforeAfter, ours: &[FieldPath]) -> Vec<String> {
    let owned: Paths = ours.iter().cloned().collect();
    let leaves = |object: &Option<Value>| object.as_ref().map(|object| fields::leaves_around(object, ours));
    let leaves = |object: &Option<Value>| leaves(object).unwrap_or_default();
    let mut paths: Vec<_> = leaves(&change.before).into_iter().chain(leaves(&change.after)).collect();
    paths.sort();
    paths.dedup();
    let nobody = Value::Null;
    let [was, is] = [&change.before, &change.after].map(|object| Lookup::of(object.as_ref().unwrap_or(&nobody)));
    paths.retain(|path| !owned.touches(path) && was.resolve(path) != is.resolve(path));
    // Entries of others, in lists of which some entries are ours.
    let foreign = |object: &Option<Value>| object.as_ref().map(|object| fields::foreign_entries(object, ours));
    let (before, after) = (foreign(&change.before).unwrap_or_default(), foreign(&change.after).unwrap_or_default());
    let nothing = Vec::new();
    let lists = after.iter().filter(|(list, entries)| before.get(*list).unwrap_or(&nothing) != *entries);
    paths.iter().map(ToString::to_string).chain(lists.map(|(list, _)| list.clone())).collect()
}

/// The severity of an item. Reboots and drains are High. Otherwise the profile decides; if it
/// leaves the impact to us, it depends on what changes: labels and annotations disturb nothing,
/// fields that a controller acts on may.
fn severity(impact: Impact, operation: Operation, change: &BeforeAfter, effect: &Effect) -> Severity {
    let parts = |object: &Option<Value>| {
        let mut object = object.clone().unwrap_or_default();
        for part in ["apiVersion", "kind", "metadata"] {
            object.as_object_mut().map(|object| object.remove(part));
        }
        if object.as_object().is_none_or(serde_json::Map::is_empty) { Value::Null } else { object }
    };
    match (operation, impact) {
        (Operation::NoChange | Operation::Blocked | Operation::Skipped, _) => Severity::Low,
        _ if effect.machines() > 0 || !effect.drained.is_empty() => Severity::High,
        (_, Impact::Low) => Severity::Low,
        (_, Impact::Medium) => Severity::Medium,
        (_, Impact::High) => Severity::High,
        (Operation::Remove, Impact::Derived) => Severity::Medium,
        (Operation::Create | Operation::Update | Operation::Deferred, Impact::Derived) => {
            if parts(&change.before) == parts(&change.after) { Severity::Low } else { Severity::Medium }
        }
    }
}

fn waiting(text: &str) -> Rollout {
    Rollout::Waiting { text: text.to_owned(), paused: false }
}

fn waiting_for_nothing() -> Rollout {
    Rollout::Done("the removal is complete".to_owned())
}

fn metadata(object: &Value, key: &str) -> Option<String> {
    object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod sentences;
#[cfg(test)]
mod tests;
