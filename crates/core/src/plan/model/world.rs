//! The subject of the model: a configuration, two targets, what the plan depends on, and an
//! operator between two steps.

use std::collections::BTreeMap;
use std::hash::Hash;

use profile_sdk::{Body, Draft};
use serde_json::{Value, json};

use super::config::{Config, NAMES, Stored, change};
use super::ghost::Ghost;
use crate::api::{Applied, Conflict, Input, Operation, TargetRef};
use crate::plan::decision::decide::tests::item;
use crate::plan::decision::observed::World as Observation;
use crate::plan::items::Moved;
use crate::plan::items::health::Rollout;
use crate::plan::items::prune;
use crate::plan::overrides::{MODE, inputs};
use crate::plan::{Basis, Plan};
use object::digest;

/// A value that nobody planned.
pub(super) const FOREIGN: u8 = 99;
/// The value of an object that is no longer desired.
pub(super) const GONE: u8 = 0;
/// How far the machines have taken up the first target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Machines {
    Done,
    Rolling,
    Paused,
    Broken,
}

/// Everything besides the configuration and the operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The value of each target, if it exists.
    pub(super) targets: [Option<u8>; 2],
    pub(super) input: u8,
    pub(super) prerequisites: bool,
    /// Whether the server refuses to preview the second item.
    pub(super) blocks: bool,
    /// Whether a webhook is down, so that the second item can't be previewed.
    pub(super) down: bool,
    /// Whether an annotation of its object skips the second item.
    pub(super) aside: bool,
    /// Whether the server refuses to write the first item.
    pub(super) refuses: bool,
    pub(super) machines: Machines,
    /// The version of the operator; each wants a different value of the first target.
    pub(super) version: u8,
    pub(super) clock: i64,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            targets: [None, None],
            input: 0,
            prerequisites: true,
            blocks: false,
            down: false,
            aside: false,
            refuses: false,
            machines: Machines::Done,
            version: 1,
            clock: 1000,
        }
    }
}

/// Properties that do not change during a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether the second item is in a wave of its own.
    pub(super) waves: bool,
    /// Whether the second item can't be previewed before the first one exists.
    pub(super) defers: bool,
    /// Whether the machines take time.
    pub(super) rolls: bool,
    /// Whether the second item is desired with option 0 only.
    pub(super) prunes: bool,
}

/// A reconcile that has begun and is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Look {
    /// The configuration that was read.
    pub(super) config: Config,
    pub(super) world: World,
    /// Whether only the progress of the machines was examined.
    pub(super) progress: bool,
    /// The items to write, in order.
    pub(super) writes: Vec<u8>,
    /// The status to store if nothing is written.
    pub(super) result: Option<Stored>,
    /// The number of writes made so far.
    pub(super) made: usize,
    /// Their results, by item; `false` is a refusal.
    pub(super) written: BTreeMap<u8, bool>,
    /// Whether no further write will be made.
    pub(super) stopped: bool,
    /// Whether nobody has edited the configuration since.
    pub(super) fresh: bool,
    /// Whether nobody has changed the target since.
    pub(super) untouched: [bool; 2],
}

/// A state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) config: Config,
    /// The configuration before its last change, which a cache may still return.
    pub(super) behind: Option<Config>,
    pub(super) world: World,
    pub(super) look: Option<Look>,
    pub(super) ghost: Ghost,
    /// The number of events that may still happen.
    pub(super) left: u8,
}

/// The desired value of each target.
pub(super) fn wants(rules: Rules, option: u8, world: &World) -> [u8; 2] {
    let second = if rules.prunes && option == 1 { GONE } else { 60 + world.input };
    [10 * world.version + option, second]
}

/// The visible fields of a target with this value.
fn view(value: u8) -> BTreeMap<String, Value> {
    if value == GONE {
        return BTreeMap::new();
    }
    BTreeMap::from([("/value".to_owned(), json!(value))])
}

/// The record of a target that was written, or is unchanged.
pub(super) fn applied(value: u8) -> Applied {
    Applied { uid: "u".into(), paths: Vec::new(), paths_hash: None, hash: digest::sha256(&view(value)) }
}

