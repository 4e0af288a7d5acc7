//! The texts about a plan that waits: true in every case in which they appear.

use serde_json::json;

use super::tests::{CREATE, World, basis, begun_by_hash, plan};
use super::*;
use crate::api::Operation;
use crate::plan::Basis;
use crate::plan::decision::changes;
use crate::plan::figures;
use crate::plan::items::{Moved, one_by_one};
use object::digest;

fn text(world: &World) -> &str {
    world.status.summary.as_ref().map_or("", |summary| &summary.text)
}

/// A plan is said to restore what drifted only if it restores exactly what was applied.
#[test]
fn what_is_wanted_otherwise_now_is_not_put_back() {
    for (other_is_wanted, says) in
        [(false, "To revert the drift, approve this plan"), (true, "This plan does more than revert the drift")]
    {
        let mut world = World::new(Action::Apply);
        let half = [Operation::NoChange, Operation::Create];
        let done = [Operation::NoChange, Operation::NoChange];
        for operations in [CREATE, CREATE, half, half, done] {
            world.look(plan(operations));
        }
        let mut drifted = plan([Operation::Update, Operation::NoChange]);
        drifted.items[0].live.moved = vec![Moved { path: "/spec".into(), text: "/spec is 2".into() }];
        if let Some(applied) = &mut world.status.items[0].applied {
            applied.hash = digest::sha256(&drifted.items[0].fields.expected);
        }
        if other_is_wanted {
            drifted.items[0].fields.expected.insert("/f:spec".to_owned(), json!("never applied"));
        }
        world.look(drifted.clone());
        assert_eq!(world.phase(), Some(Phase::Drifted));
        assert!(text(&world).contains(says), "{}", text(&world));
        assert!(!text(&world).contains("as a whole"), "{}", text(&world));
        // Whatever else is approved with it is mentioned.
        drifted.items[1] = super::tests::item("b", 1, Operation::Create);
        drifted.items[1].review.effect.pools = one_by_one(&[("virt", 2), ("worker", 3)]);
        world.look(Plan::new(super::tests::basis(), drifted.items));
        let whole = "The plan as a whole: 1 to create, 1 to change; 5 machines reboot (pools virt, worker).";
        assert!(text(&world).contains(whole), "{}", text(&world));
    }
}

/// The remedy must work in the present situation.
#[test]
fn a_hash_that_is_there_already_is_not_to_be_set() {
    // With a hash that names another plan, the action alone would carry out nothing.
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.wanted.approved_plan_hash = Some("v1:another".into());
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert!(
        text(&world).contains("set spec.approvedPlanHash (which names another plan) to status.planHash"),
        "{}",
        text(&world)
    );

    // A hash that names this plan, and was there before the plan came back, is used up.
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.wanted.approved_plan_hash = Some(plan(CREATE).digest);
    world.edit(Action::Apply);
    let done = [Operation::NoChange, Operation::NoChange];
    for operations in
        [CREATE, CREATE, [Operation::NoChange, Operation::Create], [Operation::NoChange, Operation::Create], done]
    {
        world.look(plan(operations));
    }
    assert_eq!(world.phase(), Some(Phase::Completed));
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    assert!(text(&world).contains("To approve it, set spec.action to DryRun and clear"), "{}", text(&world));
    assert!(!text(&world).contains("to status.planHash"), "{}", text(&world));
    // If an item is blocked, that must be resolved first.
    let blocked = plan([Operation::Blocked, Operation::NoChange]);
    world.wanted.approved_plan_hash = Some(blocked.digest.clone());
    world.wanted.generation += 1;
    world.look(blocked);
    assert!(!text(&world).contains("named this plan"), "{}", text(&world));
}

#[test]
fn an_edit_of_spec_is_not_told_as_a_change_of_the_object() {
    let mut world = World::new(Action::DryRun);
    world.look(plan([Operation::Blocked, Operation::Create]));
    world.wanted.generation += 1;
    world.wanted.spec_hash = "edited".into();
    world.look(plan(CREATE));
    assert!(text(&world).contains("The spec has been edited since the last plan."), "{}", text(&world));
}

#[test]
fn what_is_blocked_is_named_once_and_ends_once() {
    let mut world = World::new(Action::DryRun);
    let mut blocked = plan([Operation::Blocked, Operation::Create]);
    blocked.items[0].review.message = format!("{}: it can't be understood.", blocked.items[0].target);
    let sentence =
        format!("can't be approved while items are blocked: {} To continue", blocked.items[0].review.message);
    world.look(blocked);
    assert!(text(&world).contains(&sentence), "{}", text(&world));
}

