//! What is said of a plan that waits: true in each case in which it is said.

use serde_json::json;

use super::tests::{CREATE, World, plan};
use super::*;
use crate::api::Operation;
use crate::plan::digest;
use crate::plan::item::{Moved, one_by_one};

fn text(world: &World) -> &str {
    world.status.summary.as_ref().map_or("", |summary| &summary.text)
}

/// A plan puts back what drifted only where it makes just that of it which was applied.
#[test]
fn what_is_wanted_otherwise_now_is_not_put_back() {
    for (other_is_wanted, says) in
        [(false, "To put it back, approve this plan"), (true, "This plan does not just put it back")]
    {
        let mut world = World::new(Action::Apply);
        let half = [Operation::NoChange, Operation::Create];
        let done = [Operation::NoChange, Operation::NoChange];
        for operations in [CREATE, CREATE, half, half, done] {
            world.look(plan(operations));
        }
        let mut drifted = plan([Operation::Update, Operation::NoChange]);
        drifted.items[0].moved = vec![Moved { path: "/spec".into(), text: "/spec is 2".into() }];
        if let Some(applied) = &mut world.status.items[0].applied {
            applied.hash = digest::sha256(&drifted.items[0].expected);
        }
        if other_is_wanted {
            drifted.items[0].expected.insert("/f:spec".to_owned(), json!("never applied"));
        }
        world.look(drifted.clone());
        assert_eq!(world.phase(), Some(Phase::Drifted));
        assert!(text(&world).contains(says), "{}", text(&world));
        assert!(!text(&world).contains("as a whole"), "{}", text(&world));
        // What else is approved with it is said.
        drifted.items[1] = super::tests::item("b", 1, Operation::Create);
        drifted.items[1].effect.pools = one_by_one(&[("virt", 2), ("worker", 3)]);
        world.look(Plan::new(super::tests::basis(), drifted.items));
        let whole = "The plan as a whole: 1 to create, 1 to change; 5 machines reboot (pools virt, worker).";
        assert!(text(&world).contains(whole), "{}", text(&world));
    }
}

/// The remedy is one that works as things stand.
#[test]
fn a_hash_that_is_there_already_is_not_to_be_set() {
    // One that names another plan: the action alone would carry out nothing.
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.wanted.approved_plan_hash = Some("v1:another".into());
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert!(
        text(&world).contains("set spec.approvedPlanHash, which names another plan, to status.planHash"),
        "{}",
        text(&world)
    );

    // One that names this plan and was there before it came back: it is spent.
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
    // Where an item is blocked, that is what is to be mended.
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
    blocked.items[0].message = format!("{}: it can't be understood.", blocked.items[0].target);
    let sentence = format!("can't be approved: {} What", blocked.items[0].message);
    world.look(blocked);
    assert!(text(&world).contains(&sentence), "{}", text(&world));
}
