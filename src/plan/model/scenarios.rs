//! Which runs are made, and that every guard is needed in one of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use stateright::Checker;

use super::ghost::Ghost;
use super::world::{Config, Does, FOREIGN, Machines, Rules, State, World};
use super::{Event, Guard, Run};

const ALL: Rules = Rules { waves: true, defers: false, rolls: false };

/// What a run is called, what may happen in it and how often, and what is different at its beginning.
struct Scenario {
    name: &'static str,
    events: &'static [Event],
    times: u8,
    rules: Rules,
    faults: bool,
    action: Does,
    begin: fn(&mut Config, &mut World),
}

impl Scenario {
    fn run(&self, disabled: Option<Guard>, seen: &Arc<Mutex<BTreeSet<(Option<String>, String)>>>) -> Run {
        // It begins as if somebody had just asked for it.
        let mut before = Config::new(Does::Ignore);
        let mut world = World::new();
        (self.begin)(&mut before, &mut world);
        let mut config = Config { action: self.action, ..before.clone() };
        config.generation += 1;
        let mut ghost = Ghost::default();
        ghost.edited(&before, &config, world.clock);
        let start = State { config, behind: None, world, look: None, ghost, left: self.times };
        let (events, seen) = (self.events.to_vec(), seen.clone());
        Run { start, rules: self.rules, events, disabled, faults: self.faults, seen, rests: Default::default() }
    }
}

use Event::*;

static SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "review and approval by the action, with targets that move",
        events: &[Set(Does::Apply), Set(Does::DryRun), Touch(0), Remove(0), Touch(1), Clock(100)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "caches that lag, answers that are lost",
        events: &[Set(Does::Apply), Set(Does::DryRun), Touch(0), Touch(1)],
        times: 3,
        rules: Rules { waves: false, ..ALL },
        faults: true,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "approval by hash",
        events: &[ApproveShown, ClearHash, Set(Does::Apply), Set(Does::DryRun), Touch(0), Remove(0)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "a hash that stays in Git",
        events: &[ApproveShown, ClearHash, Remove(0), ByHand(0)],
        times: 3,
        rules: Rules { waves: false, ..ALL },
        faults: true,
        action: Does::Apply,
        begin: |_, world| world.targets = [Some(FOREIGN), None],
    },
    Scenario {
        name: "options and inputs",
        events: &[Choose, ChooseAndApply, Input, Set(Does::Apply), Set(Does::DryRun), Touch(1)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "approval in advance, and from Ignore",
        events: &[Set(Does::Apply), Set(Does::Ignore), Set(Does::DryRun), Touch(0), Choose, Prerequisites],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |_, _| {},
    },
    Scenario {
        name: "a first plan that takes something from others",
        events: &[Set(Does::DryRun), Set(Does::Apply), ByHand(0)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |_, world| world.targets[0] = Some(FOREIGN),
    },
    Scenario {
        name: "machines that roll, stall and break",
        events: &[
            Become(Machines::Done),
            Become(Machines::Paused),
            Become(Machines::Rolling),
            Become(Machines::Broken),
            Clock(100),
            Clock(-100),
            Set(Does::DryRun),
        ],
        times: 3,
        rules: Rules { rolls: true, ..ALL },
        faults: false,
        action: Does::Apply,
        begin: |config, _| config.timeout = true,
    },
    Scenario {
        name: "failures, and going on after them",
        events: &[Become(Machines::Broken), Refuses, Replan, Touch(0), Touch(1), Choose],
        times: 3,
        rules: Rules { rolls: true, ..ALL },
        faults: false,
        action: Does::Apply,
        begin: |config, _| config.goes_on = true,
    },
    Scenario {
        name: "failures that end it",
        events: &[Become(Machines::Broken), Refuses, Replan, Touch(0), Input, Set(Does::DryRun), Set(Does::Apply)],
        times: 3,
        rules: Rules { rolls: true, ..ALL },
        faults: false,
        action: Does::Apply,
        begin: |_, _| {},
    },
    Scenario {
        name: "prerequisites and deletion",
        events: &[Prerequisites, Delete, Set(Does::Apply), Set(Does::DryRun), Set(Does::Ignore), ApproveShown],
        times: 3,
        rules: ALL,
        faults: true,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "an item that can't be previewed yet, and one that is blocked",
        events: &[Blocks, Set(Does::Apply), Set(Does::DryRun), ApproveShown, Touch(0)],
        times: 3,
        rules: Rules { defers: true, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "a new version of the operator",
        events: &[Upgrade, ApproveShown, Set(Does::Apply), Set(Does::DryRun), Touch(0)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |_, _| {},
    },
    Scenario {
        name: "a policy that approves what is edited",
        events: &[Choose, Touch(0), Remove(1), Input, Set(Does::DryRun), Set(Does::Apply)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |config, _| config.automatic = true,
    },
    Scenario {
        name: "targets that move and are not asked about",
        events: &[Touch(0), Touch(1), Choose, Input, Upgrade, Set(Does::DryRun), Set(Does::Apply)],
        times: 3,
        rules: Rules { waves: false, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |config, _| config.bypass = true,
    },
];

#[test]
fn in_every_order_of_events_nothing_is_done_that_was_not_approved_and_nothing_approved_is_lost() {
    let seen = Arc::default();
    let (mut states, mut steps) = (0, 0);
    let mut problems = Vec::new();
    for scenario in SCENARIOS {
        let began = std::time::Instant::now();
        let checked = scenario.run(None, &seen).check();
        println!("{:>8} states, {:.1?}: {}", checked.unique_state_count(), began.elapsed(), scenario.name);
        states += checked.unique_state_count();
        steps += checked.state_count();
        if let Some((property, path)) = checked.discoveries().into_iter().next() {
            let last = path.last_state().clone();
            let run = scenario.run(None, &seen);
            let steps = path.into_actions();
            problems.push(format!("{}: {property}: {} after {steps:?}", scenario.name, run.explain(&last)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{states} states were reached by {steps} steps");
}

/// Every guard, and a run in which something forbidden happens without it.
#[test]
fn without_any_one_of_its_guards_something_forbidden_happens() {
    let seen = Arc::default();
    let mut survivors = Vec::new();
    for guard in Guard::ALL {
        let found = SCENARIOS.iter().find_map(|scenario| {
            let checked = scenario.run(Some(guard), &seen).check();
            let found = checked.discoveries().into_keys().next()?;
            Some((scenario.name, found, checked.unique_state_count()))
        });
        match found {
            Some((name, property, states)) => println!("{guard:?}: {property}, in {name} ({states} states)"),
            None => survivors.push(guard),
        }
    }
    assert!(survivors.is_empty(), "nothing shows that these guards are needed: {survivors:?}");
}
