//! What is not written under an approved plan, and what is taken away under it.

use super::*;
use crate::api::Action;
use crate::plan::decide::tests::{World, basis, item, writes_of};
use crate::plan::status::Written;

/// P19: what an earlier item brings is written only under a plan of its own.
#[test]
fn p19_a_deferred_item_is_never_written_and_ends_the_execution_before_it() {
    use Operation::{Create, Deferred, NoChange};
    let three = |operations: [Operation; 3]| {
        let names = ["namespace", "object", "later"];
        let items = names.iter().zip(operations).enumerate();
        let items = items.map(|(wave, (name, operation))| PlanItem {
            rollout: match operation {
                NoChange => Rollout::Done("in effect".into()),
                _ => Rollout::Waiting { text: "not there".into(), paused: false },
            },
            ..item(name, u32::try_from(wave).unwrap(), operation)
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
    // The namespace is there: the object can be previewed, and is another item.
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

#[test]
fn a_removal_is_written_once_and_waited_for() {
    use Operation::{NoChange, Remove};
    let one = |operation, rollout| {
        let items = vec![PlanItem { rollout, applied: None, ..item("a", 0, operation) }];
        Plan::new(basis(), items)
    };
    let done = || Rollout::Done("nothing of it is left".into());
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

/// S10: a result that is not the reviewed one fails, and our own write is no reason to leave the failure.
#[test]
fn a_result_that_is_not_the_reviewed_one_stays_a_failure() {
    use Operation::Update;
    let one = || Plan::new(basis(), vec![PlanItem { applied: None, ..item("a", 0, Update) }]);
    let mut world = World::new(Action::DryRun);
    world.look(one());
    world.edit(Action::Apply);
    world.look(one());
    assert_eq!(writes_of(&world.decide(one()).0), ["a"]);
    let applied = crate::api::Applied { uid: "u".into(), paths: Vec::new(), paths_hash: None, hash: "h".into() };
    let written = [("a".to_owned(), Written::Differs(applied, "it differs".into()))].into();
    world.status = world.decide_with(one(), &written).1.unwrap();
    // The object is another one now, by our own write.
    let after = || Plan::new(basis(), vec![PlanItem { hash: "another".into(), applied: None, ..item("a", 0, Update) }]);
    for _ in 0..3 {
        assert!(writes_of(&world.look(after())).is_empty());
        assert_eq!(world.phase(), Some(Phase::Failed));
    }
    assert_eq!(world.status.items[0].message, "it differs");
}
