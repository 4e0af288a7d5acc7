//! How an instance goes from phase to phase, and what its guest, its node and its pod report.
//!
//! pkg/virt-controller/watch/vmi/lifecycle.go `updateStatus`; pkg/virt-handler/vm.go;
//! pkg/network/setup/netstat.go.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::conditions::{self, is};
use super::config::Config;
use super::instance::{claim, digest, list, number};
use super::{quantity, restart};
use crate::{Fault, Settings, UpdateMethod};

/// Claims by name; `None` where there is none.
pub(crate) type Claims = BTreeMap<String, Option<Value>>;

/// What an instance depends on.
pub(crate) struct Around<'a> {
    pub(crate) claims: &'a Claims,
    pub(crate) config: &'a Config,
    pub(crate) settings: &'a Settings,
    pub(crate) faults: &'a [Fault],
    pub(crate) now: &'a str,
}

/// How long something has lasted, by a name for it.
pub(crate) type Ages<'a> = &'a mut dyn FnMut(&str) -> Duration;

/// What comes next for an instance.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing before something else changes.
    Wait,
    /// Something after this time.
    After(Duration),
    /// Its pod is evicted, because it cannot move.
    Evict,
}

/// The phase, empty before the first.
pub(crate) fn phase(instance: &Value) -> &str {
    instance["status"]["phase"].as_str().unwrap_or_default()
}

/// Whether the guest has ended.
pub(crate) fn is_final(instance: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&phase(instance))
}

/// Whether it has come to run at all: `wasVMIInRunningPhase`.
pub(crate) fn has_run(instance: &Value) -> bool {
    list(instance, "/status/phaseTransitionTimestamps").iter().any(|entry| entry["phase"] == "Running")
}

/// Ends the guest of an instance that is being deleted.
pub(crate) fn end(instance: &mut Value, around: &Around, ages: Ages) -> Next {
    let (due, age) = (around.settings.step() * 2, ages("deletion"));
    if age < due {
        let status = &mut instance["status"];
        conditions::set(status, "Ready", ("False", "PodTerminating", "virt-launcher pod is terminating"), around.now);
        return Next::After(due - age);
    }
    enter(instance, if has_run(instance) { "Succeeded" } else { "Failed" }, around.now);
    Next::Wait
}

/// Takes an instance one phase further if it is due, and brings its status up to date.
pub(crate) fn advance(instance: &mut Value, around: &Around, ages: Ages) -> Next {
    let step = around.settings.step();
    let current = phase(instance).to_owned();
    let age = if current.is_empty() { Duration::ZERO } else { ages(&current) };
    let due = if age < step { Next::After(step - age) } else { Next::Wait };
    let is_due = due == Next::Wait;
    match current.as_str() {
        "" => {
            enter(instance, "Pending", around.now);
            missing(instance, around);
            Next::After(step)
        }
        "Pending" => {
            if missing(instance, around) {
                return Next::Wait;
            }
            if is_due {
                enter(instance, "Scheduling", around.now);
                let said = ("False", "GuestNotRunning", "Guest VM is not reported as running");
                conditions::set(&mut instance["status"], "Ready", said, around.now);
                return Next::After(step);
            }
            due
        }
        "Scheduling" => {
            if around.faults.contains(&Fault::Unschedulable) {
                let said = ("False", "Unschedulable", "0/3 nodes are available: 3 Insufficient memory.");
                conditions::set(&mut instance["status"], "PodScheduled", said, around.now);
                return Next::Wait;
            }
            conditions::remove(&mut instance["status"], "PodScheduled");
            if !all_bound(instance, around.claims) {
                return Next::Wait;
            }
            if is_due {
                enter(instance, "Scheduled", around.now);
                place(instance, 0);
                instance["status"]["volumeStatus"] = volumes(instance, around.claims);
                return Next::After(step);
            }
            due
        }
        "Scheduled" if is_due && around.faults.contains(&Fault::StartFailure) => {
            enter(instance, "Failed", around.now);
            Next::Wait
        }
        "Scheduled" if is_due => {
            enter(instance, "Running", around.now);
            conditions::set(&mut instance["status"], "Ready", ("True", "", ""), around.now);
            report(instance, around, false);
            Next::After(step)
        }
        "Running" => {
            let has_booted = is_due || is(&instance["status"], "AgentConnected", "True");
            report(instance, around, has_booted);
            match moves(instance, around, ages) {
                Next::Wait if !has_booted => due,
                next => next,
            }
        }
        _ => due,
    }
}

