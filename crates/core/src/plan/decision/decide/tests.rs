//! Decisions on plain data: a table of situations, and sweeps over all phases and actions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use profile_sdk::{Body, Draft};
use serde_json::{Value, json};

use super::*;
use crate::api::{
    Applied, Approval, ApprovedBy, FailurePolicy, Operation, Severity, TargetRef, VirtPlatformConfigStatus as Status,
};
use crate::plan::Basis;
use crate::plan::decision::observed::{Edit, Wanted};
use crate::plan::items::health::Rollout;
use crate::plan::items::{Moved, PlanItem, Review};
use crate::plan::overrides::Choices;
use crate::plan::status::{Written, compose};

const PHASES: [Option<Phase>; 12] = [
    None,
    Some(Phase::Pending),
    Some(Phase::Drafting),
    Some(Phase::PrerequisiteFailed),
    Some(Phase::ReviewRequired),
    Some(Phase::InProgress),
    Some(Phase::Completed),
    Some(Phase::CompletedWithErrors),
    Some(Phase::CompletedWithUpgrade),
    Some(Phase::Failed),
    Some(Phase::Drifted),
    Some(Phase::Ignored),
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(in crate::plan) fn item(name: &str, wave: u32, operation: Operation) -> PlanItem {
    let applied = Applied { uid: "u".into(), paths: vec!["/f:spec".into()], paths_hash: None, hash: "h".into() };
    let target = TargetRef { api_version: "v1".into(), kind: "Widget".into(), name: name.into(), namespace: None };
    let draft = Draft { wave, ..Draft::new(name, Body::Ensure(target.empty()), "reason") };
    let mut item = PlanItem::new(&draft, target, operation);
    item.hash = format!("{name}-{operation:?}");
    item.review = Review { desired: json!({}), shown: json!({}), message: "text".into(), ..Review::default() };
    item.live.rollout = Rollout::Done("in effect".into());
    item.live.applied = (operation == Operation::NoChange).then_some(applied);
    item
}

pub(in crate::plan) fn basis() -> Basis {
    Basis { profile: "p".into(), ..Basis::default() }
}

pub(super) fn plan(operations: [Operation; 2]) -> Plan {
    Plan::new(basis(), vec![item("a", 0, operations[0]), item("b", 1, operations[1])])
}

fn wanted(action: Action, generation: i64) -> Wanted {
    Wanted {
        generation,
        action,
        hash_edit: None,
        shown_at: None,
        bypass_edit: None,
        action_edit: Some(Edit { by: "somebody".into(), at: at(1000) }),
        spec_hash: "spec".into(),
        options: None,
        approved_plan_hash: None,
        automatic: false,
        failure_policy: FailurePolicy::Abort,
        wait_timeout: None,
        choices: Choices::default(),
        bypass: false,
        replan: None,
        deleting: false,
    }
}

/// A configuration over time: each reconcile is decided and composed as in the operator.
pub(in crate::plan) struct World {
    pub(in crate::plan) status: Status,
    pub(in crate::plan) wanted: Wanted,
    pub(in crate::plan) now: i64,
    pub(in crate::plan) made_anew: bool,
}

impl World {
    pub(in crate::plan) fn new(action: Action) -> Self {
        Self { status: Status::default(), wanted: wanted(action, 1), now: 0, made_anew: false }
    }

    pub(in crate::plan) fn decide(&self, plan: Plan) -> (Decision, Option<Status>) {
        self.decide_with(plan, &BTreeMap::new())
    }

    pub(in crate::plan) fn decide_with(
        &self,
        plan: Plan,
        written: &BTreeMap<String, Written>,
    ) -> (Decision, Option<Status>) {
        let world = crate::plan::decision::observed::World::Planned(plan);
        let seen = Observed {
            wanted: &self.wanted,
            status: &self.status,
            world,
            description: "Moves virtual machines away from busy machines",
            version: "v1",
            declared_impact: Severity::High,
            machines_updated: None,
            settling: crate::plan::decision::execution::SETTLING,
            made_anew: self.made_anew,
        };
        let decision = decide(&seen, at(self.now));
        let status = compose(&seen, &decision, written, at(self.now));
        (decision, status)
    }

    /// One reconcile; its writes are reported as applied.
    pub(in crate::plan) fn look(&mut self, plan: Plan) -> Decision {
        self.now += 1;
        let (decision, _) = self.decide(plan.clone());
        let mut written = BTreeMap::new();
        if let Decision::Execute(execution) = &decision {
            for name in &execution.write {
                let applied =
                    Applied { uid: "u".into(), paths: vec!["/f:spec".into()], paths_hash: None, hash: "h".into() };
                written.insert(name.clone(), Written::Applied(applied));
            }
        }
        let (_, status) = self.decide_with(plan, &written);
        if let Some(status) = status {
            self.status = status;
        }
        decision
    }

    pub(in crate::plan) fn edit(&mut self, action: Action) {
        self.wanted.action = action;
        self.wanted.generation += 1;
        self.wanted.action_edit = Some(Edit { by: "somebody".into(), at: at(self.now) });
    }

    pub(in crate::plan) fn phase(&self) -> Option<Phase> {
        self.status.phase
    }

    pub(in crate::plan) fn reason(&self) -> &str {
        let found = self.status.conditions.iter().find(|condition| condition.type_ == "ReviewRequired");
        found.map_or("", |condition| &condition.reason)
    }
}

pub(in crate::plan) fn writes_of(decision: &Decision) -> Vec<&str> {
    match decision {
        Decision::Execute(execution) => execution.write.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

pub(super) const CREATE: [Operation; 2] = [Operation::Create, Operation::Create];
pub(super) const HALF: [Operation; 2] = [Operation::NoChange, Operation::Create];
pub(super) const DONE: [Operation; 2] = [Operation::NoChange, Operation::NoChange];

#[test]
fn the_story_of_two_waves() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::PLAN_READY));
    let shown = world.status.clone();
    assert_eq!(world.decide(plan(CREATE)).1.as_ref(), Some(&shown), "looking again says nothing new");

    world.edit(Action::Apply);
    let begun = world.look(plan(CREATE));
    assert!(writes_of(&begun).is_empty(), "intent before effect");
    assert_eq!(world.phase(), Some(Phase::InProgress));
    assert_eq!(writes_of(&world.look(plan(CREATE))), ["a"]);
    let mut rolling = plan(HALF);
    rolling.items[0].live.rollout = Rollout::Waiting { text: "1 of 3".into(), paused: false };
    assert!(writes_of(&world.look(rolling)).is_empty());
    assert_eq!(world.status.items[1].state, ItemState::Pending);
    assert!(writes_of(&world.look(plan(HALF))).is_empty(), "the intent of the second wave");
    assert_eq!(writes_of(&world.look(plan(HALF))), ["b"]);
    world.look(plan(DONE));
    assert_eq!(world.phase(), Some(Phase::Completed));
    assert_eq!(world.status.approval, None, "an approval is used once");
    assert_eq!(world.status.history[0].outcome, "Completed");
}

