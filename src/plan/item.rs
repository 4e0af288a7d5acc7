//! One item of a plan: what a draft means on this cluster, from the live object and the dry run's result.

use std::collections::BTreeMap;

use profile_sdk::{Body, Draft, Impact};
use serde_json::{Value, json};

use super::fields::{self, FieldPath};
use super::health::Rollout;
use super::{diff, digest, redact};
use crate::api::{Applied, Conflict, Item, Operation, Severity, TargetRef, Truncated};

/// What the API server answered when a draft was previewed.
#[derive(Debug, Clone)]
pub enum Preview {
    /// The dry run succeeded.
    Known {
        /// The object as it is, if it exists.
        live: Option<Value>,
        /// The object as it would be.
        result: Value,
        /// Fields that others own with another value: the field as the server names it, and the manager.
        conflicts: Vec<(String, String)>,
    },
    /// The server, or the profile, says that this can't be written.
    Refused {
        /// What is missing and what to do.
        remedy: String,
    },
}

/// What a written item would do beyond its object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effect {
    /// Pools whose machines reboot, each with the number of its machines.
    pub pools: BTreeMap<String, u32>,
    /// What the reviewer should know, for example a paused pool.
    pub notes: Vec<String>,
}

impl Effect {
    /// Machines that reboot.
    #[must_use]
    pub fn machines(&self) -> u32 {
        self.pools.values().sum()
    }
}

/// A field of ours that somebody changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// An RFC 6901 pointer, or empty for the object as a whole.
    pub path: String,
    /// Old and new value and who did it, as far as the object tells.
    pub text: String,
}

/// An item as it is planned now.
#[derive(Debug, Clone)]
pub struct PlanItem {
    /// The item's name.
    pub name: String,
    /// Its object.
    pub target: TargetRef,
    /// What happens to it.
    pub operation: Operation,
    /// When it happens.
    pub wave: u32,
    /// How much that disturbs.
    pub severity: Severity,
    /// The change as text, redacted.
    pub diff: String,
    /// What is sent to the server.
    pub desired: Value,
    /// JSON pointers that are never shown.
    pub sensitive: Vec<String>,
    /// Fields that approval takes over from others.
    pub conflicts: Vec<Conflict>,
    /// Entries of others that an atomic list loses, as `/path: value`.
    pub lost: Vec<String>,
    /// What it does beyond its object.
    pub effect: Effect,
    /// Fields that are ours afterwards.
    pub owned: Vec<FieldPath>,
    /// uid of the live object.
    pub uid: Option<String>,
    /// resourceVersion of the live object, for the precondition of the write.
    pub resource_version: Option<String>,
    /// What the reviewer must know, in sentences.
    pub message: String,
    /// SHA-256 of everything that is reviewed of the item.
    pub hash: String,
    /// What there is of ours, if the object is as wanted.
    pub applied: Option<Applied>,
    /// What somebody changed of what we had applied.
    pub moved: Vec<Moved>,
    /// Whether the object, as it is now, is in effect.
    pub rollout: Rollout,
}

impl PlanItem {
    /// Whether executing the plan writes this item.
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(self.operation, Operation::Create | Operation::Update | Operation::Remove)
    }

    /// What a review must see and approval in advance may not do.
    #[must_use]
    pub fn needs_review(&self) -> bool {
        !self.conflicts.is_empty()
            || !self.lost.is_empty()
            || matches!(self.operation, Operation::Remove | Operation::Deferred | Operation::Blocked)
    }
}

/// Makes the item of `draft` from its `preview`. `remembered` is the item of that name in the status.
#[must_use]
pub fn compose(draft: &Draft, manager: &str, preview: Preview, effect: Effect, remembered: Option<&Item>) -> PlanItem {
    match preview {
        Preview::Known { live, result, conflicts } => {
            known(draft, manager, live.as_ref(), &result, &conflicts, effect, remembered)
        }
        Preview::Refused { remedy } => refused(draft, remedy),
    }
}

fn refused(draft: &Draft, remedy: String) -> PlanItem {
    let (target, desired) = match &draft.body {
        Body::Ensure(object) => (TargetRef::of(object), object.clone()),
        Body::Blocked { target, .. } => (target.clone().into(), Value::Null),
    };
    let hash = digest::sha256(
        &json!({"target": target, "operation": Operation::Blocked, "desired": desired, "remedy": remedy}),
    );
    PlanItem {
        name: draft.name.to_owned(),
        target,
        operation: Operation::Blocked,
        wave: draft.wave,
        severity: Severity::Low,
        diff: String::new(),
        desired,
        sensitive: draft.sensitive.clone(),
        conflicts: Vec::new(),
        lost: Vec::new(),
        effect: Effect::default(),
        owned: Vec::new(),
        uid: None,
        resource_version: None,
        message: remedy,
        hash,
        applied: None,
        moved: Vec::new(),
        rollout: Rollout::Waiting { text: "blocked".to_owned(), paused: false },
    }
}

