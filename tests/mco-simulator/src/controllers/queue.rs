//! The observed delays, scaled, and the queue in which pools, machines and KubeletConfigs wait.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed): `enqueueDefault`,
//! `enqueueAfter` and `handleErr` in pkg/controller/render/render_controller.go and
//! pkg/controller/node/node_controller.go (their delaying queue keeps the earlier of two times),
//! `DefaultConfig` in pkg/controller/drain/drain_controller.go.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// First pause after an error.
const FIRST_RETRY: Duration = Duration::from_millis(5);
/// After this many errors in a row, the key waits [`LONG_RETRY`] and the count starts again.
const MAX_RETRIES: u32 = 15;
const LONG_RETRY: Duration = Duration::from_secs(60);
/// A daemon must see its own last write before its next step.
const SHORTEST_STEP: Duration = Duration::from_millis(15);

/// The speed of the simulated time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    speed: f64,
}

impl Pace {
    /// A speed that is not a positive number counts as 1.
    pub(crate) fn new(speed: f64) -> Pace {
        Pace { speed: if speed.is_finite() && speed > 0.0 { speed } else { 1.0 } }
    }

    fn scaled(self, observed: Duration) -> Duration {
        observed.div_f64(self.speed)
    }

    /// From the first event to rendering.
    pub(crate) fn render(self) -> Duration {
        self.scaled(Duration::from_secs(5))
    }

    /// From the first event to the annotations of machines and the status.
    pub(crate) fn node(self) -> Duration {
        self.scaled(Duration::from_secs(5))
    }

    /// From a drain request to the cordoned (or uncordoned) machine.
    pub(crate) fn drain(self) -> Duration {
        self.scaled(Duration::from_secs(5))
    }

    /// From a KubeletConfig to its MachineConfig.
    pub(crate) fn kubelet(self) -> Duration {
        self.scaled(Duration::from_millis(100))
    }

    /// One step of a daemon. An update has four of them: with two drain requests it takes about 10
    /// s.
    pub(crate) fn daemon(self) -> Duration {
        self.scaled(Duration::from_millis(100)).max(SHORTEST_STEP)
    }

    /// The pause after an error that follows `failures` others in a row: from 5 ms, doubled up to
    /// 82 s. The shortest are not scaled: they depend on the speed of the computer, not on the
    /// simulated time.
    fn retry(self, failures: u32) -> Duration {
        self.scaled(FIRST_RETRY * 2_u32.saturating_pow(failures.min(MAX_RETRIES))).max(FIRST_RETRY)
    }
}

/// Keys and when they are due. The first call for a key sets its time; later calls can only make it
/// earlier.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BTreeMap<String, Instant>,
    failures: BTreeMap<String, u32>,
}

impl Queue {
    /// Makes the key due at this time, or leaves it if it is due earlier.
    pub(crate) fn add(&mut self, key: &str, at: Instant) {
        let due = self.due.entry(key.to_owned()).or_insert(at);
        *due = at.min(*due);
    }

    /// When the next key is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// Takes out every key that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<String> {
        let mut due: Vec<(Instant, String)> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(key, at)| (*at, key.clone())).collect();
        due.sort();
        for (_, key) in &due {
            self.due.remove(key);
        }
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// After a success: the next error starts with the shortest pause again.
    pub(crate) fn forget(&mut self, key: &str) {
        self.failures.remove(key);
    }

    /// After an error: the key is due again, later with each error in a row.
    pub(crate) fn retry(&mut self, key: &str, now: Instant, pace: Pace) {
        let failures = self.failures.entry(key.to_owned()).or_default();
        let pause = if *failures < MAX_RETRIES { pace.retry(*failures) } else { pace.scaled(LONG_RETRY) };
        *failures = if *failures < MAX_RETRIES { *failures + 1 } else { 0 };
        self.add(key, now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_starts_the_timer_and_later_ones_change_nothing() {
        let (mut queue, start, delay) = (Queue::default(), Instant::now(), Pace::new(1.0).render());
        queue.add("worker", start + delay);
        queue.add("worker", start + Duration::from_secs(3) + delay);
        assert_eq!(queue.next(), Some(start + delay));
        assert!(queue.take_due(start + Duration::from_secs(4)).is_empty());
        assert_eq!(queue.take_due(start + delay), ["worker"]);
        assert_eq!(queue.next(), None, "the later event asked for nothing more");
    }

    #[test]
    fn an_earlier_time_wins() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        queue.add("worker", start + Duration::from_secs(5));
        queue.add("worker", start + Duration::from_secs(1));
        assert_eq!(queue.next(), Some(start + Duration::from_secs(1)));
    }

    #[test]
    fn pauses_double_until_a_success_and_end_in_a_minute() {
        let (pace, start) = (Pace::new(1.0), Instant::now());
        let mut queue = Queue::default();
        let mut pauses = Vec::new();
        for _ in 0..=MAX_RETRIES {
            queue.retry("worker", start, pace);
            pauses.push(queue.next().expect("just added") - start);
            queue.take_due(start + LONG_RETRY * 2);
        }
        assert_eq!(pauses[0], FIRST_RETRY);
        assert_eq!(pauses[10], FIRST_RETRY * 1024);
        assert_eq!(pauses[14], Duration::from_millis(81_920));
        assert_eq!(pauses[15], LONG_RETRY);
        queue.retry("worker", start, pace);
        queue.forget("worker");
        queue.take_due(start + LONG_RETRY);
        queue.retry("worker", start, pace);
        assert_eq!(queue.next(), Some(start + FIRST_RETRY));
    }

    #[test]
    fn speed_scales_all_delays_alike() {
        let fast = Pace::new(10.0);
        assert_eq!(fast.render(), Duration::from_millis(500));
        assert_eq!(fast.drain(), fast.node());
        assert_eq!(fast.retry(14), Duration::from_millis(8192));
        assert_eq!(fast.retry(0), FIRST_RETRY, "the shortest pauses stay");
        assert_eq!(Pace::new(0.0).render(), Duration::from_secs(5), "nonsense counts as 1");
    }
}