#[test]
fn nothing_is_written_without_action_apply_and_an_approval_of_exactly_this_plan() {
    for phase in PHASES {
        for action in [Action::DryRun, Action::Apply, Action::Ignore] {
            for approved in [None, Some("v1:other"), Some("this")] {
                for deleting in [false, true] {
                    let plan = plan(CREATE);
                    let mut world = World::new(action);
                    world.wanted.deleting = deleting;
                    world.look(plan.clone());
                    world.status.phase = phase;
                    world.status.approval = approved.map(|hash| Approval {
                        plan_hash: if hash == "this" { plan.digest.clone() } else { hash.to_owned() },
                        how: ApprovedBy::Action,
                        by: "x".into(),
                        at: crate::plan::wire::time(at(0)),
                        generation: 1,
                        text: String::new(),
                        machines: 0,
                        replaced: Vec::new(),
                    });
                    for item in &mut world.status.items {
                        item.state = ItemState::InProgress;
                    }
                    let (decision, _) = world.decide(plan);
                    let may = action == Action::Apply
                        && !deleting
                        && approved == Some("this")
                        && phase == Some(Phase::InProgress);
                    let writes = writes_of(&decision);
                    assert_eq!(
                        !writes.is_empty(),
                        may,
                        "{phase:?} {action:?} {approved:?} deleting={deleting}: {decision:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn ignore_stands_aside_from_every_phase() {
    for phase in PHASES {
        let mut world = World::new(Action::Ignore);
        world.status.phase = phase;
        world.look(plan(CREATE));
        assert_eq!(world.phase(), Some(Phase::Ignored));
    }
}

#[test]
fn a_plan_that_changed_within_a_minute_before_the_approval_is_not_approved_by_the_action() {
    for (seconds, phase) in [(30, Phase::ReviewRequired), (90, Phase::InProgress)] {
        let mut world = World::new(Action::DryRun);
        world.look(plan(CREATE));
        world.now += 1000;
        world.look(plan(HALF));
        assert_eq!(world.reason(), reason::PLAN_STALE);
        world.now += seconds;
        world.edit(Action::Apply);
        world.look(plan(HALF));
        assert_eq!(world.phase(), Some(phase), "after {seconds} s");
    }
}

#[test]
fn a_toggle_that_was_not_seen_approves_nothing() {
    let mut world = World::new(Action::Apply);
    world.look(plan(DONE));
    assert_eq!(world.phase(), Some(Phase::Completed));
    world.look(plan(HALF));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    world.edit(Action::DryRun);
    world.edit(Action::Apply);
    world.look(plan(HALF));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    assert!(world.status.summary.unwrap().text.contains("spec.approvedPlanHash"));
}

#[test]
fn another_field_edited_together_with_the_action_is_no_approval_by_the_action() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.wanted.spec_hash = "other".into();
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
}

#[test]
fn an_unwritten_item_that_moves_during_the_execution_stops_it() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.look(plan(CREATE));
    world.look(plan(CREATE));
    let mut moved = plan(HALF);
    moved.items[1].hash = "something else".into();
    let moved = Plan::new(basis(), moved.items);
    assert!(writes_of(&world.look(moved)).is_empty());
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::PLAN_STALE));
    assert_eq!(world.status.approval, None);
    assert_eq!(world.status.history[0].outcome, "Stale");
}

#[test]
fn a_written_item_that_is_changed_during_the_execution_is_drift_and_not_put_back() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.look(plan(CREATE));
    world.look(plan(CREATE));
    let mut drifted = plan([Operation::Update, Operation::Create]);
    drifted.items[0].live.moved = vec![Moved { path: "/spec".into(), text: "/spec is 2 instead of 1".into() }];
    assert!(writes_of(&world.look(drifted)).is_empty());
    assert_eq!(world.phase(), Some(Phase::Drifted));
}

