//! The VirtualMachineInstance that a VirtualMachine is started as.
//!
//! `new`: pkg/virt-controller/watch/vm/vm.go `SetupVMIFromVM` and `startVMI`; the defaults:
//! pkg/virt-api/webhooks/mutating-webhook/mutators/vmi-mutator.go and pkg/defaults/defaults.go.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{config::Config, live, quantity};

/// Finalizer of virt-controller on both kinds, until it has seen the end of an instance.
pub(crate) const OF_CONTROLLER: &str = "kubevirt.io/virtualMachineControllerFinalize";
/// Finalizer of an instance, until its pod is gone. Qualified with a domain since v1.6.
pub(crate) const OF_INSTANCE: &str = "kubevirt.io/foregroundDeleteVirtualMachine";
/// The generation of the VirtualMachine that an instance runs.
pub(crate) const GENERATION: &str = "kubevirt.io/vm-generation";

/// A list below an object; empty if there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The claim that a volume names. pkg/storage/types: `PVCNameFromVirtVolume`.
pub(crate) fn claim(volume: &Value) -> Option<&str> {
    [&volume["persistentVolumeClaim"]["claimName"], &volume["dataVolume"]["name"]].into_iter().find_map(Value::as_str)
}

/// The claims of a template's or an instance's spec.
pub(crate) fn claims(spec: &Value) -> impl Iterator<Item = &str> {
    list(spec, "/volumes").iter().filter_map(claim)
}

/// The name of the ControllerRevision that keeps the spec an instance was started with.
pub(crate) fn revision_name(machine: &Value) -> String {
    let text = |pointer: &str| machine.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let generation = machine["metadata"]["generation"].as_i64().unwrap_or_default();
    format!("revision-start-vm-{}-{generation}", text("/metadata/uid"))
}

