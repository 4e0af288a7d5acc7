//! Changes by others between an approval and the remaining writes, or alongside an edit that a
//! policy approves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::defects::text;
use super::tests::{CREATE, DONE, HALF, World, basis, plan};
use super::*;
use crate::api::{HistoryEntry, Input, Operation, Replaced, Severity, TargetRef};
use crate::plan::Basis;
use crate::plan::decision::Outcome;
use crate::plan::decision::observed;
use crate::plan::items::{Moved, one_by_one};
use crate::plan::overrides::PATCH;
use crate::plan::status::compose;

/// A plan whose second wave reboots machines of a pool, `at_a_time` at once.
fn rebooting(operations: [Operation; 2], at_a_time: &str, machines: u32) -> Plan {
    let mut items = plan(operations).items;
    if operations[1] != Operation::NoChange {
        items[1].review.effect.pools = one_by_one(&[("worker", machines)]);
        items[1].review.effect.pools.values_mut().for_each(|pool| pool.max_unavailable = Some(at_a_time.to_owned()));
    }
    Plan::new(basis(), items)
}

/// T3: approving machines that reboot one by one does not approve three at a time, neither before
/// nor after the approval.
#[test]
fn t3_a_pool_that_lets_more_machines_reboot_stops_the_waves_that_are_left() {
    for (at_a_time, machines, says) in [
        ("3", 3, Some("maxUnavailable of pool worker from 1 to 3.")),
        ("1", 5000, Some("machines of pool worker from fewer than 10 to 1000 or more.")),
        ("1", 4, None),
    ] {
        let mut world = World::new(Action::DryRun);
        world.look(rebooting(CREATE, "1", 3));
        world.now += 100;
        world.edit(Action::Apply);
        world.look(rebooting(CREATE, "1", 3));
        world.look(rebooting(CREATE, "1", 3));
        assert!(world.status.items[0].applied.is_some() && world.status.items[1].applied.is_none());
        let next = world.look(rebooting(HALF, at_a_time, machines));
        match says {
            Some(says) => {
                assert!(matches!(&next, Decision::Publish(end) if end.ended == Some(Outcome::Stale)), "{next:?}");
                assert!(text(&world).contains(says), "{}", text(&world));
                assert!(!world.look(rebooting(HALF, at_a_time, machines)).is_execution());
            }
            None => assert!(next.is_execution(), "{next:?}"),
        }
    }
}

/// The pool's owner may speed up a rollout once nothing is left to write.
#[test]
fn what_a_pool_allows_once_everything_is_written_ends_nothing() {
    let mut world = World::new(Action::Apply);
    for operations in [CREATE, CREATE, HALF, HALF] {
        world.look(rebooting(operations, "1", 3));
    }
    assert!(world.status.items[1].applied.is_some());
    world.look(rebooting(DONE, "3", 3));
    assert_eq!(world.phase(), Some(Phase::Completed));
}

fn input(path: &str, value: Value) -> Input {
    let target = TargetRef { kind: "Widget".into(), name: "a".into(), ..TargetRef::default() };
    Input { target, path: path.into(), value: Some(value), changed_from: None }
}

