//! Faults of other programs, each with the situation in which it appeared.

use std::time::Duration;

use serde_json::json;

use super::tests::{World, basis, item, writes_of};
use super::*;
use crate::api::{FailurePolicy, Input, Operation, TargetRef};
use crate::plan::Basis;
use crate::plan::items::{Moved, one_by_one};

fn plan(operations: [Operation; 2]) -> Plan {
    Plan::new(basis(), vec![item("a", 0, operations[0]), item("b", 1, operations[1])])
}

const CREATE: [Operation; 2] = [Operation::Create, Operation::Create];
const HALF: [Operation; 2] = [Operation::NoChange, Operation::Create];
const DONE: [Operation; 2] = [Operation::NoChange, Operation::NoChange];

/// The plan after somebody changed what item `index` had applied.
fn drifted(index: usize) -> Plan {
    let mut operations = DONE;
    operations[index] = Operation::Update;
    let mut plan = plan(operations);
    plan.items[index].live.moved = vec![Moved { path: "/spec".into(), text: "/spec is 2 instead of 1".into() }];
    plan
}

fn input() -> Input {
    Input { target: TargetRef::default(), path: "/x".into(), value: Some(json!(1)), changed_from: None }
}

/// A world in which everything was carried out under Apply.
fn completed() -> World {
    let mut world = World::new(Action::Apply);
    for operations in [CREATE, CREATE, HALF, HALF, DONE] {
        world.look(plan(operations));
    }
    assert_eq!(world.phase(), Some(Phase::Completed));
    world
}

fn condition(world: &World, name: &str) -> Option<String> {
    let found = world.status.conditions.iter().find(|condition| condition.type_ == name);
    found.map(|condition| condition.status.clone())
}

/// Edits something else in the spec, such as waitTimeout.
fn edit_something_else(world: &mut World) {
    world.wanted.generation += 1;
    world.wanted.spec_hash = "other".into();
}

#[test]
fn d3_d5_d53_a_failure_of_the_last_item_counts_and_stays() {
    let mut world = World::new(Action::Apply);
    world.wanted.failure_policy = FailurePolicy::Continue;
    for operations in [CREATE, CREATE, HALF, HALF] {
        world.look(plan(operations));
    }
    let mut broken = plan(DONE);
    broken.items[1].live.rollout = Rollout::Failed("broken".into());
    world.look(broken);
    assert_eq!(world.phase(), Some(Phase::CompletedWithErrors));
    assert_eq!(condition(&world, "Completed").as_deref(), Some("False"));
    let message = world.status.items[1].message.clone();
    world.look(plan(DONE));
    assert_eq!(world.phase(), Some(Phase::CompletedWithErrors), "the next look makes no success of it");
    world.look(drifted(0));
    assert_eq!(world.phase(), Some(Phase::CompletedWithErrors), "nor does the drift of an item that did not fail");
    assert_eq!(world.status.items[1].message, message);
}

#[test]
fn d18_d46_an_upgrade_that_waits_is_left_by_hand_and_hides_no_drift() {
    let upgraded = || {
        let mut world = completed();
        world.status.operator_version = Some("v0".into());
        world.look(plan(HALF));
        assert_eq!(world.phase(), Some(Phase::CompletedWithUpgrade));
        world
    };
    let mut by_hand = upgraded();
    by_hand.look(plan(DONE));
    assert_eq!(by_hand.phase(), Some(Phase::Completed));
    assert_eq!(condition(&by_hand, "UpgradeAvailable").as_deref(), Some("False"));
    assert_eq!(by_hand.status.operator_version.as_deref(), Some("v1"));
    let mut changed = upgraded();
    changed.look(drifted(0));
    assert_eq!(changed.phase(), Some(Phase::Drifted));
}

