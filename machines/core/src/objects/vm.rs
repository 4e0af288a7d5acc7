//! The VirtualMachine.

use machines_api::cloud_init::CloudInitType;
use machines_api::{MACHINE_LABEL, SOURCE_MACHINE_LABEL};
use serde_json::{Map, Value, json};

use super::{labels, owner};
use crate::names;
use crate::resolve::{Resolved, ResolvedNic};
use crate::understand::{BootClass, WantedDomain};

/// The VirtualMachine of a Machine, with all its claims under their usual names.
#[must_use]
pub fn virtual_machine(resolved: &Resolved) -> Value {
    let wanted = &resolved.wanted;
    let boot = BootNumbers::of(resolved);
    let mut devices = Map::new();
    devices.insert("disks".to_owned(), Value::Array(disks(resolved, &boot)));
    devices.insert("interfaces".to_owned(), Value::Array(interfaces(resolved, &boot)));
    if wanted.cpu.count() > 1 && wanted.nics.iter().any(|nic| nic.model == "virtio") {
        devices.insert("networkInterfaceMultiqueue".to_owned(), json!(true));
    }
    let mut domain = Map::new();
    domain.insert(
        "cpu".to_owned(),
        json!({"cores": wanted.cpu.cores, "threads": wanted.cpu.threads, "sockets": wanted.cpu.sockets}),
    );
    domain.insert("memory".to_owned(), json!({"guest": wanted.memory}));
    domain.insert("devices".to_owned(), Value::Object(devices));
    hardware(&wanted.domain, &mut domain);
    json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": wanted.name,
            "namespace": wanted.namespace,
            "labels": labels(&wanted.name),
            "ownerReferences": owner(wanted),
        },
        "spec": {
            "runStrategy": wanted.run_strategy.map_or("Always", machines_api::RunStrategy::name),
            "template": {
                "metadata": {"labels": { MACHINE_LABEL: wanted.name, SOURCE_MACHINE_LABEL: wanted.name }},
                "spec": {
                    "domain": domain,
                    "networks": networks(resolved),
                    "volumes": volumes(resolved),
                },
            },
        },
    })
}

/// Boot numbers: disks and interfaces share one row of numbers (K6).
struct BootNumbers {
    disks: Vec<Option<u32>>,
    nics: Vec<Option<u32>>,
    image: Option<u32>,
}

impl BootNumbers {
    fn of(resolved: &Resolved) -> Self {
        let wanted = &resolved.wanted;
        let first = wanted.disks.iter().position(|disk| disk.boot).unwrap_or(0);
        let mut numbers =
            Self { disks: vec![None; wanted.disks.len()], nics: vec![None; wanted.nics.len()], image: None };
        let mut next = 1..;
        let mut number = |slot: &mut Option<u32>| *slot = next.next();
        if wanted.boot.is_empty() {
            numbers.disks.iter_mut().skip(first).take(1).for_each(&mut number);
            // An empty disk is skipped by the firmware: the first boot is from the image.
            if wanted.image.is_some() {
                number(&mut numbers.image);
            }
            return numbers;
        }
        for class in &wanted.boot {
            match class {
                BootClass::Disk => {
                    let mut order: Vec<_> = (0..wanted.disks.len()).collect();
                    order.sort_by_key(|index| *index != first);
                    for index in order {
                        number(&mut numbers.disks[index]);
                    }
                }
                BootClass::Network => numbers.nics.iter_mut().for_each(&mut number),
                BootClass::Cdrom if wanted.image.is_some() => number(&mut numbers.image),
                BootClass::Cdrom => {}
            }
        }
        numbers
    }
}

fn numbered(mut device: Value, number: Option<u32>) -> Value {
    if let Some(number) = number {
        device["bootOrder"] = json!(number);
    }
    device
}

fn disks(resolved: &Resolved, boot: &BootNumbers) -> Vec<Value> {
    let wanted = &resolved.wanted;
    let mut disks: Vec<_> = wanted
        .disks
        .iter()
        .zip(&boot.disks)
        .map(|(disk, number)| numbered(json!({"name": disk.name, "disk": {"bus": disk.bus}}), *number))
        .collect();
    if wanted.image.is_some() {
        disks.push(numbered(json!({"name": names::ISO_VOLUME, "cdrom": {"bus": "sata"}}), boot.image));
    }
    if resolved.cloud_init.is_some() {
        disks.push(json!({"name": names::CLOUD_INIT_VOLUME, "disk": {"bus": "virtio"}}));
    }
    disks
}

