//! A cluster in data: what it has of a Machine, as the API server and KubeVirt would store it.

use std::collections::BTreeMap;

use machines_api::Machine;
use machines_core::facts::{Facts, KubeVirt, Network, StorageClass};
use machines_core::plan::{Live, Plan, Write, plan};
use machines_core::problem::Problem;
use machines_core::resolve::{Resolved, resolve};
use machines_core::understand::understand;
use serde_json::{Value, json};

pub(super) const UID: &str = "00000000-0000-0000-0000-000000000001";

pub(super) fn machine(spec: Value) -> Machine {
    let object = json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
        "metadata": {"name": "web", "namespace": "default", "uid": UID, "generation": 1}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

pub(super) fn facts() -> Facts {
    let class = |name: &str, is_default, allows_expansion| StorageClass {
        name: name.to_owned(),
        is_default,
        allows_expansion,
        created: "2026-01-01T00:00:00Z".to_owned(),
        waits_for_consumer: false,
    };
    let network = |name: &str| (name.to_owned(), Some(Network::Attachment(name.to_owned())));
    Facts {
        storage_classes: vec![class("standard", true, true), class("fast", false, true), class("fixed", false, false)],
        networks: ["n1", "n2", "n3"].map(network).into(),
        kubevirt: Some(KubeVirt::default()),
        has_data_volumes: true,
        ..Facts::default()
    }
}

pub(super) fn resolved(machine: &Machine) -> Resolved {
    resolve(&understand(machine, None).unwrap(), &facts()).unwrap()
}

pub(super) fn problems(spec: Value) -> Vec<Problem> {
    match understand(&machine(spec), None) {
        Ok(wanted) => resolve(&wanted, &facts()).err().unwrap_or_default(),
        Err(problems) => problems,
    }
}

/// The virtual machine that a Machine becomes.
pub(super) fn vm_of(spec: Value) -> Value {
    machines_core::objects::virtual_machine(&resolved(&machine(spec)))
}

pub(super) fn planned(machine: &Machine, live: &Live) -> Plan {
    planned_on(machine, live, &KubeVirt::default())
}

pub(super) fn planned_on(machine: &Machine, live: &Live, kubevirt: &KubeVirt) -> Plan {
    plan(machine, &resolved(machine), live, kubevirt)
}

/// A virtual machine as KubeVirt stores it: with identity, architecture and machine type.
pub(super) fn stored(mut vm: Value) -> Value {
    vm["metadata"]["uid"] = json!("vm-uid");
    vm["metadata"]["resourceVersion"] = json!("7");
    let spec = &mut vm["spec"]["template"]["spec"];
    spec["architecture"] = json!("amd64");
    for field in ["uuid", "serial"] {
        if spec["domain"]["firmware"][field].is_null() {
            spec["domain"]["firmware"][field] = json!(format!("{field}-of-kubevirt"));
        }
    }
    if spec["domain"]["machine"].is_null() {
        spec["domain"]["machine"] = json!({"type": "q35"});
    }
    vm
}

/// The running instance of a virtual machine.
pub(super) fn instance(vm: &Value, migratable: bool) -> Value {
    let mut spec = vm["spec"]["template"]["spec"].clone();
    let sockets = spec["domain"]["cpu"]["sockets"].as_u64().unwrap();
    spec["domain"]["cpu"]["maxSockets"] = json!(sockets * 4);
    spec["domain"]["memory"]["maxGuest"] = json!("32Gi");
    let status = if migratable { "True" } else { "False" };
    json!({
        "metadata": {"name": "web", "uid": "vmi-uid"},
        "spec": spec,
        "status": {"phase": "Running", "conditions": [{"type": "LiveMigratable", "status": status, "reason": "DisksNotLiveMigratable"}]},
    })
}

/// What the cluster has after everything that `plan` writes was written.
pub(super) fn carried_out(machine: &mut Machine, live: &mut Live, plan: &Plan) {
    for write in &plan.writes {
        match write {
            Write::CreateClaim(object) => {
                let mut claim = object.clone();
                let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(!live.claims.contains_key(&name), "{name} exists");
                claim["metadata"]["uid"] = json!(format!("uid-of-{name}"));
                claim["status"] = json!({"phase": "Bound"});
                live.claims.insert(name, claim);
            }
            Write::GrowClaim { object, .. } => {
                let claim = live.claims.get_mut(object["metadata"]["name"].as_str().unwrap()).unwrap();
                claim["spec"]["resources"] = object["spec"]["resources"].clone();
            }
            Write::ApplySecret { object, .. } => live.secret = Some(object.clone()),
            Write::Create(object) if object["kind"] == "DataVolume" => live.image = Some(object.clone()),
            Write::Create(object) => {
                live.attachments.insert(object["metadata"]["name"].as_str().unwrap().to_owned());
            }
            Write::ApplyVm { object, .. } => live.vm = Some(stored(object.clone())),
            Write::Restart { .. } => {}
        }
    }
    let mut status = machine.status.clone().unwrap_or_default();
    status.disks.clone_from(&plan.disks);
    for disk in &mut status.disks {
        let claim = live.claims.get(disk.pvc_name.as_deref().unwrap());
        disk.uuid = claim.map(|claim| claim["metadata"]["uid"].as_str().unwrap().to_owned());
    }
    machine.status = Some(status);
}

/// A Machine that runs.
pub(super) fn running(spec: Value) -> (Machine, Live) {
    let mut machine = machine(spec);
    let mut live = Live::default();
    let plan = planned(&machine, &live);
    assert_eq!(plan.problems, []);
    carried_out(&mut machine, &mut live, &plan);
    live.vmi = live.vm.as_ref().map(|vm| instance(vm, false));
    (machine, live)
}

/// Changes the spec of a Machine.
pub(super) fn edited(machine: &Machine, spec: Value) -> Machine {
    let mut edited = machine.clone();
    edited.spec = serde_json::from_value(spec).unwrap();
    edited
}

/// The effects of a plan by path.
pub(super) fn effects(plan: &Plan) -> BTreeMap<String, String> {
    plan.pending.iter().map(|change| (change.path.clone(), change.effect.clone())).collect()
}

pub(super) fn written_vm(plan: &Plan) -> Option<&Value> {
    plan.writes.iter().find_map(|write| match write {
        Write::ApplyVm { object, .. } => Some(object),
        _ => None,
    })
}
