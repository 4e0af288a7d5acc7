//! The model check: runs the real decision and the real status through every order of a few events.
//!
//! Users edit, targets change, inputs change, machines stall, processes die between any two steps.
//! [`world`] is what the events act on, [`ghost`] knows what was approved, [`calm`] says what every
//! state must lead to if nothing more happens. Each guard of [`crate::plan::guard`] is disabled in
//! turn, and each time something forbidden must be found.

mod calm;
mod config;
mod ghost;
mod scenarios;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::api::{
    ApprovalPolicy, FailurePolicy, Item, ItemState, Phase, Severity, VirtPlatformConfig, VirtPlatformConfigSpec,
    VirtPlatformConfigStatus as Status,
};
use crate::plan::decision::Decision;
use crate::plan::decision::approval::Mandate;
use crate::plan::decision::changes::is_trace;
use crate::plan::decision::decide::decide;
use crate::plan::decision::observed::{Observed, World as Observation};
use crate::plan::guard::{Guard, disable};
use crate::plan::status::{Written, compose};
use config::{Config, Does, NAMES, Stored, second};
use world::{FOREIGN, GONE, Look, Machines, Rules, State, applied, observe, wants};

/// An event outside the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Set(Does),
    Choose,
    ChooseAndApply,
    /// The action is set to Apply, and the failure policy changes with it.
    ApplyOtherwise,
    ApproveShown,
    /// Somebody reads the plan on display.
    Read,
    /// The plan that was read is approved, by its hash and with action Apply.
    ApproveRead,
    /// Somebody changes the failure policy, and nothing else.
    EditTerms,
    /// managedFields say that the action was set in the future.
    Lie,
    /// The configuration is deleted and created again with other options.
    Recreate,
    /// A hash that belongs to no plan is set.
    ApproveOther,
    ClearHash,
    /// bypassOptimisticLock is switched on or off.
    Bypass,
    Replan,
    Delete,
    /// Somebody changes a target.
    Touch(usize),
    /// Somebody deletes a target.
    Remove(usize),
    /// Somebody brings a target to its desired state by hand.
    ByHand(usize),
    Input,
    Prerequisites,
    Become(Machines),
    Blocks,
    /// The second item is skipped, or no longer skipped.
    Aside,
    /// A webhook goes down, or comes back.
    Webhook,
    Refuses,
    Upgrade,
    Clock(i64),
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The operator reconciles and decides; `behind` if it reads from an outdated cache.
    Look {
        behind: bool,
    },
    /// It examines only the progress of the machines.
    LookAtProgress,
    /// It makes its next write.
    Write,
    /// It does not learn the result of its next write; `acted` if the write reached the server.
    WriteFails {
        acted: bool,
    },
    /// It stores its decision.
    Store,
    /// The process dies and starts again.
    Crash,
    Happens(Event),
}

/// A change of phase; the first one starts without a phase.
type PhaseStep = (Option<String>, String);

/// A run: its start, the possible events, their number, and the guard that is disabled.
#[derive(Clone)]
struct Run {
    start: State,
    rules: Rules,
    events: Vec<Event>,
    disabled: Option<Guard>,
    /// Whether caches may lag and answers may be lost.
    faults: bool,
    /// The changes of phase that were seen.
    seen: Arc<Mutex<BTreeSet<PhaseStep>>>,
    /// Known results about states at rest.
    rests: calm::Rests,
}

impl Run {
    fn decide(&self, look: &Look, observed: Observation) -> (Decision, Option<Status>) {
        let wanted = look.config.wanted();
        let version = format!("v{}", look.world.version);
        let seen = Observed {
            wanted: &wanted,
            status: &look.config.status.status,
            world: observed,
            description: "Moves virtual machines away from busy machines",
            version: &version,
            declared_impact: Severity::Low,
            machines_updated: None,
            settling: crate::plan::decision::execution::SETTLING,
            made_anew: look.config.made_anew,
        };
        let now = second(look.world.clock);
        let decision = decide(&seen, now);
        let want = wants(self.rules, look.config.option, &look.world);
        let written: BTreeMap<_, _> = look
            .written
            .iter()
            .map(|(index, taken)| {
                let index = usize::from(*index);
                let written = match taken {
                    true if want[index] == GONE => Written::Removed,
                    true => Written::Applied(applied(want[index])),
                    false => Written::Refused("refused".into()),
                };
                (NAMES[index].to_owned(), written)
            })
            .collect();
        let status = compose(&seen, &decision, &written, now);
        (decision, status)
    }

