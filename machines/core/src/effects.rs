//! What a change of a VirtualMachine does to the running machine.
//!
//! Source: KubeVirt v1.9.0, pkg/virt-controller/watch/vm/vm.go (`addRestartRequiredIfNeeded`),
//! pkg/liveupdate/memory/memory.go and
//! pkg/virt-controller/watch/workload-updater/workload-updater.go (`getUpdateData`), all read; K11
//! and K27.

use object::quantity;
use serde_json::Value;

use crate::facts::KubeVirt;
use crate::ownership::text;
use crate::plan::Change;

/// The effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reaches the running machine.
    Live,
    /// It waits for a restart.
    Restart,
    /// Writing it makes KubeVirt restart the machine by itself.
    RestartAtOnce,
    /// The machine is stopped: it takes effect when it is started.
    NextBoot,
    /// The cluster can't carry it out.
    Refused,
    /// It is written and does nothing.
    WithoutEffect,
}

impl Effect {
    /// The constant in `status.pending[].effect`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "Live",
            Self::Restart | Self::RestartAtOnce => "Restart",
            Self::NextBoot => "NextBoot",
            Self::Refused => "Refused",
            Self::WithoutEffect => "WithoutEffect",
        }
    }
}

/// What decides about effects, beside the change itself.
#[derive(Clone, Debug)]
pub struct Situation {
    running: bool,
    live_update: bool,
    migratable: Result<(), String>,
    migrates: bool,
    evicts: bool,
    max_sockets: u64,
    boot_sockets: u64,
    max_guest: i128,
    boot_guest: i128,
}

/// One MiB in billionths, the unit of [`quantity::amount`].
const MIB: i128 = (1 << 20) * 1_000_000_000;

impl Situation {
    /// The situation of a running instance, or of a machine that is stopped.
    #[must_use]
    pub fn of(vmi: Option<&Value>, kubevirt: &KubeVirt) -> Self {
        let none = Value::Null;
        let instance = vmi.unwrap_or(&none);
        let number = |pointer: &str| instance.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
        let amount = |pointer: &str| instance.pointer(pointer).and_then(quantity::amount).unwrap_or_default();
        let migratable = match condition(instance, "LiveMigratable") {
            Some(condition) if condition["status"] == "True" => Ok(()),
            Some(condition) => Err(text(condition, "/reason").to_owned()),
            None => Err(String::new()),
        };
        Self {
            running: vmi.is_some() && !matches!(text(instance, "/status/phase"), "Succeeded" | "Failed"),
            live_update: kubevirt.live_update,
            migratable,
            migrates: kubevirt.migrates,
            evicts: kubevirt.evicts,
            max_sockets: number("/spec/domain/cpu/maxSockets"),
            boot_sockets: number("/spec/domain/cpu/sockets"),
            max_guest: amount("/spec/domain/memory/maxGuest"),
            boot_guest: amount("/status/memory/guestAtBoot").max(amount("/spec/domain/memory/guest")),
        }
    }
}

/// A condition of an object.
#[must_use]
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

const RESTART: &str = "KubeVirt changes it only while the machine is stopped: restart it with virtctl restart, or set spec.updates to Restart";

/// The effects of changes below `spec.template.spec` that are made together, and why. As long as
/// one of them waits for a restart, KubeVirt makes none of the others live (vm.go, `sync`).
#[must_use]
pub fn of_changes(changes: &[Change], situation: &Situation) -> Vec<(Effect, String)> {
    let mut effects: Vec<_> = changes.iter().map(|change| of_change(change, situation)).collect();
    if effects.iter().any(|(effect, _)| *effect == Effect::Restart) {
        for (effect, reason) in
            effects.iter_mut().filter(|(effect, _)| matches!(effect, Effect::Live | Effect::RestartAtOnce))
        {
            *effect = Effect::Restart;
            *reason = format!("another change needs a restart, and KubeVirt makes no change before it. {RESTART}");
        }
    }
    effects
}

/// The effect of a change on its own.
fn of_change(change: &Change, situation: &Situation) -> (Effect, String) {
    if !situation.running {
        return (Effect::NextBoot, "the machine is stopped: it takes effect when it is started".to_owned());
    }
    match change.path.as_str() {
        "domain.cpu.sockets" => sockets(change, situation),
        "domain.memory.guest" => memory(change, situation),
        path if path.starts_with("volumes[cloudinitdisk]") => {
            let reason = "it is offered at the next restart, but cloud-init runs once for each machine: make a new Machine to run it again";
            (Effect::WithoutEffect, reason.to_owned())
        }
        _ => (Effect::Restart, RESTART.to_owned()),
    }
}

fn sockets(change: &Change, situation: &Situation) -> (Effect, String) {
    let wanted = change.to.as_ref().and_then(Value::as_u64).unwrap_or_default();
    if wanted < situation.boot_sockets {
        return (Effect::Restart, format!("sockets can't be taken from a running machine. {RESTART}"));
    }
    if wanted > situation.max_sockets {
        let reason = format!("this machine can get up to {} sockets while it runs. {RESTART}", situation.max_sockets);
        return (Effect::Restart, reason);
    }
    by_migration(situation)
}

fn memory(change: &Change, situation: &Situation) -> (Effect, String) {
    let wanted = change.to.as_ref().and_then(quantity::amount).unwrap_or_default();
    if wanted < situation.boot_guest {
        return (Effect::Restart, format!("memory can't be taken from a running machine. {RESTART}"));
    }
    if wanted > situation.max_guest {
        return (Effect::Restart, format!("it is more than this machine can get while it runs. {RESTART}"));
    }
    if wanted < 1024 * MIB || wanted % (2 * MIB) != 0 {
        return (Effect::Restart, format!("memory is added only from 1Gi on and in steps of 2Mi. {RESTART}"));
    }
    by_migration(situation)
}

/// CPU and memory reach a running machine by a live migration.
fn by_migration(situation: &Situation) -> (Effect, String) {
    if !situation.live_update {
        return (Effect::Restart, format!("this cluster's vmRolloutStrategy is Stage. {RESTART}"));
    }
    match (&situation.migratable, situation.migrates, situation.evicts) {
        (Ok(()), true, _) => (Effect::Live, "KubeVirt adds it to the running machine by a live migration".to_owned()),
        (Err(_), _, true) => {
            let reason =
                "the machine can't migrate, and workloadUpdateMethods has Evict: KubeVirt would restart it at once";
            (Effect::RestartAtOnce, reason.to_owned())
        }
        (Ok(()), false, true) => {
            let reason = "workloadUpdateMethods has Evict and not LiveMigrate: KubeVirt would restart it at once";
            (Effect::RestartAtOnce, reason.to_owned())
        }
        (Ok(()), false, false) => {
            let reason = format!("workloadUpdateMethods of the KubeVirt object lacks LiveMigrate: it waits. {RESTART}");
            (Effect::Restart, reason)
        }
        (Err(why), _, false) => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            (Effect::Restart, format!("the machine can't migrate{why}: it waits. {RESTART}"))
        }
    }
}
