//! What is refused, and what is completed: each rule with a machine that passes, and one that does
//! not.

use kube::api::{DynamicObject, Patch, PatchParams};
use kubevirt_simulator::Settings;
use serde_json::{Value, json};

use super::world::{World, machine, with_disk};

/// Changes a machine that is accepted.
type Edit = fn(&mut Value);

/// A rule by name, a machine that passes, one that is refused, and what is said then.
type Case = (&'static str, Edit, Edit, &'static str);

fn spec(vm: &mut Value) -> &mut Value {
    &mut vm["spec"]["template"]["spec"]
}

fn push(list: &mut Value, entry: Value) {
    list.as_array_mut().expect("a list").push(entry);
}

fn nothing(_: &mut Value) {}

fn volume(vm: &mut Value, volume: Value) {
    let disk = json!({"name": volume["name"], "disk": {"bus": "virtio"}});
    push(&mut spec(vm)["domain"]["devices"]["disks"], disk);
    push(&mut spec(vm)["volumes"], volume);
}

fn interface(vm: &mut Value, interface: Value, network: Value) {
    push(&mut spec(vm)["domain"]["devices"]["interfaces"], interface);
    push(&mut spec(vm)["networks"], network);
}

fn user_data(vm: &mut Value, source: &str, key: &str, bytes: usize) {
    volume(vm, json!({"name": "init", source: {key: "a".repeat(bytes)}}));
}

const POWER: [Case; 4] = [
    (
        "running xor runStrategy",
        |vm| vm["spec"] = json!({"running": true, "template": vm["spec"]["template"]}),
        |vm| vm["spec"]["running"] = true.into(),
        "Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead",
    ),
    ("one of them", nothing, |vm| vm["spec"]["runStrategy"] = Value::Null, "RunStrategy must be specified"),
    (
        "known run strategy",
        |vm| vm["spec"]["runStrategy"] = "Once".into(),
        |vm| vm["spec"]["runStrategy"] = "Sometimes".into(),
        "Invalid RunStrategy (Sometimes)",
    ),
    (
        "reserved labels",
        |vm| vm["spec"]["template"]["metadata"]["labels"]["kubevirt.io/size"] = "small".into(),
        |vm| vm["spec"]["template"]["metadata"]["labels"]["kubevirt.io/nodeName"] = "a".into(),
        "creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited",
    ),
];

