//! What holds for every Machine.

use std::collections::BTreeSet;

use machines_core::plan::{Live, Write};
use machines_core::resolve::resolve;
use machines_core::understand::understand;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{carried_out, edited, facts, instance, machine, planned};

fn disks() -> impl Strategy<Value = Value> {
    let disk = (
        0..5_usize,
        1..4_u32,
        prop_oneof![Just("standard"), Just("fast"), Just("fixed")],
        any::<bool>(),
        any::<bool>(),
    );
    prop::collection::vec(disk, 0..4).prop_map(|disks| {
        let mut seen = BTreeSet::new();
        let unique = disks.into_iter().filter(|(name, ..)| seen.insert(*name));
        let mut has_boot = false;
        let list: Vec<_> = unique
            .map(|(name, size, class, boot, keep)| {
                let boot = boot && !has_boot;
                has_boot |= boot;
                let name = ["root", "data", "iso", "a", "b-c"][name];
                let on_delete = if keep { "Keep" } else { "Delete" };
                json!({"name": name, "size": format!("{}Gi", size * 20), "storageClass": class, "boot": boot, "onDelete": on_delete})
            })
            .collect();
        json!(list)
    })
}

fn networks() -> impl Strategy<Value = Value> {
    prop::collection::vec((0..3_usize, any::<bool>()), 0..3).prop_map(|nics| {
        let mut seen = BTreeSet::new();
        let unique = nics.into_iter().filter(|(name, _)| seen.insert(*name));
        let list: Vec<_> = unique
            .map(|(name, e1000)| {
                let network = ["", "n1", "n2"][name];
                let model = if e1000 { "e1000" } else { "virtio" };
                json!({"name": format!("eth{name}"), "networkName": network, "model": model})
            })
            .collect();
        json!(list)
    })
}

fn specs() -> impl Strategy<Value = Value> {
    let template = prop_oneof![Just("small"), Just("medium"), Just("large")];
    let cpu = (1..4_u32, 1..3_u32, 1..3_u32);
    let order =
        prop_oneof![Just(json!([])), Just(json!(["network", "disk"])), Just(json!(["cdrom", "disk", "network"]))];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (template, cpu, disks(), networks(), order, flags).prop_map(|(template, (cores, threads, sockets), disks, networks, order, flags)| {
        let (efi, hyperv, cloud_init, image) = flags;
        let mut spec = json!({
            "template": template, "resources": {"cpu": {"cores": cores, "threads": threads, "sockets": sockets}},
            "disks": disks, "networks": networks, "bootOrder": order,
            "domain": {"features": {"hyperv": hyperv}, "firmware": {"bootloader": {"efi": efi, "secureBoot": efi && hyperv}}},
        });
        if cloud_init {
            spec["cloudInit"] = json!({"userData": "#cloud-config\n"});
        }
        if image {
            spec["os"] = json!({"imageID": "https://example.org/a.iso"});
        }
        spec
    })
}

fn names(object: &Value, pointer: &str) -> Vec<String> {
    let entries = object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

const DISKS: &str = "/spec/template/spec/domain/devices/disks";
const INTERFACES: &str = "/spec/template/spec/domain/devices/interfaces";

/// Rules K5 and K6 of KubeVirt.
fn is_accepted(vm: &Value) {
    let (disks, volumes) = (names(vm, DISKS), names(vm, "/spec/template/spec/volumes"));
    let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(sorted(&disks), sorted(&volumes));
    assert_eq!(sorted(&disks).len(), disks.len());
    assert_eq!(sorted(&names(vm, INTERFACES)), sorted(&names(vm, "/spec/template/spec/networks")));
    let devices = [DISKS, INTERFACES].map(|pointer| vm.pointer(pointer).unwrap().as_array().unwrap().clone()).concat();
    let orders: Vec<_> = devices.iter().filter_map(|device| device["bootOrder"].as_u64()).collect();
    assert!(orders.iter().all(|order| *order > 0) && orders.iter().collect::<BTreeSet<_>>().len() == orders.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A plan that was carried out leaves nothing to do, whatever is edited, and no claim is ever
    /// lost: not deleted, not replaced, not forgotten.
    #[test]
    fn a_plan_is_done_once_and_no_claim_is_ever_lost(steps in prop::collection::vec((specs(), any::<bool>()), 1..4)) {
        let mut machine = machine(json!({"template": "small"}));
        let mut live = Live::default();
        let mut uids: BTreeSet<String> = BTreeSet::new();
        for (spec, restarts) in steps {
            machine = edited(&machine, spec);
            let plan = planned(&machine, &live);
            prop_assert!(plan.problems.is_empty(), "{:?}", plan.problems);
            for write in &plan.writes {
                if let Write::ApplyVm { object, .. } = write {
                    is_accepted(object);
                }
            }
            carried_out(&mut machine, &mut live, &plan);
            let again = planned(&machine, &live);
            prop_assert_eq!(&again.writes, &Vec::new());
            prop_assert_eq!(&again.drift, &Vec::<String>::new());
            if restarts || live.vmi.is_none() {
                live.vmi = live.vm.as_ref().map(|vm| instance(vm, false));
                let pending = planned(&machine, &live).pending;
                prop_assert!(pending.iter().all(|change| change.effect == "Refused"), "{:?}", pending);
            }
            let recorded: BTreeSet<_> = machine.status.as_ref().unwrap().disks.iter().filter_map(|disk| disk.uuid.clone()).collect();
            prop_assert!(uids.is_subset(&recorded), "{:?} of {:?}", recorded, uids);
            uids = recorded;
            prop_assert_eq!(live.claims.len(), uids.len());
        }
    }

    /// The order in which maps are written has no effect, nor has the time.
    #[test]
    fn the_same_machine_becomes_the_same_objects(spec in specs()) {
        fn reversed(value: &Value) -> Value {
            match value {
                Value::Object(map) => Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect()),
                Value::Array(list) => Value::Array(list.iter().map(reversed).collect()),
                other => other.clone(),
            }
        }
        let turned = reversed(&spec);
        prop_assert_eq!(planned(&machine(spec), &Live::default()), planned(&machine(turned), &Live::default()));
    }

    /// Whatever somebody writes, it is understood or refused with a path, and nothing panics.
    #[test]
    fn every_spec_is_understood_or_refused(
        name in ".{0,70}", template in proptest::option::of(".{0,8}"), size in ".{0,12}", memory in any::<i64>(),
        gib in any::<i64>(), cores in any::<u32>(), mac in ".{0,20}", key in ".{0,20}",
    ) {
        let spec = json!({
            "template": template, "memory": memory, "cpu": {"cores": cores},
            "disks": [{"name": name, "size": size, "sizeGB": gib}, {}],
            "networks": [{"name": key, "macAddress": mac, "networkName": name, "model": key}],
            "cloudInit": {"userDataBase64": size, "secretRef": {"name": name, "key": key}}, "bootOrder": [key],
            "domain": {"machine": {"type": name}},
        });
        let mut machine = machine(json!({}));
        machine.spec = serde_json::from_value(spec).unwrap();
        machine.metadata.name = Some(name);
        match understand(&machine, None) {
            Ok(wanted) => drop(resolve(&wanted, &facts())),
            Err(problems) => prop_assert!(problems.iter().all(|problem| !problem.path.is_empty() && !problem.message.is_empty())),
        }
    }
}
