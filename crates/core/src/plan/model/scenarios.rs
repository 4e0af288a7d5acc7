//! The runs of the model check, and the one in which each guard is needed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use stateright::Checker;

use super::config::{Config, Does};
use super::ghost::Ghost;
use super::world::{FOREIGN, Machines, Rules, State, World};
use super::{Event, Guard, PhaseStep, Run};
use crate::api::{Action, Operation, Phase};
use crate::plan::Plan;
use crate::plan::decision::decide;
use crate::plan::decision::decide::tests::{basis, item, writes_of};

/// Prints even if the test passes, whose output is hidden otherwise.
macro_rules! told {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let text = format!($($text)*) + "\n";
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }};
}

const ALL: Rules = Rules { waves: true, defers: false, rolls: false, prunes: false };

/// A named run: the possible events, their number, and how its beginning differs.
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
    fn run(&self, disabled: Option<Guard>, seen: &Arc<Mutex<BTreeSet<PhaseStep>>>) -> Run {
        // It begins as if somebody had just set the action.
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
        name: "an item that is set aside and comes back",
        events: &[Aside, Set(Does::Apply), Set(Does::DryRun), Touch(1), Choose],
        times: 4,
        rules: Rules { prunes: true, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "an item that is set aside while machines are under way",
        events: &[Aside, Touch(0), Touch(1), Become(Machines::Broken), Clock(100)],
        times: 3,
        rules: Rules { rolls: true, ..ALL },
        faults: true,
        action: Does::Apply,
        begin: |config, _| config.bypass = true,
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
        events: &[ApproveShown, ApproveOther, ClearHash, Set(Does::Apply), Set(Does::DryRun), Touch(0), Remove(0)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "somebody else edits between reading and approving",
        events: &[Choose, EditTerms, Read, ApproveRead, Set(Does::Apply), Clock(100)],
        times: 4,
        rules: Rules { waves: false, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "evidence that lies about time",
        events: &[Touch(0), Choose, Set(Does::Apply), Lie, Clock(100)],
        times: 4,
        rules: Rules { waves: false, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "a configuration that is made anew",
        events: &[Recreate, ApproveShown, Set(Does::Apply), Set(Does::DryRun), Read, ApproveRead, Clock(100)],
        times: 4,
        rules: Rules { waves: false, ..ALL },
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
        events: &[Choose, ChooseAndApply, ApplyOtherwise, Input, Set(Does::Apply), Set(Does::DryRun)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::DryRun,
        begin: |_, _| {},
    },
    Scenario {
        name: "what leaves the plan, and comes back",
        events: &[Choose, ApproveShown, Touch(1), Remove(1), Set(Does::DryRun), Set(Does::Apply)],
        times: 3,
        rules: Rules { prunes: true, ..ALL },
        faults: false,
        action: Does::Apply,
        begin: |_, _| {},
    },
    Scenario {
        name: "approval in advance, and from Ignore",
        events: &[Set(Does::Apply), Set(Does::Ignore), Set(Does::DryRun), Touch(0), Choose],
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
        name: "a webhook that is down during an execution",
        events: &[Webhook, Touch(1), Set(Does::DryRun), Set(Does::Apply), Clock(100)],
        times: 3,
        rules: Rules { waves: false, ..ALL },
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
        faults: false,
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
        events: &[Upgrade, ApproveShown, Set(Does::DryRun), Touch(0)],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |_, _| {},
    },
    Scenario {
        name: "a policy that approves what is edited",
        events: &[Choose, Touch(0), Input],
        times: 3,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |config, _| config.automatic = true,
    },
    Scenario {
        name: "targets that move and are not asked about",
        events: &[Touch(0), Choose, Input, Upgrade, Bypass, Set(Does::Apply)],
        times: 3,
        rules: Rules { waves: false, ..ALL },
        faults: false,
        action: Does::DryRun,
        begin: |config, _| config.bypass = true,
    },
    Scenario {
        name: "a hash that approved what failed",
        events: &[ApproveShown, Refuses, Replan],
        times: 4,
        rules: ALL,
        faults: false,
        action: Does::Apply,
        begin: |_, world| {
            world.targets[0] = Some(FOREIGN);
            world.refuses = true;
        },
    },
    Scenario {
        name: "a rival that does not give in",
        events: &[Touch(0)],
        times: 5,
        rules: Rules { waves: false, ..ALL },
        faults: false,
        action: Does::Apply,
        begin: |config, _| config.bypass = true,
    },
];

/// The scenario in which something forbidden happens without the guard.
fn needed_in(guard: Guard) -> &'static str {
    match guard {
        Guard::BeingDeleted => "prerequisites and deletion",
        Guard::Ignored => "approval in advance, and from Ignore",
        Guard::NotApply
        | Guard::NotShown
        | Guard::NotFirst
        | Guard::NotShownUnderDryRun
        | Guard::TooFresh
        | Guard::ActionWithdrawn
        | Guard::NoIntent
        | Guard::OtherDigest
        | Guard::WrittenMoved
        | Guard::UnwrittenMoved => "review and approval by the action, with targets that move",
        Guard::OtherHash | Guard::HashWithdrawn => "approval by hash",
        Guard::OtherTerms => "somebody else edits between reading and approving",
        Guard::ForgedTime => "evidence that lies about time",
        Guard::MadeAnew => "a configuration that is made anew",
        Guard::HashUsedUp => "a hash that approved what failed",
        Guard::OldHash | Guard::ApprovalUsedUp => "a hash that stays in Git",
        Guard::NoEdit | Guard::PolicyOfOthers => "a policy that approves what is edited",
        Guard::TakesFromOthers => "a first plan that takes something from others",
        Guard::SpecChanged | Guard::BypassOfOthers | Guard::BypassOfNew | Guard::BypassWithdrawn => {
            "targets that move and are not asked about"
        }
        Guard::Thrashing => "a rival that does not give in",
        Guard::BlockedItem | Guard::Deferred => "an item that can't be previewed yet, and one that is blocked",
        Guard::CauseRemains | Guard::Aborted => "failures that end it",
        Guard::WaveUnfinished | Guard::TimeIsUp | Guard::Paused => "machines that roll, stall and break",
        Guard::Unknown => "a webhook that is down during an execution",
        Guard::Superseded => "caches that lag, answers that are lost",
    }
}

/// The changes of phase that the diagram in docs/ARCHITECTURE.md draws: for each line, all the
/// changes that it stands for.
fn drawn() -> Vec<BTreeSet<PhaseStep>> {
    let text = include_str!("../../../../../docs/ARCHITECTURE.md");
    let (_, diagram) = text.split_once("```mermaid").unwrap();
    let (diagram, _) = diagram.split_once("```").unwrap();
    let (_, within) = diagram.split_once("state Managed {").unwrap();
    let line = |line: &str| {
        let (from, to) = line.trim().split_once(" --> ")?;
        let to = to.split_once(':').map_or(to, |(to, _)| to);
        Some((from.to_owned(), to.to_owned()))
    };
    let mut managed: BTreeSet<_> = within.lines().filter_map(line).flat_map(|(from, to)| [from, to]).collect();
    managed.insert("PrerequisiteFailed".into());
    let all = |name: String| if name == "Managed" { managed.clone() } else { [name].into() };
    let steps = diagram.lines().filter_map(line).map(|(from, to)| {
        let from = all(from).into_iter().map(|from| (from != "[*]").then_some(from));
        from.flat_map(|from| all(to.clone()).into_iter().map(move |to| (from.clone(), to))).collect()
    });
    steps.collect()
}

#[test]
fn in_every_order_of_events_nothing_is_done_that_was_not_approved_and_nothing_approved_is_lost() {
    let seen: Arc<Mutex<BTreeSet<_>>> = Arc::default();
    let (mut states, mut steps) = (0, 0);
    let mut problems = Vec::new();
    for scenario in SCENARIOS {
        let checked = scenario.run(None, &seen).check();
        told!("{:>8} states: {}", checked.unique_state_count(), scenario.name);
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
    let seen: BTreeSet<_> =
        seen.lock().unwrap().iter().filter(|(from, to)| from.as_ref() != Some(to)).cloned().collect();
    let drawn = drawn();
    let undrawn: Vec<_> = seen.iter().filter(|step| !drawn.iter().any(|line| line.contains(step))).collect();
    let unseen: Vec<_> = drawn.iter().filter(|line| line.is_disjoint(&seen)).collect();
    assert!(undrawn.is_empty(), "not in the diagram of docs/ARCHITECTURE.md: {undrawn:?}");
    assert!(unseen.is_empty(), "in the diagram of docs/ARCHITECTURE.md, and never seen: {unseen:?}");
    told!("{states} states were reached by {steps} steps");
}

/// Every guard is disabled in turn.
#[test]
fn without_any_one_of_its_guards_something_forbidden_happens() {
    let seen = Arc::default();
    let mut survivors = Vec::new();
    // For this one two items are not enough.
    let in_a_model = Guard::ALL.into_iter().filter(|guard| *guard != Guard::Deferred);
    for guard in in_a_model {
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == needed_in(guard)).unwrap();
        let checked = scenario.run(Some(guard), &seen).check();
        match checked.discoveries().into_keys().next() {
            Some(found) => told!("{guard:?}: not any more: {found} ({} states)", checked.unique_state_count()),
            None => survivors.push(guard),
        }
    }
    told!("{} guards were taken out", Guard::ALL.len());
    assert!(survivors.is_empty(), "nothing shows that these guards are needed: {survivors:?}");
}

/// An item after one that could not be previewed must not be written before it.
#[test]
fn without_its_guard_a_wave_overtakes_what_could_not_be_previewed() {
    let plan = |first| {
        let items = [("a", first), ("b", Operation::Deferred), ("c", Operation::Create)];
        let items = items.into_iter().zip(0..).map(|((name, operation), wave)| item(name, wave, operation));
        Plan::new(basis(), items.collect())
    };
    for (disabled, written) in [(None, false), (Some(Guard::Deferred), true)] {
        super::disable(disabled);
        let mut world = decide::tests::World::new(Action::DryRun);
        world.look(plan(Operation::Create));
        world.status.phase = Some(Phase::ReviewRequired);
        world.edit(Action::Apply);
        let looks: Vec<_> = (0..4).map(|_| world.look(plan(Operation::Create))).collect();
        super::disable(None);
        let overtook = looks.iter().any(|decision| writes_of(decision).contains(&"c"));
        assert_eq!(overtook, written, "{disabled:?}: {looks:#?}");
    }
}
