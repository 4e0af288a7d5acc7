//! The one place that reads the clock.

/// Now, as Kubernetes writes times.
#[expect(clippy::disallowed_methods, reason = "the simulator plays programs that read the clock themselves")]
pub(crate) fn now() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}
