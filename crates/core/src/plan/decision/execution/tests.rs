//! What an approved plan does not write, and what is removed while it is carried out.

use super::*;
use crate::api::Action;
use crate::plan::decision::decide::tests::{World, basis, item, writes_of};
use crate::plan::status::Written;

/// P19: an item that an earlier item creates is written only under a plan of its own.
#[test]
fn p19_a_deferred_item_is_never_written_and_ends_the_execution_before_it() {
    use Operation::{Create, Deferred, NoChange};
    let three = |operations: [Operation; 3]| {
        let names = ["namespace", "object", "later"];
        let items = names.iter().zip(operations).enumerate();
        let items = items.map(|(wave, (name, operation))| {
            let mut item = item(name, u32::try_from(wave).unwrap(), operation);
            item.live.rollout = match operation {
                NoChange => Rollout::Done("in effect".into()),
                _ => Rollout::Waiting { text: "not there".into(), paused: false },
            };
            item
        });
        Plan::new(basis(), items.collect())
    };
    let mut world = World::new(Action::DryRun);
    world.look(three([Create, Deferred, Create]));
    let reviewed = world.status.plan_hash.clone();
    world.edit(Action::Apply);
    world.look(three([Create, Deferred, Create]));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    assert_eq!(world.status.items[1].state, ItemState::Pending, "{:?}", world.status.items[1]);
    assert_eq!(writes_of(&world.look(three([Create, Deferred, Create]))), ["namespace"]);
    // The namespace exists now: the object can be previewed, and its item differs.
    let after = three([NoChange, Create, Create]);
    assert!(writes_of(&world.look(after.clone())).is_empty());
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::PLAN_READY));
    assert_ne!(world.status.plan_hash, reviewed);
    let text = &world.status.summary.as_ref().unwrap().text;
    assert!(
        text.contains("v1 object can be previewed now") || text.contains("Widget object can be previewed now"),
        "{text}"
    );
    for _ in 0..3 {
        assert!(writes_of(&world.look(after.clone())).is_empty(), "nothing that comes after it is written either");
    }
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.wanted.generation += 1;
    world.look(after.clone());
    assert_eq!(writes_of(&world.look(after)), ["object"]);
}

/// A webhook that is down during an execution: nothing is written, it is reported, retried soon,
/// and has an end.
#[test]
fn n4_what_can_not_be_told_is_waited_for_and_has_an_end() {
    let mut world = World::new(Action::Apply);
    world.wanted.wait_timeout = Some(std::time::Duration::from_secs(60));
    let plan = |down: bool| {
        let mut second = item("b", 0, if down { Operation::Blocked } else { Operation::Create });
        second.review.blocked_temporarily = down;
        second.review.message = if down { "webhook x is down".into() } else { second.review.message };
        Plan::new(basis(), vec![item("a", 0, Operation::Create), second])
    };
    world.look(plan(false));
    world.now = 10;
    let (decision, _) = world.decide(plan(true));
    let Decision::Execute(execution) = decision else { panic!("{decision:?}") };
    assert!(execution.write.is_empty(), "what was approved as a whole is checked as a whole");
    assert_eq!(execution.look_again, LookAgain::At(Timestamp::from_second(20).unwrap()));
    world.look(plan(true));
    assert_eq!(world.status.items[1].message, "webhook x is down");
    world.now = 61;
    world.look(plan(true));
    assert_eq!(world.status.phase, Some(Phase::Failed));
    assert!(world.status.items[1].message.contains("waitTimeout: webhook x is down"), "{:?}", world.status.items[1]);

    // If it is back in time, the execution continues as if nothing had happened.
    let mut world = World::new(Action::Apply);
    for (down, writes) in [(false, &[] as &[_]), (true, &[]), (true, &[]), (false, &["a", "b"])] {
        assert_eq!(writes_of(&world.look(plan(down))), writes, "down: {down}");
    }
}