fn known(
    draft: &Draft,
    manager: &str,
    live: Option<&Value>,
    result: &Value,
    conflicts: &[(String, String)],
    effect: Effect,
    remembered: Option<&Item>,
) -> PlanItem {
    let (before, after) = (live.map(diff::without_noise), diff::without_noise(result));
    let operation = match &before {
        None => Operation::Create,
        Some(before) if *before == after => Operation::NoChange,
        Some(_) => Operation::Update,
    };
    let changes = operation != Operation::NoChange;
    let effect = if changes { effect } else { Effect::default() };

    // What the apply will own, and what it will delete because we own it now and want it no more.
    let mut owned = fields::applied_by(result, manager);
    owned.extend(live.map(|live| fields::applied_by(live, manager)).unwrap_or_default());
    owned.sort();
    owned.dedup();

    let target = TargetRef::of(result);
    let uid = live.and_then(|live| metadata(live, "uid"));
    let empty = Value::Object(serde_json::Map::new());
    let live_view = fields::view(before.as_ref().unwrap_or(&empty), &owned);
    let conflicts = if changes { conflict_list(draft, live.unwrap_or(&empty), result, conflicts) } else { Vec::new() };
    let desired = match &draft.body {
        Body::Ensure(object) => object.clone(),
        Body::Blocked { .. } => Value::Null,
    };
    let hash = digest::sha256(&json!({
        "target": target,
        "uid": uid,
        "operation": operation,
        "desired": desired,
        "live": live_view,
        "conflicts": conflicts.iter().map(|conflict| (&conflict.path, &conflict.manager)).collect::<Vec<_>>(),
        "pools": effect.pools.keys().collect::<Vec<_>>(),
    }));

    let salt = uid.clone().unwrap_or_default();
    let shown = |object: &Value| redact::redacted(object, &draft.sensitive, &salt);
    let applied = remembered.and_then(|item| item.applied.as_ref());
    // A list that is ours alone holds nothing of others.
    let ours = live.map(|live| fields::owned_alone_by(live, manager)).unwrap_or_default();
    let ours: Vec<_> = ours.iter().map(|path| path.pointer(live.unwrap_or(&empty))).collect();
    let lost: Vec<_> = match &before {
        Some(before) if changes => diff::lost_entries(&shown(before), &shown(&after)),
        _ => Vec::new(),
    };
    let lost = lost.into_iter().filter(|(path, _)| !ours.contains(path));
    let lost: Vec<_> = lost.map(|(path, entry)| format!("{path}: {entry}")).collect();
    let name = target.to_string();
    PlanItem {
        name: draft.name.to_owned(),
        operation,
        wave: draft.wave,
        severity: severity(draft.impact, changes, &effect),
        diff: diff::unified(&name, before.as_ref().map(shown).as_ref(), &shown(&after)),
        desired,
        sensitive: draft.sensitive.clone(),
        message: message(draft, operation, &conflicts, &lost, &effect),
        conflicts,
        lost,
        effect,
        uid,
        resource_version: live.and_then(|live| metadata(live, "resourceVersion")),
        hash,
        applied: live.filter(|_| !changes).and_then(|live| applied_view(live, &owned)),
        moved: applied.map(|applied| moved(applied, live, result, &owned, &shown)).unwrap_or_default(),
        owned,
        target,
        rollout: live.map_or_else(
            || Rollout::Waiting { text: "does not exist yet".to_owned(), paused: false },
            super::health::of,
        ),
    }
}

/// What is remembered of an object that was written: its fields and a digest of their values.
#[must_use]
pub fn applied_view(object: &Value, owned: &[FieldPath]) -> Option<Applied> {
    let view = fields::view(object, owned);
    Some(Applied { uid: metadata(object, "uid")?, paths: view.keys().cloned().collect(), hash: digest::sha256(&view) })
}

