//! The only place that reads clocks. Everything else takes `now` as an argument.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// The present time, as people and other machines count it. It jumps when somebody sets the clock.
#[must_use]
pub fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the one call; see this file's first line")]
    Timestamp::now()
}

/// The time since the machine started. It never jumps, and it continues while the process or the
/// machine is suspended, unlike tokio's timers.
#[must_use]
pub fn uptime() -> Duration {
    // Linux has had this clock since 2.6.39. Without it no time would pass, and a leader could not
    // know that it is late: ending is the only safe answer.
    clock_gettime(ClockId::CLOCK_BOOTTIME).expect("Linux has CLOCK_BOOTTIME").into()
}
