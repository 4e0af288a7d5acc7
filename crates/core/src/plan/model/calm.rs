//! What every state must lead to if nothing more happens: the operator comes to rest in the right
//! phase, and from every such rest a person can reach a finished plan.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use super::config::{Config, Does};
use super::ghost::Ghost;
use super::world::{GONE, Machines, State, plan, wants};
use super::{Run, Step};
use crate::api::{Operation, Phase};
use stateright::Model;

/// Enough steps for everything that can be in progress.
const ENOUGH: usize = 60;

/// The problem with what `state` leads to, if there is one.
pub(super) fn problem(run: &Run, state: &State) -> Option<String> {
    remembered(run, &(&state.config, &state.world, &state.ghost), || look_for(run, state))
}

fn look_for(run: &Run, state: &State) -> Option<String> {
    let Some(rest) = settle(run, state.clone()) else {
        return Some("the operator does not come to rest".into());
    };
    if rest.ghost.violation.is_some() {
        return Some("on the way to rest something is done that must not be".into());
    }
    let way_out = || remembered(run, &(&rest.config, &rest.world), || stuck(run, rest.clone()));
    misplaced(run, &rest).or_else(|| lost(&rest)).or_else(way_out)
}

/// Lets the operator work until nothing is left to do. Machines finish, unless there is a time
/// limit: then they are late.
fn settle(run: &Run, mut state: State) -> Option<State> {
    let mut late = false;
    for _ in 0..ENOUGH {
        let next = match &state.look {
            Some(_) => run.next_state(&state, Step::Write).or_else(|| run.next_state(&state, Step::Store)),
            None => run.next_state(&state, Step::Look { behind: false }),
        };
        match next {
            Some(next) => state = next,
            None if (state.world.machines == Machines::Rolling || state.world.down) && state.config.limits() => {
                if late {
                    return None;
                }
                late = true;
                state.world.clock += 1000;
            }
            None if state.world.machines == Machines::Rolling => state.world.machines = Machines::Done,
            None => return Some(state),
        }
    }
    None
}

/// The problem that the phase at rest does not match the world, if it does not.
fn misplaced(run: &Run, rest: &State) -> Option<String> {
    let (config, world) = (&rest.config, &rest.world);
    let status = &config.status.status;
    let phase = status.phase?;
    let wants = wants(run.rules, config.option, world);
    // An object that is no longer desired may stay if none of it was ever ours.
    let is_left = plan(run.rules, config, world).items.iter().any(|item| item.operation == Operation::Remove);
    let is_as_wanted = |index: usize| match wants[index] {
        _ if index == 1 && world.aside => true,
        GONE => !is_left,
        want => world.targets[index] == Some(want),
    };
    let can_be_told = world.aside || !(world.blocks || world.down);
    let as_wanted = is_as_wanted(0) && is_as_wanted(1) && can_be_told;
    let wrong = |what: &str| Some(format!("{phase:?} at rest, {what}"));
    if config.deleting {
        return None;
    }
    if (config.action == Does::Ignore) != (phase == Phase::Ignored) {
        return wrong("with another action");
    }
    if config.action == Does::Ignore {
        return None;
    }
    if world.prerequisites == (phase == Phase::PrerequisiteFailed) {
        return wrong("whatever is missing");
    }
    if !world.prerequisites {
        return None;
    }
    if status.observed_generation != Some(config.generation)
        && !matches!(phase, Phase::Failed | Phase::CompletedWithErrors)
    {
        return wrong("without having seen the spec");
    }
    let failed = matches!(phase, Phase::Failed | Phase::CompletedWithErrors);
    match phase {
        Phase::Completed if !as_wanted => wrong("and the targets are not as wanted"),
        Phase::InProgress if !world.blocks && !world.down && (!run.rules.rolls || world.machines == Machines::Done) => {
            wrong("and nothing is under way")
        }
        Phase::ReviewRequired | Phase::Drifted | Phase::CompletedWithUpgrade if as_wanted => {
            wrong("and everything is as wanted")
        }
        _ if as_wanted && !failed && world.machines == Machines::Done && phase != Phase::Completed => {
            wrong("and everything is as wanted")
        }
        _ => None,
    }
}

/// The problem that a standing approval has led to nothing, if it has.
fn lost(rest: &State) -> Option<String> {
    let (config, status) = (&rest.config, &rest.config.status.status);
    let can = config.action == Does::Apply && !config.deleting && rest.world.prerequisites;
    let waits = matches!(status.phase, Some(Phase::ReviewRequired | Phase::Drifted | Phase::CompletedWithUpgrade));
    let blocked = status.items.iter().any(|item| item.operation == Operation::Blocked);
    let stands = rest.ghost.open.iter().any(|granted| granted.stands_for(status.plan_hash.as_ref()));
    // If the hash names another plan, the status said so.
    let named = config.hash.as_ref().is_none_or(|hash| Some(hash) == status.plan_hash.as_ref());
    (can && waits && !blocked && stands && named).then(|| "an approval is lost".into())
}

/// Results that were already found, by the digest of their state: many states lead to the same.
pub(super) type Rests = Arc<Mutex<BTreeMap<u64, Option<String>>>>;

fn remembered(run: &Run, of: &impl Hash, find: impl FnOnce() -> Option<String>) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    let key = hasher.finish();
    if let Some(known) = run.rests.lock().unwrap().get(&key) {
        return known.clone();
    }
    let found = find();
    run.rests.lock().unwrap().insert(key, found.clone());
    found
}

/// The problem that a person can't get from here to a finished plan, if so.
fn stuck(run: &Run, mut rest: State) -> Option<String> {
    if rest.config.deleting {
        return None;
    }
    rest.world.prerequisites = true;
    rest.world.blocks = false;
    rest.world.down = false;
    rest.world.refuses = false;
    rest.world.machines = Machines::Done;
    rest.ghost.cause_may_be_gone = true;
    let edit = |state: &mut State, change: &dyn Fn(&mut Config)| {
        change(&mut state.config);
        state.config.generation += 1;
        state.left = 0;
    };
    // Twice: an item that could not be previewed before the first one existed needs another review.
    for _ in 0..2 {
        edit(&mut rest, &|config| {
            config.action = Does::DryRun;
            config.replan += 1;
            config.hash = None;
        });
        rest = settle(run, rest)?;
        let shown = rest.config.status.status.plan_hash.clone();
        edit(&mut rest, &|config| {
            config.action = Does::Apply;
            config.hash.clone_from(&shown);
        });
        // The actions of this person are not what is examined here.
        rest.ghost = Ghost::default();
        rest.ghost.cause_may_be_gone = true;
        rest = settle(run, rest)?;
    }
    let done = rest.config.status.status.phase == Some(Phase::Completed);
    (!done).then(|| format!("no way out: {:?}", rest.config.status.status.phase))
}

impl Run {
    /// A description of what is wrong with `state`, for a failing test.
    pub(super) fn explain(&self, state: &State) -> String {
        super::disable(self.disabled);
        let calm = if state.look.is_none() { problem(self, state) } else { None };
        format!("{:?} {calm:?}", state.ghost.violation)
    }
}
