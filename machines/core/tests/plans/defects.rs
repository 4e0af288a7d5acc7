//! The defects of the Go program that concern what is planned.

use std::collections::BTreeSet;

use machines_core::deletion::{Remains, Step, next};
use machines_core::facts::{Network, StorageClass};
use machines_core::problem::Reason;
use machines_core::report::{Outcome, status};
use machines_core::resolve::{default_class, resolve};
use machines_core::understand::{kept_disks, understand};
use machines_core::{names, objects};
use serde_json::json;

use crate::world::{edited, facts, machine, planned, problems, resolved, running, vm_of};

/// V1: theirs deletes a disk called `iso` when the image is taken out.
#[test]
fn v1_a_disk_called_iso_is_a_disk_and_the_image_is_another() {
    let spec = json!({"template": "small", "disks": [{"name": "iso", "size": "1Gi"}], "os": {"imageID": "https://example.org/a.iso"}});
    let resolved = resolved(&machine(spec));
    let claims: Vec<_> = objects::claims(&resolved).iter().map(|claim| claim["metadata"]["name"].clone()).collect();
    assert_eq!(claims, ["web-root", "web-iso"]);
    let image = objects::image(&resolved).unwrap();
    assert_eq!(image["metadata"]["name"], "web-cdrom-iso");
    // K12: what a virtual machine's templates make is deleted with it.
    assert!(machines_core::objects::virtual_machine(&resolved)["spec"]["dataVolumeTemplates"].is_null());
    let found = problems(json!({"template": "small", "disks": [{"name": "cdrom-iso", "size": "1Gi"}]}));
    assert_eq!(found[0].path, "spec.disks[0].name");
}

/// V4 and V5: claims go last, and only those that are nobody else's and not to be kept.
#[test]
fn v4_v5_a_deletion_waits_for_the_machine_and_keeps_what_it_does_not_own() {
    let spec = json!({"template": "small", "disks": [{"name": "a", "size": "1Gi", "onDelete": "Keep"}, {"name": "b", "size": "1Gi"}, {"name": "c", "size": "1Gi"}]});
    let (machine, live) = running(spec);
    let mut remains =
        Remains { vm: live.vm.clone(), vmi: live.vmi.clone(), claims: live.claims.clone(), ..Remains::default() };
    let kept = kept_disks(&machine.spec);
    assert_eq!(kept, BTreeSet::from(["a".to_owned()]));
    assert!(matches!(next(&machine, &remains, false), Step::DeleteVm { .. }));
    remains.vm.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(matches!(next(&machine, &remains, false), Step::Wait(_)));
    remains.vm = None;
    assert!(matches!(next(&machine, &remains, false), Step::Wait(_)), "the instance is still there");
    remains.vmi = None;
    // One was made anew by somebody, one is used by somebody.
    remains.claims.get_mut("web-b").unwrap()["metadata"]["uid"] = json!("another");
    remains.users.insert("web-c".to_owned(), vec!["Pod copier".to_owned()]);
    let Step::Claims(fates) = next(&machine, &remains, false) else { panic!("all is gone") };
    let deleted: Vec<_> = fates.iter().filter(|fate| fate.delete.is_some()).map(|fate| fate.claim.as_str()).collect();
    assert_eq!((deleted, fates.len()), (vec!["web-root"], 4));
    let Step::Claims(fates) = next(&machine, &remains, true) else { panic!("all is gone") };
    assert!(fates.iter().all(|fate| fate.delete.is_none()), "with Never no claim is deleted");
}

/// V3: a foreign virtual machine is not deleted with the Machine.
#[test]
fn v3_a_foreign_virtual_machine_outlives_the_machine() {
    let (machine, live) = running(json!({"template": "small"}));
    let mut foreign = live.vm.unwrap();
    foreign["metadata"]["ownerReferences"] = json!([]);
    let remains = Remains { vm: Some(foreign), vmi: live.vmi, ..Remains::default() };
    assert_eq!(next(&machine, &remains, false), Step::Claims(Vec::new()));
}

/// V2: a claim of the wanted name is used only if the Machine's status knows it.
#[test]
fn v2_labels_alone_are_no_proof() {
    let (machine, live) = running(json!({"template": "small"}));
    let mut forgotten = machine.clone();
    forgotten.status = None;
    let claims_only = machines_core::plan::Live { claims: live.claims, ..Default::default() };
    let plan = planned(&forgotten, &claims_only);
    assert_eq!(plan.problems[0].reason, Reason::DiskConflict);
    assert!(plan.problems[0].message.contains("uid-of-web-root") && plan.writes.is_empty());
    // A claim that is gone is not replaced by an empty one.
    let plan = planned(&machine, &machines_core::plan::Live::default());
    assert!(plan.problems[0].message.contains("is gone") && plan.writes.is_empty(), "{:?}", plan.problems);
}

