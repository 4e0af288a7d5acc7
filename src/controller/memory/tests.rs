//! When a configuration is reconciled: tables of what has happened and what is done.

use std::time::Duration;

use advisor_core::api::{Action, Phase, VirtPlatformConfigStatus};
use serde_json::json;

use super::timing::AFTER_ERROR;
use super::*;

fn settled(generation: i64, phase: Option<Phase>) -> Settled {
    let status = VirtPlatformConfigStatus { phase, ..VirtPlatformConfigStatus::default() };
    Settled { generation: Some(generation), uid: None, action: Action::Apply, replan: None, deleting: false, status }
}

fn settled_memory() -> Memory {
    let report = LastReport { settled: Some(settled(1, None)), ..LastReport::default() };
    Memory { report, ..Memory::default() }
}

/// The memory of a configuration for which events have caused reconciles in quick succession.
fn hurried() -> (Memory, Instant) {
    let mut memory = settled_memory();
    let now = Instant::now();
    while memory.call(&settled(1, None), News::Objects, now) == Call::Now {
        memory.timing.reconcile_ended(now);
    }
    (memory, now)
}

#[test]
fn t19_events_wait_for_their_time_and_nothing_else_does() {
    let (mut memory, now) = hurried();
    let waits = |call| matches!(call, Call::After(_));
    assert!(waits(memory.call(&settled(1, None), News::Objects, now)), "an event");
    assert!(
        waits(memory.call(&settled(1, Some(Phase::Drifted)), News::Nothing, now)),
        "a status that others have changed"
    );
    assert_eq!(memory.call(&settled(1, None), News::Nothing, now), Call::Rest);
    assert_eq!(memory.call(&settled(2, None), News::Nothing, now), Call::Now, "an edit");
    let edits: [fn(&mut Settled); 3] = [
        |config| config.deleting = true,
        |config| config.replan = Some("now".to_owned()),
        |config| {
            config.status.phase = Some(Phase::InProgress);
            let approval =
                json!({"planHash": "", "how": "Hash", "by": "", "at": "2024-01-01T00:00:00Z", "generation": 1});
            config.status.approval = serde_json::from_value(approval).unwrap();
        },
    ];
    for edit in edits {
        let mut edited = settled(1, None);
        edit(&mut edited);
        assert_eq!(memory.call(&edited, News::Objects, now), Call::Now, "{edited:?}");
    }
    assert_eq!(memory.call(&settled(1, None), News::Kinds, now), Call::Now, "a kind");
    memory.timing.set(Duration::ZERO);
    assert_eq!(memory.call(&settled(1, None), News::Nothing, now), Call::Now, "what is due");
}

#[test]
fn t19_the_steps_of_an_execution_delay_nothing_after_it() {
    let mut executing = settled(1, Some(Phase::InProgress));
    let approval = json!({"planHash": "", "how": "Hash", "by": "", "at": "2024-01-01T00:00:00Z", "generation": 1});
    executing.status.approval = serde_json::from_value(approval).unwrap();
    let mut memory = settled_memory();
    let now = Instant::now();
    for step in 0..1000 {
        let step = now + Duration::from_millis(20 * step);
        assert_eq!(memory.call(&executing, News::Objects, step), Call::Now);
        memory.timing.reconcile_ended(step);
    }
    let drift = now + Duration::from_secs(21);
    assert_eq!(memory.call(&settled(1, None), News::Objects, drift), Call::Now);
}

#[test]
fn t19_an_event_cuts_the_pause_after_a_race_short_once() {
    let mut memory = settled_memory();
    let now = Instant::now();
    memory.has_failed(settled(1, None), "a", true);
    assert_eq!(
        memory.call(&settled(1, None), News::Nothing, now),
        Call::Rest,
        "without an event nothing cuts it short"
    );
    assert_eq!(memory.call(&settled(1, None), News::Objects, now), Call::Now);
    let pause = memory.has_failed(settled(1, None), "a", true);
    let Call::After(rest) = memory.call(&settled(1, None), News::Objects, now) else { panic!("cut short again") };
    assert!(rest >= pause && rest < pause + Duration::from_secs(1), "{rest:?} of {pause:?}");
    assert_eq!(memory.call(&settled(2, None), News::Objects, now), Call::Now, "an edit");
}

#[test]
fn pauses_grow_and_have_an_end() {
    let mut memory = Memory::default();
    let pauses: Vec<_> = (0..20).map(|_| memory.timing.pause_after_error("a")).collect();
    assert!(pauses[0] >= AFTER_ERROR.first && pauses[0] < AFTER_ERROR.first * 2, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= AFTER_ERROR.longest * 5 / 4), "{pauses:?}");
    memory.has_succeeded();
    assert!(memory.timing.pause_after_error("a") < AFTER_ERROR.first * 2);
}