/// A reference that makes a VirtualMachine the controller of what it starts.
pub(crate) fn owner(machine: &Value) -> Value {
    json!([{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": machine["metadata"]["name"],
        "uid": machine["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}])
}

/// The instance to create.
pub(crate) fn new(machine: &Value, config: &Config, now: &str) -> Value {
    let template = &machine["spec"]["template"];
    let mut annotations = template["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.insert(GENERATION.to_owned(), machine["metadata"]["generation"].to_string().into());
    let mut instance = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {
            "name": machine["metadata"]["name"], "namespace": machine["metadata"]["namespace"],
            "annotations": annotations, "ownerReferences": owner(machine),
            "finalizers": [OF_CONTROLLER, OF_INSTANCE],
        },
        "spec": template["spec"],
        "status": {"virtualMachineRevisionName": revision_name(machine)},
    });
    if let Some(labels) = template["metadata"]["labels"].as_object() {
        instance["metadata"]["labels"] = labels.clone().into();
    }
    let name = machine["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    default(&mut instance["spec"], &name, config);
    let domain = &instance["spec"]["domain"];
    let (cpu, guest) = (&domain["cpu"], domain["memory"]["guest"].clone());
    let topology = json!({"cores": number(cpu, "cores"), "sockets": number(cpu, "sockets"),
        "threads": number(cpu, "threads")});
    let status = &mut instance["status"];
    status["currentCPUTopology"] = topology;
    if !guest.is_null() {
        status["memory"] = json!({"guestAtBoot": guest, "guestCurrent": guest, "guestRequested": guest});
    }
    let said = ("False", "PodNotExists", "virt-launcher pod has not yet been scheduled");
    super::conditions::set(status, "Ready", said, now);
    instance
}

/// A number that counts as 0 where it is absent, as in Go.
pub(crate) fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}

fn default(spec: &mut Value, name: &str, config: &Config) {
    or_insert(spec, &["architecture"], || json!("amd64"));
    or_insert(spec, &["domain", "machine", "type"], || json!(config.machine_type));
    // vm.go `setupStableFirmwareUUID`: the same one for a name, for machines that have none.
    or_insert(spec, &["domain", "firmware", "uuid"], || json!(uuid_of(name)));
    let domain = &mut spec["domain"];
    // `SetDefaultGuestCPUTopology`: only if nothing is set; with cores alone, sockets stay 0.
    if ["cores", "sockets", "threads"].iter().all(|key| number(&domain["cpu"], key) == 0) {
        for key in ["cores", "sockets", "threads"] {
            or_insert(domain, &["cpu", key], || json!(1));
        }
    }
    or_insert(domain, &["cpu", "model"], || json!("host-model"));
    let requested = domain["resources"]["requests"]["memory"].clone();
    if !requested.is_null() {
        or_insert(domain, &["memory", "guest"], || requested);
    }
    for disk in domain["devices"]["disks"].as_array_mut().into_iter().flatten() {
        // pkg/defaults/amd64.go `setDefaultAmd64DisksBus`, and a disk where no target is named.
        let target = ["disk", "cdrom", "lun"].into_iter().find(|target| disk.get(target).is_some()).unwrap_or("disk");
        or_insert(disk, &[target, "bus"], || json!("sata"));
    }
    default_disks(spec);
    default_network(spec);
    if config.is_live() {
        hotplug(spec, config);
    }
}

/// pkg/defaults/defaults.go: `setupCPUHotplug`, `setupMemoryHotplug`.
fn hotplug(spec: &mut Value, config: &Config) {
    let cpu = &spec["domain"]["cpu"];
    let (sockets, per_socket) = (number(cpu, "sockets"), (number(cpu, "cores") * number(cpu, "threads")).max(1));
    let max = match config.max_sockets {
        0 if sockets * config.ratio * per_socket > 512 => (512 / per_socket).max(sockets),
        0 => sockets * config.ratio,
        configured => configured.max(sockets),
    };
    if number(cpu, "maxSockets") == 0 && max > 0 {
        spec["domain"]["cpu"]["maxSockets"] = max.into();
    }
    let guest = spec["domain"]["memory"]["guest"].as_str().and_then(quantity::value);
    let Some(max) = config.max_guest.or(guest.map(|guest| guest * config.ratio)) else { return };
    if live::memory_refused(spec, max).is_none() {
        or_insert(spec, &["domain", "memory", "maxGuest"], || json!(quantity::binary(max)));
    }
}

/// pkg/util: `SetDefaultVolumeDisk`: a disk for each volume that has none.
fn default_disks(spec: &mut Value) {
    let has = |pointer: &str, name: &Value| list(spec, pointer).iter().any(|one| one["name"] == *name);
    let without = list(spec, "/volumes").iter().map(|volume| volume["name"].clone());
    let without =
        without.filter(|name| !has("/domain/devices/disks", name) && !has("/domain/devices/filesystems", name));
    for name in without.collect::<Vec<_>>() {
        append(&mut spec["domain"]["devices"]["disks"], json!({"name": name, "disk": {"bus": "sata"}}));
    }
}

/// pkg/network/vmispec: `SetDefaultNetworkInterface`.
fn default_network(spec: &mut Value) {
    let has_some = !list(spec, "/networks").is_empty() || !list(spec, "/domain/devices/interfaces").is_empty();
    if has_some || spec["domain"]["devices"]["autoattachPodInterface"] == false {
        return;
    }
    spec["domain"]["devices"]["interfaces"] = json!([{"name": "default", "masquerade": {}}]);
    spec["networks"] = json!([{"name": "default", "pod": {}}]);
}

/// Appends to a list that may not exist yet.
pub(crate) fn append(list: &mut Value, entry: Value) {
    match list.as_array_mut() {
        Some(entries) => entries.push(entry),
        None => *list = json!([entry]),
    }
}

/// Sets a value at a path unless there is one.
fn or_insert(object: &mut Value, path: &[&str], value: impl FnOnce() -> Value) {
    let mut place = object;
    for key in path {
        if !place.is_object() {
            *place = Map::new().into();
        }
        place = &mut place[*key];
    }
    if place.is_null() || *place == "" {
        *place = value();
    }
}

/// Digits that depend on a text only.
pub(crate) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The identity of a machine that has none: `CalculateLegacyUUID`, with other digits.
pub(crate) fn uuid_of(name: &str) -> String {
    let hex: String = digest(name)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
