//! Edits of a running VirtualMachine that reach its instance.
//!
//! pkg/virt-controller/watch/vm/vm.go `handleCPUChangeRequest`, `handleMemoryHotplugRequest`,
//! `handleAffinityChangeRequest`, `handleTolerationsChangeRequest`;
//! pkg/liveupdate/memory/memory.go; pkg/storage/hotplug/hotplug.go.

use serde_json::Value;

use super::instance::{append, list, number};
use super::{conditions, quantity, restart};

/// What virt-controller says if it cannot do a step now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The condition RestartRequired, with this message.
    Restart(String),
    /// The condition Failure, with this reason and message; it tries again.
    Failure(&'static str, String),
}

/// Why memory cannot grow up to `max` bytes while the machine runs. `ValidateLiveUpdateMemory`.
pub(crate) fn memory_refused(spec: &Value, max: u64) -> Option<String> {
    const ALIGNMENT: u64 = 2 << 20;
    let domain = &spec["domain"];
    let has = |pointer: &str| domain.pointer(pointer).is_some_and(|value| !value.is_null());
    let huge = domain["memory"]["hugepages"]["pageSize"] == "1Gi";
    let alignment = if huge { 1 << 30 } else { ALIGNMENT };
    let guest = domain["memory"]["guest"].as_str().and_then(quantity::value);
    let said = match guest {
        _ if has("/cpu/realtime") => "Memory hotplug is not compatible with realtime VMs".to_owned(),
        _ if has("/cpu/numa/guestMappingPassthrough") => {
            "Memory hotplug is not compatible with guest mapping passthrough".to_owned()
        }
        _ if has("/launchSecurity") => "Memory hotplug is not compatible with encrypted VMs".to_owned(),
        None => "Guest memory must be configured when memory hotplug is enabled".to_owned(),
        Some(guest) if guest > max => "Guest memory is greater than the configured maxGuest memory".to_owned(),
        Some(guest) if !guest.is_multiple_of(alignment) => {
            format!("Guest memory must be {} aligned", quantity::binary(alignment))
        }
        _ if !max.is_multiple_of(alignment) => format!("MaxGuest must be {} aligned", quantity::binary(alignment)),
        Some(guest) if guest < 1 << 30 => {
            "Memory hotplug is only available for VMs with at least 1Gi of guest memory".to_owned()
        }
        Some(_) => return None,
    };
    Some(said)
}

/// Carries the number of sockets of the template over to the instance.
pub(crate) fn sockets(wanted: &Value, instance: &mut Value) -> Result<(), Obstacle> {
    let (new, old) = (&wanted["domain"]["cpu"], &instance["spec"]["domain"]["cpu"]);
    let restart = |message: &str| Err(Obstacle::Restart(message.to_owned()));
    let sockets = number(new, "sockets");
    if new.is_null() || old.is_null() || sockets == number(old, "sockets") {
        return Ok(());
    }
    if conditions::is(&instance["status"], "HotVCPUChange", "True") {
        return Err(failure("HotPlugCPUError", "CPU change", "another CPU hotplug is in progress"));
    }
    if sockets > number(old, "maxSockets") {
        return restart("CPU sockets updated in template spec to a value higher than what's available");
    }
    if sockets < number(old, "sockets") {
        return restart("Reduction of CPU socket count requires a restart");
    }
    instance["spec"]["domain"]["cpu"]["sockets"] = sockets.into();
    Ok(())
}

fn failure(reason: &'static str, request: &str, error: &str) -> Obstacle {
    Obstacle::Failure(reason, format!("Error encountered while handling {request} request: {error}"))
}

