//! The phase of a Machine, and the sentence that goes with it.

use machines_api::RunStrategy;
use serde_json::Value;

use super::{Outcome, in_sentences, waiting_for_restart};
use crate::effects::condition;
use crate::ownership::text;
use crate::problem::Reason;

/// The phase of a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Something is missing that comes by itself or that a person brings.
    Pending,
    /// The virtual machine is being made or started.
    Creating,
    /// The guest runs.
    Running,
    /// The machine is stopped, or is stopping.
    Stopped,
    /// A person has to look.
    Failed,
}

impl Phase {
    /// All of them, for metrics.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Creating, Self::Running, Self::Stopped, Self::Failed];

    /// As the status spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Creating => "Creating",
            Self::Running => "Running",
            Self::Stopped => "Stopped",
            Self::Failed => "Failed",
        }
    }
}

/// States of a VirtualMachine in which it does not start by itself (KubeVirt v1.9.0,
/// staging/src/kubevirt.io/api/core/v1/types.go, `VirtualMachinePrintableStatus`), with what to do.
const FAILURES: [(&str, Reason, &str); 7] = [
    ("CrashLoopBackOff", Reason::KubeVirtApiError, "the instance fails again and again: see kubectl describe vmi"),
    (
        "ErrorUnschedulable",
        Reason::InsufficientResources,
        "no node has room for it: make room, or make the machine smaller",
    ),
    ("ErrorPvcNotFound", Reason::DiskConflict, "a claim is missing: restore it"),
    ("DataVolumeError", Reason::KubeVirtApiError, "the image could not be fetched: see kubectl describe datavolume"),
    (
        "ErrImagePull",
        Reason::KubeVirtApiError,
        "KubeVirt's own image can't be fetched: check the cluster's registry access",
    ),
    (
        "ImagePullBackOff",
        Reason::KubeVirtApiError,
        "KubeVirt's own image can't be fetched: check the cluster's registry access",
    ),
    ("ErrorDataVolumeNotFound", Reason::DiskConflict, "the DataVolume of the image is missing: restore it"),
];

/// The failure that the VirtualMachine reports.
fn failure(vm: &Value) -> Option<(Reason, String)> {
    let state = text(vm, "/status/printableStatus");
    let (_, reason, remedy) = FAILURES.iter().find(|(failed, ..)| *failed == state)?;
    let said = ["Ready", "Failure", "PodScheduled"]
        .iter()
        .filter_map(|kind| condition(vm, kind))
        .map(|condition| text(condition, "/message"))
        .find(|message| !message.is_empty());
    let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
    Some((*reason, format!("KubeVirt says {state}{said}: {remedy}")))
}

pub(super) fn of(outcome: &Outcome<'_>) -> Phase {
    // What runs keeps its phase, whatever stands in the way of an edit.
    match outcome.vm {
        Some(vm) => of_vm(vm, outcome.vmi),
        None if outcome.deleting.is_some() => Phase::Stopped,
        None if is_stalled(outcome) => Phase::Failed,
        None if outcome.problems.is_empty() => Phase::Creating,
        None => Phase::Pending,
    }
}

/// Whether the Machine itself says that it does not run.
pub(super) fn is_halted_as_wanted(outcome: &Outcome<'_>) -> bool {
    outcome.wanted.is_some_and(|wanted| wanted.run_strategy == Some(RunStrategy::Halted))
}

/// Whether only a person can go on.
pub(super) fn is_stalled(outcome: &Outcome<'_>) -> bool {
    outcome.problems.iter().any(|problem| problem.reason.is_final())
}

fn of_vm(vm: &Value, vmi: Option<&Value>) -> Phase {
    if failure(vm).is_some() {
        return Phase::Failed;
    }
    let is_halted =
        text(vm, "/spec/runStrategy") == "Halted" || vm.pointer("/spec/running") == Some(&Value::Bool(false));
    match vmi.map(|vmi| text(vmi, "/status/phase")) {
        Some("Running") => Phase::Running,
        Some("Failed") => Phase::Failed,
        Some("Succeeded") => Phase::Stopped,
        Some(_) if is_halted => Phase::Stopped,
        None if is_halted || matches!(text(vm, "/status/printableStatus"), "Stopped" | "Stopping" | "Terminating") => {
            Phase::Stopped
        }
        Some(_) | None => Phase::Creating,
    }
}

/// The constant that says why.
pub(super) fn reason(outcome: &Outcome<'_>, phase: Phase) -> String {
    if let Some(problem) = outcome.problems.first() {
        return problem.reason.name().to_owned();
    }
    if outcome.deleting.is_some() {
        return "Deleting".to_owned();
    }
    if let Some((reason, _)) = outcome.vm.and_then(failure) {
        return reason.name().to_owned();
    }
    phase.name().to_owned()
}

/// The sentence for people.
pub(super) fn message(outcome: &Outcome<'_>, phase: Phase) -> String {
    if let Some(deleting) = &outcome.deleting {
        return deleting.clone();
    }
    if !outcome.problems.is_empty() {
        return in_sentences(&outcome.problems);
    }
    if let Some((_, message)) = outcome.vm.and_then(failure) {
        return message;
    }
    if let Some(held) = outcome.plan.and_then(|plan| plan.held.as_ref()) {
        return match outcome.vm {
            Some(_) => format!("nothing is written: {held}; status.pending tells what would be"),
            None => format!("nothing is made: {held}; kubevirt-operator diff tells what would be"),
        };
    }
    let state = outcome.vm.map(|vm| text(vm, "/status/printableStatus")).unwrap_or_default();
    match phase {
        Phase::Running => {
            let waiting = waiting_for_restart(outcome).len();
            match waiting {
                0 => "the machine runs".to_owned(),
                1 => "the machine runs; one change waits for a restart, see status.pending".to_owned(),
                more => format!("the machine runs; {more} changes wait for a restart, see status.pending"),
            }
        }
        Phase::Stopped if is_halted_as_wanted(outcome) => "the machine is stopped, as spec.runStrategy says".to_owned(),
        Phase::Stopped => {
            "the machine is stopped: start it with virtctl start, or set spec.runStrategy to Always".to_owned()
        }
        Phase::Failed => "the instance has failed: see kubectl describe vmi".to_owned(),
        Phase::Pending | Phase::Creating if state.is_empty() => "the virtual machine is being made".to_owned(),
        Phase::Pending | Phase::Creating => format!("the virtual machine is starting; KubeVirt says {state}"),
    }
}
