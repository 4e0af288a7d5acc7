//! The only place that reads the wall clock, for `lastTransitionTime`.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/apihelpers/apihelpers.go: `NewMachineConfigPoolCondition` (whole seconds).

/// Now, in whole seconds, as the API writes times.
pub(crate) fn timestamp() -> String {
    #[expect(clippy::disallowed_methods, reason = "lastTransitionTime is wall-clock time; nothing is decided by it")]
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