#[test]
fn d47_d48_no_other_edit_of_the_spec_is_an_approval() {
    let with_input = |operations| Plan::new(Basis { inputs: vec![input()], ..basis() }, plan(operations).items);
    let situations: [(&str, Plan, Option<&str>); 4] = [
        ("options", plan(HALF), None),
        ("drift", drifted(0), None),
        ("an upgrade", plan(HALF), Some("v0")),
        ("an input", with_input(HALF), None),
    ];
    for (name, waiting, version) in situations {
        let mut world = completed();
        world.status.operator_version = version.map(str::to_owned).or(world.status.operator_version);
        world.look(waiting.clone());
        assert_ne!(world.phase(), Some(Phase::Completed), "{name}");
        for _ in 0..2 {
            edit_something_else(&mut world);
            world.look(waiting.clone());
            assert_ne!(world.phase(), Some(Phase::InProgress), "{name}");
            assert_eq!(world.status.approval, None, "{name}");
        }
    }
}

#[test]
fn d8_a_second_wait_begins_anew() {
    let mut world = completed();
    world.now += 1_000_000;
    world.wanted.wait_timeout = Some(Duration::from_secs(100));
    let mut rolling = plan([Operation::NoChange, Operation::Update]);
    rolling.items[0].live.rollout = Rollout::Waiting { text: "0 of 3".into(), paused: false };
    world.look(rolling.clone());
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.wanted.generation += 1;
    for _ in 0..3 {
        world.look(rolling.clone());
        assert_eq!(world.phase(), Some(Phase::InProgress));
    }
}

#[test]
fn d45_options_that_change_during_the_execution_end_it_and_the_plan_is_that_of_the_new_ones() {
    let mut world = World::new(Action::Apply);
    world.look(plan(CREATE));
    world.look(plan(CREATE));
    world.wanted.options = Some(json!(1));
    world.wanted.generation += 1;
    let other = Plan::new(Basis { options: Some(json!(1)), ..basis() }, plan(HALF).items);
    assert!(writes_of(&world.look(other)).is_empty());
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::OPTIONS_CHANGED));
    assert_eq!(world.status.observed_generation, Some(world.wanted.generation));
    assert_eq!(world.status.planned_generation, Some(world.wanted.generation));
}

#[test]
fn d50_what_was_said_of_inputs_does_not_survive_ignore() {
    let changed = || Plan::new(Basis { inputs: vec![input()], ..basis() }, plan(HALF).items);
    let mut world = completed();
    world.status.inputs = vec![Input { value: Some(json!(0)), ..input() }];
    world.look(changed());
    assert_eq!(condition(&world, "InputDependencyDrift").as_deref(), Some("True"));
    world.edit(Action::Ignore);
    world.look(changed());
    assert_eq!(world.phase(), Some(Phase::Ignored));
    assert_eq!(condition(&world, "InputDependencyDrift").as_deref(), Some("False"));
    world.edit(Action::Apply);
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.look(changed());
    assert_eq!(world.phase(), Some(Phase::InProgress), "there is a way out");
}

#[test]
fn d54_what_is_put_back_without_asking_has_an_end() {
    let mut world = completed();
    world.wanted.bypass = true;
    edit_something_else(&mut world);
    world.look(plan(DONE));
    let round = |world: &mut World| {
        let mut moved = drifted(0);
        // The plan restores exactly what was applied.
        let applied = world.status.items[0].applied.clone().unwrap();
        moved.items[0].fields.expected = [("/spec".to_owned(), json!(1))].into();
        let hash = object::digest::sha256(&moved.items[0].fields.expected);
        world.status.items[0].applied = Some(crate::api::Applied { hash, ..applied });
        world.look(moved.clone());
        if world.phase() == Some(Phase::InProgress) {
            assert_eq!(writes_of(&world.look(moved)), ["a"]);
            world.look(plan(DONE));
            world.look(plan(DONE));
        }
        world.phase()
    };
    for _ in 0..3 {
        assert_eq!(round(&mut world), Some(Phase::Completed));
    }
    assert_eq!(round(&mut world), Some(Phase::Drifted));
    assert!(world.status.summary.as_ref().unwrap().text.contains("three times within the last hour"));
    world.now += 3600;
    assert_eq!(round(&mut world), Some(Phase::Completed), "later it is no fight");
}

