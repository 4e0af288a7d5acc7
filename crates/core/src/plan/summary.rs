//! The plan in figures and in one sentence: what `kubectl get -o wide` and `kubectl describe` say.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::decision::Publication;
use super::hash;
use super::item::{PlanItem, PoolEffect};
use super::overridden;
use crate::api::{Item, ItemState, Operation, Phase, Summary};

/// The longest list of pools, as in the CRD; the number of machines is that of all.
const POOL_LIMIT: usize = 100;

/// How to approve a plan by a hash that is in spec already.
const NAMED_BEFORE: &str = "set spec.action to DryRun and clear spec.approvedPlanHash, which named this plan before it was shown; then set both \
    again.";

/// What is said under action Ignore.
pub(super) const IGNORED: &str = "The operator stands aside: it reads and writes nothing. Resources remain in their current state. \
    Set spec.action to DryRun to see what the profile would change.";

/// The figures of `plan`, without a text.
#[must_use]
pub(super) fn figures(plan: &Plan) -> Summary {
    let count = |operation| {
        let items = plan.items.iter().filter(|item| item.operation == operation);
        u32::try_from(items.count()).unwrap_or(u32::MAX)
    };
    let pools = pools(plan, |wave| ends_with(plan).is_none_or(|last| wave <= last));
    Summary {
        plan: hash::hexadecimal(&plan.digest).chars().take(12).collect(),
        create: count(Operation::Create),
        update: count(Operation::Update),
        remove: count(Operation::Remove),
        no_change: count(Operation::NoChange),
        blocked: count(Operation::Blocked),
        deferred: count(Operation::Deferred),
        skipped: count(Operation::Skipped),
        machines_to_reboot: pools.values().fold(0, |sum, pool| sum.saturating_add(pool.machines)),
        pools: pools.into_keys().take(POOL_LIMIT).collect(),
        text: String::new(),
        changed: String::new(),
    }
}

/// The wave with which the execution ends, since something in it can only be previewed then.
fn ends_with(plan: &Plan) -> Option<u32> {
    let deferred = plan.items.iter().filter(|item| item.operation == Operation::Deferred);
    deferred.map(|item| item.wave).min()
}

/// The pools whose machines reboot in such waves.
fn pools(plan: &Plan, is_of: impl Fn(u32) -> bool) -> BTreeMap<String, PoolEffect> {
    let items = plan.items.iter().filter(|item| is_of(item.wave));
    items.flat_map(|item| item.effect.pools.clone()).collect()
}

/// How many times machines reboot in such waves: all that is written in one wave is one roll-out.
fn reboots(plan: &Plan, is_of: impl Fn(u32) -> bool) -> u32 {
    let waves: BTreeSet<_> = plan.items.iter().map(|item| item.wave).filter(|wave| is_of(*wave)).collect();
    let of_wave =
        |wave: u32| pools(plan, |of| of == wave).values().fold(0_u32, |sum, pool| sum.saturating_add(pool.machines));
    waves.into_iter().fold(0, |sum, wave| sum.saturating_add(of_wave(wave)))
}

/// How many machines reboot, of which pools, and how often that is in all.
fn rebooting(plan: &Plan, is_of: impl Fn(u32) -> bool) -> Option<String> {
    let (pools, times) = (&pools(plan, &is_of), reboots(plan, &is_of));
    let machines = pools.values().fold(0_u32, |sum, pool| sum.saturating_add(pool.machines));
    let names: Vec<_> = pools.keys().take(POOL_LIMIT).cloned().collect();
    let more = if times > machines { format!(", some more than once, {times} times in all") } else { String::new() };
    let machines = match machines {
        0 => return None,
        1 => "1 machine reboots".to_owned(),
        many => format!("{many} machines reboot"),
    };
    let word = if names.len() == 1 { "pool" } else { "pools" };
    Some(format!("{machines} ({word} {}){more}", names.join(", ")))
}