fn enter(instance: &mut Value, phase: &str, now: &str) {
    let status = &mut instance["status"];
    status["phase"] = phase.into();
    let entry = json!({"phase": phase, "phaseTransitionTimestamp": now});
    super::instance::append(&mut status["phaseTransitionTimestamps"], entry);
    if phase == "Succeeded" || phase == "Failed" {
        conditions::set(status, "Ready", ("False", "PodTerminating", "virt-launcher pod is terminating"), now);
    }
}

/// Says which claim does not exist: the pod cannot be made. pkg/virt-controller/services.
fn missing(instance: &mut Value, around: &Around) -> bool {
    let name = list(instance, "/spec/volumes").iter().filter_map(claim);
    let name = name.filter(|name| !matches!(around.claims.get(*name), Some(Some(_)))).map(str::to_owned).next();
    let status = &mut instance["status"];
    let Some(name) = name else {
        conditions::remove(status, "Synchronized");
        conditions::remove(status, "PodScheduled");
        return false;
    };
    let message = format!("failed to render launch manifest: didn't find PVC {name}");
    conditions::set(status, "Synchronized", ("False", "FailedPvcNotFound", &message), around.now);
    conditions::set(status, "PodScheduled", ("False", "Unschedulable", &message), around.now);
    true
}

fn all_bound(instance: &Value, claims: &Claims) -> bool {
    let is_bound = |name| matches!(claims.get(name), Some(Some(claim)) if claim["status"]["phase"] == "Bound");
    list(instance, "/spec/volumes").iter().filter_map(claim).all(is_bound)
}

fn place(instance: &mut Value, moves: u64) {
    let uid = instance["metadata"]["uid"].as_str().unwrap_or_default();
    let node = format!("node-{}", (u64::from(digest(uid)[0]) + moves) % 3 + 1);
    instance["metadata"]["labels"]["kubevirt.io/nodeName"] = node.clone().into();
    instance["status"]["nodeName"] = node.into();
}

/// What a running guest and its node report.
fn report(instance: &mut Value, around: &Around, has_booted: bool) {
    let has_agent = has_booted && around.settings.agent;
    let found = interfaces(instance, has_agent, around.faults.contains(&Fault::NoAddresses));
    instance["status"]["interfaces"] = found;
    instance["status"]["volumeStatus"] = volumes(instance, around.claims);
    let immovable = immovable(instance);
    let status = &mut instance["status"];
    let said = match &immovable {
        Some((reason, message)) => ("False", *reason, message.as_str()),
        None => ("True", "", ""),
    };
    conditions::set(status, "LiveMigratable", said, around.now);
    if has_agent {
        conditions::set(status, "AgentConnected", ("True", "", ""), around.now);
    }
    // `requireCPUHotplug`, `requireMemoryHotplug`.
    let vcpus =
        |cpu: &Value| ["cores", "sockets", "threads"].map(|key| number(cpu, key).max(1)).iter().product::<u64>();
    let (cpu, memory) = (&instance["spec"]["domain"]["cpu"], &instance["spec"]["domain"]["memory"]);
    let more_cpu = number(cpu, "maxSockets") > 0 && vcpus(cpu) != vcpus(&instance["status"]["currentCPUTopology"]);
    let bytes = |value: &Value| value.as_str().and_then(quantity::value);
    let requested = bytes(&instance["status"]["memory"]["guestRequested"]);
    let more_memory = !memory["maxGuest"].is_null() && bytes(&memory["guest"]) != requested;
    for (name, is_needed) in [("HotVCPUChange", more_cpu), ("HotMemoryChange", more_memory)] {
        if is_needed {
            conditions::set(&mut instance["status"], name, ("True", "", ""), around.now);
        }
    }
}