/// With an automatic policy, an edit during an execution replaces it: the edited plan is approved.
#[test]
fn an_automatic_policy_goes_on_with_what_was_edited_meanwhile() {
    let mut world = World::new(Action::Apply);
    world.wanted.automatic = true;
    let of = |options: i64, size: &str| {
        let one = PlanItem { hash: size.into(), ..item("a", 0, Operation::Create) };
        let basis = crate::plan::Basis { options: Some(serde_json::json!(options)), ..basis() };
        Plan::new(basis, vec![one])
    };
    world.wanted.options = Some(serde_json::json!(1));
    world.look(of(1, "small"));
    let first = world.status.approval.clone().unwrap();
    world.wanted.options = Some(serde_json::json!(2));
    world.wanted.generation = 2;
    let decision = world.look(of(2, "large"));
    assert!(writes_of(&decision).is_empty(), "its intent first");
    let second = world.status.approval.clone().unwrap();
    assert_ne!(second.plan_hash, first.plan_hash);
    assert_eq!(world.status.history[0].plan_hash, first.plan_hash);
    assert_eq!(writes_of(&world.look(of(2, "large"))), ["a"]);

    // Other changes do not come from the options: a person must read them.
    world.wanted.generation = 3;
    world.look(of(2, "moved"));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
}

#[test]
fn a_removal_is_written_once_and_waited_for() {
    use Operation::{NoChange, Remove};
    let one = |operation, rollout| {
        let items = vec![{
            let mut item = item("a", 0, operation);
            item.live.rollout = rollout;
            item.live.applied = None;
            item
        }];
        Plan::new(basis(), items)
    };
    let done = || Rollout::Done("the removal is complete".into());
    let mut world = World::new(Action::Apply);
    world.look(one(Remove, done()));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired), "not in advance");
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.wanted.generation += 1;
    world.look(one(Remove, done()));
    assert_eq!(writes_of(&world.decide(one(Remove, done())).0), ["a"]);
    let written = [("a".to_owned(), Written::Removed)].into();
    world.status = world.decide_with(one(Remove, done()), &written).1.unwrap();
    let rolling = one(NoChange, Rollout::Waiting { text: "1 of 3".into(), paused: false });
    assert!(writes_of(&world.look(rolling)).is_empty());
    assert_eq!(world.phase(), Some(Phase::InProgress));
    world.look(one(NoChange, done()));
    assert_eq!(world.phase(), Some(Phase::Completed));
}

/// R3 and R29: the first of several removals that finishes ends nothing, nor does an edit that
/// makes no other plan.
#[test]
fn r3_r29_removals_are_waited_for_until_the_last_is_done() {
    use Operation::{NoChange, Remove};
    let done = || Rollout::Done("No machine has it any more".into());
    let rolling = || Rollout::Waiting { text: "1 of 3".into(), paused: false };
    let two = |world: &World, operations: [Operation; 2], rollouts: [Rollout; 2]| {
        let items = ["a", "b"].into_iter().zip(operations).zip(rollouts);
        let items = items.map(|((name, operation), rollout)| {
            let mut item = item(name, 0, operation);
            item.live.rollout = rollout;
            item.live.applied = None;
            item
        });
        Plan::new(crate::plan::Basis { terms: world.wanted.terms(), ..basis() }, items.collect())
    };
    let mut world = World::new(Action::DryRun);
    let reviewed = two(&world, [Remove; 2], [done(), done()]);
    world.look(reviewed.clone());
    world.now += 100;
    world.edit(Action::Apply);
    world.look(reviewed.clone());
    let written = ["a", "b"].map(|name| (name.to_owned(), Written::Removed)).into();
    world.status = world.decide_with(reviewed, &written).1.unwrap();
    for (edit, rollouts) in [(false, [rolling(), rolling()]), (false, [done(), rolling()]), (true, [done(), rolling()])]
    {
        if edit {
            world.wanted.wait_timeout = Some(std::time::Duration::from_secs(7200));
            world.wanted.spec_hash = "another time limit".into();
            world.wanted.generation += 1;
        }
        let fresh = two(&world, [NoChange; 2], rollouts);
        world.look(fresh);
        assert_eq!(world.phase(), Some(Phase::InProgress), "{edit}: {:?}", world.status.summary);
        assert!(world.status.approval.is_some());
    }
    let fresh = two(&world, [NoChange; 2], [done(), done()]);
    world.look(fresh);
    assert_eq!(world.phase(), Some(Phase::Completed));
    assert_eq!(world.status.history[0].outcome, "Completed");
}

