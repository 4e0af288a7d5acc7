//! The update of one machine: the next step of its daemon, and what the drain controller does for
//! it. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac, pkg/daemon/drain.go:
//! `performDrain`; daemon.go: `completeUpdate`; writer.go: `SetDone`, `SetDegraded`;
//! pkg/controller/drain/drain_controller.go: `syncNode`. The order of annotations was observed, the
//! daemon itself was simulated there too; rebooting and joining are from the source.

use k8s_openapi::api::core::v1::Node;

use crate::api::{
    APPLIED_DRAIN, CURRENT_CONFIG, DESIRED_CONFIG, DESIRED_DRAIN, POST_CONFIG_ACTION, STATE, STATE_DEGRADED,
    STATE_DONE, STATE_UNRECONCILABLE, STATE_WORKING,
};
use crate::rules::node::annotation;
use crate::rules::policy::Disruption;

/// Asks the drain controller to cordon and drain: this prefix and the name of the configuration.
pub(crate) const DRAIN: &str = "drain-";
/// Asks the drain controller to uncordon: this prefix and the name of the configuration.
pub(crate) const UNCORDON: &str = "uncordon-";
/// Value of the annotation while a machine reboots.
pub(crate) const REBOOTING: &str = "Rebooting";

/// The next step of a machine's daemon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A new machine has the pool's configuration from its first boot.
    Join(String),
    /// State `Working` and a request to drain.
    Start(String),
    /// State `Working` without a drain or a reboot, then a request to uncordon.
    StartInPlace(String),
    /// State `Degraded` with this reason; the machine stays cordoned.
    Fail(String),
    /// The cause of a failure is gone.
    Resume,
    /// The files are written: the machine reboots and is not ready.
    Reboot,
    /// The machine is back, and asks to be uncordoned.
    ComeBack(String),
    /// The machine needs no reboot, and asks to be uncordoned.
    StayUp(String),
    /// The machine has this configuration.
    Finish(String),
}

/// What the daemon knows besides its machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Configuration of the machine's pool.
    pub pool_target: String,
    /// Whether the current and the desired configuration have the same content, so that there is
    /// nothing to do.
    pub same_content: bool,
    /// What the update disrupts; `None` while that is unknown: the daemon waits.
    pub disruption: Option<Disruption>,
    /// Why an update of this machine fails, for as long as it does.
    pub fault: Option<String>,
}

/// The daemon's next step; `None` while it waits or is done.
pub(crate) fn next_step(node: &Node, around: &Surroundings) -> Option<Step> {
    let (current, desired) = (annotation(node, CURRENT_CONFIG), annotation(node, DESIRED_CONFIG));
    if current.is_empty() {
        return (!around.pool_target.is_empty()).then(|| Step::Join(around.pool_target.clone()));
    }
    match annotation(node, STATE) {
        STATE_DEGRADED | STATE_UNRECONCILABLE => around.fault.is_none().then_some(Step::Resume),
        STATE_WORKING => work_on(node, around),
        STATE_DONE if current == desired || desired.is_empty() => None,
        _ if current == desired || around.same_content => Some(Step::Finish(desired.to_owned())),
        _ => around.disruption.map(|disruption| match disruption.drains {
            true => Step::Start(desired.to_owned()),
            false => Step::StartInPlace(desired.to_owned()),
        }),
    }
}

/// A started update is finished before a newer target is considered.
fn work_on(node: &Node, around: &Surroundings) -> Option<Step> {
    let request = annotation(node, DESIRED_DRAIN);
    if request != annotation(node, APPLIED_DRAIN) {
        return None;
    }
    if let Some(target) = request.strip_prefix(UNCORDON) {
        return Some(Step::Finish(target.to_owned()));
    }
    let target = request.strip_prefix(DRAIN)?.to_owned();
    Some(match &around.fault {
        Some(reason) => Step::Fail(reason.clone()),
        None if annotation(node, POST_CONFIG_ACTION) == REBOOTING => Step::ComeBack(target),
        None if around.disruption.is_some_and(|disruption| !disruption.reboots) => Step::StayUp(target),
        None => Step::Reboot,
    })
}

/// What the drain controller does for a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Drain {
    /// Cordons it and moves its pods away.
    Cordon,
    /// Lets it take pods again.
    Uncordon,
}