/// The texts say why an item is now in the plan, or that it reached the planned state.
#[test]
fn what_has_become_of_an_item_is_told_and_what_was_written_is_no_change() {
    let cases = [
        (
            [Operation::Skipped, Operation::NoChange],
            [Operation::Update, Operation::NoChange],
            "it is no longer skipped",
        ),
        ([Operation::Update, Operation::Update], [Operation::Skipped, Operation::Update], "it is skipped"),
        ([Operation::Blocked, Operation::Update], [Operation::Update, Operation::Update], "it is no longer blocked"),
    ];
    for (before, after, says) in cases {
        let mut world = World::new(Action::DryRun);
        world.look(plan(before));
        world.look(plan(after));
        let name = plan(after).items[0].target.to_string();
        assert!(
            text(&world).contains(&format!("Changed since the plan was shown: {name} ({says}).")),
            "{}",
            text(&world)
        );
    }
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    let half = [Operation::NoChange, Operation::Create];
    for operations in [CREATE, half] {
        world.look(plan(operations));
    }
    let written = &world.status.items[0];
    assert!(written.applied.is_some() && written.operation == Operation::Create, "{written:?}");
    let mut other = plan([Operation::NoChange, Operation::Update]);
    let ours = other.items[0].target.to_string();
    assert!(!changes::stale_items(&world.status, &other).contains(&ours));
    other.items[0].live.moved = vec![Moved { path: "/spec".into(), text: "/spec is 2".into() }];
    assert!(changes::stale_items(&world.status, &other).contains(&ours));
}

#[test]
fn what_is_set_aside_is_not_said_to_be_as_planned_and_one_machine_reboots() {
    let done = [Operation::NoChange, Operation::NoChange];
    for (operations, says) in [
        (done, "All objects match the plan."),
        ([Operation::Skipped, Operation::NoChange], "All objects match the plan, except for 1 skipped item."),
        ([Operation::Skipped, Operation::Skipped], "All objects match the plan, except for 2 skipped items."),
    ] {
        let mut world = World::new(Action::DryRun);
        world.look(plan(operations));
        assert!(text(&world).starts_with(says), "{}", text(&world));
    }
    let mut one = plan(CREATE);
    for (machines, says) in
        [(0, "; no machine reboots."), (1, "; 1 machine reboots (pool "), (2, "; 2 machines reboot (pool ")]
    {
        one.items[0].review.effect.pools = one_by_one(&[("worker", machines)]);
        assert!(figures::in_figures(&one).contains(says), "{}", figures::in_figures(&one));
    }
}

/// Faults R10 and R11: an owner that reports a problem later is mentioned, and nothing is planned
/// or approved again for it.
#[test]
fn r11_trouble_of_an_owner_is_a_condition_as_long_as_it_lasts_and_no_other_plan() {
    let done = |trouble: Option<&str>| {
        let mut plan = plan([Operation::NoChange, Operation::NoChange]);
        plan.items[1].live.trouble = trouble.map(str::to_owned);
        plan
    };
    let condition = |world: &World| {
        let found = world.status.conditions.iter().find(|found| found.type_ == "OwnerUnhealthy");
        found.map(|found| (found.status.clone(), found.message.clone()))
    };
    let mut world = World::new(Action::Apply);
    world.look(done(None));
    assert_eq!((world.phase(), condition(&world)), (Some(Phase::Completed), None));
    let before = (world.status.plan_hash.clone(), world.status.items.clone());
    world.look(done(Some("Degraded=True: m.")));
    let told = format!("{}: Degraded=True: m.", done(None).items[1].target);
    assert_eq!(condition(&world), Some(("True".to_owned(), told.clone())));
    assert_eq!(text(&world), format!("All objects match the plan. {told}"));
    assert_eq!(
        (world.phase(), before),
        (Some(Phase::Completed), (world.status.plan_hash.clone(), world.status.items.clone()))
    );
    world.look(done(None));
    assert_eq!(condition(&world).map(|(status, _)| status).as_deref(), Some("False"));
    assert_eq!(text(&world), "All objects match the plan.");
    // An item that is in progress reports its own state.
    let mut waiting = done(Some("Degraded=True: m"));
    waiting.items[1].live.rollout = Rollout::Waiting { text: "Degraded=True: m".into(), paused: false };
    let mut first = World::new(Action::Apply);
    first.look(waiting);
    assert_eq!((first.phase(), condition(&first)), (Some(Phase::InProgress), None));
}