    /// The status that `look` would store, if it differs.
    fn stores(&self, look: &Look) -> Option<Stored> {
        if look.writes.is_empty() {
            return look.result.clone();
        }
        let status = self.decide(look, observe(self.rules, look)?).1?;
        (status != *look.config.status.status).then(|| Stored::new(status))
    }

    fn look(&self, state: &State, config: Config, fresh: bool, progress: bool) -> Option<State> {
        let mut look = Look {
            config,
            world: state.world.clone(),
            progress,
            writes: Vec::new(),
            result: None,
            made: 0,
            written: BTreeMap::new(),
            stopped: false,
            fresh,
            untouched: [true; 2],
        };
        let (decision, status) = self.decide(&look, observe(self.rules, &look)?);
        if let Decision::Execute(execution) = decision {
            let index = |name: &String| NAMES.iter().position(|known| known == name).map(|index| index as u8);
            look.writes = execution.write.iter().filter_map(index).collect();
        }
        look.result = status.filter(|status| *status != *look.config.status.status).map(Stored::new);
        let something = !look.writes.is_empty() || look.result.is_some();
        something.then(|| State { look: Some(look), ..state.clone() })
    }

    /// Makes the next write of the reconcile that has begun.
    fn write(&self, state: &State, acted: bool, answered: bool) -> Option<State> {
        let mut next = state.clone();
        let look = next.look.as_mut().filter(|look| !look.stopped)?;
        let index = *look.writes.get(look.made)?;
        look.made += 1;
        if !answered {
            look.stopped = true;
        }
        let place = usize::from(index);
        // As in the controller: the configuration is read again, and the target has a precondition.
        let covered = Mandate::of(&object(&look.config)).covers(&Mandate::of(&object(&state.config)));
        if !covered || !look.untouched[place] {
            look.stopped = true;
            return Some(next);
        }
        if state.world.refuses && index == 0 {
            look.written.insert(index, false);
            return Some(next);
        }
        if !acted {
            return Some(next);
        }
        if answered {
            look.written.insert(index, true);
        }
        let want = wants(self.rules, look.config.option, &look.world)[place];
        let live = next.world.targets[place];
        let target = (want != GONE).then_some(want);
        if live != target {
            next.world.targets[place] = target;
            if index == 0 && self.rules.rolls {
                next.world.machines = Machines::Rolling;
            }
            next.ghost.wrote(&next.config, index, live, want);
            if next.look.as_ref().is_some_and(|look| look.world.down) {
                next.ghost.violation = Some("a write while something of the plan can't be told");
            }
        }
        Some(next)
    }

    fn store(&self, state: &State) -> Option<State> {
        let look = state.look.as_ref()?;
        if !look.stopped && look.made < look.writes.len() {
            return None;
        }
        let mut next = State { look: None, ..state.clone() };
        let stored = self.stores(look).filter(|_| look.fresh)?;
        let status = &stored.status;
        let phase = |status: &Status| status.phase.map(|phase| format!("{phase:?}"));
        if let Some(to) = phase(status) {
            self.seen.lock().unwrap().insert((phase(&state.config.status.status), to));
        }
        next.ghost.stored(&state.config, status, state.world.clock);
        let before = &state.config.status.status.items;
        let failed = |items: &[Item]| items.iter().filter(|item| item.state == ItemState::Failed).count();
        let fails = failed(&status.items) > failed(before);
        if look.world.machines == Machines::Paused && fails {
            next.ghost.violation = Some("a pause is taken for a failure");
        }
        let has_failed = |phase| matches!(phase, Some(Phase::Failed | Phase::CompletedWithErrors));
        let (was, is) = (has_failed(state.config.status.status.phase), has_failed(status.phase));
        if was && !is && !state.ghost.cause_may_be_gone {
            next.ghost.violation = Some("a failure is left although its cause remains");
        }
        if fails {
            let (then, now) = (&look.world, &state.world);
            next.ghost.cause_may_be_gone = !look.fresh
                || look.untouched != [true; 2]
                || then.input != now.input
                || then.down != now.down
                || then.aside != now.aside;
        }
        next.behind = self.faults.then(|| state.config.clone());
        next.config.status = stored;
        next.config.stored_at = state.world.clock;
        Some(next)
    }