/// An automatic policy approves what an edit of the options leads to, not what others changed
/// alongside it.
#[test]
fn a_policy_approves_nothing_that_others_have_changed() {
    let patch = format!("/metadata/annotations/{}", PATCH.replace('/', "~1"));
    let with = |inputs: &[Input], operations, options: Option<i32>| {
        let options = options.map(|option| json!(option));
        Plan::new(Basis { inputs: inputs.to_vec(), options, ..basis() }, plan(operations).items)
    };
    let before = [input("/spec/limit", json!(1))];
    let mut moved = with(&before, CREATE, Some(1));
    moved.items[0].live.moved = vec![Moved { path: "/spec/a".into(), text: "/spec/a was changed".into() }];
    let cases = [
        ("nothing", with(&before, CREATE, Some(1)), true),
        ("an input", with(&[input("/spec/limit", json!(2))], CREATE, Some(1)), false),
        ("an override", with(&[before[0].clone(), input(&patch, json!("[]"))], CREATE, Some(1)), false),
        ("a field that was applied", moved, false),
        (
            "more is read for these options",
            with(&[before[0].clone(), input("/spec/more", json!(2))], CREATE, Some(1)),
            true,
        ),
    ];
    for shown_first in [false, true] {
        for (changed, plan, approved) in &cases {
            let mut world = World::new(Action::Apply);
            world.wanted.automatic = true;
            for operations in [CREATE, CREATE, HALF, HALF, DONE] {
                world.look(with(&before, operations, None));
            }
            assert_eq!(world.phase(), Some(Phase::Completed));
            if shown_first && !approved {
                let shown = Plan::new(Basis { options: None, ..plan.basis.clone() }, plan.items.clone());
                assert!(!world.look(shown).is_execution(), "{changed}: without an edit");
            }
            world.wanted.options = Some(json!(1));
            world.edit(Action::Apply);
            assert_eq!(world.look(plan.clone()).is_execution(), *approved, "{changed}, {shown_first}");
            if !approved {
                assert!(!world.look(plan.clone()).is_execution(), "{changed}: a second look");
                let text = world.status.summary.as_ref().map_or("", |summary| &summary.text);
                let why = "Automatic approves only what an edit of the options changes";
                assert!(text.contains(why) || world.phase() == Some(Phase::Drifted), "{changed}: {text}");
                world.wanted.approved_plan_hash = Some(plan.digest.clone());
                world.wanted.generation += 1;
                assert!(world.look(plan.clone()).is_execution(), "{changed}: a person has read it");
            }
        }
    }
}

/// A skipped item waits for a review of its own, even if its time ended while the operator did not
/// run.
#[test]
fn a_policy_approves_no_item_that_was_set_aside() {
    for (operation, approved) in [(Operation::Skipped, false), (Operation::NoChange, true)] {
        let mut world = World::new(Action::Apply);
        world.wanted.automatic = true;
        for operations in
            [[operation, Operation::Create], [operation, Operation::Create], [operation, Operation::NoChange]]
        {
            world.look(plan(operations));
        }
        assert_eq!(world.phase(), Some(Phase::Completed));
        world.wanted.options = Some(json!(1));
        world.edit(Action::Apply);
        let other = Plan::new(Basis { options: Some(json!(1)), ..basis() }, plan(CREATE).items);
        assert_eq!(world.look(other).is_execution(), approved, "{operation:?}");
    }
}

/// However many executions come between, that many corrections without a person are remembered.
#[test]
fn corrections_are_counted_however_many_executions_come_between() {
    let mut world = World::new(Action::Apply);
    let entry = |how: ApprovedBy, number: usize| -> HistoryEntry {
        serde_json::from_value(json!({"planHash": number.to_string(), "how": how})).unwrap()
    };
    let bypass: Vec<_> = (0..3).map(|number| entry(ApprovedBy::Bypass, number)).collect();
    world.status.history = bypass.clone();
    for number in 3..40 {
        world.wanted.options = Some(json!(number));
        world.wanted.approved_plan_hash = None;
        let with = |operations| Plan::new(Basis { options: Some(json!(number)), ..basis() }, plan(operations).items);
        world.wanted.automatic = true;
        world.edit(Action::Apply);
        for operations in [CREATE, CREATE, HALF, HALF, DONE] {
            world.look(with(operations));
        }
    }
    assert_eq!(world.status.history.len(), 10);
    assert_eq!(world.status.history[7..], bypass);
    assert!(world.status.history[..7].iter().all(|entry| entry.how == Some(ApprovedBy::Policy)));
}

