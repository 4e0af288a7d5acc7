//! Conditions: four that are always there, and one for each thing that is out of the ordinary.
//!
//! kstatus reads `Ready`, `Stalled` and `observedGeneration` (sigs.k8s.io/cli-utils/pkg/kstatus,
//! status/generic.go): a Machine that a person has to look at is Stalled.

use machines_api::Machine;
use machines_api::status::Condition;
use serde_json::Value;

use super::phase::{self, Phase};
use super::{Outcome, in_sentences, waiting_for_restart};
use crate::effects::condition;
use crate::ownership::text;
use crate::problem::{Problem, Reason};

fn new(kind: &str, is_true: Option<bool>, reason: &str, message: String) -> Condition {
    let status = match is_true {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        ..Condition::default()
    }
}

pub(super) fn of(machine: &Machine, outcome: &Outcome<'_>, phase: Phase) -> Vec<Condition> {
    let mut conditions = vec![ready(outcome, phase), virtual_machine(outcome), storage(outcome), network(outcome)];
    let mut exception =
        |kind: &str, reason: &str, message: String| conditions.push(new(kind, Some(true), reason, message));
    if phase == Phase::Failed || phase::is_stalled(outcome) {
        exception("Stalled", &phase::reason(outcome, phase), phase::message(outcome, phase));
    }
    let taken: Vec<_> =
        outcome.problems.iter().filter(|problem| problem.reason == Reason::NameTaken).cloned().collect();
    if !taken.is_empty() {
        exception("NameTaken", Reason::NameTaken.name(), in_sentences(&taken));
    }
    let waiting = waiting_for_restart(outcome);
    let kubevirt =
        outcome.vm.and_then(|vm| condition(vm, "RestartRequired")).is_some_and(|found| found["status"] == "True");
    let is_held = outcome.plan.is_some_and(|plan| plan.held.is_some());
    if outcome.vmi.is_some() && !is_held && (kubevirt || !waiting.is_empty()) {
        let of_what = if waiting.is_empty() { String::new() } else { format!(": {}", waiting.join(", ")) };
        let message = format!(
            "changes wait for a restart{of_what}. Restart the machine with virtctl restart, or set spec.updates to Restart"
        );
        exception("RestartRequired", "RestartRequired", message);
    }
    if let Some(plan) = outcome.plan {
        if !plan.refused.is_empty() {
            exception("EditRefused", Reason::EditRefused.name(), in_sentences(&plan.refused));
        }
        if !plan.detached.is_empty() {
            let message = format!(
                "disks have left the spec; their claims are kept: {}. Delete those that nobody needs",
                plan.detached.join(", ")
            );
            exception("DisksDetached", "ClaimsKept", message);
        }
        if let Some(held) = &plan.held {
            exception("UpdatesHeld", "UpdatesHeld", format!("nothing is written: {held}"));
        }
    }
    if !outcome.drift.is_empty() {
        exception("Drifted", "FieldsChanged", outcome.drift.join("; "));
    }
    let ignored = outcome.wanted.map(|wanted| wanted.without_effect.as_slice()).unwrap_or_default();
    if !ignored.is_empty() {
        let fields: Vec<_> = ignored.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        exception("FieldsIgnored", "WithoutEffect", format!("these fields have no effect: {}", fields.join("; ")));
    }
    if !outcome.lacking.is_empty() {
        let message = format!(
            "the CustomResourceDefinition of this cluster is another one, without {}: install that of this operator to use them",
            outcome.lacking.join(", ")
        );
        exception("FieldsMissing", "OtherDefinition", message);
    }
    for condition in &mut conditions {
        condition.observed_generation = machine.metadata.generation;
    }
    conditions
}

fn ready(outcome: &Outcome<'_>, phase: Phase) -> Condition {
    let message = phase::message(outcome, phase);
    let reason = phase::reason(outcome, phase);
    let is_ready = outcome.problems.is_empty()
        && match phase {
            Phase::Running => {
                outcome.vm.and_then(|vm| condition(vm, "Ready")).is_none_or(|ready| ready["status"] == "True")
            }
            Phase::Stopped => phase::is_halted_as_wanted(outcome) && outcome.deleting.is_none(),
            Phase::Pending | Phase::Creating | Phase::Failed => false,
        };
    new("Ready", Some(is_ready), &reason, message)
}

fn virtual_machine(outcome: &Outcome<'_>) -> Condition {
    match outcome.vm {
        Some(_) => new("VirtualMachineReady", Some(true), "VMCreated", "the VirtualMachine exists".to_owned()),
        None if outcome.problems.is_empty() => {
            new("VirtualMachineReady", Some(false), "VMCreating", "the VirtualMachine is being made".to_owned())
        }
        None => new("VirtualMachineReady", Some(false), "VMFailed", in_sentences(&outcome.problems)),
    }
}

/// The problems that are about one part.
fn about(outcome: &Outcome<'_>, reasons: &[Reason]) -> Vec<Problem> {
    outcome.problems.iter().filter(|problem| reasons.contains(&problem.reason)).cloned().collect()
}

fn storage(outcome: &Outcome<'_>) -> Condition {
    let problems = about(outcome, &[Reason::StorageClassNotFound, Reason::DiskConflict, Reason::DiskInUse]);
    if let Some(first) = problems.first() {
        return new("StorageReady", Some(false), first.reason.name(), in_sentences(&problems));
    }
    if outcome.plan.is_none() {
        return new("StorageReady", None, "StorageUnknown", "the claims have not been looked up".to_owned());
    }
    let is_bound = |claim: &&Value| text(claim, "/status/phase") == "Bound";
    let waiting: Vec<_> =
        outcome.claims.iter().filter(|claim| !is_bound(claim)).map(|claim| text(claim, "/metadata/name")).collect();
    let expected = outcome.wanted.map(|wanted| wanted.disks.len()).unwrap_or_default();
    if !waiting.is_empty() {
        let message = format!(
            "not bound yet: {}. A class that waits for its first consumer binds when the machine starts",
            waiting.join(", ")
        );
        return new("StorageReady", Some(false), "PVCPending", message);
    }
    if expected == 0 || outcome.claims.len() < expected {
        return new("StorageReady", Some(false), "PVCPending", "claims are not made yet".to_owned());
    }
    new("StorageReady", Some(true), "PVCBound", "all claims are bound".to_owned())
}

fn network(outcome: &Outcome<'_>) -> Condition {
    let problems = about(outcome, &[Reason::NetworkConfigurationNotFound]);
    if !problems.is_empty() {
        return new("NetworkReady", Some(false), "NetworkFailed", in_sentences(&problems));
    }
    match outcome.wanted {
        Some(_) if outcome.plan.is_some() => {
            new("NetworkReady", Some(true), "NetworkConfigured", "every network of the Machine exists".to_owned())
        }
        Some(_) | None => {
            new("NetworkReady", None, "NetworkUnknown", "the networks have not been looked up".to_owned())
        }
    }
}