/// Which pools are drained only, in what follows how many machines reboot.
fn drained(plan: &Plan) -> String {
    let rebooting = pools(plan, |_| true);
    let drained = plan.items.iter().flat_map(|item| item.effect.drained.keys());
    let drained: BTreeSet<_> = drained.filter(|pool| !rebooting.contains_key(*pool)).cloned().collect();
    let names: Vec<_> = drained.into_iter().take(POOL_LIMIT).collect();
    match names.as_slice() {
        [] => String::new(),
        [pool] => format!("; the machines of pool {pool} are drained without a reboot"),
        pools => format!("; the machines of pools {} are drained without a reboot", pools.join(", ")),
    }
}

/// How a change of others becomes what is wanted, whatever drives the value.
const KEEP: &str = "To keep it, change the option that drives the value, override the value in spec.overrides, set the item aside in \
                    spec.items, or set spec.action to Ignore.";

/// What a plan leaves out that is as wanted otherwise.
fn except(plan: &Plan) -> String {
    match figures(plan).skipped {
        0 => String::new(),
        1 => ", except for 1 item that is set aside".to_owned(),
        many => format!(", except for {many} items that are set aside"),
    }
}

/// Why `item` keeps the plan from being approved, in a sentence that names its object once.
fn why_blocked(item: &PlanItem) -> String {
    let target = item.target.to_string();
    let why = item.message.strip_prefix(&target).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&item.message);
    format!("{target}: {}.", why.trim_end_matches('.'))
}

/// What is said of a plan beside what is in it.
#[derive(Debug)]
pub(super) struct Told<'a> {
    /// What had changed when it was shown first.
    pub(super) detail: &'a str,
    /// What machines do not have of what was applied, in sentences.
    pub(super) overridden: &'a [String],
    /// What was written earlier and is not in effect yet, in sentences.
    pub(super) under_way: &'a [String],
    /// Whether it makes of what has drifted just what was applied.
    pub(super) puts_back: bool,
    /// Whether the hash in spec names it and was there before it was shown.
    pub(super) named_before: bool,
}

