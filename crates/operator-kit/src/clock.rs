//! The only place that reads clocks. Everything else takes `now` as an argument.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// The present moment, as people and other machines count it. It jumps where somebody sets the clock.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the one call; see this file's first line")]
    Timestamp::now()
}

/// The time since the machine started. It never jumps, and goes on while the process or the machine is suspended, when
/// tokio's timers stand still.
#[must_use]
pub fn uptime() -> Duration {
    // Linux has this clock since 2.6.39. Were it missing, no time would pass, and a leader could not know that it is late:
    // ending is the only safe answer.
    clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has CLOCK_BOOTTIME").into()
}
