//! The status of a Machine: what runs, what waits, and why.
//!
//! ```text
//!   problems, plan ─┐
//!   VM, VMI, claims ┴─► phase ─► conditions ─► MachineStatus
//!                       guest: addresses, names, interfaces
//! ```

mod conditions;
mod guest;
mod phase;

use machines_api::Machine;
use machines_api::status::{Condition, MachineStatus};
use object::limits::cut_text;
use serde_json::Value;

pub use phase::Phase;

use crate::effects::Effect;
use crate::ownership::text;
use crate::plan::Plan;
use crate::problem::{Problem, joined};
use crate::understand::Wanted;

/// The longest message of a condition, in bytes.
const LONGEST: usize = 4096;
/// The most pending changes that a status lists.
const MOST_PENDING: usize = 50;

/// What a status is made of.
#[derive(Clone, Debug, Default)]
pub struct Outcome<'a> {
    /// What the Machine asks for, if its spec is valid.
    pub wanted: Option<&'a Wanted>,
    /// The plan, with everything that was found out about it.
    pub plan: Option<&'a Plan>,
    /// What stands in the way.
    pub problems: Vec<Problem>,
    /// Who changed fields of ours, one sentence each.
    pub drift: Vec<String>,
    /// The VirtualMachine.
    pub vm: Option<&'a Value>,
    /// Its instance.
    pub vmi: Option<&'a Value>,
    /// The claims of the Machine, by name.
    pub claims: Vec<&'a Value>,
    /// What the deletion waits for.
    pub deleting: Option<String>,
    /// Fields of the status that this cluster's CRD lacks.
    pub lacking: Vec<String>,
}

/// The status of `machine`. `now` is in RFC 3339; it is used only where something has changed.
#[must_use]
pub fn status(machine: &Machine, outcome: &Outcome<'_>, now: &str) -> MachineStatus {
    let before = machine.status.clone().unwrap_or_default();
    let phase = phase::of(outcome);
    let message = cut_text(&phase::message(outcome, phase), LONGEST);
    let (vm, vmi) = (outcome.vm, outcome.vmi);
    let mut status = MachineStatus {
        phase: Some(phase.name().to_owned()),
        state: vm.map(|vm| text(vm, "/status/printableStatus").to_owned()).filter(|state| !state.is_empty()),
        message: Some(message.clone()),
        observed_generation: machine.metadata.generation,
        conditions: conditions::of(machine, outcome, phase),
        pending: outcome.plan.map(|plan| plan.pending.clone()).unwrap_or_default(),
        vm_name: vm.map(|vm| text(vm, "/metadata/name").to_owned()),
        vmi_name: vmi.map(|vmi| text(vmi, "/metadata/name").to_owned()),
        machine_id: vm.map(|vm| text(vm, "/metadata/uid").to_owned()),
        provider_id: vm
            .map(|vm| format!("kubevirt://{}/{}", text(vm, "/metadata/namespace"), text(vm, "/metadata/name"))),
        provider: Some("kubevirt".to_owned()),
        disks: outcome.plan.map_or_else(|| before.disks.clone(), |plan| plan.disks.clone()),
        ..MachineStatus::default()
    };
    status.pending.truncate(MOST_PENDING);
    for change in &mut status.pending {
        for value in [&mut change.from, &mut change.to].into_iter().flatten() {
            *value = cut_text(value, 256);
        }
    }
    if let Some(wanted) = outcome.wanted {
        status.cpus = Some(wanted.cpu.count().into());
        status.memory = object::quantity::amount(&Value::from(wanted.memory.as_str()))
            .and_then(|amount| i64::try_from(amount / 1_000_000_000).ok());
    }
    guest::describe(vmi, &mut status);
    if phase == Phase::Failed {
        status.failure_reason = Some(phase::reason(outcome, phase));
        status.failure_message = Some(message);
    }
    keep_times(&mut status.conditions, &before.conditions, now);
    status.last_updated = before.last_updated.clone();
    if status != before {
        status.last_updated = Some(now.to_owned());
    }
    status
}

/// Times of conditions that have not changed are kept.
fn keep_times(conditions: &mut [Condition], before: &[Condition], now: &str) {
    for condition in conditions {
        let known = before.iter().find(|known| known.kind == condition.kind && known.status == condition.status);
        condition.last_transition_time =
            known.and_then(|known| known.last_transition_time.clone()).or_else(|| Some(now.to_owned()));
    }
}

/// All problems in one sentence each.
fn in_sentences(problems: &[Problem]) -> String {
    cut_text(&joined(problems), LONGEST)
}

/// How many changes wait for a restart.
fn waiting_for_restart<'a>(outcome: &Outcome<'a>) -> Vec<&'a str> {
    let pending = outcome.plan.iter().flat_map(|plan| &plan.pending);
    pending.filter(|change| change.effect == Effect::Restart.name()).map(|change| change.path.as_str()).collect()
}
