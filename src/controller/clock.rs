//! The only place that reads the wall clock. Everything else takes `now` as an argument.

use jiff::Timestamp;

/// The present moment.
#[must_use]
pub(super) fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the one call; see this file's first line")]
    Timestamp::now()
}