/// Items that a stopped execution did not reach were not replaced; and the reason for skipping an
/// item is the one in spec now.
#[test]
fn history_and_messages_tell_what_was_done_and_what_is_said_now() {
    let replaces = |operations| {
        let mut plan = plan(operations);
        for item in &mut plan.items {
            item.review.replaced = vec![Replaced { item: item.name.clone(), path: "/spec".into(), was: "1".into() }];
        }
        plan
    };
    let mut world = World::new(Action::Apply);
    world.look(replaces(CREATE));
    world.look(replaces(CREATE));
    world.edit(Action::DryRun);
    world.look(replaces(HALF));
    let replaced: Vec<_> = world.status.history[0].replaced.iter().map(|replaced| replaced.item.as_str()).collect();
    assert_eq!(replaced, ["a"]);

    // A missing prerequisite ends it, and no new plan is shown.
    let mut world = World::new(Action::Apply);
    world.look(replaces(CREATE));
    world.look(replaces(CREATE));
    let missing = observed::World::Missing(vec!["install it".into()]);
    let seen = Observed {
        wanted: &world.wanted,
        status: &world.status,
        world: missing,
        description: "Moves virtual machines away from busy machines",
        version: "v1",
        declared_impact: Severity::High,
        machines_updated: None,
        settling: crate::plan::decision::execution::SETTLING,
        made_anew: false,
    };
    let now = Timestamp::from_second(world.now).unwrap();
    let ended = compose(&seen, &decide(&seen, now), &BTreeMap::new(), now).unwrap();
    assert_eq!(ended.phase, Some(Phase::PrerequisiteFailed));
    assert_eq!(ended.items[0].message, "Applied; waiting for it to take effect.");
    assert_eq!(
        (ended.items[1].state, ended.items[1].message.as_str()),
        (ItemState::Pending, "Not applied: the execution ended before this item was written.")
    );

    let mut world = World::new(Action::DryRun);
    for reason in ["until June", "until July"] {
        let mut skipped = plan([Operation::Skipped, Operation::NoChange]);
        skipped.items[0].review.message = reason.into();
        world.look(skipped);
        assert_eq!(world.status.items[0].message, reason);
    }
}

/// Fault R22: an input that was not read before has not changed.
#[test]
fn r22_an_input_that_was_not_read_before_has_not_changed() {
    let with = |inputs: &[Input], options: i32, operations| {
        Plan::new(Basis { inputs: inputs.to_vec(), options: Some(json!(options)), ..basis() }, plan(operations).items)
    };
    let drift = |world: &World| {
        world.status.conditions.iter().any(|found| found.type_ == "InputDependencyDrift" && found.status == "True")
    };
    let (limit, more) = (input("/spec/limit", json!(1)), input("/spec/more", json!(12)));
    for blocked in [false, true] {
        let mut world = World::new(Action::DryRun);
        world.wanted.options = Some(json!(0));
        let before = if blocked { [Operation::Blocked, Operation::Create] } else { CREATE };
        world.look(with(std::slice::from_ref(&limit), 0, before));
        world.wanted.options = Some(json!(1));
        world.edit(Action::DryRun);
        world.look(with(&[limit.clone(), more.clone()], 1, CREATE));
        assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::OPTIONS_CHANGED));
        assert!(!drift(&world), "{:?}", world.status.conditions);
        // From then on it can change.
        world.look(with(&[limit.clone(), input("/spec/more", json!(13))], 1, CREATE));
        assert_eq!((world.reason(), drift(&world)), (reason::INPUT_DEPENDENCY_DRIFT, true));
    }
    // A new annotation is a change, even if the profile reads nothing else.
    let mut world = World::new(Action::DryRun);
    world.wanted.options = Some(json!(0));
    world.look(with(&[], 0, CREATE));
    let patch = format!("/metadata/annotations/{}", PATCH.replace('/', "~1"));
    world.look(with(&[input(&patch, json!("[]"))], 0, CREATE));
    assert!(drift(&world), "{:?}", world.status.conditions);
}

