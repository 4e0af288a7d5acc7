//! Data that an adoption, a deletion or a spelling could have cost.

use machines_core::deletion::{Remains, Step, next};
use machines_core::ownership::{ClaimOwnership, claim_ownership};
use machines_core::plan::{Live, Write};
use machines_core::problem::Reason;
use serde_json::{Value, json};

use crate::world::{carried_out, edited, effects, machine, planned, running, written_vm};

fn adopting(spec: Value, uids: &str) -> machines_api::Machine {
    let mut machine = machine(spec);
    machine.metadata.annotations = Some([("machine.vitistack.io/adopt".to_owned(), uids.to_owned())].into());
    machine
}

/// A claim that an earlier Machine of the name has left has its labels. Taken over by word, it is
/// used, and stays taken over: also without the annotation, and when the Machine is deleted.
#[test]
fn a_claim_that_was_taken_over_is_never_deleted_whatever_its_labels() {
    let (_, old) = running(json!({"template": "small"}));
    let mut claim = old.claims["web-root"].clone();
    claim["metadata"]["annotations"]["machine.vitistack.io/machine-uid"] = json!("an-earlier-machine");
    let mut live = Live { claims: [("web-root".to_owned(), claim.clone())].into(), ..Live::default() };
    let mut machine = adopting(json!({"template": "small"}), "uid-of-web-root");
    let plan = planned(&machine, &live);
    assert_eq!(plan.problems, []);
    carried_out(&mut machine, &mut live, &plan);
    assert_eq!(claim_ownership(&machine, &claim), ClaimOwnership::Adopted);
    machine.metadata.annotations = None;
    assert_eq!(planned(&machine, &live).problems, []);
    let remains = Remains { claims: live.claims, ..Remains::default() };
    let Step::Claims(fates) = next(&machine, &remains, false) else { panic!("all is gone") };
    assert!(fates.len() == 1 && fates[0].delete.is_none(), "{fates:?}");
}

/// K12: disks of dataVolumeTemplates are deleted with their virtual machine.
#[test]
fn k12_a_virtual_machine_with_templates_is_neither_taken_over_nor_deleted() {
    let (machine, mut live) = running(json!({"template": "small"}));
    live.vm.as_mut().unwrap()["spec"]["dataVolumeTemplates"] = json!([{"metadata": {"name": "fedora"}}]);
    let remains = Remains { vm: live.vm.clone(), ..Remains::default() };
    let Step::Wait(why) = next(&machine, &remains, false) else { panic!("its disks would go with it") };
    assert!(why.contains("dataVolumeTemplates"));
    let vm = live.vm.as_mut().unwrap();
    vm["metadata"]["ownerReferences"] = json!([]);
    let other = adopting(json!({"template": "small"}), "vm-uid");
    let plan = planned(&other, &Live { vm: live.vm.clone(), ..Live::default() });
    assert!(
        plan.problems.iter().any(|problem| problem.message.contains("dataVolumeTemplates")) && plan.writes.is_empty()
    );
}

/// A disk whose volume is a DataVolume stays on it: its claim has the DataVolume's name.
#[test]
fn a_disk_on_a_data_volume_is_never_swapped_for_an_empty_claim() {
    let (machine, mut live) = running(json!({"template": "small"}));
    let volume = live.vm.as_mut().unwrap().pointer_mut("/spec/template/spec/volumes/0").unwrap();
    *volume = json!({"name": "root", "dataVolume": {"name": "migrated"}});
    let mut claim = live.claims["web-root"].clone();
    claim["metadata"]["name"] = json!("migrated");
    live.claims.insert("migrated".to_owned(), claim);
    let plan = planned(&edited(&machine, json!({"template": "medium"})), &live);
    assert!(!plan.writes.iter().any(|write| matches!(write, Write::CreateClaim(_))));
    let volumes = &written_vm(&plan).unwrap()["spec"]["template"]["spec"]["volumes"];
    assert_eq!(volumes, &json!([{"name": "root", "dataVolume": {"name": "migrated"}}]));
}