#[test]
fn a_plan_that_waits_always_says_the_next_step() {
    let next_step = |world: &World| world.status.summary.as_ref().unwrap().text.clone();
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    assert!(next_step(&world).ends_with("then set spec.action to Apply."), "{}", next_step(&world));
    world.wanted.options = Some(json!({"p": 1}));
    world.wanted.generation += 1;
    let options = Basis { options: world.wanted.options.clone(), ..basis() };
    world.look(Plan::new(options, plan(CREATE).items));
    assert_eq!(world.reason(), reason::OPTIONS_CHANGED);
    assert!(next_step(&world).ends_with("then set spec.action to Apply."), "{}", next_step(&world));
    let mut moved = begun_by_hash();
    moved.look(plan([Operation::Update, Operation::Create]));
    assert_eq!(moved.reason(), reason::PLAN_STALE);
    assert!(next_step(&moved).contains("set spec.approvedPlanHash to status.planHash"), "{}", next_step(&moved));
}

/// Fault R28: items after one that can be previewed only later reboot nothing under this approval.
#[test]
fn r28_machines_that_reboot_only_after_another_approval_are_not_promised_now() {
    let mut items = plan([Operation::Deferred, Operation::Create]).items;
    items[1].review.effect.pools = one_by_one(&[("worker", 8)]);
    let deferred = super::Plan::new(basis(), items);
    let says = figures::in_figures(&deferred);
    assert_eq!(
        says,
        "1 to create, 1 to preview later; no machine reboots. After a later plan for the deferred items is approved, 8 machines reboot (pool worker)."
    );
    let mut world = World::new(Action::DryRun);
    world.look(deferred);
    assert_eq!(world.status.summary.unwrap().machines_to_reboot, 0);
}

/// Fault R28: what was written before an approval was withdrawn still rolls out.
#[test]
fn r28_what_still_rolls_out_after_a_withdrawal_is_said() {
    use crate::plan::items::health::Rollout;
    let half = |operations| {
        let mut plan = plan(operations);
        if operations[0] == Operation::NoChange {
            plan.items[0].live.rollout = Rollout::Waiting { text: "1 of 5 machines are updated".into(), paused: false };
        }
        plan
    };
    let mut world = World::new(Action::Apply);
    world.look(half(CREATE));
    world.look(half(CREATE));
    world.look(half([Operation::NoChange, Operation::Create]));
    world.edit(Action::DryRun);
    world.look(half([Operation::NoChange, Operation::Create]));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    assert!(
        text(&world).contains("Still under way: Widget a: ") && text(&world).contains("1 of 5 machines"),
        "{}",
        text(&world)
    );
}

/// Fault R24: condition, summary and item give the same reason for a Blocked item, even when it
/// changes without another plan.
#[test]
fn r24_a_blocked_item_has_one_message() {
    let blocked = |why: &str| {
        let mut plan = plan([Operation::Blocked, Operation::Create]);
        plan.items[0].review.message = format!("Widget a: {why}");
        plan
    };
    let mut world = World::new(Action::DryRun);
    for why in ["the webhook does not answer", "the quota does not allow it"] {
        world.look(blocked(why));
        let condition = world.status.conditions.iter().find(|found| found.type_ == "ReviewRequired").unwrap();
        let item = &world.status.items[0];
        for told in [&condition.message, &world.status.summary.as_ref().unwrap().text] {
            assert!(
                told.contains(&format!("The plan can't be approved while items are blocked: {}.", item.message)),
                "{told}: {}",
                item.message
            );
        }
        assert!(item.message.contains(why));
    }
}

/// Observed with the real controllers: with two rollouts in one plan, every machine reboots twice.
#[test]
fn machines_that_reboot_twice_are_said_to() {
    for (waves, says) in [
        ([1, 1], "3 machines reboot (pool worker)."),
        ([1, 2], "3 machines reboot (pool worker), some more than once, 6 times in all."),
    ] {
        let mut items = plan(CREATE).items;
        for (item, wave) in items.iter_mut().zip(waves) {
            (item.wave, item.review.effect.pools) = (wave, one_by_one(&[("worker", 3)]));
        }
        let says_now = figures::in_figures(&super::Plan::new(basis(), items));
        assert!(says_now.ends_with(says), "{says_now}");
    }
}

/// Observed with the real controllers: a removal in progress was not counted as written.
#[test]
fn a_withdrawal_counts_removals_that_were_written() {
    let mut world = World::new(Action::DryRun);
    let removing = [Operation::Remove, Operation::Create];
    world.look(plan(removing));
    world.now += 100;
    world.edit(Action::Apply);
    world.look(plan(removing));
    world.look(plan(removing));
    // The state after the removal was written.
    let item = &mut world.status.items[0];
    (item.applied, item.wait_started_at) = (None, item.last_transition_time.clone());
    world.edit(Action::DryRun);
    world.look(plan([Operation::NoChange, Operation::Create]));
    assert!(text(&world).contains("already written: a."), "{}", text(&world));
}
