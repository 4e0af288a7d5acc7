//! Deleting Machines: the virtual machine first, then only claims that are nobody else's.

use kubevirt_operator::controller::{DiskDeletion, Settings};
use kubevirt_simulator::Fault;
use serde_json::json;

use crate::world::{NAMESPACE, World, text};

#[tokio::test]
async fn v4_claims_are_deleted_after_the_machine_and_kept_where_it_is_said() {
    let Some(world) = World::new().await else { return };
    let disks = json!([{"name": "keep", "size": "1Gi", "onDelete": "Keep"}, {"name": "go", "size": "1Gi"}]);
    world.has("web", json!({"template": "small", "disks": disks})).await;
    world.phase("web", "Running").await;
    world.delete(&world.machines(), "web").await;
    world.until_gone(&world.machines(), "web").await;
    assert!(world.get(&world.vms(), "web").await.is_none() && world.get(&world.vmis(), "web").await.is_none());
    world.until_gone(&world.claims(), "web-root").await;
    world.until_gone(&world.claims(), "web-go").await;
    let kept = world.get(&world.claims(), "web-keep").await.unwrap();
    assert!(kept["metadata"]["deletionTimestamp"].is_null());
    let events = world.api("events.k8s.io", "v1", "Event", "events").list(&Default::default()).await.unwrap();
    let notes: Vec<_> = events.items.iter().map(|event| text(&event.data, "/note").to_owned()).collect();
    for words in ["claim web-keep is kept: onDelete", "claim web-go is deleted", "claim web-root is deleted"] {
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:#?}");
    }
    world.end().await;
}

/// V5: theirs lets the Machine go while its virtual machine hangs.
#[tokio::test]
async fn v5_a_machine_stays_until_its_virtual_machine_is_gone() {
    let Some(world) = World::new().await else { return };
    world.simulator.fail(NAMESPACE, "web", Fault::HangsInDeletion);
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    world.delete(&world.machines(), "web").await;
    world.until(&world.machines(), "web", |machine| text(machine, "/status/message").contains("being deleted")).await;
    world.until(&world.vms(), "web", |vm| !vm["metadata"]["deletionTimestamp"].is_null()).await;
    world.until_gone(&world.vmis(), "web").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(world.get(&world.machines(), "web").await.is_some());
    assert!(world.get(&world.claims(), "web-root").await.unwrap()["metadata"]["deletionTimestamp"].is_null());
    world.simulator.repair(NAMESPACE, "web");
    world.until_gone(&world.machines(), "web").await;
    world.until_gone(&world.claims(), "web-root").await;
    world.end().await;
}

#[tokio::test]
async fn with_never_no_claim_is_deleted() {
    let Some(world) = World::without_operator().await else { return };
    world.start(Settings { disk_deletion: DiskDeletion::Never, ..Settings::default() });
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    world.delete(&world.machines(), "web").await;
    world.until_gone(&world.machines(), "web").await;
    assert!(world.get(&world.claims(), "web-root").await.unwrap()["metadata"]["deletionTimestamp"].is_null());
    world.end().await;
}
