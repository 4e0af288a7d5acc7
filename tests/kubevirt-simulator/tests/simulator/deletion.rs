//! The end of machines and of their claims.

use std::time::Duration;

use kubevirt_simulator::{Binding, Fault, Settings, storage_class};
use serde_json::{Value, json};

use super::world::{NAMESPACE, World, machine, with_disk};

#[tokio::test]
async fn the_instance_goes_first_and_its_claim_last() {
    let Some(world) = World::new(Settings::default()).await else { return };
    storage_class(&world.client, "soon", Binding::Immediate, true, false).await.unwrap();
    world.has_claim("disk", "soon", "ReadWriteOnce").await;
    world.has(&with_disk(machine("ends"), "disk")).await;
    world.until("ends", "Running").await;

    world.delete(&world.claims(), "disk").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let claim = world.get(&world.claims(), "disk").await;
    assert!(!claim["metadata"]["deletionTimestamp"].is_null(), "it is deleted, and still there");
    assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));

    let phases = world.record(&world.instances(), "ends", "/status/phase", "Succeeded");
    world.delete(&world.machines(), "ends").await;
    let vm = world.until("ends", "Terminating").await;
    assert!(!vm["metadata"]["deletionTimestamp"].is_null());
    let is_over = |vm: &Value| vm.is_null();
    world.until_fits(&world.machines(), "ends", "gone", is_over).await;
    assert!(world.get(&world.instances(), "ends").await.is_null(), "the instance is gone before the machine");
    assert_eq!(phases.await.unwrap(), ["Running", "Succeeded"]);
    world.until_fits(&world.claims(), "disk", "gone", Value::is_null).await;
    world.end().await;
}

#[tokio::test]
async fn a_machine_can_hang_in_deletion() {
    let Some(world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    world.simulator.fail(NAMESPACE, "hangs", Fault::HangsInDeletion);
    world.has(&machine("hangs")).await;
    world.until("hangs", "Running").await;
    world.delete(&world.machines(), "hangs").await;
    world.until_fits(&world.instances(), "hangs", "gone", Value::is_null).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!world.get(&world.machines(), "hangs").await.is_null());
    world.simulator.repair(NAMESPACE, "hangs");
    world.until_fits(&world.machines(), "hangs", "gone", Value::is_null).await;
    world.end().await;
}

#[tokio::test]
async fn a_machine_of_the_same_name_starts_anew() {
    let Some(world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    for _ in 0..2 {
        world.has(&machine("again")).await;
        world.until("again", "Running").await;
        world.delete(&world.machines(), "again").await;
        world.until_fits(&world.machines(), "again", "gone", Value::is_null).await;
    }
    world.end().await;
}

#[tokio::test]
async fn another_simulation_goes_on_where_one_has_stopped() {
    let Some(mut world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    world.has(&machine("goes-on")).await;
    world.until("goes-on", "Running").await;
    let settings = Settings { speed: 4.0, ..Settings::default() };
    let next = kubevirt_simulator::Simulator::start(world.client.clone(), settings);
    std::mem::replace(&mut world.simulator, next).stop().await;
    let edit = json!({"spec": {"template": {"spec": {"hostname": "other"}}}});
    world.patch(&world.machines(), "goes-on", edit).await;
    world.until_condition("goes-on", "RestartRequired", "True").await;
    world.delete(&world.machines(), "goes-on").await;
    world.until_fits(&world.machines(), "goes-on", "gone", Value::is_null).await;
    world.end().await;
}