/// V10 to V12: every status has a phase and conditions of known types, and a stopped machine is
/// Stopped.
#[test]
fn v10_v11_v12_statuses_are_whole_and_change_only_with_their_contents() {
    let (machine, mut live) = running(json!({"template": "small"}));
    let plan = planned(&machine, &live);
    live.vm.as_mut().unwrap()["spec"]["runStrategy"] = json!("Halted");
    live.vm.as_mut().unwrap()["status"] = json!({"printableStatus": "Stopped"});
    let wanted = understand(&machine, None).unwrap();
    let outcome = Outcome { wanted: Some(&wanted), plan: Some(&plan), vm: live.vm.as_ref(), ..Outcome::default() };
    let first = status(&machine, &outcome, "2026-01-01T00:00:00Z");
    assert_eq!(first.phase.as_deref(), Some("Stopped"));
    let types: Vec<_> = first.conditions.iter().map(|condition| condition.kind.as_str()).collect();
    assert_eq!(types, ["Ready", "VirtualMachineReady", "StorageReady", "NetworkReady"]);
    let mut told = machine.clone();
    told.status = Some(first.clone());
    assert_eq!(status(&told, &outcome, "2027-01-01T00:00:00Z"), first, "the same again has the same times");
}

#[test]
fn v18_v19_user_data_is_in_a_secret_and_the_pod_network_is_masqueraded() {
    let spec = json!({"template": "small", "cloudInit": {"userData": "#cloud-config\n# hidden\n"}});
    let resolved = resolved(&machine(spec.clone()));
    let vm = vm_of(spec);
    assert!(!vm.to_string().contains("hidden"));
    assert!(objects::secret(&resolved).is_some());
    let interface = &vm["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0];
    assert!(!interface["masquerade"].is_null() && interface["bridge"].is_null());
}

/// V22: VLAN 0 is no VLAN.
#[test]
fn v22_a_bridge_without_a_vlan_has_a_name_of_its_own() {
    let machine = machine(json!({"template": "small", "networks": [{"name": "eth0", "networkName": "n"}]}));
    for (bridge, vlan, name) in [("br0", 0, "bridge-br0"), ("br0", 7, "vlan7"), ("br1", 7, "br1-vlan7")] {
        let mut facts = facts();
        facts.networks.insert("n".to_owned(), Some(Network::Bridge { bridge: bridge.to_owned(), vlan }));
        let resolved = resolve(&understand(&machine, None).unwrap(), &facts).unwrap();
        let made = objects::network_attachments(&resolved);
        assert_eq!(made[0]["metadata"]["name"], name);
        assert_eq!(made[0]["spec"]["config"].as_str().unwrap().contains("\"vlan\""), vlan > 0);
    }
}

#[test]
fn v23_v24_v25_contradictions_are_named_together() {
    let spec = json!({
        "disks": [{"name": "a", "size": "1Gi", "boot": true}, {"name": "a", "size": "1Gi"}, {"name": "b", "size": "0", "boot": true}],
        "networks": [{"name": "x y"}, {"name": "eth0", "macAddress": "02:00:00:00:00"}],
        "resources": {"memory": {"size": "2Gi"}, "cpu": {"cores": 2}}, "memory": 1_073_741_824, "cpu": {"cores": 3},
        "bootOrder": ["disk", "disk", "tape"],
    });
    let found = problems(spec);
    for path in [
        "spec.disks[1].name",
        "spec.disks[2].size",
        "spec.networks[0].name",
        "spec.networks[1].macAddress",
        "spec.resources.memory.size",
        "spec.resources.cpu.cores",
        "spec.bootOrder[1]",
        "spec.bootOrder[2]",
        "spec.disks",
    ] {
        assert!(found.iter().any(|problem| problem.path == path), "{path}: {found:#?}");
    }
    let both = found.iter().find(|problem| problem.path == "spec.resources.memory.size").unwrap();
    assert!(both.message.contains("spec.memory") && both.message.contains("2Gi") && both.message.contains("1024Mi"));
    assert_ne!(names::mac_address("a", "web", "eth0"), names::mac_address("b", "web", "eth0"));
}

/// V27: of several default classes the newest counts, as for Kubernetes, and one that is called
/// default counts before all.
#[test]
fn v27_the_default_class_is_the_one_that_kubernetes_takes() {
    let class = |name: &str, is_default, created: &str| StorageClass {
        name: name.to_owned(),
        is_default,
        created: created.to_owned(),
        ..StorageClass::default()
    };
    let mut classes = vec![
        class("old", true, "2025-01-01T00:00:00Z"),
        class("new", true, "2026-01-01T00:00:00Z"),
        class("other", false, "2027-01-01T00:00:00Z"),
    ];
    assert_eq!(default_class(&classes).unwrap().name, "new");
    classes.push(class("default", false, "2020-01-01T00:00:00Z"));
    assert_eq!(default_class(&classes).unwrap().name, "default");
    assert!(default_class(&classes[2..3]).is_none());
}

/// V31: an image that is named is used, in either spelling, and one that is no address is told.
#[test]
fn v31_an_image_is_used_or_it_is_told_why_not() {
    for field in ["imageID", "isoUri"] {
        let spec = json!({"template": "small", "os": {field: "docker://example.org/image"}});
        let vm = vm_of(spec);
        assert!(vm.to_string().contains("cdrom-iso"), "{vm:#}");
    }
    let wanted = understand(&machine(json!({"template": "small", "os": {"imageID": "talos-1.9"}})), None).unwrap();
    assert!(wanted.image.is_none() && wanted.without_effect.iter().any(|(path, _)| path == "spec.os.imageID"));
}

/// V8: edits of everything are planned.
#[test]
fn v8_edits_are_planned() {
    let (machine, live) = running(json!({"template": "small"}));
    let edit = json!({
        "template": "medium", "disks": [{"name": "data", "size": "1Gi"}],
        "networks": [{"name": "eth0", "networkName": "n1"}], "cloudInit": {"userData": "#cloud-config\n"},
    });
    let plan = planned(&edited(&machine, edit), &live);
    let paths: Vec<_> = plan.pending.iter().map(|change| change.path.as_str()).collect();
    for part in [
        "cpu.cores",
        "memory.guest",
        "disks[data]",
        "volumes[data]",
        "interfaces[eth0]",
        "networks[eth0]",
        "Secret/data",
    ] {
        assert!(paths.iter().any(|path| path.contains(part)), "{part}: {paths:?}");
    }
    assert!(plan.pending.iter().all(|change| !change.reason.is_empty()));
}

/// A virtual machine of the Go program (labels, claim names, bridge binding, EFI, CPU model) is
/// taken over as it is: nothing changes for the guest, now or at its next restart.
#[test]
fn a_virtual_machine_of_the_go_program_is_adopted_without_a_restart() {
    let spec = json!({
        "provider": "kubevirt", "cpu": {"cores": 2, "threadsPerCore": 1, "sockets": 1}, "memory": 2_147_483_648_u64,
        "disks": [{"name": "root", "sizeGB": 10, "boot": true}], "network": {"networkNamespaceName": "ns"},
    });
    let mut machine = machine(spec);
    let mut facts = facts();
    facts.namespace_vlan = Some(100);
    let resolved = resolve(&understand(&machine, None).unwrap(), &facts).unwrap();
    let vm = json!({
        "metadata": {
            "name": "web", "namespace": "default", "uid": "go-vm", "resourceVersion": "7",
            "labels": {"vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/source-machine": "web"},
        },
        "spec": {"runStrategy": "Always", "template": {
            "metadata": {"labels": {"vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/source-machine": "web"}},
            "spec": {
                "domain": {
                    "cpu": {"cores": 2, "threads": 1, "sockets": 1, "model": "host-model"}, "memory": {"guest": "2048Mi"},
                    "firmware": {"uuid": "u", "serial": "s", "bootloader": {"efi": {"secureBoot": false}}},
                    "devices": {
                        "disks": [{"name": "root", "bootOrder": 1, "disk": {"bus": "virtio"}}], "networkInterfaceMultiqueue": true,
                        "autoattachPodInterface": false,
                        "interfaces": [{"name": "vlan100", "model": "virtio", "bridge": {}, "macAddress": "02:12:00:00:00:01"}],
                    },
                },
                "networks": [{"name": "vlan100", "multus": {"networkName": "vlan100"}}],
                "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "web"}}],
            },
        }},
    });
    let claim = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "go-claim", "labels": vm["metadata"]["labels"]},
        "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "storageClassName": "standard", "resources": {"requests": {"storage": "10Gi"}}},
        "status": {"phase": "Bound"},
    });
    let mut live = machines_core::plan::Live {
        vmi: Some(crate::world::instance(&vm, true)),
        vm: Some(vm),
        claims: [("web".to_owned(), claim)].into(),
        attachments: ["vlan100".to_owned()].into(),
        ..Default::default()
    };
    let kubevirt = machines_core::facts::KubeVirt::default();
    let plan = machines_core::plan::plan(&machine, &resolved, &live, &kubevirt);
    assert_eq!(plan.problems[0].reason, Reason::NameTaken);
    let seen = plan.pending;
    machine.metadata.annotations = Some([("machine.vitistack.io/adopt".to_owned(), "go-vm".to_owned())].into());
    let plan = machines_core::plan::plan(&machine, &resolved, &live, &kubevirt);
    assert_eq!((&plan.problems, &plan.pending), (&Vec::new(), &seen));
    assert_eq!(seen, Vec::new(), "nothing changes for the guest");
    let written = crate::world::written_vm(&plan).unwrap();
    assert_eq!(plan.writes.len(), 1);
    assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], crate::world::UID);
    // Its claim is used, and not the Machine's to delete.
    live.vm = Some(written.clone());
    let remains = Remains { claims: live.claims, ..Remains::default() };
    let mut told = machine.clone();
    told.status = Some(machines_api::status::MachineStatus { disks: plan.disks, ..Default::default() });
    let Step::Claims(fates) = next(&told, &remains, false) else { panic!("all is gone") };
    assert!(fates.iter().all(|fate| fate.delete.is_none()), "{fates:?}");
}