/// Carries out what waits for a move, by what the cluster allows.
/// pkg/virt-controller/watch/workload-updater/workload-updater.go `getUpdateData`.
fn moves(instance: &mut Value, around: &Around, ages: Ages) -> Next {
    let pending: Vec<&str> = ["HotVCPUChange", "HotMemoryChange", "MigrationRequired"]
        .into_iter()
        .filter(|name| is(&instance["status"], name, "True"))
        .collect();
    if pending.is_empty() {
        return Next::Wait;
    }
    let allows = |method| around.config.methods.contains(&method);
    let can_move = is(&instance["status"], "LiveMigratable", "True");
    if !(allows(UpdateMethod::LiveMigrate) && can_move) {
        return if allows(UpdateMethod::Evict) { Next::Evict } else { Next::Wait };
    }
    // A name that is new for each move.
    let count = list(instance, "/status/phaseTransitionTimestamps").len() as u64;
    let moved = instance["status"]["migrationState"]["migrationUid"].as_str().and_then(|text| text.parse().ok());
    let move_number = moved.unwrap_or(count) + 1;
    let (due, age) = (around.settings.step() * 2, ages(&format!("move {move_number}")));
    if age < due {
        return Next::After(due - age);
    }
    let cpu = &instance["spec"]["domain"]["cpu"];
    let topology = json!({"cores": number(cpu, "cores"), "sockets": number(cpu, "sockets"),
        "threads": number(cpu, "threads")});
    let guest = instance["spec"]["domain"]["memory"]["guest"].clone();
    let source = instance["status"]["nodeName"].clone();
    place(instance, move_number);
    let status = &mut instance["status"];
    status["currentCPUTopology"] = topology;
    if !guest.is_null() {
        status["memory"]["guestCurrent"] = guest.clone();
        status["memory"]["guestRequested"] = guest;
    }
    status["migrationState"] = json!({"completed": true, "migrationUid": move_number.to_string(),
        "sourceNode": source, "targetNode": status["nodeName"]});
    for name in pending {
        conditions::remove(status, name);
    }
    Next::Wait
}

/// Why it cannot be migrated. pkg/virt-handler/vm.go `calculateLiveMigrationCondition`.
fn immovable(instance: &Value) -> Option<(&'static str, String)> {
    let spec = &instance["spec"];
    let pod = list(spec, "/networks").iter().find(|network| !network["pod"].is_null());
    let interfaces = list(spec, "/domain/devices/interfaces");
    let primary = pod.and_then(|pod| restart::named(interfaces, &pod["name"]));
    let allowed = &instance["metadata"]["annotations"]["kubevirt.io/allow-pod-bridge-network-live-migration"];
    if primary.is_some_and(|interface| !interface["bridge"].is_null()) && allowed.is_null() {
        let rule =
            "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network";
        return Some(("InterfaceNotLiveMigratable", rule.to_owned()));
    }
    let volumes = list(instance, "/status/volumeStatus").iter();
    let mut claims = volumes.map(|volume| &volume["persistentVolumeClaimInfo"]).filter(|info| !info.is_null());
    let alone = claims.find(|info| !list(info, "/accessModes").contains(&json!("ReadWriteMany")))?;
    let message = format!(
        "cannot migrate VMI: PVC {} is not shared, live migration requires that all PVCs must be shared (using \
         ReadWriteMany access mode)",
        alone["claimName"].as_str().unwrap_or_default()
    );
    Some(("DisksNotLiveMigratable", message))
}