#[test]
fn d31_memories_that_do_not_fit_make_no_drift_without_a_change() {
    let mut world = completed();
    let mut odd = plan(DONE);
    odd.items[0].live.moved = vec![Moved { path: "/spec".into(), text: "/spec is 1".into() }];
    world.look(odd);
    assert_eq!(world.phase(), Some(Phase::Completed));
}

#[test]
fn p15_an_edit_replaces_a_plan_that_waits_and_the_history_says_so() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    let first = world.status.plan_hash.clone().unwrap();
    edit_something_else(&mut world);
    world.look(plan(HALF));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    assert_eq!((world.status.superseded[0].plan_hash.as_str(), world.status.history.len()), (first.as_str(), 0));
    world.look(plan(CREATE));
    assert_eq!(world.status.superseded.len(), 1, "what moves by itself fills no history");
}

#[test]
fn p18_an_approval_of_another_kind_of_digest_approves_nothing() {
    let mut world = World::new(Action::Apply);
    world.look(plan(CREATE));
    let other = world.status.plan_hash.clone().unwrap().replace("v1:", "v2:");
    world.status.plan_hash = Some(other.clone());
    world.status.approval.as_mut().unwrap().plan_hash.clone_from(&other);
    assert!(writes_of(&world.look(plan(CREATE))).is_empty());
    assert_eq!(world.phase(), Some(Phase::ReviewRequired), "it is planned once more");
    let rest = world.status.clone();
    assert_eq!(world.decide(plan(CREATE)).1, Some(rest));
    world.wanted.approved_plan_hash = Some(other);
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
}

#[test]
fn p2_p4_g3_a_plan_that_waits_moves_with_the_world_and_says_since_when() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    let since = world.status.planned_at.clone();
    world.now += 100;
    world.look(plan(CREATE));
    assert_eq!(world.status.planned_at, since, "the same plan is as old as it is");
    world.look(plan(HALF));
    assert_ne!(world.status.planned_at, since);
    let digest = world.status.plan_hash.clone().unwrap();
    assert!(digest.contains(&world.status.summary.as_ref().unwrap().plan), "summary and digest move together");
    world.look(plan(DONE));
    assert_eq!(world.phase(), Some(Phase::Completed), "done by hand: nothing is left to approve");
}

#[test]
fn g2_every_phase_is_left_by_a_new_spec_and_by_asking_for_a_plan() {
    let phases = [
        Phase::ReviewRequired,
        Phase::Completed,
        Phase::CompletedWithErrors,
        Phase::CompletedWithUpgrade,
        Phase::Failed,
        Phase::Drifted,
        Phase::PrerequisiteFailed,
        Phase::Ignored,
    ];
    for phase in phases {
        for replan in [false, true] {
            let mut world = completed();
            world.status.phase = Some(phase);
            world.status.items[1].state = ItemState::Failed;
            if replan {
                world.wanted.replan = Some("now".into());
            } else {
                edit_something_else(&mut world);
            }
            let fresh = plan(HALF);
            world.look(fresh.clone());
            assert_eq!(world.status.plan_hash, Some(fresh.digest), "{phase:?}, replan: {replan}");
        }
    }
}

#[test]
fn m5_what_is_of_one_wave_is_written_in_one_go() {
    let both = || Plan::new(basis(), vec![item("a", 0, Operation::Create), item("b", 0, Operation::Create)]);
    let mut world = World::new(Action::Apply);
    world.look(both());
    assert_eq!(writes_of(&world.look(both())), ["a", "b"]);
}

/// Clocks that jump: no wait ends too early or never, and nothing panics.
#[test]
fn a_clock_that_jumps_delays_and_breaks_nothing() {
    let rolling = || {
        let mut plan = plan(HALF);
        plan.items[0].live.rollout = Rollout::Waiting { text: "0 of 3".into(), paused: false };
        plan
    };
    for jump in [-1_000_000, 1_000_000] {
        let mut world = World::new(Action::Apply);
        world.now = 2_000_000;
        world.wanted.wait_timeout = Some(Duration::from_secs(100));
        world.look(plan(CREATE));
        world.look(plan(CREATE));
        world.now += jump;
        world.look(rolling());
        let phase = if jump < 0 { Phase::InProgress } else { Phase::Failed };
        assert_eq!(world.phase(), Some(phase), "by {jump} s");
        if jump < 0 {
            world.look(plan(HALF));
            assert_eq!(world.status.items[0].state, ItemState::Completed);
        }
    }
}

