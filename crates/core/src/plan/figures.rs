//! The figures of a plan: how many objects, machines and pools it changes.

use std::collections::{BTreeMap, BTreeSet};

use super::items::PoolEffect;
use super::{Plan, hash};
use crate::api::{Operation, Summary};

/// The longest list of pools, as in the CRD. The number of machines always counts all pools.
const POOL_LIMIT: usize = 100;

/// The figures of `plan`, without texts.
#[must_use]
pub(in crate::plan) fn figures(plan: &Plan) -> Summary {
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

/// The wave with which the execution ends because one of its items can be previewed only then.
fn ends_with(plan: &Plan) -> Option<u32> {
    let deferred = plan.items.iter().filter(|item| item.operation == Operation::Deferred);
    deferred.map(|item| item.wave).min()
}

/// The pools whose machines reboot in the waves for which `is_of` holds.
fn pools(plan: &Plan, is_of: impl Fn(u32) -> bool) -> BTreeMap<String, PoolEffect> {
    let items = plan.items.iter().filter(|item| is_of(item.wave));
    items.flat_map(|item| item.review.effect.pools.clone()).collect()
}

/// The number of machine reboots in the waves for which `is_of` holds: what one wave writes is one
/// rollout.
fn reboots(plan: &Plan, is_of: impl Fn(u32) -> bool) -> u32 {
    let waves: BTreeSet<_> = plan.items.iter().map(|item| item.wave).filter(|wave| is_of(*wave)).collect();
    let of_wave =
        |wave: u32| pools(plan, |of| of == wave).values().fold(0_u32, |sum, pool| sum.saturating_add(pool.machines));
    waves.into_iter().fold(0, |sum, wave| sum.saturating_add(of_wave(wave)))
}

/// The number of machines that reboot in the waves for which `is_of` holds, their pools, and the
/// total number of reboots if it is larger.
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

/// The end of a sentence: pools whose machines are drained, but do not reboot, in the waves for
/// which `is_of` holds.
fn drained(plan: &Plan, is_of: impl Fn(u32) -> bool) -> String {
    let rebooting = pools(plan, &is_of);
    let items = plan.items.iter().filter(|item| is_of(item.wave));
    let drained = items.flat_map(|item| item.review.effect.drained.keys());
    let drained: BTreeSet<_> = drained.filter(|pool| !rebooting.contains_key(*pool)).cloned().collect();
    let names: Vec<_> = drained.into_iter().take(POOL_LIMIT).collect();
    match names.as_slice() {
        [] => String::new(),
        [pool] => format!("; the machines of pool {pool} are drained without a reboot"),
        pools => format!("; the machines of pools {} are drained without a reboot", pools.join(", ")),
    }
}

/// The plan in one paragraph of figures: items, reboots, drains, and what it takes from others.
#[must_use]
pub fn in_figures(plan: &Plan) -> String {
    let last = ends_with(plan);
    let reboots = rebooting(plan, |wave| last.is_none_or(|last| wave <= last));
    let reboots = reboots.unwrap_or_else(|| "no machine reboots".to_owned());
    let drained = drained(plan, |wave| last.is_none_or(|last| wave <= last));
    let later = last.and_then(|last| rebooting(plan, |wave| wave > last));
    let later = later
        .map(|later| format!(" After a later plan for the deferred items is approved, {later}."))
        .unwrap_or_default();
    format!("{}; {reboots}{drained}.{later}{}", in_counts(plan), taken(plan))
}

/// The number of items of each operation.
#[must_use]
pub fn in_counts(plan: &Plan) -> String {
    let figures = figures(plan);
    let counts = [
        (figures.create, "to create"),
        (figures.update, "to change"),
        (figures.remove, "to remove"),
        (figures.blocked, "blocked"),
        (figures.deferred, "to preview later"),
        (figures.skipped, "skipped"),
        (figures.no_change, "unchanged"),
    ];
    let counts: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    counts.join(", ")
}

/// The number of fields and entries that the plan takes from others. Shown even where the list of
/// items is too long to show them.
fn taken(plan: &Plan) -> String {
    let conflicts: Vec<_> = plan.items.iter().flat_map(|item| &item.review.conflicts).collect();
    let lost: usize = plan.items.iter().map(|item| item.review.lost.len()).sum();
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
            1 => " Removes 1 entry that this configuration does not own alone.".to_owned(),
            many => format!(" Removes {many} entries that this configuration does not own alone."),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    use super::*;
    use crate::api::Conflict;
    use crate::plan::decision::decide::tests::{basis, item};
    use crate::plan::items::PlanItem;

    const POOLS: [(&str, u32); 3] = [("worker", 3), ("infra", 2), ("gpu", 1)];

    fn items() -> impl Strategy<Value = Vec<PlanItem>> {
        let operations = vec![
            Operation::Create,
            Operation::Update,
            Operation::Remove,
            Operation::NoChange,
            Operation::Blocked,
            Operation::Deferred,
            Operation::Skipped,
        ];
        let pools = || subsequence(POOLS.to_vec(), 0..=3);
        let one = (select(operations), 0_u32..3, pools(), pools(), 0_usize..3, 0_usize..3);
        prop::collection::vec(one, 1..6).prop_map(|all| {
            let of =
                |index: usize, (operation, wave, reboots, drains, conflicts, lost): (_, _, Vec<_>, Vec<_>, _, _)| {
                    let effects = |pools: Vec<(&str, u32)>| {
                        let effect = |(pool, machines): (&str, u32)| {
                            (pool.to_owned(), PoolEffect { machines, at_once: 1, ..PoolEffect::default() })
                        };
                        pools.into_iter().map(effect).collect()
                    };
                    let mut made = item(&format!("i{index}"), wave, operation);
                    // Only what is written sets something in motion or takes something.
                    if operation.writes() {
                        made.review.effect.pools = effects(reboots);
                        made.review.effect.drained = effects(drains);
                        made.review.conflicts = (0..conflicts)
                            .map(|at| Conflict {
                                path: format!("/spec/{at}"),
                                manager: "them".into(),
                                live: None,
                                desired: None,
                                controller: false,
                            })
                            .collect();
                        made.review.lost = (0..lost).map(|at| format!("/list: {at}")).collect();
                    }
                    made
                };
            all.into_iter().enumerate().map(|(index, one)| of(index, one)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Each sentence appears if it is true, and only then.
        #[test]
        fn each_sentence_in_figures_is_true(items in items()) {
            let plan = Plan::new(basis(), items.clone());
            let text = in_figures(&plan);
            let count = |operation: Operation| items.iter().filter(|item| item.operation == operation).count();
            for (operation, what) in [
                (Operation::Create, "to create"),
                (Operation::Update, "to change"),
                (Operation::Remove, "to remove"),
                (Operation::Blocked, "blocked"),
                (Operation::Deferred, "to preview later"),
                (Operation::Skipped, "skipped"),
                (Operation::NoChange, "unchanged"),
            ] {
                let number = count(operation);
                prop_assert_eq!(text.contains(&format!("{number} {what}")), number > 0, "{}: {}", what, text);
                prop_assert_eq!(text.contains(what), number > 0, "{}: {}", what, text);
            }
            // Waves after an item that is previewed later wait for another approval.
            let end = items.iter().filter(|item| item.operation == Operation::Deferred).map(|item| item.wave).min();
            let (now, later): (Vec<_>, Vec<_>) = items.iter().partition(|item| end.is_none_or(|end| item.wave <= end));
            let has = |items: &[&PlanItem], pool: &str| items.iter().any(|item| item.review.effect.pools.contains_key(pool));
            let machines = |items: &[&PlanItem]| -> u32 {
                POOLS.iter().filter(|(pool, _)| has(items, pool)).map(|(_, machines)| machines).sum()
            };
            let rollouts = |items: &[&PlanItem]| -> u32 {
                let of_wave = |wave: u32| machines(&items.iter().filter(|item| item.wave == wave).copied().collect::<Vec<_>>());
                (0..3).map(of_wave).sum()
            };
            let (first, rest) = text.split_once(" After a later plan for the deferred items is approved, ").unwrap_or((&text, ""));
            prop_assert_eq!(first.contains("no machine reboots"), machines(&now) == 0, "{}", text);
            prop_assert_eq!(rest.is_empty(), machines(&later) == 0, "{}", text);
            for (part, items) in [(first, &now), (rest, &later)] {
                let number = machines(items);
                let told = if number == 1 { "1 machine reboots (pool".to_owned() } else { format!("{number} machines reboot (pool") };
                prop_assert_eq!(part.contains(&told), number > 0, "{}", text);
                let times = format!("some more than once, {} times in all", rollouts(items));
                prop_assert_eq!(part.contains(&times), rollouts(items) > number, "{}", text);
            }
            for (pool, _) in POOLS {
                let drains = now.iter().any(|item| item.review.effect.drained.contains_key(pool)) && !has(&now, pool);
                let told = first.split_once("; the machines of pool").is_some_and(|(_, rest)| rest.contains(pool));
                prop_assert_eq!(told, drains, "{}: {}", pool, text);
            }
            let conflicts: usize = items.iter().map(|item| item.review.conflicts.len()).sum();
            let fields = if conflicts == 1 { "field" } else { "fields" };
            prop_assert_eq!(text.contains(&format!("Takes {conflicts} {fields} over from them.")), conflicts > 0);
            prop_assert_eq!(text.contains("over from"), conflicts > 0);
            let lost: usize = items.iter().map(|item| item.review.lost.len()).sum();
            let told = if lost == 1 { "Removes 1 entry that this configuration does not own alone.".to_owned() } else { format!("Removes {lost} entries that this configuration does not own alone.") };
            prop_assert_eq!(text.contains(&told), lost > 0, "{}", text);
        }
    }
}
