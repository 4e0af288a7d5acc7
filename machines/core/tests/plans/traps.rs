//! The traps of KubeVirt that concern what is written.

use machines_core::facts::KubeVirt;
use machines_core::names;
use machines_core::plan::Write;
use machines_core::problem::Reason;
use serde_json::{Value, json};

use crate::world::{
    carried_out, edited, effects, instance, machine, planned, planned_on, problems, running, vm_of, written_vm,
};

const TEMPLATE: &str = "VirtualMachine/spec.template.spec";

fn names_of(vm: &Value, pointer: &str) -> Vec<String> {
    let entries = vm.pointer(pointer).and_then(Value::as_array).unwrap();
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn k2_power_is_left_as_it_is_unless_the_machine_says_it() {
    let (machine, mut live) = running(json!({"template": "small"}));
    live.vm.as_mut().unwrap()["spec"]["runStrategy"] = json!("Halted");
    live.vmi = None;
    let other = edited(&machine, json!({"template": "medium"}));
    assert_eq!(written_vm(&planned(&other, &live)).unwrap()["spec"]["runStrategy"], "Halted");
    let always = edited(&machine, json!({"template": "small", "runStrategy": "Always"}));
    let plan = planned(&always, &live);
    assert_eq!(written_vm(&plan).unwrap()["spec"]["runStrategy"], "Always");
    assert_eq!(effects(&plan)["VirtualMachine/spec.runStrategy"], "Live");
}

/// K1: a machine that was made with `running` keeps it: both together are refused.
#[test]
fn k1_running_and_run_strategy_are_never_written_together() {
    let (machine, mut live) = running(json!({"template": "small"}));
    let spec = &mut live.vm.as_mut().unwrap()["spec"];
    spec.as_object_mut().unwrap().remove("runStrategy");
    spec["running"] = json!(true);
    let plan = planned(&edited(&machine, json!({"template": "medium"})), &live);
    assert!(written_vm(&plan).unwrap()["spec"]["runStrategy"].is_null());
}

#[test]
fn k3_what_others_put_into_lists_is_kept_and_what_was_ours_goes() {
    let spec = json!({"template": "small", "disks": [{"name": "data", "size": "1Gi"}]});
    let (machine, mut live) = running(spec);
    let vm = live.vm.as_mut().unwrap();
    let push = |vm: &mut Value, pointer: &str, entry: Value| {
        vm.pointer_mut(pointer).unwrap().as_array_mut().unwrap().push(entry)
    };
    push(vm, "/spec/template/spec/domain/devices/disks", json!({"name": "hot", "disk": {"bus": "scsi"}}));
    push(
        vm,
        "/spec/template/spec/volumes",
        json!({"name": "hot", "persistentVolumeClaim": {"claimName": "hot", "hotpluggable": true}}),
    );
    push(vm, "/spec/template/spec/domain/devices/interfaces", json!({"name": "extra", "bridge": {}}));
    push(vm, "/spec/template/spec/networks", json!({"name": "extra", "multus": {"networkName": "n"}}));
    // A pool of MAC addresses has set another one.
    vm.pointer_mut("/spec/template/spec/domain/devices/interfaces/0").unwrap()["macAddress"] =
        json!("02:aa:aa:aa:aa:aa");
    assert_eq!(planned(&machine, &live).drift, Vec::<String>::new());
    assert!(written_vm(&planned(&machine, &live)).is_none(), "nothing of ours has changed");
    let plan = planned(&edited(&machine, json!({"template": "small"})), &live);
    let vm = written_vm(&plan).unwrap();
    assert_eq!(names_of(vm, "/spec/template/spec/domain/devices/disks"), ["root", "hot"]);
    assert_eq!(names_of(vm, "/spec/template/spec/volumes"), ["root", "hot"]);
    assert_eq!(names_of(vm, "/spec/template/spec/domain/devices/interfaces"), ["default", "extra"]);
    let interface = vm.pointer("/spec/template/spec/domain/devices/interfaces/0").unwrap();
    assert_eq!(interface["macAddress"], "02:aa:aa:aa:aa:aa");
    assert_eq!(plan.detached, ["web-data"]);
}

/// K4: the identity of a machine is carried along when its firmware changes: leaving out what was
/// applied before would take all of `firmware` away.
#[test]
fn k4_the_identity_of_a_machine_stays() {
    let bootloader = json!({"firmware": {"bootloader": {"efi": true}}});
    let (machine, live) = running(json!({"template": "small", "domain": bootloader}));
    let plan = planned(&edited(&machine, json!({"template": "small"})), &live);
    let firmware = &written_vm(&plan).unwrap()["spec"]["template"]["spec"]["domain"]["firmware"];
    assert_eq!(firmware, &json!({"uuid": "uuid-of-kubevirt", "serial": "serial-of-kubevirt"}));
}

#[test]
fn k6_boot_numbers_are_one_row_over_disks_and_interfaces() {
    let spec = json!({
        "template": "small", "disks": [{"name": "a", "size": "1Gi", "boot": true}],
        "networks": [{"name": "eth0"}, {"name": "eth1", "networkName": "n1"}], "bootOrder": ["network", "disk"],
    });
    let vm = vm_of(spec);
    let devices = &vm["spec"]["template"]["spec"]["domain"]["devices"];
    let orders = |list: &str| -> Vec<u64> {
        devices[list].as_array().unwrap().iter().map(|device| device["bootOrder"].as_u64().unwrap()).collect()
    };
    assert_eq!((orders("interfaces"), orders("disks")), (vec![1, 2], vec![4, 3]));
}

#[test]
fn k8_k9_firmware_and_machine_types_are_those_that_kubevirt_takes() {
    let efi = |secure: bool| json!({"template": "small", "domain": {"machine": {"type": "pc-q35"}, "firmware": {"bootloader": {"efi": true, "secureBoot": secure}}}});
    let domain = |spec: Value| vm_of(spec)["spec"]["template"]["spec"]["domain"].clone();
    let plain = domain(efi(false));
    assert_eq!(plain["firmware"]["bootloader"]["efi"], json!({"secureBoot": false}));
    assert_eq!(plain["machine"]["type"], "q35");
    assert!(plain["features"].is_null());
    assert_eq!(domain(efi(true))["features"]["smm"], json!({"enabled": true}));
    for (spec, words) in [
        (json!({"firmware": {"bootloader": {"secureBoot": true}}}), "needs efi"),
        (json!({"machine": {"type": "pc-i440fx"}}), "emulatedMachines"),
        (json!({"machine": {"type": "vax"}}), "pc-q35"),
    ] {
        let found = problems(json!({"template": "small", "domain": spec}));
        assert!(found.iter().any(|problem| problem.message.contains(words)), "{spec}: {found:?}");
    }
}

/// K11 and K27: the same edit has another effect on another cluster.
#[test]
fn k11_k27_effects_depend_on_the_cluster_and_on_the_machine() {
    let (machine, mut live) = running(json!({"template": "small"}));
    let more = edited(&machine, json!({"template": "small", "resources": {"cpu": {"sockets": 2}}}));
    let path = format!("{TEMPLATE}.domain.cpu.sockets");
    let cluster = |live_update, migrates, evicts| KubeVirt { live_update, migrates, evicts, ..KubeVirt::default() };
    for (migratable, kubevirt, effect, is_held) in [
        (true, cluster(true, true, false), "Live", false),
        (true, cluster(true, false, false), "Restart", false),
        (true, cluster(false, true, false), "Restart", false),
        (false, cluster(true, true, false), "Restart", false),
        (false, cluster(true, true, true), "Restart", true),
        (true, cluster(true, false, true), "Restart", true),
    ] {
        live.vmi = live.vm.as_ref().map(|vm| instance(vm, migratable));
        let plan = planned_on(&more, &live, &kubevirt);
        assert_eq!(effects(&plan)[&path], effect, "{migratable} {kubevirt:?}");
        assert_eq!(plan.held.is_some(), is_held, "{migratable} {kubevirt:?}");
        assert_eq!(written_vm(&plan).is_none(), is_held, "an eviction is never caused without a word");
        let mut allowed = more.clone();
        allowed.spec.updates = Some(machines_api::Updates::Restart);
        assert!(written_vm(&planned_on(&allowed, &live, &kubevirt)).is_some());
    }
    live.vmi = live.vm.as_ref().map(|vm| instance(vm, true));
    let cores = edited(&machine, json!({"template": "small", "resources": {"cpu": {"cores": 2, "sockets": 2}}}));
    let found = effects(&planned_on(&cores, &live, &cluster(true, true, false)));
    assert!(found.values().all(|effect| effect == "Restart"), "one restart holds the others back: {found:?}");
    live.vmi = None;
    assert_eq!(effects(&planned(&more, &live))[&path], "NextBoot");
}

#[test]
fn k14_sizes_grow_and_never_shrink() {
    let disk = |size: &str, class: &str| json!({"template": "small", "disks": [{"name": "data", "size": size, "storageClass": class}]});
    let (machine, mut live) = running(disk("2Gi", "standard"));
    let plan = planned(&edited(&machine, disk("3Gi", "standard")), &live);
    assert!(plan.writes.iter().any(|write| matches!(write, Write::GrowClaim { .. })) && plan.refused.is_empty());
    live.claims.get_mut("web-data").unwrap()["status"]["phase"] = json!("Pending");
    let plan = planned(&edited(&machine, disk("3Gi", "standard")), &live);
    assert!(
        !plan.writes.iter().any(|write| matches!(write, Write::GrowClaim { .. })),
        "a claim that is not bound can't grow"
    );
    let plan = planned(&edited(&machine, disk("1Gi", "standard")), &live);
    assert!(plan.refused[0].message.contains("2Gi") && plan.refused[0].message.contains("1Gi"));
    let plan = planned(&edited(&machine, disk("2Gi", "fast")), &live);
    assert!(plan.refused[0].message.contains("standard") && plan.refused[0].message.contains("fast"));
    let (machine, live) = running(disk("2Gi", "fixed"));
    let plan = planned(&edited(&machine, disk("3Gi", "fixed")), &live);
    assert!(plan.refused[0].message.contains("allowVolumeExpansion") && written_vm(&plan).is_none());
    // The same amount in another spelling is no edit.
    let plan = planned(&edited(&machine, disk("2048Mi", "fixed")), &live);
    assert_eq!((plan.refused, plan.pending), (vec![], vec![]));
}

/// K15: two machines on one claim would destroy its data.
#[test]
fn k15_a_claim_that_somebody_uses_is_not_attached() {
    let (machine, mut live) = running(json!({"template": "small", "disks": [{"name": "data", "size": "1Gi"}]}));
    let without = edited(&machine, json!({"template": "small"}));
    let plan = planned(&without, &live);
    let mut machine = without;
    carried_out(&mut machine, &mut live, &plan);
    live.users.insert("web-data".to_owned(), vec!["Pod copier".to_owned()]);
    let again = edited(&machine, json!({"template": "small", "disks": [{"name": "data", "size": "1Gi"}]}));
    let plan = planned(&again, &live);
    assert_eq!(plan.problems[0].reason, Reason::DiskInUse);
    assert!(plan.problems[0].message.contains("Pod copier") && plan.writes.is_empty());
    live.users.clear();
    let plan = planned(&again, &live);
    assert!(plan.problems.is_empty() && !plan.writes.iter().any(|write| matches!(write, Write::CreateClaim(_))));
}

#[test]
fn k20_names_that_are_too_long_are_refused_before_anything_is_written() {
    let mut machine = machine(json!({"template": "small"}));
    machine.metadata.name = Some("a".repeat(64));
    let found = machines_core::understand::understand(&machine, None).unwrap_err();
    assert_eq!(found[0].path, "metadata.name");
    machine.metadata.name = Some("a".repeat(63));
    assert!(machines_core::understand::understand(&machine, None).is_ok());
    assert!(names::is_label(&"a".repeat(63)));
}
