//! Lists of a VirtualMachine are written as a whole (they have no list type: K3), and others write
//! into them: hot-plugged disks, MAC addresses from a pool, interfaces. What is theirs is kept, by
//! name.

use machines_api::RunStrategy;
use serde_json::{Value, json};

use super::APPLIED;
use crate::ownership::{meta, text};
use crate::resolve::Resolved;

const DISKS: &str = "/spec/template/spec/domain/devices/disks";
const INTERFACES: &str = "/spec/template/spec/domain/devices/interfaces";
const VOLUMES: &str = "/spec/template/spec/volumes";
const NETWORKS: &str = "/spec/template/spec/networks";
/// Ways in which an interface is bound to its network.
const BINDINGS: [&str; 5] = ["bridge", "masquerade", "sriov", "slirp", "binding"];

/// Adds to `desired` what others wrote into `live`.
pub(super) fn keep_what_others_wrote(desired: &mut Value, live: &Value, resolved: &Resolved) {
    let record: Option<Value> = serde_json::from_str(meta(live, "annotations", APPLIED)).ok();
    let ours = |key: &str| -> Vec<String> {
        let names = record.as_ref().and_then(|record| record[key].as_array()).into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let (disks, interfaces) = (ours("disks"), ours("interfaces"));
    // A machine that was made by another program keeps its interfaces, if the Machine names none.
    let implicit = resolved.wanted.nics.iter().all(|nic| nic.index.is_none());
    if record.is_none() && implicit && !list(live, INTERFACES).is_empty() {
        for pointer in [INTERFACES, NETWORKS] {
            set(desired, pointer, list(live, pointer).to_vec());
        }
    }
    let networks = [list(desired, NETWORKS).to_vec(), list(live, NETWORKS).to_vec()];
    let explicit = |name: &str| resolved.wanted.nics.iter().any(|nic| nic.name == name && nic.mac_address.is_some());
    merge(desired, live, DISKS, &disks, disk);
    merge(desired, live, VOLUMES, &disks, volume);
    merge(desired, live, NETWORKS, &interfaces, volume);
    merge(desired, live, INTERFACES, &interfaces, |desired, live| {
        let name = text(&desired, "/name").to_owned();
        let on = |networks: &[Value]| networks.iter().find(|network| network["name"] == name.as_str()).cloned();
        let moved = match (on(&networks[0]), on(&networks[1])) {
            (Some(desired), Some(live)) => !super::covers(&live, &desired),
            _ => true,
        };
        interface(desired, live, explicit(&name), moved)
    });
    power(desired, live, resolved);
    identity(desired, live);
    queues(desired, live);
    old_power(desired, live, resolved);
}

/// A machine that was made with `running` keeps it: beside `runStrategy` it is refused (K1).
fn old_power(desired: &mut Value, live: &Value, resolved: &Resolved) {
    let (Some(_), Some(spec)) = (live.pointer("/spec/running"), desired.get_mut("spec").and_then(Value::as_object_mut))
    else {
        return;
    };
    spec.remove("runStrategy");
    if let Some(strategy) = resolved.wanted.run_strategy {
        spec.insert("running".to_owned(), json!(strategy != RunStrategy::Halted));
    }
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn set(object: &mut Value, pointer: &str, entries: Vec<Value>) {
    if let Some(slot) = object.pointer_mut(pointer) {
        *slot = Value::Array(entries);
    }
}

/// The list in the order of `live`: entries of ours as `overlay` has them, without those that left,
/// with all entries of others, and with new ones at the end.
fn merge(desired: &mut Value, live: &Value, pointer: &str, ours: &[String], overlay: impl Fn(Value, Value) -> Value) {
    let mut wanted = list(desired, pointer).to_vec();
    let mut merged = Vec::new();
    for entry in list(live, pointer) {
        let name = text(entry, "/name");
        match wanted.iter().position(|wanted| text(wanted, "/name") == name) {
            Some(at) => merged.push(overlay(wanted.remove(at), entry.clone())),
            None if ours.iter().any(|known| known == name) => {}
            None => merged.push(entry.clone()),
        }
    }
    merged.extend(wanted);
    set(desired, pointer, merged);
}

/// `live` with the fields of `desired`; those in `vocabulary` that `desired` lacks are taken out.
fn overlay(desired: Value, live: Value, vocabulary: &[&str]) -> Value {
    let (Value::Object(desired), Value::Object(mut merged)) = (desired, live) else { return Value::Null };
    merged.retain(|key, _| desired.contains_key(key) || !vocabulary.contains(&key.as_str()));
    for (key, value) in desired {
        let value = match merged.remove(&key) {
            Some(live @ Value::Object(_)) if value.is_object() => overlay(value, live, &[]),
            _ => value,
        };
        merged.insert(key, value);
    }
    Value::Object(merged)
}

fn disk(desired: Value, live: Value) -> Value {
    overlay(desired, live, &["disk", "cdrom", "lun", "bootOrder"])
}

/// A volume has one source, and a network one kind. One that is the same keeps what others have
/// added to it.
fn volume(desired: Value, live: Value) -> Value {
    let claim = text(&desired, "/persistentVolumeClaim/claimName");
    if !claim.is_empty() && text(&live, "/dataVolume/name") == claim {
        return live;
    }
    if super::covers(&live, &desired) { live } else { desired }
}

fn interface(desired: Value, live: Value, explicit: bool, moved: bool) -> Value {
    let mut desired = desired;
    if let Some(map) = desired.as_object_mut() {
        if !explicit && !text(&live, "/macAddress").is_empty() {
            map.insert("macAddress".to_owned(), live["macAddress"].clone());
        }
        // The binding of an interface that stays on its network is left: another one is another
        // card.
        if !moved && BINDINGS.iter().any(|binding| live.get(*binding).is_some()) {
            map.retain(|key, _| !BINDINGS.contains(&key.as_str()));
            let kept = BINDINGS.iter().filter_map(|binding| Some(((*binding).to_owned(), live.get(*binding)?.clone())));
            map.extend(kept);
        }
    }
    let vocabulary: Vec<_> = BINDINGS.into_iter().chain(["bootOrder"]).collect();
    overlay(desired, live, &vocabulary)
}

/// The identity that KubeVirt has given to the machine is carried along. Whoever has applied the
/// bootloader owns all of `firmware`: leaving it out later would take the identity away, and the
/// guest would see other hardware (observed on kube-apiserver 1.36; K4).
fn identity(desired: &mut Value, live: &Value) {
    for field in ["uuid", "serial"] {
        let found = text(live, &format!("/spec/template/spec/domain/firmware/{field}"));
        if !found.is_empty() {
            desired["spec"]["template"]["spec"]["domain"]["firmware"][field] = json!(found);
        }
    }
}

/// Several queues for a card follow the number of CPUs only where that needs a restart anyway:
/// another number of sockets can reach a running machine, and another card can't.
fn queues(desired: &mut Value, live: &Value) {
    const DOMAIN: &str = "/spec/template/spec/domain";
    let topology =
        |object: &Value| ["cores", "threads"].map(|field| object.pointer(&format!("{DOMAIN}/cpu/{field}")).cloned());
    if topology(desired) != topology(live) {
        return;
    }
    let now = live.pointer(&format!("{DOMAIN}/devices/networkInterfaceMultiqueue")).cloned();
    if let Some(devices) = desired.pointer_mut(&format!("{DOMAIN}/devices")).and_then(Value::as_object_mut) {
        devices.remove("networkInterfaceMultiqueue");
        devices.extend(now.map(|now| ("networkInterfaceMultiqueue".to_owned(), now)));
    }
}

/// Unless the Machine says whether it runs, that is left as it is: `virtctl stop` stays stopped
/// (K2).
fn power(desired: &mut Value, live: &Value, resolved: &Resolved) {
    let now = text(live, "/spec/runStrategy");
    if resolved.wanted.run_strategy.is_none() && !now.is_empty() {
        desired["spec"]["runStrategy"] = json!(now);
    }
}