fn volumes(instance: &Value, claims: &Claims) -> Value {
    let disks = list(instance, "/spec/domain/devices/disks");
    let (mut virtio, mut other) = (b'a'..=b'z', b'a'..=b'z');
    let mut targets = BTreeMap::new();
    for disk in disks {
        let is_virtio = disk["disk"]["bus"] == "virtio" || disk["lun"]["bus"] == "virtio";
        let (prefix, letter) = if is_virtio { ("vd", virtio.next()) } else { ("sd", other.next()) };
        let target = format!("{prefix}{}", char::from(letter.unwrap_or(b'z')));
        targets.insert(disk["name"].as_str().unwrap_or_default(), target);
    }
    let one = |volume: &Value| {
        let name = volume["name"].as_str().unwrap_or_default();
        let mut status = json!({"name": name, "target": targets.get(name).cloned().unwrap_or_default()});
        let Some(claim_name) = claim(volume) else {
            return status;
        };
        let claim = claims.get(claim_name).and_then(Option::as_ref);
        if let Some(claim) = claim {
            status["persistentVolumeClaimInfo"] = json!({
                "claimName": claim_name, "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["status"]["capacity"], "requests": claim["spec"]["resources"]["requests"],
                "volumeMode": claim["spec"]["volumeMode"], "filesystemOverhead": "0.06",
            });
            drop_null(&mut status["persistentVolumeClaimInfo"]);
        }
        if restart::is_hotplug(volume) {
            let is_bound = claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
            let (phase, reason, message) = match claim {
                None => ("Pending", "FailedPvcNotFound", format!("PVC {claim_name} not found")),
                Some(_) if !is_bound => ("Pending", "PVCNotReady", "PVC is in phase ClaimPending".to_owned()),
                Some(_) => ("Ready", "VolumeReady", format!("Successfully attach hotplugged volume {name} to VM")),
            };
            status["phase"] = phase.into();
            status["reason"] = reason.into();
            status["message"] = message.into();
            status["hotplugVolume"] = json!({"attachPodName": format!("hp-volume-{name}")});
            if !is_bound {
                status["target"] = "".into();
            }
        }
        status
    };
    list(instance, "/spec/volumes").iter().map(one).collect()
}

fn drop_null(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
}

/// A MAC address and IP addresses come from the instance's name, so a machine that is started anew
/// keeps the first, as KubeVirt's pods do not: see README.md.
fn interfaces(instance: &Value, has_agent: bool, has_no_addresses: bool) -> Value {
    let name = |key: &str| instance["metadata"][key].as_str().unwrap_or_default();
    let networks = list(instance, "/spec/networks");
    let one = |(index, interface): (usize, &Value)| {
        let network = restart::named(networks, &interface["name"]).unwrap_or(&Value::Null);
        let is_pod = !network["pod"].is_null();
        let identity = format!("{}/{}/{}", name("namespace"), name("name"), interface["name"]);
        let random = digest(&identity);
        let mac = match interface["macAddress"].as_str() {
            Some(mac) => mac.to_lowercase(),
            None => {
                format!("02:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", random[0], random[1], random[2], random[3], random[4])
            }
        };
        let source = match (is_pod, has_agent) {
            (true, true) => "domain, guest-agent",
            (true, false) => "domain",
            (false, true) => "domain, guest-agent, multus-status",
            (false, false) => "domain, multus-status",
        };
        let of_pod =
            if is_pod { "eth0".to_owned() } else { format!("pod{:02x}{:02x}{:02x}", random[5], random[6], random[7]) };
        let link = if interface["state"] == "down" { "down" } else { "up" };
        let mut status = json!({"name": interface["name"], "mac": mac, "infoSource": source, "linkState": link,
            "queueCount": 1, "podInterfaceName": of_pod});
        if has_agent {
            status["interfaceName"] = format!("eth{index}").into();
        }
        if (is_pod || has_agent) && !has_no_addresses {
            let address = match is_pod {
                true => format!("10.244.{}.{}", random[8], random[9].max(1)),
                false => format!("192.168.{}.{}", random[8], random[9].max(1)),
            };
            status["ipAddress"] = address.clone().into();
            status["ipAddresses"] = json!([address]);
        }
        status
    };
    let present = list(instance, "/spec/domain/devices/interfaces").iter().enumerate();
    present.filter(|(_, interface)| interface["state"] != "absent").map(one).collect()
}