fn hash(of: &World) -> Option<String> {
    of.status.plan_hash.clone()
}

/// The text that people see first.
pub(super) fn text(world: &World) -> &str {
    &world.status.summary.as_ref().unwrap().text
}

/// T1: whatever rule could approve the plan on display, a hash that names another plan stops it,
/// and both are named.
#[test]
fn t1_a_hash_that_names_another_plan_stops_every_rule() {
    let other = "v1:bbbbbbbbbbbbbbbb".to_owned();
    let refused = |name: &str, world: &mut World, shown: Plan| {
        let begun = world.look(shown.clone());
        assert!(!begun.is_execution(), "{name}");
        let digest = &hash(world).unwrap()[3..15];
        let text = text(world);
        assert!(
            text.contains("names plan bbbbbbbbbbbb") && text.contains(&format!("this is plan {digest}")),
            "{name}: {text}"
        );
        // Nor at any later reconcile, when the hash is known.
        world.now += 1000;
        assert!(!world.look(shown).is_execution(), "{name}");
    };
    // Reviewed and approved by the action, but with the hash of another plan, by somebody else's
    // edit in between or by mistake.
    let mut reviewed = World::new(Action::DryRun);
    reviewed.look(plan(CREATE));
    reviewed.edit(Action::Apply);
    reviewed.wanted.approved_plan_hash = Some(other.clone());
    refused("Action", &mut reviewed, plan(CREATE));
    // A new object, or one that was deleted and created again.
    let mut new = World::new(Action::Apply);
    new.wanted.approved_plan_hash = Some(other.clone());
    refused("InAdvance", &mut new, plan(CREATE));
    let mut policy = World::new(Action::Apply);
    policy.wanted.automatic = true;
    policy.wanted.approved_plan_hash = Some(other.clone());
    refused("Policy", &mut policy, plan(CREATE));
    let mut bypass = World::new(Action::DryRun);
    bypass.wanted.bypass = true;
    bypass.look(plan(CREATE));
    bypass.edit(Action::Apply);
    bypass.wanted.approved_plan_hash = Some(other);
    refused("Bypass", &mut bypass, plan(HALF));
}

/// T1 (d): a plan that was read under Ignore, by `diff`, is not the one that the current options
/// lead to.
#[test]
fn t1_a_hash_that_was_read_under_ignore_approves_no_other_plan_from_there() {
    let mut world = completed();
    world.wanted.approved_plan_hash = hash(&world);
    world.edit(Action::Ignore);
    world.look(plan(DONE));
    world.edit(Action::Apply);
    world.wanted.approved_plan_hash = Some("v1:aaaa".into());
    assert!(!world.look(plan(HALF)).is_execution());
    assert!(text(&world).contains("names plan aaaa"), "{}", text(&world));
    // The right hash is accepted.
    world.wanted.approved_plan_hash = hash(&world);
    world.wanted.generation += 1;
    assert!(world.look(plan(HALF)).is_execution());
}

/// A hash that was carried out and stays in spec, as with Git, stops no rule that needs no person,
/// and approves nothing.
#[test]
fn t1_a_hash_that_was_carried_out_hinders_no_correction_and_approves_no_other_plan() {
    let mut world = World::new(Action::DryRun);
    world.wanted.automatic = true;
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.wanted.approved_plan_hash = hash(&world);
    for operations in [CREATE, CREATE, HALF, HALF, DONE, DONE] {
        world.look(plan(operations));
    }
    assert_eq!(world.phase(), Some(Phase::Completed));
    world.wanted.options = Some(json!(1));
    world.wanted.generation += 1;
    let other = || Plan::new(Basis { options: Some(json!(1)), ..basis() }, plan(HALF).items);
    assert!(world.look(other()).is_execution(), "an automatic policy approves what is edited");

    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.wanted.approved_plan_hash = hash(&world);
    for operations in [CREATE, CREATE, HALF, HALF, DONE, DONE] {
        world.look(plan(operations));
    }
    world.edit(Action::DryRun);
    world.look(plan(HALF));
    world.now += 1000;
    world.edit(Action::Apply);
    assert!(!world.look(plan(HALF)).is_execution(), "the hash in spec names what was carried out");
    assert!(text(&world).contains("spec.approvedPlanHash names plan"), "{}", text(&world));
}

