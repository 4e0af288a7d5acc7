//! Pauses between tries. Pure: the caller counts and waits.

use std::time::Duration;

/// A pause that doubles with each failure in a row, up to a longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after `failures` in a row, the first one being 1.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
        doubled.min(self.longest)
    }
}

/// `pause` or up to a quarter longer, so that many who wait do not meet: always the same for the
/// same name and round.
#[must_use]
pub fn spread(pause: Duration, name: &str, round: u32) -> Duration {
    let percent = name.bytes().fold(round, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 100;
    pause + pause * percent / 400
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(60) };
        let millis = |failures| backoff.after(failures).as_millis();
        assert_eq!([0, 1, 2, 3, 7, 8].map(millis), [500, 500, 1000, 2000, 32_000, 60_000]);
        assert_eq!(backoff.after(u32::MAX), backoff.longest);
    }

    #[test]
    fn a_spread_pause_is_at_most_a_quarter_longer_and_differs_by_name() {
        let pause = Duration::from_secs(4);
        let all: Vec<_> = ["a", "b", "c"].map(|name| spread(pause, name, 1)).into();
        assert!(all.iter().all(|spread| *spread >= pause && *spread < pause * 5 / 4), "{all:?}");
        assert!(all[0] != all[1] && all[1] != all[2], "{all:?}");
        assert_eq!(spread(pause, "a", 1), all[0]);
    }
}
