//! The pulse of the working thread, by which others see whether something blocks it, and for how
//! long something did.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time between two beats: short enough to measure a blockage of a second, at some 0.02 % of a
/// core.
const BEAT: Duration = Duration::from_millis(500);

/// Records when the working thread last showed that it runs. Clones share the record.
#[derive(Debug, Clone)]
pub struct Pulse(Arc<Beats>);

/// Times are milliseconds since `began`, by a clock that stands still while the machine is
/// suspended: no thread is to blame for that time.
#[derive(Debug)]
struct Beats {
    began: Instant,
    beaten: AtomicU64,
    longest: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Beats { began: Instant::now(), beaten: AtomicU64::new(0), longest: AtomicU64::new(0) }))
    }
}

impl Pulse {
    /// Beats while it is polled, on the thread that is monitored.
    pub async fn beat(self) {
        loop {
            tokio::time::sleep(BEAT).await;
            self.0.longest.store(milliseconds(self.longest_stall()), Ordering::Relaxed);
            self.0.beaten.store(milliseconds(self.0.began.elapsed()), Ordering::Relaxed);
        }
    }

    /// The time since the last beat.
    #[must_use]
    pub fn silence(&self) -> Duration {
        let beaten = Duration::from_millis(self.0.beaten.load(Ordering::Relaxed));
        self.0.began.elapsed().saturating_sub(beaten)
    }

    /// The longest delay of a beat since the start, including the present one. Something blocked
    /// the thread for that long, or for up to half a second longer.
    #[must_use]
    pub fn longest_stall(&self) -> Duration {
        let longest = Duration::from_millis(self.0.longest.load(Ordering::Relaxed));
        longest.max(self.silence().saturating_sub(BEAT))
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_stall_is_remembered_and_one_that_lasts_counts() {
        let (pulse, held) = (Pulse::default(), Duration::from_millis(600));
        tokio::spawn(pulse.clone().beat());
        tokio::task::yield_now().await;
        // Time passes, and nothing else runs.
        std::thread::sleep(held);
        assert!(pulse.silence() >= held, "{pulse:?}");
        assert!(pulse.longest_stall() >= held - BEAT, "{pulse:?}");
        let before = pulse.0.beaten.load(Ordering::Relaxed);
        while pulse.0.beaten.load(Ordering::Relaxed) == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(pulse.0.longest.load(Ordering::Relaxed) >= milliseconds(held - BEAT), "{pulse:?}");
    }
}
