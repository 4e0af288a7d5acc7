//! A whole story, with one fault at each of its requests in turn: the end is always the same.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::api::Phase;
use controlplane::faults::{Fault, Script, scripted};
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::Stage;
use crate::stage::profile::{NAME, item};

/// How long an event may take to be recorded.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the story tells: a plan, its approval, each item, the end.
const EVENTS: usize = 6;
/// The objects of the story, with the wave of each.
const WIDGETS: [(&str, u32); 3] = [("one", 0), ("two", 0), ("three", 1)];

/// Every fault that is swept.
const FAULTS: [Fault; 12] = [
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::Cut,
    Fault::LoseAnswer,
    Fault::Truncate,
    Fault::Delay,
    Fault::Answer(409, "Conflict"),
    Fault::Answer(410, "Expired"),
    Fault::Answer(429, "TooManyRequests"),
    Fault::Answer(500, "InternalError"),
    Fault::Answer(503, "ServiceUnavailable"),
    Fault::Answer(504, "Timeout"),
];

/// What a story came to.
#[derive(Debug, PartialEq)]
struct End {
    phase: Option<Phase>,
    outcomes: Vec<String>,
    sizes: Vec<Value>,
    /// How often each object was changed: its generation.
    changes: Vec<i64>,
    /// What the audit trail tells, each once.
    events: Vec<String>,
}

impl Stage {
    /// DryRun, a plan, Apply, Completed: told with `script`, which may end the process once.
    async fn tell(&self, what: &str, script: &Arc<Script>) -> End {
        self.clear().await;
        self.configure(NAME, "DryRun", &WIDGETS.map(|(name, wave)| item(name, wave, json!({"size": 1})))).await;
        let mut running = Some(Self::run(scripted(self.client(), script.clone())));
        let story = async {
            let plan = self.wait_for(NAME, what, Phase::ReviewRequired).await;
            self.patch(NAME, json!({"action": "Apply"})).await;
            let done = self.wait_for(NAME, what, Phase::Completed).await;
            assert_eq!(done.history.first().map(|entry| &entry.plan_hash), plan.plan_hash.as_ref(), "{what}");
            // The process may be ended after its last status: an event is recorded late, or by the
            // next look only.
            let until = Instant::now() + PATIENCE;
            while self.events(NAME).await.len() < EVENTS && Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done
        };
        let mut story = std::pin::pin!(story);
        let done = tokio::select! {
            done = &mut story => done,
            () = script.killed() => {
                running.take();
                running = Some(Self::run(self.client()));
                story.await
            }
        };
        // Nothing follows: what would be done twice would be done now.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(running);
        let list = self.widgets().list(&ListParams::default()).await.unwrap().items;
        let events = self.events(NAME).await;
        assert!(events.values().all(|count| *count <= 1), "{what}: {events:?}");
        let events = events.into_keys().collect();
        End {
            phase: done.phase,
            outcomes: done.history.iter().map(|entry| entry.outcome.clone()).collect(),
            sizes: list.iter().map(|widget| widget.data["spec"]["size"].clone()).collect(),
            changes: list.iter().map(|widget| widget.metadata.generation.unwrap()).collect(),
            events,
        }
    }
}

/// Printed also where the test passes, whose output is not shown otherwise.
fn tell(text: &str) {
    use std::io::Write as _;
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// The sweep, `part` of `parts`: of every fault at every request each one that falls into it.
async fn sweep(part: usize, parts: usize) -> String {
    let stage = Stage::set().await;
    let calm = Script::new(Fault::Delay, usize::MAX);
    let end = stage.tell("calm", &calm).await;
    assert_eq!((end.outcomes.len(), end.sizes.len()), (1, WIDGETS.len()), "{end:?}");
    assert!(end.changes.iter().all(|changes| *changes == 1), "{end:?}");
    let told = stage.events(NAME).await;
    assert_eq!(told.len(), EVENTS, "{told:?}");
    let requests = calm.count();
    let began = std::time::Instant::now();
    let mut runs = 0;
    // Every how many of all is told: all, or so many that it takes a minute.
    let stride = if std::env::var("ADVISOR_TEST_FAULTS").is_ok_and(|which| which == "all") { 1 } else { 13 };
    let all = (0..requests).flat_map(|at| FAULTS.map(|fault| (at, fault))).enumerate();
    let chosen = all.filter(|(number, _)| number % stride == 0 && (number / stride) % parts == part);
    for (_, (at, fault)) in chosen {
        let what = format!("{fault:?} at request {at}");
        let found = stage.tell(&what, &Script::new(fault, at)).await;
        assert_eq!(found, end, "{what}");
        runs += 1;
    }
    format!(
        "faults: {runs} stories of {requests} requests each, part {} of {parts}, every {stride}th of all: the same end, {:.0?}",
        part + 1,
        began.elapsed()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_one_request_the_end_is_the_same_first_half() {
    tell(&sweep(0, 2).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_one_request_the_end_is_the_same_second_half() {
    tell(&sweep(1, 2).await);
}

/// Two operators at once, without an election: both may act, and nothing is written that was not
/// approved, or twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_at_once_write_nothing_twice() {
    let stage = Stage::set().await;
    for round in 0..5 {
        // One that had seen the configuration of the round before would take this one for its
        // successor.
        stage.clear().await;
        let rival = Stage::run(stage.client());
        let end = stage.tell(&format!("two operators, round {round}"), &Script::new(Fault::Delay, usize::MAX)).await;
        drop(rival);
        assert_eq!(end.outcomes, ["Completed"]);
        assert_eq!(end.changes, [1; 3], "{end:?}");
    }
}
