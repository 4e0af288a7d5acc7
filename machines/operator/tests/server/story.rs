//! A Machine from its creation until it runs, and at rest.

use serde_json::json;

use crate::world::{NAMESPACE, World, condition, text};

#[tokio::test]
async fn a_machine_runs_and_says_where() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    let machine = world
        .until(&world.machines(), "web", |machine| {
            machine["status"]["phase"] == "Running"
                && condition(machine, "Ready")["status"] == "True"
                && machine["status"]["ipAddresses"].is_array()
        })
        .await;
    assert_eq!(machine["metadata"]["finalizers"], json!(["machine.vitistack.io/cleanup"]));
    for kind in ["VirtualMachineReady", "StorageReady", "NetworkReady"] {
        assert_eq!(condition(&machine, kind)["status"], "True", "{kind}: {machine:#}");
    }
    let status = &machine["status"];
    assert!(!text(status, "/nodeName").is_empty() && status["pending"].is_null(), "{status:#}");
    assert_eq!(status["providerID"], format!("kubevirt://{NAMESPACE}/web"));
    let claim = world.get(&world.claims(), "web-root").await.unwrap();
    assert_eq!(status["disks"][0]["uuid"], claim["metadata"]["uid"]);
    assert!(claim["metadata"]["ownerReferences"].is_null(), "garbage collection must not delete data");
    let vm = world.get(&world.vms(), "web").await.unwrap();
    assert_eq!(vm["metadata"]["ownerReferences"][0]["uid"], machine["metadata"]["uid"]);
    world.end().await;
}

/// V13: theirs asks every five seconds, and writes each time.
#[tokio::test]
async fn v13_at_rest_nothing_is_asked_and_nothing_written() {
    let Some(world) = World::new().await else { return };
    for name in ["a", "b", "c"] {
        world.has(name, json!({"template": "small"})).await;
    }
    for name in ["a", "b", "c"] {
        world.until(&world.machines(), name, |machine| machine["status"]["ipAddresses"].is_array()).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let mark = world.mark();
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    let requests = world.requests(&mark);
    assert!(requests.is_empty(), "{requests:#?}");
    world.end().await;
}

#[tokio::test]
async fn documented_examples_become_running_machines() {
    let Some(world) = World::new().await else { return };
    let nad = world.api("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions");
    for name in ["prod-network", "storage-network"] {
        let object = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": name},
            "spec": {"config": "{}"},
        });
        world.create(&nad, &object).await.unwrap();
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/machines");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let object: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        names.push(object["metadata"]["name"].as_str().unwrap().to_owned());
        let params = kube::api::PatchParams::apply("test").validation_strict();
        let patch = kube::api::Patch::Apply(&object);
        world.machines().patch(names.last().unwrap(), &params, &patch).await.unwrap();
    }
    assert!(names.len() >= 6);
    for name in names {
        world.phase(&name, "Running").await;
    }
    world.end().await;
}