/// The daemon's request that has not been fulfilled yet, and its text.
pub(crate) fn open_request(node: &Node) -> Option<(Drain, &str)> {
    let request = annotation(node, DESIRED_DRAIN);
    if request == annotation(node, APPLIED_DRAIN) {
        return None;
    }
    let drain = if request.starts_with(DRAIN) {
        Drain::Cordon
    } else if request.starts_with(UNCORDON) {
        Drain::Uncordon
    } else {
        return None;
    };
    Some((drain, request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(annotations: Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations}})).expect("parses")
    }

    fn rebooting() -> Surroundings {
        Surroundings { disruption: Some(crate::rules::policy::REBOOT), ..Surroundings::default() }
    }

    #[test]
    fn an_update_goes_step_by_step() {
        let working = |request: &str, applied: &str, action: &str| {
            json!({CURRENT_CONFIG: "old", DESIRED_CONFIG: "new", STATE: STATE_WORKING, DESIRED_DRAIN: request,
                APPLIED_DRAIN: applied, POST_CONFIG_ACTION: action})
        };
        let settled = |current: &str, desired: &str| {
            json!({CURRENT_CONFIG: current, DESIRED_CONFIG: desired, STATE: STATE_DONE, DESIRED_DRAIN: "uncordon-old",
                APPLIED_DRAIN: "uncordon-old"})
        };
        let new = || "new".to_owned();
        for (name, annotations, step, drain) in [
            ("has what it was told", settled("old", "old"), None, None),
            ("told", settled("old", "new"), Some(Step::Start(new())), None),
            ("waits for the drain", working("drain-new", "uncordon-old", ""), None, Some(Drain::Cordon)),
            ("drained", working("drain-new", "drain-new", ""), Some(Step::Reboot), None),
            ("reboots", working("drain-new", "drain-new", REBOOTING), Some(Step::ComeBack(new())), None),
            ("waits to be uncordoned", working("uncordon-new", "drain-new", ""), None, Some(Drain::Uncordon)),
            ("uncordoned", working("uncordon-new", "uncordon-new", ""), Some(Step::Finish(new())), None),
        ] {
            let node = node(annotations);
            assert_eq!(next_step(&node, &rebooting()), step, "{name}");
            assert_eq!(open_request(&node).map(|(drain, _)| drain), drain, "{name}");
        }
    }

    #[test]
    fn policies_leave_out_the_reboot_or_the_drain_too() {
        let told = node(
            json!({CURRENT_CONFIG: "old", DESIRED_CONFIG: "new", STATE: STATE_DONE, DESIRED_DRAIN: "uncordon-old",
            APPLIED_DRAIN: "uncordon-old"}),
        );
        let drained = node(json!({CURRENT_CONFIG: "old", DESIRED_CONFIG: "new", STATE: STATE_WORKING,
            DESIRED_DRAIN: "drain-new", APPLIED_DRAIN: "drain-new"}));
        let around = |drains| Surroundings {
            disruption: Some(Disruption { drains, reboots: false }),
            ..Surroundings::default()
        };
        let new = || "new".to_owned();
        assert_eq!(next_step(&told, &around(true)), Some(Step::Start(new())));
        assert_eq!(next_step(&drained, &around(true)), Some(Step::StayUp(new())));
        assert_eq!(next_step(&told, &around(false)), Some(Step::StartInPlace(new())));
        assert_eq!(next_step(&told, &Surroundings::default()), None, "policies that are behind are waited for");
    }

    #[test]
    fn a_started_update_is_finished_before_a_newer_one() {
        let node = node(json!({CURRENT_CONFIG: "old", DESIRED_CONFIG: "newer", STATE: STATE_WORKING,
            DESIRED_DRAIN: "uncordon-new", APPLIED_DRAIN: "uncordon-new"}));
        assert_eq!(next_step(&node, &Surroundings::default()), Some(Step::Finish("new".to_owned())));
    }

    #[test]
    fn a_fault_shows_after_the_drain_and_lasts_until_repaired() {
        let mut around = Surroundings { fault: Some("no space".to_owned()), ..rebooting() };
        let drained = json!({CURRENT_CONFIG: "old", DESIRED_CONFIG: "new", STATE: STATE_WORKING,
            DESIRED_DRAIN: "drain-new", APPLIED_DRAIN: "drain-new"});
        assert_eq!(next_step(&node(drained.clone()), &around), Some(Step::Fail("no space".to_owned())));
        let mut failed = drained;
        failed[STATE] = json!(STATE_DEGRADED);
        assert_eq!(next_step(&node(failed.clone()), &around), None);
        around.fault = None;
        assert_eq!(next_step(&node(failed), &around), Some(Step::Resume));
    }

    #[test]
    fn a_new_machine_joins_and_equal_content_needs_no_reboot() {
        let around = Surroundings { pool_target: "target".to_owned(), same_content: true, ..rebooting() };
        assert_eq!(next_step(&node(json!({})), &around), Some(Step::Join("target".to_owned())));
        assert_eq!(next_step(&node(json!({})), &Surroundings::default()), None, "its pool is not rendered yet");
        let told = json!({CURRENT_CONFIG: "rendered-worker-1", DESIRED_CONFIG: "rendered-infra-1", STATE: STATE_DONE});
        assert_eq!(next_step(&node(told), &around), Some(Step::Finish("rendered-infra-1".to_owned())));
    }
}