#[test]
fn a_lost_answer_is_recognised_by_the_object() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(CREATE));
    world.edit(Action::Apply);
    world.look(plan(CREATE));
    // The write reached the server, but the process ended before the answer: the item is unchanged
    // now.
    assert!(writes_of(&world.look(plan(HALF))).is_empty());
    assert_eq!(world.status.items[0].state, ItemState::Completed);
    assert_eq!(writes_of(&world.look(plan(HALF))), ["b"]);
}

#[test]
fn a_failure_is_left_only_when_its_cause_can_be_gone() {
    let failed = || {
        let mut world = World::new(Action::Apply);
        world.look(plan(CREATE));
        world.look(plan(CREATE));
        let mut broken = plan(HALF);
        broken.items[0].live.rollout = Rollout::Failed("Stalled: no".into());
        world.look(broken);
        assert_eq!(world.phase(), Some(Phase::Failed));
        world
    };
    let world = failed();
    assert_eq!(world.decide(plan(HALF)).0, Decision::Hold, "an unchanged world changes nothing");
    let mut edited = failed();
    edited.edit(Action::Apply);
    edited.look(plan(HALF));
    assert_eq!(edited.phase(), Some(Phase::ReviewRequired));
    let mut replanned = failed();
    replanned.wanted.replan = Some("1".into());
    replanned.look(plan(HALF));
    assert_eq!(replanned.phase(), Some(Phase::ReviewRequired));
    let input = crate::api::Input {
        target: TargetRef { api_version: "v1".into(), kind: "K".into(), name: "n".into(), namespace: None },
        path: "/x".into(),
        value: Some(Value::from(1)),
        changed_from: None,
    };
    let mut changed = failed();
    changed.status.inputs = vec![crate::api::Input { value: Some(Value::from(0)), ..input.clone() }];
    let other = Basis { inputs: vec![input], ..basis() };
    changed.look(Plan::new(other, plan(HALF).items));
    assert_eq!((changed.phase(), changed.reason()), (Some(Phase::ReviewRequired), reason::INPUT_DEPENDENCY_DRIFT));
}