fn moved(
    applied: &Applied,
    live: Option<&Value>,
    result: &Value,
    owned: &[FieldPath],
    shown: &impl Fn(&Value) -> Value,
) -> Vec<Moved> {
    let whole = |text: &str| vec![Moved { path: String::new(), text: text.to_owned() }];
    let Some(live) = live else {
        return whole("the object was deleted; the API server does not record by whom");
    };
    if metadata(live, "uid").as_ref() != Some(&applied.uid) {
        return whole("the object was deleted and created again");
    }
    let paths: Vec<_> = applied.paths.iter().map(|path| FieldPath::parse(path)).collect();
    if digest::sha256(&fields::view(live, &paths)) == applied.hash {
        return Vec::new();
    }
    let (old, new) = (shown(live), shown(result));
    let differing = owned.iter().chain(paths.iter().filter(|path| !owned.contains(path)));
    let moved: Vec<_> = differing
        .filter(|path| path.resolve(live) != path.resolve(result))
        .map(|path| {
            let show = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
            let by = match fields::last_changed_by(live, path).filter(|_| path.resolve(live).is_some()) {
                Some((manager, time)) if !time.is_empty() => format!("changed by {manager} at {time}"),
                Some((manager, _)) => format!("changed by {manager}"),
                None => "the API server does not record by whom".to_owned(),
            };
            let pointer = path.pointer(live);
            let text =
                format!("{pointer} is {} instead of {}, {by}", show(path.resolve(&old)), show(path.resolve(&new)));
            Moved { path: pointer, text }
        })
        .collect();
    if moved.is_empty() { whole("fields that were applied have other values now") } else { moved }
}

fn conflict_list(draft: &Draft, live: &Value, result: &Value, conflicts: &[(String, String)]) -> Vec<Conflict> {
    let salt = metadata(live, "uid").unwrap_or_default();
    let (live, result) =
        (redact::redacted(live, &draft.sensitive, &salt), redact::redacted(result, &draft.sensitive, &salt));
    let mut list: Vec<_> = conflicts
        .iter()
        .map(|(field, manager)| {
            let path = fields::from_cause(field, &[&result, &live]);
            Conflict {
                path: path.pointer(&live),
                manager: manager.clone(),
                live: path.resolve(&live).filter(|value| !value.is_null()).cloned(),
                desired: path.resolve(&result).filter(|value| !value.is_null()).cloned(),
            }
        })
        .collect();
    // The server names them in random order.
    list.sort_by(|a, b| (&a.path, &a.manager).cmp(&(&b.path, &b.manager)));
    list
}

fn severity(impact: Impact, changes: bool, effect: &Effect) -> Severity {
    match impact {
        _ if !changes => Severity::Low,
        _ if effect.machines() > 0 => Severity::High,
        Impact::Low | Impact::Derived => Severity::Low,
        Impact::Medium => Severity::Medium,
        Impact::High => Severity::High,
    }
}

fn message(draft: &Draft, operation: Operation, conflicts: &[Conflict], lost: &[String], effect: &Effect) -> String {
    let mut sentences = vec![match operation {
        Operation::NoChange => format!("As wanted: {}.", draft.reason),
        _ => format!("{}.", capitalised(&draft.reason)),
    }];
    for (pool, machines) in effect.pools.iter().filter(|(_, machines)| **machines > 0) {
        sentences.push(format!("Reboots the {machines} machines of pool {pool}, one by one."));
    }
    sentences.extend(effect.notes.iter().cloned());
    if !conflicts.is_empty() {
        let mut managers: Vec<_> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
        managers.sort_unstable();
        managers.dedup();
        sentences.push(format!("Takes {} fields over from {}.", conflicts.len(), managers.join(", ")));
    }
    if !lost.is_empty() {
        sentences.push(format!("Entries of others are lost: {}.", lost.join("; ")));
    }
    sentences.extend(draft.notes.iter().map(|note| format!("{}.", capitalised(note))));
    sentences.join(" ")
}

/// `text` as the beginning of a sentence.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// `text` cut at a line so that it fits `budget` bytes, with the counts if anything is missing.
#[must_use]
pub fn cut(text: &str, budget: usize) -> (String, Option<Truncated>) {
    if text.len() <= budget {
        return (text.to_owned(), None);
    }
    let mut end = 0;
    let mut shown = 0;
    for line in text.split_inclusive('\n') {
        if end + line.len() > budget {
            break;
        }
        end += line.len();
        shown += 1;
    }
    let total = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    (text[..end].to_owned(), Some(Truncated { shown, total }))
}

fn metadata(object: &Value, key: &str) -> Option<String> {
    object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests;
