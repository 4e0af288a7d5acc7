//! Composes an item's message: what its reviewer must know, in sentences.

use profile_sdk::Draft;
use serde_json::Value;

use crate::api::{Conflict, Operation};
use crate::plan::items::{Effect, PoolEffect};

/// The most entries that a sentence lists.
const LISTED: usize = 10;
/// How the message of an item without a change begins.
pub const NO_CHANGE: &str = "No change";

/// The facts that the sentences report.
pub(in crate::plan) struct Sentences<'a> {
    pub(in crate::plan) conflicts: &'a [Conflict],
    pub(in crate::plan) lost: &'a [String],
    pub(in crate::plan) kept: &'a [String],
    pub(in crate::plan) effect: &'a Effect,
}

pub(in crate::plan) fn of_apply(draft: &Draft, operation: Operation, about: &Sentences<'_>, earlier: &str) -> String {
    let mut sentences = vec![match operation {
        Operation::NoChange => format!("{NO_CHANGE}. {}.", capitalised(&draft.reason)),
        _ => format!("{}.", capitalised(&draft.reason)),
    }];
    // Dangerous facts come first, because a message may be cut.
    if !about.lost.is_empty() {
        sentences
            .push(format!("This removes entries that this configuration does not own alone: {}.", listed(about.lost)));
    }
    if !about.conflicts.is_empty() {
        let mut managers: Vec<_> = about.conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
        managers.sort_unstable();
        managers.dedup();
        let fields = if about.conflicts.len() == 1 { "field" } else { "fields" };
        sentences.push(format!("Takes {} {fields} over from {}.", about.conflicts.len(), managers.join(", ")));
        managers.retain(|manager| about.conflicts.iter().any(|found| found.manager == *manager && found.controller));
        if !managers.is_empty() {
            sentences.push(format!(
                "{} looks like a controller and will probably set its own value again.",
                managers.join(", ")
            ));
        }
    }
    sentences.extend(reboots(about.effect));
    sentences.extend(about.effect.notes.iter().cloned());
    sentences.extend(about.kept.iter().map(|kept| format!("{kept}.")));
    sentences.extend((!earlier.is_empty()).then(|| earlier.to_owned()));
    sentences.extend(draft.notes.iter().map(|note| format!("{}.", capitalised(note))));
    sentences.join(" ")
}

pub(in crate::plan) fn of_removal(
    draft: &Draft,
    operation: Operation,
    goes: bool,
    stays_for: &[String],
    effect: &Effect,
) -> String {
    let reason = capitalised(&draft.reason);
    let mut sentences = vec![match (operation, goes) {
        (Operation::NoChange, _) => {
            format!("{NO_CHANGE}: none of its fields are managed by this configuration. {reason}.")
        }
        (_, true) => format!("{reason}. The object is deleted: no other field manager owns fields of it."),
        (_, false) => {
            let stays = match stays_for {
                [] => "the object stays, because this profile never deletes objects of its kind".to_owned(),
                others => {
                    format!("the object stays, because other field managers own fields of it: {}", others.join(", "))
                }
            };
            format!("{reason}. This configuration's fields are removed; {stays}.")
        }
    }];
    sentences.extend(reboots(effect));
    sentences.extend(effect.notes.iter().cloned());
    sentences.extend(draft.notes.iter().map(|note| format!("{}.", capitalised(note))));
    sentences.join(" ")
}

fn reboots(effect: &Effect) -> Vec<String> {
    let pools = effect.pools.iter().filter(|(_, pool)| pool.machines > 0);
    pools
        .map(|(name, PoolEffect { machines, at_once: together, .. })| {
            format!("Reboots {}.", at_once(*machines, *together, name))
        })
        .collect()
}

/// A phrase for `machines` machines of `pool` and how many of them at a time; 0 at a time if the
/// pool's maxUnavailable is not valid.
pub(crate) fn at_once(machines: u32, at_once: u32, pool: &str) -> String {
    match (machines, at_once) {
        (1, _) => format!("the only machine of pool {pool}"),
        // A note says what prevents it.
        (_, 0) => format!("the {machines} machines of pool {pool}"),
        (_, 1) => format!("the {machines} machines of pool {pool}, one by one"),
        _ if at_once >= machines => format!("the {machines} machines of pool {pool}, all at once"),
        _ => format!("the {machines} machines of pool {pool}, at most {at_once} at a time"),
    }
}

/// `message`, with sentences for what is not shown: the number of secret `values`, and the
/// unchanged lines of `document`.
pub(in crate::plan) fn with_what_is_not_shown(message: String, values: usize, document: Option<&str>) -> String {
    let document = document.map(|field| {
        format!("Only the changed lines of {field} are shown, because that document is shared with others.")
    });
    let values = match values {
        0 => None,
        1 => Some("1 secret value is not shown.".to_owned()),
        many => Some(format!("{many} secret values are not shown.")),
    };
    [Some(message), document, values].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The finalizers that keep an object from being deleted, as the end of a sentence.
pub fn held_by(object: &Value) -> String {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<_> = finalizers.filter_map(Value::as_str).collect();
    if names.is_empty() { String::new() } else { format!(", held by finalizer {}", names.join(", ")) }
}

/// The first of `entries`, and the number of the others.
pub fn listed(entries: &[String]) -> String {
    let shown = entries.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    match entries.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// `text` with an upper-case first letter, to begin a sentence.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_the_sentence_says_how_many_machines_reboot_at_once() {
        for (machines, at_once, sentence) in [
            (0, 1, ""),
            (1, 1, "Reboots the only machine of pool p."),
            (1, 4, "Reboots the only machine of pool p."),
            (1, 0, "Reboots the only machine of pool p."),
            (3, 0, "Reboots the 3 machines of pool p."),
            (3, 1, "Reboots the 3 machines of pool p, one by one."),
            (3, 2, "Reboots the 3 machines of pool p, at most 2 at a time."),
            (3, 3, "Reboots the 3 machines of pool p, all at once."),
            (3, 9, "Reboots the 3 machines of pool p, all at once."),
        ] {
            let pools = [("p".to_owned(), PoolEffect { machines, at_once, ..PoolEffect::default() })].into();
            assert_eq!(reboots(&Effect { pools, ..Effect::default() }).concat(), sentence, "{machines} {at_once}");
        }
    }
}