#[test]
fn a_new_version_that_plans_differently_is_an_upgrade_and_what_was_completed_stays_so() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(DONE));
    world.status.operator_version = Some("v0".into());
    world.look(plan(HALF));
    assert_eq!(world.phase(), Some(Phase::CompletedWithUpgrade));
    let status = |name: &str| world.status.conditions.iter().find(|c| c.type_ == name).map(|c| c.status.clone());
    assert_eq!(status("Completed").as_deref(), Some("True"));
    assert_eq!(status("UpgradeAvailable").as_deref(), Some("True"));
    assert_eq!(world.status.operator_version.as_deref(), Some("v0"), "the version that planned what is there");
}

#[test]
fn a_blocked_item_keeps_the_plan_from_being_approved() {
    let blocked = || plan([Operation::Blocked, Operation::Create]);
    let mut world = World::new(Action::DryRun);
    world.look(blocked());
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::BLOCKED));
    world.edit(Action::Apply);
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.look(blocked());
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
}

#[test]
fn every_status_names_the_digest_of_its_own_items() {
    let mut world = World::new(Action::DryRun);
    for operations in [CREATE, HALF, DONE, HALF] {
        world.now += 100;
        world.look(plan(operations));
        let items = world.status.items.iter().map(|item| (item.name.as_str(), item.wave, item.item_hash.as_str()));
        assert_eq!(world.status.plan_hash, Some(basis().digest(items)));
    }
}

#[test]
fn the_time_limit_stands_still_while_a_pool_is_paused() {
    let waiting = |paused| {
        let mut plan = plan(HALF);
        plan.items[0].live.rollout = Rollout::Waiting { text: "0 of 3".into(), paused };
        plan
    };
    let mut world = World::new(Action::Apply);
    world.wanted.wait_timeout = Some(std::time::Duration::from_secs(100));
    world.look(plan(CREATE));
    world.look(plan(CREATE));
    let mut late =
        World { status: world.status.clone(), wanted: world.wanted.clone(), now: world.now + 150, made_anew: false };
    late.look(waiting(true));
    assert_eq!(late.phase(), Some(Phase::InProgress), "a pause that is seen only after the limit is one all the same");
    world.now += 50;
    world.look(waiting(true));
    world.now += 1000;
    world.look(waiting(true));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    world.look(waiting(false));
    assert_eq!(world.phase(), Some(Phase::InProgress), "the pause is not counted");
    world.now += 30;
    world.look(waiting(false));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    world.now += 30;
    world.look(waiting(false));
    assert_eq!(world.phase(), Some(Phase::Failed), "what was waited before the pause is");
}

#[test]
fn a_pause_that_begins_in_the_future_takes_nothing_from_the_time_limit() {
    let waiting = |paused| {
        let mut plan = plan(HALF);
        plan.items[0].live.rollout = Rollout::Waiting { text: "0 of 3".into(), paused };
        plan
    };
    for paused in [true, false] {
        let mut world = World::new(Action::Apply);
        world.wanted.wait_timeout = Some(std::time::Duration::from_secs(100));
        world.look(plan(CREATE));
        world.look(plan(CREATE));
        world.look(waiting(true));
        world.status.items[0].paused_since = Some(Time("9999-12-30T00:00:00Z".parse().unwrap()));
        world.now += 50;
        world.look(waiting(paused));
        assert_eq!(world.phase(), Some(Phase::InProgress));
        assert!(world.status.items[0].wait_started_at.is_some(), "the beginning of the wait is kept");
    }
}

/// Approved by hash, begun, and not written.
pub(super) fn begun_by_hash() -> World {
    let mut world = World::new(Action::Apply);
    world.look(plan([Operation::Blocked, Operation::Create]));
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    world.wanted.approved_plan_hash = world.status.plan_hash.clone();
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    world
}

#[test]
fn taking_the_approving_hash_away_withdraws() {
    let mut world = begun_by_hash();
    world.wanted.approved_plan_hash = None;
    assert!(writes_of(&world.look(plan(CREATE))).is_empty());
    assert_eq!((world.phase(), world.reason()), (Some(Phase::ReviewRequired), reason::WITHDRAWN));
}