/// Carries the guest's memory of the template over to the instance.
pub(crate) fn memory(wanted: &Value, instance: &mut Value) -> Result<(), Obstacle> {
    let bytes = |value: &Value| value.as_str().and_then(quantity::value);
    let (spec, status) = (&instance["spec"]["domain"]["memory"], &instance["status"]);
    let new = bytes(&wanted["domain"]["memory"]["guest"]);
    let (Some(new), Some(old), Some(_)) = (new, bytes(&spec["guest"]), bytes(&status["memory"]["guestCurrent"])) else {
        return Ok(());
    };
    let restart = |message: &str| Err(Obstacle::Restart(format!("memory {message}")));
    let updated = "updated in template spec";
    if new == old {
        return Ok(());
    }
    if !conditions::is(status, "LiveMigratable", "True") {
        return restart(&format!("{updated}. Memory-hotplug is only available for migratable VMs"));
    }
    let Some(max) = bytes(&spec["maxGuest"]) else {
        return restart(&format!("{updated}. Memory-hotplug is not available for this VM configuration"));
    };
    if conditions::is(status, "HotMemoryChange", "True") {
        return Err(failure("HotPlugMemoryError", "memory hotplug", "another memory hotplug is in progress"));
    }
    if let Some(why) = memory_refused(wanted, max) {
        return restart(&format!("hotplug not supported, {why}"));
    }
    if bytes(&status["memory"]["guestAtBoot"]).is_some_and(|boot| new < boot) {
        return restart(&format!("{updated} to a value lower than what the VM started with"));
    }
    instance["spec"]["domain"]["memory"]["guest"] = wanted["domain"]["memory"]["guest"].clone();
    Ok(())
}

/// Carries over where the machine may run.
pub(crate) fn placement(wanted: &Value, instance: &mut Value) {
    for key in ["nodeSelector", "affinity", "tolerations"] {
        if wanted[key] == instance["spec"][key] {
            continue;
        }
        match (&wanted[key], instance["spec"].as_object_mut()) {
            (Value::Null, Some(spec)) => drop(spec.remove(key)),
            (value, Some(spec)) => drop(spec.insert(key.to_owned(), value.clone())),
            (_, None) => {}
        }
    }
}

/// Carries over the volumes that are hotpluggable, with their disks: `patchHotplugVolumes`.
pub(crate) fn volumes(wanted: &Value, instance: &mut Value) {
    let new = list(wanted, "/volumes");
    let (gone, come): (Vec<Value>, Vec<Value>) = {
        let old = list(instance, "/spec/volumes");
        let stays = |volume: &Value| restart::named(new, &volume["name"]) == Some(volume);
        let gone = old.iter().filter(|volume| restart::is_hotplug(volume) && !stays(volume));
        let come = new
            .iter()
            .filter(|volume| restart::is_hotplug(volume) && restart::named(old, &volume["name"]) != Some(volume));
        (gone.map(|volume| volume["name"].clone()).collect(), come.cloned().collect())
    };
    let spec = &mut instance["spec"];
    retain(&mut spec["volumes"], &gone);
    retain(&mut spec["domain"]["devices"]["disks"], &gone);
    for volume in come {
        if let Some(disk) = restart::named(list(wanted, "/domain/devices/disks"), &volume["name"]) {
            append(&mut spec["domain"]["devices"]["disks"], disk.clone());
        }
        append(&mut spec["volumes"], volume);
    }
}

fn retain(entries: &mut Value, gone: &[Value]) {
    if let Some(entries) = entries.as_array_mut() {
        entries.retain(|entry| !gone.contains(&entry["name"]));
    }
}

/// Carries over interfaces and networks that have been added, their state, and the names of their
/// attachments, if nothing else has changed. Returns whether the machine has to move for it.
/// pkg/network/controllers/vm.go.
pub(crate) fn networks(wanted: &Value, instance: &mut Value) -> bool {
    let networks = list(wanted, "/networks");
    let mut is_moved = false;
    for interface in list(wanted, "/domain/devices/interfaces") {
        let Some(network) = restart::named(networks, &interface["name"]) else { continue };
        let known = restart::named(list(instance, "/spec/domain/devices/interfaces"), &interface["name"]);
        let attached = restart::named(list(instance, "/spec/networks"), &interface["name"]);
        let is_new = known.is_none() && (!interface["bridge"].is_null() || !interface["sriov"].is_null());
        is_moved |= is_new || attached.is_some_and(|attached| attached != network);
        if is_new {
            append(&mut instance["spec"]["domain"]["devices"]["interfaces"], interface.clone());
            append(&mut instance["spec"]["networks"], network.clone());
            continue;
        }
        replace(&mut instance["spec"]["domain"]["devices"]["interfaces"], interface);
        replace(&mut instance["spec"]["networks"], network);
    }
    is_moved
}

fn replace(entries: &mut Value, entry: &Value) {
    let old = entries.as_array_mut().and_then(|entries| entries.iter_mut().find(|old| old["name"] == entry["name"]));
    if let Some(old) = old {
        old.clone_from(entry);
    }
}