    fn happens(&self, state: &State, event: Event) -> Option<State> {
        let mut next = state.clone();
        next.left = state.left.checked_sub(1)?;
        let touched = |next: &mut State, index: usize| {
            if let Some(look) = &mut next.look {
                look.untouched[index] = false;
            }
            if index == 0 && self.rules.rolls {
                next.world.machines = Machines::Done;
            }
        };
        let want = wants(self.rules, state.config.option, &state.world);
        let config = &mut next.config;
        match event {
            Event::Set(action) if action == config.action => return None,
            Event::Set(action) => {
                config.action = action;
                config.action_at = state.world.clock;
            }
            Event::Choose => config.option = 1 - config.option,
            Event::ChooseAndApply => {
                config.option = 1 - config.option;
                config.action = Does::Apply;
                config.action_at = state.world.clock;
            }
            Event::ApplyOtherwise => {
                config.goes_on = !config.goes_on;
                config.action = Does::Apply;
                config.action_at = state.world.clock;
            }
            Event::ApproveOther => config.hash = Some("v1:0000".into()),
            Event::Read => next.ghost.reads(&state.config),
            Event::ApproveRead => {
                config.hash = Some(state.ghost.has_read()?);
                if config.action != Does::Apply {
                    config.action = Does::Apply;
                    config.action_at = state.world.clock;
                }
            }
            Event::EditTerms => config.goes_on = !config.goes_on,
            Event::Lie => {
                config.action_at = state.world.clock + 1000;
                let lied = config.clone();
                next.ghost.waited(&lied, state.world.clock);
            }
            Event::Recreate => {
                // The uid differs: nothing that was read before has the same version.
                let generation = config.generation + 100;
                let (action, option, hash) = (config.action, 1 - config.option, config.hash.clone());
                let action_at = state.world.clock;
                let made_anew = config.made_anew || config.status.status.plan_hash.is_some();
                *config = Config { option, hash, generation, action_at, made_anew, ..Config::new(action) };
                next.look = None;
                next.behind = None;
                next.ghost.recreated(&next.config, state.world.clock);
                return Some(next);
            }
            Event::ApproveShown => config.hash = Some(config.status.status.plan_hash.clone()?),
            Event::ClearHash => config.hash = None,
            Event::Replan => config.replan += 1,
            Event::Delete => config.deleting = true,
            Event::Touch(index) => next.world.targets[index] = Some(FOREIGN),
            Event::Remove(index) => next.world.targets[index] = None,
            Event::ByHand(index) => next.world.targets[index] = (want[index] != GONE).then_some(want[index]),
            Event::Input => next.world.input = 1 - next.world.input,
            Event::Prerequisites => next.world.prerequisites = !next.world.prerequisites,
            Event::Become(machines) => {
                if state.world.machines == Machines::Done {
                    return None;
                }
                next.world.machines = machines;
            }
            Event::Blocks => next.world.blocks = !next.world.blocks,
            Event::Aside => next.world.aside = !next.world.aside,
            Event::Webhook => next.world.down = !next.world.down,
            Event::Refuses => next.world.refuses = !next.world.refuses,
            Event::Upgrade => {
                next.world.version = 3 - next.world.version;
                next.look = None;
            }
            Event::Clock(seconds) => {
                next.world.clock += seconds;
                // A reconcile that takes longer than a minute is given up.
                next.look = None;
                next.ghost.waited(&state.config, next.world.clock);
            }
            Event::Bypass => config.bypass = !config.bypass,
        }
        if let Event::Touch(index) | Event::Remove(index) | Event::ByHand(index) = event {
            if next.world.targets == state.world.targets {
                return None;
            }
            touched(&mut next, index);
        }
        if next.config == state.config && next.world == state.world && next.ghost == state.ghost {
            return None;
        }
        next.ghost.cause_may_be_gone |= !matches!(event, Event::Become(_) | Event::Clock(_) | Event::Refuses);
        if next.config != state.config {
            let of_spec = !matches!(event, Event::Replan | Event::Delete | Event::Lie);
            next.config.generation += i64::from(of_spec);
            if let Some(look) = &mut next.look {
                look.fresh = false;
            }
            next.behind = self.faults.then(|| state.config.clone());
            next.ghost.edited(&state.config, &next.config, state.world.clock);
        }
        Some(next)
    }
}