#[test]
fn a_hash_is_used_once_and_can_be_given_again() {
    let mut world = begun_by_hash();
    let refused = BTreeMap::from([("a".to_owned(), Written::Refused("no".into()))]);
    world.status = world.decide_with(plan(CREATE), &refused).1.unwrap();
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::Failed));
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::ReviewRequired), "the same hash in spec approves nothing again");
    assert!(world.status.summary.as_ref().unwrap().text.contains("clear spec.approvedPlanHash"));
    let hash = world.wanted.approved_plan_hash.take();
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    world.wanted.approved_plan_hash = hash;
    world.wanted.generation += 1;
    world.look(plan(CREATE));
    assert_eq!(world.phase(), Some(Phase::InProgress), "cleared and set, it does");
}

#[test]
fn what_is_as_wanted_but_not_in_effect_holds_up_what_comes_after_it() {
    let rolling = |operations| {
        let mut plan = plan(operations);
        plan.items[0].live.rollout = Rollout::Waiting { text: "0 of 3".into(), paused: false };
        plan
    };
    let mut world = World::new(Action::DryRun);
    world.look(rolling(HALF));
    world.edit(Action::Apply);
    world.look(rolling(HALF));
    assert_eq!(world.phase(), Some(Phase::InProgress));
    assert!(writes_of(&world.look(rolling(HALF))).is_empty());
    assert_eq!(world.status.items[1].state, ItemState::Pending);
    world.look(plan(HALF));
    assert_eq!(writes_of(&world.look(plan(HALF))), ["b"]);

    let mut all = World::new(Action::Apply);
    all.look(rolling(DONE));
    assert_eq!(all.phase(), Some(Phase::InProgress), "not completed before it is in effect");
    all.look(plan(DONE));
    assert_eq!(all.phase(), Some(Phase::Completed));
    all.look(rolling(DONE));
    assert_eq!(all.phase(), Some(Phase::Completed), "what pools do later for other reasons changes nothing");
}

#[test]
fn a_withdrawal_counts_as_written_only_what_was() {
    let mut world = World::new(Action::DryRun);
    world.look(plan(HALF));
    world.edit(Action::Apply);
    world.look(plan(HALF));
    world.edit(Action::DryRun);
    world.look(plan(HALF));
    let text = world.status.summary.unwrap().text;
    assert!(text.contains("stopped before anything was written"), "{text}");
}

#[test]
fn what_is_asked_for_in_advance_takes_nothing_from_others() {
    let mut taking = plan(CREATE);
    taking.items[1].review.lost = vec!["/spec/list: 1".into()];
    let mut world = World::new(Action::Apply);
    world.look(taking);
    assert_eq!(world.phase(), Some(Phase::ReviewRequired));
    let mut harmless = World::new(Action::Apply);
    harmless.look(plan(CREATE));
    assert_eq!(harmless.phase(), Some(Phase::InProgress));
}

#[test]
fn the_digest_covers_what_the_plan_was_made_from_and_the_order_of_execution() {
    let items = || [("a", 0, "1"), ("b", 1, "2")];
    let digest = basis().digest(items());
    let target = TargetRef { api_version: "v1".into(), kind: "K".into(), name: "n".into(), namespace: None };
    let input = |value: i64| crate::api::Input {
        target: target.clone(),
        path: "/x".into(),
        value: Some(value.into()),
        changed_from: None,
    };
    let with = |value| Basis { inputs: vec![input(value)], ..basis() }.digest(items());
    for (name, other) in [
        ("an input", with(1)),
        ("another profile", Basis { profile: "q".into(), ..basis() }.digest(items())),
        ("options", Basis { options: Some(json!({})), ..basis() }.digest(items())),
        ("an item", basis().digest([("a", 0, "1"), ("b", 1, "3")])),
        ("a wave", basis().digest([("a", 0, "1"), ("b", 0, "2")])),
        ("the order", basis().digest([("b", 1, "2"), ("a", 0, "1")])),
    ] {
        assert_ne!(other, digest, "{name}");
    }
    assert_ne!(with(1), with(2), "the value of an input");
}