/// S10: a result that is not the reviewed one fails, and our own write is no reason to leave the
/// failure.
#[test]
fn a_result_that_is_not_the_reviewed_one_stays_a_failure() {
    use Operation::Update;
    let one = || {
        Plan::new(
            basis(),
            vec![{
                let mut item = item("a", 0, Update);
                item.live.applied = None;
                item
            }],
        )
    };
    let mut world = World::new(Action::DryRun);
    world.look(one());
    world.edit(Action::Apply);
    world.look(one());
    assert_eq!(writes_of(&world.decide(one()).0), ["a"]);
    let applied = crate::api::Applied { uid: "u".into(), paths: Vec::new(), paths_hash: None, hash: "h".into() };
    let written = [("a".to_owned(), Written::Differs(applied, "it differs".into()))].into();
    world.status = world.decide_with(one(), &written).1.unwrap();
    // The object is different now, because of our own write.
    let after = || {
        Plan::new(
            basis(),
            vec![{
                let mut item = item("a", 0, Update);
                item.hash = "another".into();
                item.live.applied = None;
                item
            }],
        )
    };
    for _ in 0..3 {
        assert!(writes_of(&world.look(after())).is_empty());
        assert_eq!(world.phase(), Some(Phase::Failed));
    }
    assert_eq!(world.status.items[0].message, "it differs");
}

/// Fault R11: an owner that reports conditions first publishes that all is well, and the truth
/// afterwards.
#[test]
fn r11_an_owner_that_speaks_is_given_a_moment_before_it_is_believed() {
    for (speaks, waits) in [(false, false), (true, true)] {
        let plan = |operation, trouble: Option<&str>| {
            let rollout = match trouble {
                Some(text) => Rollout::Waiting { text: text.into(), paused: false },
                None => Rollout::Done("in effect".into()),
            };
            Plan::new(
                basis(),
                vec![{
                    let mut item = item("a", 0, operation);
                    item.live.speaks = speaks;
                    item.live.rollout = rollout;
                    item
                }],
            )
        };
        let mut world = World::new(Action::Apply);
        for operation in [Operation::Create, Operation::Create] {
            world.look(plan(operation, None));
        }
        let written = world.now;
        let next = world.look(plan(Operation::NoChange, None));
        assert_eq!(world.phase() == Some(Phase::InProgress), waits, "{speaks}");
        if !waits {
            continue;
        }
        let Decision::Execute(Execution { look_again: LookAgain::At(at), write, .. }) = next else {
            panic!("{next:?}")
        };
        assert_eq!((at.as_second(), write.len()), (written + SETTLING.as_secs(), 0));
        let text = &world.status.summary.as_ref().unwrap().text;
        assert!(text.contains("giving its owner a moment to observe the change"), "{text}");
        // The truth.
        world.look(plan(Operation::NoChange, Some("Degraded=True: m")));
        assert!(world.status.items[0].message.contains("Degraded=True: m"), "{:?}", world.status.items[0]);
        world.now = written + SETTLING.as_secs();
        world.look(plan(Operation::NoChange, None));
        assert_eq!(world.phase(), Some(Phase::Completed));
    }
}

/// Fault R11: a controller that was away for a while reports for the first time long after the
/// write.
#[test]
fn r11_the_moment_begins_when_the_owner_has_seen_the_change() {
    let plan = |operation, rollout, in_effect_since: Option<i64>| {
        let in_effect_since = in_effect_since.map(|second| Timestamp::from_second(second).unwrap());
        Plan::new(
            basis(),
            vec![{
                let mut item = item("a", 0, operation);
                item.live.speaks = true;
                item.live.rollout = rollout;
                item.live.in_effect_since = in_effect_since;
                item
            }],
        )
    };
    let done = || Rollout::Done("in effect".into());
    let unseen = Rollout::Waiting { text: "its controller has not seen the change yet".into(), paused: false };
    let mut world = World::new(Action::Apply);
    for operation in [Operation::Create, Operation::Create] {
        world.look(plan(operation, done(), None));
    }
    world.look(plan(Operation::NoChange, unseen, None));
    world.now += 3 * SETTLING.as_secs();
    let seen = world.now;
    world.look(plan(Operation::NoChange, done(), Some(seen)));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    world.now = seen + SETTLING.as_secs();
    world.look(plan(Operation::NoChange, done(), Some(seen)));
    assert_eq!(world.phase(), Some(Phase::Completed));
}