/// What is said of a plan that is shown.
#[must_use]
pub(super) fn of_publication(plan: &Plan, publication: &Publication, told: &Told<'_>) -> String {
    let Told { detail, overridden: lost, under_way, puts_back, named_before } = *told;
    // A hash that is there already can't be set.
    let how = match named_before && plan.blocked().next().is_none() {
        true => NAMED_BEFORE,
        false => "set spec.approvedPlanHash to status.planHash.",
    };
    let remedy = if how == NAMED_BEFORE && publication.phase == Phase::ReviewRequired {
        ""
    } else {
        publication.remedy.as_str()
    };
    let mut sentences = Vec::new();
    match publication.phase {
        Phase::Completed => {
            if lost.is_empty() {
                sentences.push(format!("Everything is as planned{}.", except(plan)));
            } else {
                sentences.push(format!(
                    "Everything is written as planned{}, and machines do not have all of it.",
                    except(plan)
                ));
                sentences.extend(lost.iter().cloned());
                sentences.push(overridden::REMEDY.to_owned());
            }
            sentences.push(detail.to_owned());
            let troubled = plan.items.iter().filter_map(|item| Some((item, item.trouble.as_ref()?)));
            sentences
                .extend(troubled.map(|(item, trouble)| format!("{}: {}.", item.target, trouble.trim_end_matches('.'))));
            sentences.extend(
                plan.items
                    .iter()
                    .flat_map(|item| item.kept.iter().map(move |kept| format!("{}: {kept}.", item.target))),
            );
        }
        Phase::InProgress => {
            sentences.push(format!("Everything is as planned{}, and not yet in effect everywhere.", except(plan)));
            sentences.push(detail.to_owned());
        }
        Phase::Drifted => {
            sentences.push(detail.to_owned());
            sentences.push(remedy.to_owned());
            sentences.push(if puts_back {
                format!("To put it back, approve this plan: {how}")
            } else {
                format!(
                    "This plan does not just put it back, since other values are wanted now than those that were applied: read its \
                     diffs. To carry it out, {how}"
                )
            });
            let is_more = plan.items.iter().any(|item| item.changes() && item.moved.is_empty());
            if is_more || figures(plan).machines_to_reboot > 0 {
                sentences.push(format!("The plan as a whole: {}", in_figures(plan)));
            }
            sentences.push(KEEP.to_owned());
        }
        Phase::CompletedWithUpgrade => {
            sentences.push(detail.to_owned());
            sentences.push(in_figures(plan));
            sentences.push(remedy.to_owned());
            sentences.push(format!("To adopt it, {how}"));
        }
        Phase::Pending
        | Phase::Drafting
        | Phase::PrerequisiteFailed
        | Phase::ReviewRequired
        | Phase::CompletedWithErrors
        | Phase::Failed
        | Phase::Ignored => {
            let blocked: Vec<_> = plan.blocked().map(why_blocked).collect();
            sentences.push(in_figures(plan));
            sentences.push(detail.to_owned());
            sentences.push(remedy.to_owned());
            if how == NAMED_BEFORE && publication.phase == Phase::ReviewRequired {
                sentences.push(format!("To approve it, {how}"));
            }
            if !blocked.is_empty() {
                sentences.push(format!(
                    "The plan can't be approved: {} What can't be mended now is set aside in spec.items.",
                    blocked.join(" ")
                ));
            }
        }
    }
    if !matches!(publication.phase, Phase::Completed | Phase::InProgress) {
        sentences.extend(under_way.iter().cloned());
    }
    sentences.extend(plan.unused.iter().cloned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}

/// What is said while a plan is executed: the items that are under way.
#[must_use]
pub(super) fn of_execution(items: &[Item]) -> String {
    let done = items.iter().filter(|item| item.state == ItemState::Completed).count();
    let under_way = items.iter().filter(|item| item.state == ItemState::InProgress);
    let under_way: Vec<_> =
        under_way.map(|item| format!("{}: {}.", item.target_ref, item.message.trim_end_matches('.'))).collect();
    format!("{done} of {} items are done. {}", items.len(), under_way.join(" ")).trim().to_owned()
}

/// The plan in figures, in one sentence.
#[must_use]
pub fn in_figures(plan: &Plan) -> String {
    let last = ends_with(plan);
    let reboots = rebooting(plan, |wave| last.is_none_or(|last| wave <= last));
    let reboots = reboots.unwrap_or_else(|| "no machine reboots".to_owned());
    let drained = drained(plan);
    let later = last.and_then(|last| rebooting(plan, |wave| wave > last));
    let later =
        later.map(|later| format!(" After what is previewed later is approved as well, {later}.")).unwrap_or_default();
    format!("{}; {reboots}{drained}.{later}{}", in_counts(plan), taken(plan))
}

/// How many items of each operation there are.
#[must_use]
pub fn in_counts(plan: &Plan) -> String {
    let figures = figures(plan);
    let counts = [
        (figures.create, "to create"),
        (figures.update, "to change"),
        (figures.remove, "to remove"),
        (figures.blocked, "blocked"),
        (figures.deferred, "to preview later"),
        (figures.skipped, "set aside"),
        (figures.no_change, "as wanted"),
    ];
    let counts: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    counts.join(", ")
}

/// What the plan takes from others. Where the list of items is too long to show it, this still does.
fn taken(plan: &Plan) -> String {
    let conflicts: Vec<_> = plan.items.iter().flat_map(|item| &item.conflicts).collect();
    let lost: usize = plan.items.iter().map(|item| item.lost.len()).sum();
    let mut managers: Vec<_> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let mut text = String::new();
    if !conflicts.is_empty() {
        let fields = if conflicts.len() == 1 { "field" } else { "fields" };
        text.push_str(&format!(" Takes {} {fields} over from {}.", conflicts.len(), managers.join(", ")));
    }
    if lost > 0 {
        text.push_str(&match lost {
            1 => " 1 entry of others is lost.".to_owned(),
            many => format!(" {many} entries of others are lost."),
        });
    }
    text
}