/// The plan that the engine would make of `world`.
pub(super) fn plan(rules: Rules, config: &Config, world: &World) -> Plan {
    let target =
        |name: &str| TargetRef { api_version: "v1".into(), kind: "Widget".into(), name: name.into(), namespace: None };
    let input =
        Input { target: target("input"), path: "/value".into(), value: Some(json!(world.input)), changed_from: None };
    let terms = config.wanted().terms();
    let basis = Basis { profile: "p".into(), options: config.options(), inputs: vec![input], terms };
    let wants = wants(rules, config.option, world);
    let departed = || {
        let object = json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "a"}});
        let first = Draft::new("a", Body::Ensure(object), "is wanted");
        !prune::departed(&config.status.status, &[first], config.options().as_ref()).is_empty()
    };
    let planned = |index: &usize| wants[*index] != GONE || departed();
    let items = (0..2).filter(planned).map(|index| {
        let (name, live, want) = (NAMES[index], world.targets[index], wants[index]);
        let first_is_there = world.targets[0] == Some(wants[0]);
        let operation = match live {
            _ if index == 1 && world.aside => Operation::Skipped,
            _ if index == 1 && (world.blocks || world.down) => Operation::Blocked,
            _ if index == 1 && rules.defers && !first_is_there && live.is_none() => Operation::Deferred,
            None if want == GONE => Operation::NoChange,
            Some(_) if want == GONE => Operation::Remove,
            Some(live) if live == want => Operation::NoChange,
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        let remembered = config.status.status.items.iter().find(|item| item.name == name);
        let memory = remembered.and_then(|item| item.applied.as_ref());
        // An item that can't be previewed has no known changes; an object that is no longer desired
        // does not drift.
        let known = !matches!(operation, Operation::Blocked | Operation::Skipped) && want != GONE;
        let has_moved = known && memory.is_some_and(|memory| live.map(applied).as_ref() != Some(memory));
        let moved = Moved { path: "/value".into(), text: format!("/value is {live:?}") };
        let conflict =
            Conflict { path: "/value".into(), manager: "them".into(), live: None, desired: None, controller: false };
        let mut item = item(name, if rules.waves { index as u32 } else { 0 }, operation);
        item.target = target(name);
        item.prune = want == GONE;
        item.hash = change(name, live, want, operation);
        item.fields.expected = view(want);
        item.review.conflicts = (live == Some(FOREIGN) && want != GONE).then_some(conflict).into_iter().collect();
        item.review.overriding = overriding(name, operation);
        item.review.blocked_temporarily = operation == Operation::Blocked && world.down;
        item.live.uid = live.map(|_| "u".into());
        item.live.applied = live.filter(|_| operation == Operation::NoChange).map(applied);
        item.live.moved = has_moved.then_some(moved).into_iter().collect();
        item.live.rollout = rollout(rules, world, index, operation);
        item
    });
    Plan::new(basis, items.collect())
}

/// The annotation that skips an item.
fn overriding(name: &str, operation: Operation) -> Vec<Input> {
    let annotation =
        json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": name, "annotations": {MODE: "unmanaged"}}});
    if operation == Operation::Skipped { inputs(&annotation) } else { Vec::new() }
}

fn rollout(rules: Rules, world: &World, index: usize, operation: Operation) -> Rollout {
    let waiting = |text: &str, paused| Rollout::Waiting { text: text.into(), paused };
    match (operation, world.machines) {
        (Operation::Blocked | Operation::Deferred, _) => waiting("not known", false),
        (Operation::Skipped, _) => Rollout::Done("set aside".into()),
        (Operation::NoChange | Operation::Remove, _) if world.targets[index].is_none() => Rollout::Done("gone".into()),
        _ if world.targets[index].is_none() => waiting("not there", false),
        (_, Machines::Rolling) if rules.rolls && index == 0 => waiting("rolling", false),
        (_, Machines::Paused) if rules.rolls && index == 0 => waiting("paused", true),
        (_, Machines::Broken) if rules.rolls && index == 0 => Rollout::Failed("broken".into()),
        _ => Rollout::Done("done".into()),
    }
}

/// What a reconcile observes; `None` if progress alone is not enough for it.
pub(super) fn observe(rules: Rules, look: &Look) -> Option<Observation> {
    if !look.world.prerequisites {
        return Some(Observation::Missing(vec!["it is missing".into()]));
    }
    let plan = plan(rules, &look.config, &look.world);
    if !look.progress {
        return Some(Observation::Planned(plan));
    }
    let status = &look.config.status.status;
    let under_way: Vec<_> =
        status.items.iter().filter(|item| item.state == crate::api::ItemState::InProgress).collect();
    let rollouts = under_way.iter().map(|item| {
        let fresh = plan.item(&item.name)?;
        let waits = matches!(fresh.live.rollout, Rollout::Waiting { .. }) && item.applied.is_some();
        waits.then(|| (item.name.clone(), fresh.live.rollout.clone()))
    });
    let rollouts: Option<BTreeMap<_, _>> = rollouts.collect();
    rollouts.filter(|rollouts| !rollouts.is_empty()).map(Observation::Rollouts)
}