/// KubeVirt writes 8192Mi as 8Gi: another spelling is neither an edit, nor drift, nor a restart.
#[test]
fn another_spelling_of_memory_is_no_change() {
    let spec = json!({"template": "small", "resources": {"memory": {"size": "8192Mi"}}});
    let (machine, mut live) = running(spec);
    for object in
        [live.vm.as_mut().unwrap().pointer_mut("/spec/template/spec"), live.vmi.as_mut().unwrap().pointer_mut("/spec")]
    {
        object.unwrap()["domain"]["memory"]["guest"] = json!("8Gi");
    }
    let plan = planned(&machine, &live);
    assert_eq!((plan.writes, plan.pending, plan.drift), (vec![], vec![], vec![]));
}

/// A claim that is not the Machine's is not grown, though its virtual machine has it.
#[test]
fn a_foreign_claim_is_not_grown() {
    let disk = |size: &str| json!({"template": "small", "disks": [{"name": "data", "size": size}]});
    let (machine, mut live) = running(disk("1Gi"));
    live.claims.get_mut("web-data").unwrap()["metadata"]["uid"] = json!("somebody's");
    let plan = planned(&edited(&machine, disk("2Gi")), &live);
    assert!(!plan.writes.iter().any(|write| matches!(write, Write::GrowClaim { .. })));
    assert!(plan.refused[0].message.contains("not this Machine's") && plan.refused[0].message.contains("somebody's"));
}

/// A claim that is attached and missing is not made anew, empty.
#[test]
fn a_claim_that_the_virtual_machine_names_and_that_is_missing_is_not_made() {
    let (mut machine, mut live) = running(json!({"template": "small"}));
    live.claims.clear();
    machine.status = None;
    let plan = planned(&machine, &live);
    assert!(plan.problems[0].reason == Reason::DiskConflict && plan.problems[0].message.contains("is gone"));
}

/// Two volumes of one machine never have one claim.
#[test]
fn a_claim_that_another_volume_has_is_not_attached_again() {
    let spec = json!({"template": "small", "disks": [{"name": "data", "size": "1Gi"}]});
    let (machine, mut live) = running(spec.clone());
    let mut without = edited(&machine, json!({"template": "small"}));
    let plan = planned(&without, &live);
    carried_out(&mut without, &mut live, &plan);
    let volumes = live.vm.as_mut().unwrap().pointer_mut("/spec/template/spec/volumes").unwrap();
    volumes
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "web-data", "persistentVolumeClaim": {"claimName": "web-data"}}));
    let plan = planned(&edited(&without, spec), &live);
    assert!(plan.problems[0].reason == Reason::DiskInUse && plan.writes.is_empty(), "{:?}", plan.problems);
}

/// A machine that was made with `running` follows the Machine in that field, and nothing is
/// pending.
#[test]
fn power_of_an_old_machine_is_its_running_field() {
    let (machine, mut live) = running(json!({"template": "small"}));
    let spec = &mut live.vm.as_mut().unwrap()["spec"];
    spec.as_object_mut().unwrap().remove("runStrategy");
    spec["running"] = json!(true);
    assert_eq!(effects(&planned(&machine, &live)), effects(&Default::default()));
    let halted = edited(&machine, json!({"template": "small", "runStrategy": "Halted"}));
    let plan = planned(&halted, &live);
    assert_eq!(written_vm(&plan).unwrap()["spec"]["running"], false);
    assert_eq!(effects(&plan)["VirtualMachine/spec.running"], "Live");
}

/// A claim whose disk has left the spec was kept then, and is kept when the Machine is deleted.
#[test]
fn a_claim_whose_disk_has_left_the_spec_outlives_the_machine() {
    let spec = json!({"template": "small", "disks": [{"name": "data", "size": "1Gi", "onDelete": "Keep"}]});
    let (machine, mut live) = running(spec);
    let mut without = edited(&machine, json!({"template": "small"}));
    let plan = planned(&without, &live);
    carried_out(&mut without, &mut live, &plan);
    let remains = Remains { claims: live.claims, ..Remains::default() };
    let Step::Claims(fates) = next(&without, &remains, false) else { panic!("all is gone") };
    let deleted: Vec<_> = fates.iter().filter(|fate| fate.delete.is_some()).map(|fate| fate.claim.as_str()).collect();
    assert_eq!((deleted, fates.len()), (vec!["web-root"], 2));
}