/// T2: an edit by somebody else, a second before the action approves, leads to another plan than
/// the one that was read.
#[test]
fn t2_a_plan_that_an_edit_made_a_second_ago_is_not_approved_by_the_action() {
    for (waited, approved) in [(1, false), (59, false), (61, true)] {
        let mut world = World::new(Action::DryRun);
        world.look(plan(CREATE));
        world.now += 1000;
        world.wanted.options = Some(json!(1));
        world.wanted.generation += 1;
        let other = || Plan::new(Basis { options: Some(json!(1)), ..basis() }, plan(CREATE).items);
        world.look(other());
        world.now += waited;
        world.edit(Action::Apply);
        assert_eq!(world.look(other()).is_execution(), approved, "after {waited} s");
        if !approved {
            assert!(text(&world).contains("replaced another one within a minute"), "{}", text(&world));
        }
    }
}

/// T3: the terms of a plan are reviewed with it.
#[test]
fn t3_another_failure_policy_time_limit_or_size_is_another_plan() {
    let planned = |change: &dyn Fn(&mut World)| {
        let mut world = World::new(Action::DryRun);
        change(&mut world);
        Plan::new(Basis { terms: world.wanted.terms(), ..basis() }, plan(CREATE).items).digest
    };
    let plain = planned(&|_| {});
    assert_eq!(plain, plan(CREATE).digest, "defaults are in no digest: those of earlier versions stay");
    let goes_on = planned(&|world| world.wanted.failure_policy = FailurePolicy::Continue);
    let short = planned(&|world| world.wanted.wait_timeout = Some(Duration::from_secs(1)));
    let with_machines = |machines: u32| {
        let mut items = plan(CREATE).items;
        items[0].review.effect.pools = one_by_one(&[("worker", machines)]);
        Plan::new(basis(), items).digest
    };
    let with_limit = |written: &str| {
        let mut items = plan(CREATE).items;
        items[0].review.effect.pools = one_by_one(&[("worker", 3)]);
        items[0].review.effect.pools.values_mut().for_each(|pool| pool.max_unavailable = Some(written.to_owned()));
        Plan::new(basis(), items).digest
    };
    assert_eq!(with_limit("1"), plain);
    assert_eq!((with_machines(3), with_machines(9)), (plain.clone(), plain.clone()), "a machine more is no other plan");
    assert_eq!(with_machines(150), with_machines(999));
    let sizes = [with_machines(10), with_machines(150), with_machines(5000)];
    let mut all = vec![plain, goes_on, short, with_limit("100%"), with_limit("2")];
    all.extend(sizes);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8, "each of them is another plan");
}

/// Whoever approves also decides how an execution continues: an edited time limit is in force at
/// once and does not make another plan (R29).
#[test]
fn an_edit_of_the_time_limit_during_an_execution_does_not_end_it() {
    let mut world = World::new(Action::Apply);
    let with =
        |world: &World, operations| Plan::new(Basis { terms: world.wanted.terms(), ..basis() }, plan(operations).items);
    world.look(with(&world, CREATE));
    world.look(with(&world, CREATE));
    world.wanted.wait_timeout = Some(Duration::from_secs(7200));
    edit_something_else(&mut world);
    for operations in [HALF, HALF, DONE] {
        let fresh = with(&world, operations);
        world.look(fresh);
    }
    assert_eq!(world.phase(), Some(Phase::Completed));
    assert_eq!(world.status.history[0].outcome, "Completed");
}