/// A removed override stays a change by others until a person has approved the result.
#[test]
fn a_policy_approves_no_removal_of_an_override_however_long_ago() {
    let patch = input(&format!("/metadata/annotations/{}", PATCH.replace('/', "~1")), json!("[]"));
    let with = |inputs: &[Input], operations, options: Option<i32>| {
        let options = options.map(|option| json!(option));
        Plan::new(Basis { inputs: inputs.to_vec(), options, ..basis() }, plan(operations).items)
    };
    let drift = |world: &World| {
        let found = world.status.conditions.iter().find(|found| found.type_ == "InputDependencyDrift");
        found.is_some_and(|found| found.status == "True")
    };
    let mut world = World::new(Action::Apply);
    world.wanted.automatic = true;
    for operations in [CREATE, CREATE, HALF, HALF, DONE] {
        world.look(with(std::slice::from_ref(&patch), operations, None));
    }
    assert_eq!((world.phase(), world.status.inputs.len()), (Some(Phase::Completed), 1));
    for look in 0..3 {
        assert!(!world.look(with(&[], CREATE, None)).is_execution());
        assert_eq!((world.phase(), drift(&world)), (Some(Phase::ReviewRequired), true), "{look}");
    }
    world.wanted.options = Some(json!(1));
    world.edit(Action::Apply);
    for look in 0..3 {
        assert!(!world.look(with(&[], CREATE, Some(1))).is_execution(), "{look}");
    }
    // It comes back: nothing has changed.
    let mut back =
        World { status: world.status.clone(), wanted: world.wanted.clone(), now: world.now, made_anew: false };
    back.look(with(std::slice::from_ref(&patch), CREATE, Some(1)));
    assert!(!drift(&back) && back.status.inputs.len() == 1, "{:?}", back.status.inputs);
    // A person has approved it, so it is forgotten.
    world.wanted.approved_plan_hash = Some(with(&[], CREATE, Some(1)).digest);
    world.wanted.generation += 1;
    assert!(world.look(with(&[], CREATE, Some(1))).is_execution());
    assert!(world.status.inputs.is_empty(), "{:?}", world.status.inputs);
    for operations in [CREATE, HALF, HALF, DONE] {
        world.look(with(&[], operations, Some(1)));
    }
    assert_eq!((world.phase(), drift(&world)), (Some(Phase::Completed), false));
    world.wanted.options = Some(json!(2));
    world.edit(Action::Apply);
    assert!(world.look(with(&[], CREATE, Some(2))).is_execution(), "what the options make is approved again");
}

/// Fault R9: a pool that is already degraded is reviewed, and one that becomes degraded during its
/// rollout ends nothing.
#[test]
fn r9_a_pool_that_is_degraded_before_the_write_is_another_plan() {
    let on = |operations, degraded: bool| {
        let mut items = rebooting(operations, "1", 3).items;
        items[1].review.effect.pools.values_mut().for_each(|pool| pool.degraded = degraded);
        Plan::new(basis(), items)
    };
    assert_ne!(on(CREATE, true).digest, on(CREATE, false).digest);
    let mut world = World::new(Action::DryRun);
    world.look(on(CREATE, false));
    world.look(on(CREATE, true));
    assert!(
        text(&world).contains("Changed since the plan was shown: pool worker is now degraded."),
        "{}",
        text(&world)
    );
    for approved_as in [false, true] {
        let mut world = World::new(Action::DryRun);
        world.look(on(CREATE, approved_as));
        world.now += 100;
        world.edit(Action::Apply);
        world.look(on(CREATE, approved_as));
        world.look(on(CREATE, approved_as));
        assert!(world.status.items[0].applied.is_some() && world.status.items[1].applied.is_none());
        assert!(world.look(on(HALF, !approved_as)).is_execution(), "{}", text(&world));
    }
}
