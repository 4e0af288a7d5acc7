//! Configurations that were deleted and created again: nobody can tell which of the two an approver
//! has read.

use super::tests::{CREATE, World, plan};
use crate::api::Action;

/// T2, by deletion: an editor who recreates the configuration causes another plan than the one that
/// was read.
#[test]
fn t2_the_first_plan_of_a_configuration_that_was_made_anew_is_not_approved_by_the_action_at_once() {
    for (operator_restarts, waited, approved) in [(false, 1, false), (true, 1, false), (false, 61, true)] {
        let mut world = World::new(Action::Ignore);
        world.made_anew = true;
        world.look(plan(CREATE));
        // The next process remembers what one process knew.
        world.made_anew = !operator_restarts;
        world.edit(Action::DryRun);
        world.look(plan(CREATE));
        world.now += waited;
        world.edit(Action::Apply);
        assert_eq!(world.look(plan(CREATE)).is_execution(), approved, "{operator_restarts} {waited}");
    }
}

/// The same straight from Ignore, where nothing is on display: the operator recreates a deleted
/// configuration, an editor edits it, and the approver sets the action for the plan that they read.
#[test]
fn t2_apply_is_no_approval_in_advance_of_a_configuration_that_was_made_anew_and_edited() {
    for (made_anew, edited, looks, approved) in
        [(false, true, true, true), (true, true, true, false), (true, true, false, false), (true, false, false, true)]
    {
        let mut world = World::new(if looks { Action::Ignore } else { Action::Apply });
        world.made_anew = made_anew;
        if looks {
            world.look(plan(CREATE));
        }
        world.now += 1000;
        world.wanted.generation = if edited { 2 } else { 1 };
        world.wanted.action = Action::Apply;
        assert_eq!(world.look(plan(CREATE)).is_execution(), approved, "{made_anew} {edited} {looks}");
    }
}