/// T9: anyone who may edit the object can forge managedFields: a time in the future is no evidence.
#[test]
fn t9_an_edit_dated_in_the_future_is_as_old_as_the_look_that_sees_it() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.now += 1000;
    world.look(plan(HALF));
    world.edit(Action::Apply);
    world.wanted.action_edit.as_mut().unwrap().at = Timestamp::from_second(world.now + 120).unwrap();
    assert!(!world.look(plan(HALF)).is_execution());
    assert!(text(&world).contains("within a minute"), "{}", text(&world));
    assert!(world.status.approval.is_none());
}

/// T14: figures and remedies in the headline are up to date, and what had changed stays reported.
#[test]
fn t14_the_headline_follows_what_is_in_no_digest() {
    let with_machines = |machines: u32| {
        let mut plan = plan(HALF);
        plan.items[1].review.effect.pools = one_by_one(&[("worker", machines)]);
        plan
    };
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.look(with_machines(3));
    assert!(text(&world).contains("3 machines reboot") && text(&world).contains("Changed since"), "{}", text(&world));
    world.look(with_machines(8));
    assert!(text(&world).contains("8 machines reboot") && text(&world).contains("Changed since"), "{}", text(&world));
    let condition = world.status.conditions.iter().find(|found| found.type_ == "ReviewRequired").unwrap();
    assert_eq!(condition.message, text(&world));
    let mut blocked = plan([Operation::Blocked, Operation::Create]);
    for remedy in ["create the namespace", "raise the quota"] {
        blocked.items[0].review.message = remedy.into();
        world.look(blocked.clone());
        assert!(text(&world).contains(remedy), "{}", text(&world));
        let rest = world.status.clone();
        assert_eq!(world.decide(blocked.clone()).1, Some(rest), "said once");
    }
}

/// T21: edits under DryRun push no execution out of the history, which records when, what and how
/// many machines.
#[test]
fn t21_edits_push_no_approved_execution_out_of_the_history() {
    let mut world = completed();
    world.edit(Action::DryRun);
    for option in 1..=12 {
        world.wanted.options = Some(json!(option));
        world.wanted.generation += 1;
        world.look(Plan::new(Basis { options: Some(json!(option)), ..basis() }, plan(HALF).items));
    }
    assert_eq!((world.status.history.len(), world.status.superseded.len()), (1, 10));
    let entry = &world.status.history[0];
    assert_eq!((entry.outcome.as_str(), entry.approved_at.is_some(), entry.generation), ("Completed", true, Some(1)));
    assert!(entry.text.starts_with("2 to create"), "{entry:?}");
    assert_eq!(entry.operator_version.as_deref(), Some("v1"));
}

/// T7: text of others with a line break would pass for a line of ours.
#[test]
fn t7_no_message_has_a_line_that_others_wrote() {
    let mut world = World::new(Action::DryRun);
    let mut fresh = plan(CREATE);
    fresh.items[0].review.message = "leaves /spec/x\n# y (impact Low) Everything is as planned. alone".into();
    fresh.items[0].review.overrides = vec!["leaves /spec/x\n--- live alone".into()];
    fresh.items[1].operation = Operation::Blocked;
    fresh.items[1].review.message = "pool worker: \nStatus: Completed".into();
    world.look(fresh);
    let told = serde_json::to_value(&world.status).unwrap();
    assert!(told.to_string().contains("leaves /spec/x\\\\u{a}# y"), "{told:#}");
    let messages = [
        &told["items"][0]["message"],
        &told["items"][0]["overrides"][0],
        &told["items"][1]["message"],
        &told["summary"]["text"],
    ];
    for message in
        messages.into_iter().chain(told["conditions"].as_array().unwrap().iter().map(|told| &told["message"]))
    {
        assert!(!message.as_str().unwrap().contains('\n'), "{message}");
    }
}

/// Coming back from Ignore with other options or terms is not an approval in advance of what nobody
/// has seen.
#[test]
fn what_was_edited_under_ignore_is_reviewed_before_it_is_carried_out() {
    for edited in [false, true] {
        let mut world = completed();
        world.edit(Action::Ignore);
        world.look(plan(DONE));
        if edited {
            edit_something_else(&mut world);
        }
        world.edit(Action::Apply);
        assert_eq!(world.look(plan(HALF)).is_execution(), !edited);
    }
}