/// The parts of the object from which a mandate is made.
fn object(config: &Config) -> VirtPlatformConfig {
    let spec = VirtPlatformConfigSpec {
        profile: "p".into(),
        action: config.wanted().action,
        failure_policy: FailurePolicy::Abort,
        options: None,
        bypass_optimistic_lock: false,
        wait_timeout: None,
        overrides: Vec::new(),
        items: Vec::new(),
        approved_plan_hash: None,
        approval_policy: ApprovalPolicy::Review,
    };
    let mut object = VirtPlatformConfig::new("p", spec);
    object.metadata.resource_version =
        Some(format!("{} {} {:?}", config.generation, config.replan, config.status.key()));
    object.metadata.deletion_timestamp = config.deleting.then(|| crate::plan::wire::time(second(0)));
    let stored = &config.status.status;
    object.status = Some(Status { phase: stored.phase, approval: stored.approval.clone(), ..Status::default() });
    object
}

impl Model for Run {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.start.clone()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.look.is_some() {
            steps.extend([Step::Write, Step::Store, Step::Crash]);
            if self.faults {
                steps.extend([Step::WriteFails { acted: true }, Step::WriteFails { acted: false }]);
            }
        } else {
            steps.extend([Step::Look { behind: false }, Step::LookAtProgress]);
            if self.faults {
                steps.push(Step::Look { behind: true });
            }
        }
        if state.left > 0 {
            steps.extend(self.events.iter().copied().map(Step::Happens));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        disable(self.disabled);
        match step {
            Step::Look { behind: false } => self.look(state, state.config.clone(), true, false),
            Step::Look { behind: true } => self.look(state, state.behind.clone()?, false, false),
            Step::LookAtProgress => self.look(state, state.config.clone(), true, true),
            Step::Write => self.write(state, true, true),
            Step::WriteFails { acted } => self.write(state, acted, false),
            Step::Store => Some(self.store(state).unwrap_or_else(|| State { look: None, ..state.clone() })),
            Step::Crash => Some(State { look: None, ..state.clone() }),
            Step::Happens(event) => self.happens(state, event),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is done that was not approved", |_, state: &State| {
                state.ghost.violation.is_none()
            }),
            Property::always("an approval lives as long as its execution", |_, state: &State| {
                let status = &state.config.status.status;
                status.approval.is_none() || status.phase == Some(Phase::InProgress)
            }),
            Property::always("the digest is that of the items on display", |run: &Run, state: &State| {
                run.digest_fits(state)
            }),
            Property::always("a calm world comes to its end", |run: &Run, state: &State| {
                disable(run.disabled);
                state.look.is_some() || calm::problem(run, state).is_none()
            }),
        ]
    }
}

impl Run {
    fn digest_fits(&self, state: &State) -> bool {
        let status = &state.config.status.status;
        let basis = super::Basis {
            profile: "p".into(),
            options: status.applied_options.clone(),
            // A removed override is not an input of the plan.
            inputs: status.inputs.iter().filter(|input| !is_trace(input)).cloned().collect(),
            terms: status.planned_spec.as_ref().map(|planned| planned.terms.clone()).unwrap_or_default(),
        };
        let items = status.items.iter().map(|item| (item.name.as_str(), item.wave, item.item_hash.as_str()));
        status.plan_hash.as_ref().is_none_or(|hash| *hash == basis.digest(items))
    }

    /// Visits every reachable state, or stops at the first forbidden one.
    fn check(self) -> impl Checker<Self> {
        self.checker().threads(2).finish_when(HasDiscoveries::Any).spawn_bfs().join()
    }
}