fn volumes(resolved: &Resolved) -> Vec<Value> {
    let wanted = &resolved.wanted;
    let claim =
        |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": names::claim(&wanted.name, name)}});
    let mut volumes: Vec<_> = wanted.disks.iter().map(|disk| claim(&disk.name)).collect();
    if wanted.image.is_some() {
        let name = names::claim(&wanted.name, names::ISO_VOLUME);
        volumes.push(json!({"name": names::ISO_VOLUME, "dataVolume": {"name": name}}));
    }
    if let Some(data) = &resolved.cloud_init {
        let mut source = Map::new();
        if let Some(name) = &data.user_secret {
            source.insert("secretRef".to_owned(), json!({"name": name}));
        }
        if let Some(name) = &data.network_secret {
            source.insert("networkDataSecretRef".to_owned(), json!({"name": name}));
        }
        let kind = match data.kind {
            CloudInitType::NoCloud => "cloudInitNoCloud",
            CloudInitType::ConfigDrive => "cloudInitConfigDrive",
        };
        volumes.push(json!({"name": names::CLOUD_INIT_VOLUME, kind: source}));
    }
    volumes
}

fn interfaces(resolved: &Resolved, boot: &BootNumbers) -> Vec<Value> {
    let wanted = &resolved.wanted;
    wanted
        .nics
        .iter()
        .zip(&resolved.nics)
        .zip(&boot.nics)
        .map(|((nic, network), number)| {
            let address = nic.mac_address.clone();
            let address = address.unwrap_or_else(|| names::mac_address(&wanted.namespace, &wanted.name, &nic.name));
            // Bridge binding on the pod network would keep the machine from migrating (K10).
            let binding = if *network == ResolvedNic::Pod { "masquerade" } else { "bridge" };
            numbered(json!({"name": nic.name, "model": nic.model, "macAddress": address, binding: {}}), *number)
        })
        .collect()
}

fn networks(resolved: &Resolved) -> Vec<Value> {
    let nics = resolved.wanted.nics.iter().zip(&resolved.nics);
    nics.map(|(nic, network)| match network {
        ResolvedNic::Pod => json!({"name": nic.name, "pod": {}}),
        ResolvedNic::Attachment(name) | ResolvedNic::Bridge { attachment: name, .. } => {
            json!({"name": nic.name, "multus": {"networkName": name}})
        }
    })
    .collect()
}

/// Machine type, firmware and features.
fn hardware(wanted: &WantedDomain, domain: &mut Map<String, Value>) {
    if let Some(chipset) = wanted.chipset {
        domain.insert("machine".to_owned(), json!({"type": chipset.machine_type()}));
    }
    match wanted.efi {
        // `efi: {}` would switch secure boot on (K8).
        Some(true) => {
            domain.insert("firmware".to_owned(), json!({"bootloader": {"efi": {"secureBoot": wanted.secure_boot}}}));
        }
        Some(false) => {
            domain.insert("firmware".to_owned(), json!({"bootloader": {"bios": {}}}));
        }
        None => {}
    }
    let mut features = Map::new();
    if let Some(enabled) = wanted.acpi {
        features.insert("acpi".to_owned(), json!({"enabled": enabled}));
    }
    if let Some(enabled) = wanted.apic {
        features.insert("apic".to_owned(), json!({"enabled": enabled}));
    }
    if wanted.hyperv {
        features.insert("hyperv".to_owned(), hyperv());
        domain.insert("clock".to_owned(), clock());
    }
    if wanted.secure_boot {
        features.insert("smm".to_owned(), json!({"enabled": true}));
    }
    if !features.is_empty() {
        domain.insert("features".to_owned(), Value::Object(features));
    }
}

/// What KubeVirt's own preference for Windows sets (kubevirt/common-instancetypes,
/// preferences/components/windows).
fn hyperv() -> Value {
    json!({
        "relaxed": {},
        "vapic": {},
        "vpindex": {},
        "synic": {},
        "ipi": {},
        "tlbflush": {},
        "frequencies": {},
        "reenlightenment": {},
        "reset": {},
        "runtime": {},
        "spinlocks": {"spinlocks": 8191},
        "synictimer": {"direct": {}},
    })
}

fn clock() -> Value {
    json!({
        "utc": {},
        "timer": {
            "hpet": {"present": false},
            "hyperv": {},
            "pit": {"tickPolicy": "delay"},
            "rtc": {"tickPolicy": "catchup"},
        },
    })
}