const DISKS: [Case; 8] = [
    (
        "a disk for each volume",
        |vm| {
            volume(vm, json!({"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}}));
            let filesystem = json!([{"name": "shared", "virtiofs": {}}]);
            spec(vm)["domain"]["devices"]["filesystems"] = filesystem;
            spec(vm)["domain"]["devices"]["disks"] = json!([{"name": "root", "disk": {}}]);
        },
        |vm| spec(vm)["domain"]["devices"]["disks"] = json!([]),
        "spec.template.spec.domain.volumes[0].name 'root' not found.",
    ),
    (
        "a volume for each disk",
        |vm| push(&mut spec(vm)["domain"]["devices"]["disks"], json!({"name": "cd", "cdrom": {}})),
        |vm| spec(vm)["volumes"] = json!([]),
        "spec.template.spec.domain.devices.disks[0].Name 'root' not found.",
    ),
    (
        "names of volumes are unique",
        nothing,
        |vm| push(&mut spec(vm)["volumes"], json!({"name": "root", "emptyDisk": {"capacity": "1Gi"}})),
        "spec.template.spec.volumes[1] and spec.template.spec.volumes[0] must not have the same Name.",
    ),
    (
        "names of disks are unique",
        nothing,
        |vm| push(&mut spec(vm)["domain"]["devices"]["disks"], json!({"name": "root", "disk": {}})),
        "spec.template.spec.domain.devices.disks[1] and spec.template.spec.domain.devices.disks[0] must not have the same Name.",
    ),
    (
        "names are labels",
        |vm| volume(vm, json!({"name": "data-1", "emptyDisk": {"capacity": "1Gi"}})),
        |vm| volume(vm, json!({"name": "Data_1", "emptyDisk": {"capacity": "1Gi"}})),
        "a lowercase RFC 1123 label must consist of",
    ),
    (
        "one source",
        nothing,
        |vm| spec(vm)["volumes"][0]["emptyDisk"] = json!({"capacity": "1Gi"}),
        "spec.template.spec.volumes[0] must have exactly one source type set",
    ),
    (
        "boot orders are positive",
        |vm| spec(vm)["domain"]["devices"]["disks"][0]["bootOrder"] = 1.into(),
        |vm| spec(vm)["domain"]["devices"]["disks"][0]["bootOrder"] = 0.into(),
        "spec.template.spec.domain.devices.disks[0] must have a boot order > 0, if supplied",
    ),
    (
        "boot orders are unique over disks and interfaces",
        |vm| {
            spec(vm)["domain"]["devices"]["disks"][0]["bootOrder"] = 1.into();
            spec(vm)["domain"]["devices"]["interfaces"][0]["bootOrder"] = 2.into();
        },
        |vm| {
            spec(vm)["domain"]["devices"]["disks"][0]["bootOrder"] = 1.into();
            spec(vm)["domain"]["devices"]["interfaces"][0]["bootOrder"] = 1.into();
        },
        "Boot order for spec.template.spec.domain.devices.interfaces[0].bootOrder already set for a different device.",
    ),
];

const GUESTS: [Case; 9] = [
    (
        "user data is short",
        |vm| user_data(vm, "cloudInitNoCloud", "userData", 2048),
        |vm| user_data(vm, "cloudInitNoCloud", "userData", 2049),
        "spec.template.spec.volumes[1].cloudInitNoCloud userdata exceeds 2048 byte limit. Should use UserDataSecretRef",
    ),
    (
        "encoded user data is short",
        |vm| user_data(vm, "cloudInitConfigDrive", "userDataBase64", 2728),
        |vm| user_data(vm, "cloudInitConfigDrive", "userDataBase64", 2736),
        "spec.template.spec.volumes[1].cloudInitConfigDrive userdata exceeds 2048 byte limit.",
    ),
    (
        "network data is short",
        |vm| user_data(vm, "cloudInitNoCloud", "networkData", 2048),
        |vm| user_data(vm, "cloudInitNoCloud", "networkData", 2049),
        "spec.template.spec.volumes[1].cloudInitNoCloud networkdata exceeds 2048 byte limit. Should use NetworkDataSecretRef",
    ),
    (
        "some data",
        |vm| volume(vm, json!({"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "a"}}})),
        |vm| volume(vm, json!({"name": "init", "cloudInitNoCloud": {}})),
        "spec.template.spec.volumes[1].cloudInitNoCloud must have at least one userdatasource or one networkdatasource set.",
    ),
    (
        "efi is secure boot, and needs smm",
        |vm| {
            spec(vm)["domain"]["firmware"] = json!({"bootloader": {"efi": {}}});
            spec(vm)["domain"]["features"] = json!({"smm": {}});
        },
        |vm| spec(vm)["domain"]["firmware"] = json!({"bootloader": {"efi": {}}}),
        "spec.template.spec.domain has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled.",
    ),
    (
        "smm that is off is not enough",
        |vm| spec(vm)["domain"]["firmware"] = json!({"bootloader": {"efi": {"secureBoot": false}}}),
        |vm| {
            spec(vm)["domain"]["firmware"] = json!({"bootloader": {"efi": {"secureBoot": true}}});
            spec(vm)["domain"]["features"] = json!({"smm": {"enabled": false}});
        },
        "has EFI SecureBoot enabled",
    ),
    (
        "efi xor bios",
        |vm| spec(vm)["domain"]["firmware"] = json!({"bootloader": {"bios": {}}}),
        |vm| spec(vm)["domain"]["firmware"] = json!({"bootloader": {"bios": {}, "efi": {"secureBoot": false}}}),
        "spec.template.spec.domain.firmware.bootloader has both EFI and BIOS configured, but they are mutually exclusive.",
    ),
    (
        "machine types",
        |vm| spec(vm)["domain"]["machine"] = json!({"type": "pc-q35-rhel9.4.0"}),
        |vm| spec(vm)["domain"]["machine"] = json!({"type": "pc-i440fx"}),
        "spec.template.spec.domain.machine.type is not supported: pc-i440fx (allowed values: [q35* pc-q35*])",
    ),
    (
        "sockets and their maximum",
        |vm| spec(vm)["domain"]["cpu"]["maxSockets"] = 1.into(),
        |vm| spec(vm)["domain"]["cpu"] = json!({"sockets": 3, "maxSockets": 2}),
        "Number of sockets in CPU topology is greater than the maximum sockets allowed",
    ),
];

const NETWORKS: [Case; 9] = [
    (
        "models",
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["model"] = "e1000e".into(),
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["model"] = "vmxnet3".into(),
        "interface spec.domain.devices.interfaces[0].name uses model vmxnet3 that is not supported.",
    ),
    (
        "names",
        |vm| {
            interface(
                vm,
                json!({"name": "Net_1", "bridge": {}}),
                json!({"name": "Net_1", "multus": {"networkName": "a"}}),
            )
        },
        |vm| {
            interface(
                vm,
                json!({"name": "net.1", "bridge": {}}),
                json!({"name": "net.1", "multus": {"networkName": "a"}}),
            )
        },
        "Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)",
    ),
    (
        "one pod network",
        |vm| interface(vm, json!({"name": "b", "bridge": {}}), json!({"name": "b", "multus": {"networkName": "a"}})),
        |vm| interface(vm, json!({"name": "b", "masquerade": {}}), json!({"name": "b", "pod": {}})),
        "more than one interface is connected to a pod network in spec.interfaces",
    ),
    (
        "masquerade only there",
        |vm| spec(vm)["domain"]["devices"]["interfaces"] = json!([{"name": "default", "bridge": {}}]),
        |vm| {
            interface(vm, json!({"name": "b", "masquerade": {}}), json!({"name": "b", "multus": {"networkName": "a"}}))
        },
        "Masquerade interface only implemented with pod network",
    ),
    (
        "reserved MAC",
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["macAddress"] = "02:00:00:00:00:01".into(),
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["macAddress"] = "02:00:00:00:00:00".into(),
        "The requested MAC address is reserved for the in-pod bridge. Please choose another one.",
    ),
    (
        "MAC addresses",
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["macAddress"] = "DE-AD-00-00-BE-AF".into(),
        |vm| spec(vm)["domain"]["devices"]["interfaces"][0]["macAddress"] = "de:ad:00:00:be".into(),
        "interface spec.domain.devices.interfaces[0].name has malformed MAC address (de:ad:00:00:be).",
    ),
    (
        "an interface for each network",
        nothing,
        |vm| spec(vm)["domain"]["devices"]["interfaces"] = json!([]),
        "spec.networks[0].name 'default' not found.",
    ),
    (
        "a network for each interface",
        nothing,
        |vm| spec(vm)["networks"] = json!([]),
        "spec.domain.devices.interfaces[0].name 'default' not found.",
    ),
    (
        "one interface for a network",
        nothing,
        |vm| {
            push(&mut spec(vm)["domain"]["devices"]["interfaces"], json!({"name": "default", "masquerade": {}}));
        },
        "Only one interface can be connected to one specific network",
    ),
];

#[tokio::test]
async fn each_rule_refuses_what_kubevirt_refuses() {
    let Some(world) = World::new(Settings::default()).await else { return };
    let valid = || {
        let mut vm = with_disk(machine("tried"), "root");
        vm["spec"]["runStrategy"] = "Halted".into();
        vm
    };
    let params = kube::api::PostParams { dry_run: true, ..Default::default() };
    for (rule, accepted, refused, message) in POWER.iter().chain(&DISKS).chain(&GUESTS).chain(&NETWORKS) {
        let [good, bad] = [accepted, refused].map(|edit| {
            let mut vm = valid();
            edit(&mut vm);
            serde_json::from_value::<DynamicObject>(vm).unwrap()
        });
        if let Err(error) = world.machines().create(&params, &good).await {
            panic!("{rule}: a good one is refused: {error}");
        }
        match world.machines().create(&params, &bad).await {
            Err(kube::Error::Api(status)) => {
                assert!(status.message.contains(message), "{rule}: {}", status.message);
                assert_eq!(status.code, 422, "{rule}");
            }
            other => panic!("{rule}: a bad one is accepted: {other:?}"),
        }
    }
    world.end().await;
}

#[tokio::test]
async fn an_update_is_refused_like_a_creation() {
    let Some(world) = World::new(Settings::default()).await else { return };
    let mut vm = machine("updated");
    vm["spec"]["runStrategy"] = "Halted".into();
    world.has(&vm).await;
    let patch = json!({"spec": {"template": {"spec": {"domain": {"machine": {"type": "virt"}}}}}});
    let refused = world.machines().patch("updated", &PatchParams::default(), &Patch::Merge(patch)).await;
    assert!(refused.unwrap_err().to_string().contains("machine.type is not supported: virt"));
    world.end().await;
}

#[tokio::test]
async fn defaults_belong_to_nobody_and_are_kept() {
    let Some(world) = World::new(Settings::default()).await else { return };
    let mut vm = machine("completed");
    vm["spec"]["runStrategy"] = "Halted".into();
    let params = PatchParams::apply("somebody").validation_strict();
    let apply = async |vm: &Value| {
        let applied = world.machines().patch("completed", &params, &Patch::Apply(vm)).await;
        serde_json::to_value(applied.unwrap()).unwrap()
    };
    let created = apply(&vm).await;
    let completed = created["spec"]["template"]["spec"].clone();
    let identity = completed["domain"]["firmware"].clone();
    assert!(identity["uuid"].is_string() && identity["serial"].is_string(), "{identity}");
    assert_eq!(completed["architecture"], "amd64");
    assert_eq!(completed["domain"]["machine"]["type"], "q35");
    let owned = created["metadata"]["managedFields"].to_string();
    assert!(!owned.contains("f:firmware") && !owned.contains("f:architecture"), "{owned}");

    world.until("completed", "Stopped").await;
    let again = apply(&vm).await;
    assert_eq!(again["metadata"]["generation"], created["metadata"]["generation"]);
    vm["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"] = 2.into();
    let changed = apply(&vm).await;
    assert_eq!(changed["spec"]["template"]["spec"]["domain"]["firmware"], identity);
    assert_eq!(changed["spec"]["template"]["spec"]["domain"]["machine"]["type"], "q35");
    let mut other = machine("another");
    other["spec"]["runStrategy"] = "Halted".into();
    let other = world.has(&other).await["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"].clone();
    assert_ne!(other, identity["uuid"], "each machine has its own");
    world.end().await;
}

#[tokio::test]
async fn whoever_gives_up_all_of_the_firmware_takes_the_identity_away() {
    let Some(world) = World::new(Settings::default()).await else { return };
    let mut vm = machine("secure");
    vm["spec"]["runStrategy"] = "Halted".into();
    let bare = vm.clone();
    vm["spec"]["template"]["spec"]["domain"]["firmware"] = json!({"bootloader": {"bios": {}}});
    let params = PatchParams::apply("somebody");
    let apply = async |vm: &Value| {
        world.machines().patch("secure", &params, &Patch::Apply(vm)).await.unwrap();
        let firmware = |vm: &Value| vm["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"].is_string();
        let vm = world.until_fits(&world.machines(), "secure", "an identity", firmware).await;
        vm["spec"]["template"]["spec"]["domain"]["firmware"].clone()
    };
    let before = apply(&vm).await;
    assert!(before["serial"].is_string());
    let after = apply(&bare).await;
    assert_ne!(before["uuid"], after["uuid"]);
    assert!(after["serial"].is_null());
    world.end().await;
}
