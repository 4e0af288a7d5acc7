//! The admission policy: for each of its rules a Machine that it refuses and one that it accepts.

use std::time::Duration;

use controlplane::apply_yaml;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

fn machine(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
    })
}

#[tokio::test]
async fn each_mistake_is_refused_with_its_remedy_and_its_opposite_accepted() {
    let Some(world) = World::without_operator().await else { return };
    for object in machines_api::policy::objects() {
        apply_yaml(&world.client, &object.to_string(), "test").await.unwrap();
    }
    let try_out = async |object: &Value| {
        let object = serde_json::from_value(object.clone()).unwrap();
        let params = kube::api::PostParams { dry_run: true, ..Default::default() };
        world.machines().create(&params, &object).await.map(|_| ()).map_err(|error| error.to_string())
    };
    let effective = async {
        while try_out(&machine("m", json!({"template": "huge"}))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), effective).await.unwrap();
    let nic = |name: &str, network: &str, mac: &str| json!({"name": name, "networkName": network, "macAddress": mac});
    let cases = [
        ("a.b", json!({"template": "small"}), "metadata.name", json!({"template": "small"})),
        ("m", json!({"template": "huge"}), "small, medium or large", json!({"template": "large"})),
        (
            "m",
            json!({"template": "small", "machineClass": "small"}),
            "set one of them",
            json!({"machineClass": "small"}),
        ),
        ("m", json!({"disks": [{"name": "A"}]}), "name each disk", json!({"disks": [{"name": "a"}]})),
        ("m", json!({"disks": [{"name": "cloudinitdisk"}]}), "cloudinitdisk", json!({"disks": [{"name": "iso"}]})),
        (
            "m",
            json!({"disks": [{"name": "a"}, {"name": "a"}]}),
            "own name",
            json!({"disks": [{"name": "a"}, {"name": "b"}]}),
        ),
        (
            "m",
            json!({"disks": [{"name": "a", "size": "big"}]}),
            "20Gi",
            json!({"disks": [{"name": "a", "size": "1500M"}]}),
        ),
        (
            "m",
            json!({"disks": [{"name": "a", "size": "-1Gi"}]}),
            "20Gi",
            json!({"disks": [{"name": "a", "size": "1Gi"}]}),
        ),
        (
            "m",
            json!({"disks": [{"boot": true}, {"boot": true}]}),
            "boot: true",
            json!({"disks": [{"boot": true}, {"boot": false}]}),
        ),
        (
            "m",
            json!({"resources": {"memory": {"size": "much"}}}),
            "4Gi",
            json!({"resources": {"memory": {"size": "4Gi"}}}),
        ),
        ("m", json!({"networks": [nic("a b", "n", "")]}), "interface", json!({"networks": [nic("a_B", "n", "")]})),
        (
            "m",
            json!({"networks": [nic("a", "n", ""), nic("a", "o", "")]}),
            "own name",
            json!({"networks": [nic("a", "n", ""), nic("b", "o", "")]}),
        ),
        (
            "m",
            json!({"networks": [nic("a", "n", "01:00:00:00:00:01")]}),
            "macAddress",
            json!({"networks": [nic("a", "n", "52:54:00:12:34:56")]}),
        ),
        (
            "m",
            json!({"networks": [nic("a", "", ""), nic("b", "", "")]}),
            "pod network",
            json!({"networks": [nic("a", "", ""), nic("b", "n", "")]}),
        ),
        (
            "m",
            json!({"domain": {"firmware": {"bootloader": {"secureBoot": true}}}}),
            "needs efi",
            json!({"domain": {"firmware": {"bootloader": {"secureBoot": true, "efi": true}}}}),
        ),
        (
            "m",
            json!({"cloudInit": {"secretRef": {"name": "", "key": "userdata"}}}),
            "secretRef",
            json!({"cloudInit": {"secretRef": {"name": "s", "key": "userdata"}}}),
        ),
        (
            "m",
            json!({"cloudInit": {"secretRef": {"name": "s", "key": "a b"}}}),
            "secretRef.key",
            json!({"cloudInit": {"secretRef": {"name": "s"}}}),
        ),
    ];
    for (name, wrong, words, right) in cases {
        let refused = try_out(&machine(name, wrong.clone())).await.unwrap_err();
        assert!(refused.contains(words), "{wrong}: {refused}");
        try_out(&machine("m", right)).await.unwrap();
        // A Machine of another provider is not ours to judge.
        let mut other = machine(name, wrong);
        other["spec"]["provider"] = json!("proxmox");
        try_out(&other).await.unwrap();
    }
    world.end().await;
}
