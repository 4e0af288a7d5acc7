//! Statuses as other versions, or other hands, have left them.

use std::collections::BTreeMap;
use std::sync::Arc;

use advisor_core::api::{Severity, TargetRef, VirtPlatformConfig, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use advisor_core::plan::decision::decide::decide;
use advisor_core::plan::decision::observed::{Observed, Wanted, World};
use advisor_core::plan::items::claims::Claim;
use advisor_core::plan::items::from_preview::compose as item;
use advisor_core::plan::items::health::Rollout;
use advisor_core::plan::items::prune::departed;
use advisor_core::plan::items::{Effect, PlanItem, PoolEffect, Preview};
use advisor_core::plan::overrides::Adjusted;
use advisor_core::plan::status::size::STATUS_LIMIT;
use advisor_core::plan::status::{Written, compose};
use advisor_core::plan::{Basis, Plan};
use jiff::Timestamp;
use object::limits::size;
use profile_sdk::{Body, Draft, ObjectRef};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::harness::run;
use crate::specs::spec;
use crate::values::{mutated, shared_object};

/// The names of the items, which meet those of the statuses.
const NAMES: [&str; 3] = ["a", "b", "c"];
const TIMES: [&str; 5] = [
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.999999999Z",
    "9999-12-30T22:00:00.999999999Z",
];

fn a_status(phase: &str, states: [&str; 2], time: &str, hash: &str, generation: i64) -> Value {
    let applied = json!({"uid": "u", "paths": ["/f:spec/f:mode"], "hash": "h"});
    let approval = json!({"planHash": hash, "how": "Hash", "by": "x", "at": time, "generation": generation, "machines": u32::MAX, "text": "t"});
    let each = |(name, state): (&str, &str)| {
        json!({
            "name": name, "targetRef": {"apiVersion": "example.dev/v1", "kind": "Widget", "name": name, "namespace": "n"}, "operation": "Update",
            "wave": u32::MAX, "impactSeverity": "High", "diff": "-a\n+b\n", "truncated": {"shown": 1, "total": u32::MAX}, "state": state,
            "message": "m", "lastTransitionTime": time, "waitStartedAt": time, "pausedSince": time, "itemHash": "h", "applied": applied,
            "appliedBefore": applied, "desiredState": {"spec": {"mode": "B"}}, "conflicts": [{"path": "/x", "manager": "m", "live": 1}],
        })
    };
    json!({
        "phase": phase, "observedGeneration": generation, "planHash": hash, "plannedAt": time, "plannedGeneration": generation,
        "plannedAction": "Apply", "operatorVersion": "v0", "appliedOptions": {"p": {"a": 1}}, "approval": approval, "impactSeverity": "Low",
        "plannedSpec": {"hash": "s", "approvedPlanHash": hash, "revisedAt": time, "usedPlanHash": hash, "terms": {"waitTimeout": "1"}},
        "summary": {"plan": "x", "create": u32::MAX, "machinesToReboot": u32::MAX, "text": "t", "changed": "c"},
        "items": NAMES.into_iter().zip(states).map(each).collect::<Vec<_>>(),
        "inputs": [{"target": {"apiVersion": "v1", "kind": "Node", "name": "x"}, "path": "/spec", "value": 1, "changedFrom": {"value": 2}}],
        "history": [{"plan_hash": hash, "planHash": hash, "at": time, "outcome": "Completed", "approvedAt": time, "how": "Bypass", "machines": u32::MAX}],
        "superseded": [{"planHash": hash, "at": time}],
        "conditions": [{"type": "Completed", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time, "observedGeneration": generation}],
    })
}

fn status(hashes: Vec<String>) -> impl Strategy<Value = Value> {
    let phases = vec![
        "Pending",
        "PrerequisiteFailed",
        "ReviewRequired",
        "InProgress",
        "InProgress",
        "InProgress",
        "Completed",
        "CompletedWithErrors",
        "CompletedWithUpgrade",
        "Failed",
        "Drifted",
        "Ignored",
    ];
    let state = || select(vec!["Pending", "InProgress", "Completed", "Failed"]);
    let base = (
        select(phases),
        [state(), state()],
        select(&TIMES[..]),
        select(hashes),
        select(vec![i64::MIN, 0, 1, 2, i64::MAX]),
    );
    base.prop_flat_map(|(phase, states, time, hash, generation)| {
        mutated(a_status(phase, states, time, &hash, generation))
    })
}

fn an_item(name: &str, wave: u32, changes: bool, machines: u32, fails: bool) -> PlanItem {
    let mut live = shared_object();
    live["metadata"]["name"] = json!(name);
    let mut wanted = live.clone();
    if changes {
        wanted["spec"]["mode"] = json!("B");
    }
    let draft = Draft { wave, ..Draft::new(name, Body::Ensure(wanted.clone()), "the settings") };
    let preview = Preview::Known {
        adjusted: Adjusted::from(wanted.clone()),
        live: Some(Arc::new(live)),
        result: wanted,
        conflicts: Vec::new(),
    };
    let effect = Effect {
        pools: BTreeMap::from([(name.to_owned(), PoolEffect { machines, at_once: 1, ..PoolEffect::default() })]),
        ..Effect::default()
    };
    let mut item = item(&draft, None, "us", preview, effect, None);
    if fails {
        item.live.rollout = Rollout::Failed("Stalled".to_owned());
    }
    item
}

/// What the world is like beside the status.
#[derive(Debug, Clone)]
struct Seen {
    changes: [bool; 2],
    machines: u32,
    fails: bool,
    world: u8,
    now: &'static str,
    generation: i64,
    names_plan: bool,
    written: u8,
}

impl Seen {
    fn plan(&self) -> Plan {
        let items = vec![
            an_item("a", 0, self.changes[0], self.machines, self.fails),
            an_item("b", u32::MAX, self.changes[1], self.machines, false),
        ];
        Plan::new(Basis { profile: "p".to_owned(), ..Basis::default() }, items)
    }

    fn world(&self, plan: Plan) -> World {
        let paused = |name: &str| (name.to_owned(), Rollout::Waiting { text: "t".to_owned(), paused: self.fails });
        match self.world {
            0 => World::Invalid("é".repeat(5000)),
            1 => World::Missing(vec!["m".repeat(9000)]),
            2 => World::Rollouts(NAMES.map(paused).into()),
            3 => World::Unread,
            _ => World::Planned(plan),
        }
    }
}

fn seen() -> impl Strategy<Value = Seen> {
    let machines = select(vec![0, 1, 10, 4_000_000]);
    let parts = (
        any::<[bool; 2]>(),
        machines,
        any::<bool>(),
        0_u8..10,
        select(&TIMES[..]),
        select(vec![i64::MIN, 0, 1, i64::MAX]),
        any::<bool>(),
        0_u8..4,
    );
    parts.prop_map(|(changes, machines, fails, world, now, generation, names_plan, written)| Seen {
        changes,
        machines,
        fails,
        world,
        now,
        generation,
        names_plan,
        written,
    })
}

#[test]
fn a_status_follows_whatever_was_there_before_and_is_bounded() {
    let known = Seen {
        changes: [true, true],
        machines: 1,
        fails: false,
        world: 9,
        now: TIMES[2],
        generation: 1,
        names_plan: false,
        written: 0,
    };
    let hashes = vec![
        "v1:00".to_owned(),
        String::new(),
        known.plan().digest,
        Seen { changes: [true, false], ..known }.plan().digest,
    ];
    run("statuses", (status(hashes), mutated(spec()), seen()), |(status, spec, seen)| {
        let Ok(status) = serde_json::from_value::<VirtPlatformConfigStatus>(status) else { return Ok(()) };
        let spec = serde_json::from_value::<VirtPlatformConfigSpec>(spec)
            .or_else(|_| serde_json::from_value(crate::specs::spec()))
            .unwrap();
        let plan = seen.plan();
        let mut config = VirtPlatformConfig::new("p", spec);
        config.metadata.generation = Some(seen.generation);
        if seen.names_plan {
            config.spec.approved_plan_hash = Some(plan.digest.clone());
        }
        config.status = Some(status.clone());
        let wanted = Wanted::of(&config);
        let now: Timestamp = seen.now.parse().unwrap();
        let _ = (wanted.choices.clone().at(now).next_end(now), Claim::all_of(&config));
        let kept = Draft::new(
            "z",
            Body::Remove(ObjectRef {
                api_version: "v1".to_owned(),
                kind: "K".to_owned(),
                namespace: None,
                name: "z".to_owned(),
            }),
            "r",
        );
        let _ = departed(&status, &[kept], None);
        let world = seen.world(plan);
        let observed = Observed {
            wanted: &wanted,
            status: &status,
            world,
            description: "Moves virtual machines away from busy machines",
            version: "v1",
            declared_impact: Severity::Low,
            machines_updated: None,
            settling: advisor_core::plan::decision::execution::SETTLING,
            made_anew: false,
        };
        let decision = decide(&observed, now);
        let written = match seen.written {
            0 => BTreeMap::from([("a".to_owned(), Written::Refused("é".repeat(9000)))]),
            1 => BTreeMap::from([("a".to_owned(), Written::Removed), ("b".to_owned(), Written::Removed)]),
            _ => BTreeMap::new(),
        };
        let Some(new) = compose(&observed, &decision, &written, now) else { return Ok(()) };
        let (before, after) = (size(&json!(status)), size(&json!(new)));
        prop_assert!(after <= STATUS_LIMIT.max(before), "{after} bytes after {before}");
        let read: VirtPlatformConfigStatus = serde_json::from_value(json!(new)).unwrap();
        prop_assert_eq!(json!(read), json!(new));
        prop_assert!(new.history.len() <= status.history.len().max(10));
        let again = Observed {
            wanted: &wanted,
            status: &new,
            world: World::Unread,
            description: "",
            version: "v1",
            declared_impact: Severity::Low,
            machines_updated: None,
            settling: advisor_core::plan::decision::execution::SETTLING,
            made_anew: false,
        };
        let _ = (decide(&again, now), TargetRef::default());
        Ok(())
    });
}
