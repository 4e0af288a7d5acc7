//! Claims: bound, missing, growing; and what CDI makes of DataVolumes.

use kubevirt_simulator::{Binding, Settings, storage_class};
use serde_json::{Value, json};

use super::world::{World, condition, machine, with_disk};

fn settings() -> Settings {
    Settings { speed: 4.0, ..Settings::default() }
}

fn is_bound(claim: &Value) -> bool {
    claim["status"]["phase"] == "Bound"
}

#[tokio::test]
async fn a_claim_that_waits_for_its_consumer_is_bound_by_the_machine() {
    let Some(world) = World::new(settings()).await else { return };
    storage_class(&world.client, "late", Binding::WaitForFirstConsumer, false, false).await.unwrap();
    storage_class(&world.client, "soon", Binding::Immediate, false, true).await.unwrap();
    world.has_claim("root", "late", "ReadWriteOnce").await;
    world.has_claim("data", "soon", "ReadWriteOnce").await;
    let data = world.until_fits(&world.claims(), "data", "bound", is_bound).await;
    assert_eq!(data["status"]["capacity"]["storage"], "1Gi");
    assert_eq!(world.get(&world.claims(), "root").await["status"]["phase"], "Pending");

    let printed = world.record(&world.machines(), "late", "/status/printableStatus", "Running");
    world.has(&with_disk(machine("late"), "root")).await;
    assert_eq!(printed.await.unwrap(), ["", "WaitingForVolumeBinding", "Starting", "Running"]);
    assert!(is_bound(&world.get(&world.claims(), "root").await));
    let vmi = world.get(&world.instances(), "late").await;
    let info = &vmi["status"]["volumeStatus"][0];
    assert_eq!((&info["name"], &info["target"]), (&json!("root"), &json!("vda")));
    assert_eq!(info["persistentVolumeClaimInfo"]["claimName"], "root");
    world.end().await;
}

#[tokio::test]
async fn a_missing_claim_is_named_until_it_is_there() {
    let Some(world) = World::new(settings()).await else { return };
    world.has(&with_disk(machine("lacks"), "later")).await;
    let vm = world.until("lacks", "ErrorPvcNotFound").await;
    assert_eq!(condition(&vm, "Synchronized")["reason"], "FailedPvcNotFound");
    let message = "failed to render launch manifest: didn't find PVC later";
    assert_eq!(condition(&vm, "PodScheduled")["message"], message);
    world.has_claim("later", "unknown", "ReadWriteMany").await;
    let vm = world.until_condition("lacks", "LiveMigratable", "True").await;
    assert!(condition(&vm, "Synchronized").is_null());
    world.end().await;
}

#[tokio::test]
async fn a_bound_claim_grows_where_its_class_allows_it() {
    let Some(world) = World::new(settings()).await else { return };
    storage_class(&world.client, "grows", Binding::Immediate, true, false).await.unwrap();
    storage_class(&world.client, "stays", Binding::Immediate, false, false).await.unwrap();
    for class in ["grows", "stays"] {
        world.has_claim(class, class, "ReadWriteOnce").await;
        world.until_fits(&world.claims(), class, "bound", is_bound).await;
    }
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    world.patch(&world.claims(), "grows", larger.clone()).await;
    let is_larger = |claim: &Value| claim["status"]["capacity"]["storage"] == "2Gi";
    world.until_fits(&world.claims(), "grows", "2Gi", is_larger).await;
    let params = kube::api::PatchParams::default();
    let refused = world.claims().patch("stays", &params, &kube::api::Patch::Merge(larger)).await;
    assert!(refused.unwrap_err().to_string().contains("only dynamically provisioned pvc can be resized"));
    world.end().await;
}

#[tokio::test]
async fn a_data_volume_makes_a_claim_of_its_name() {
    let Some(world) = World::new(settings()).await else { return };
    storage_class(&world.client, "soon", Binding::Immediate, true, false).await.unwrap();
    let storage = json!({"storageClassName": "soon", "resources": {"requests": {"storage": "8Gi"}}});
    let volume = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "iso"},
        "spec": {"source": {"http": {"url": "https://example.org/a.iso"}}, "storage": storage},
    });
    world.create(&world.volumes(), &volume).await.unwrap();
    let succeeded = |volume: &Value| volume["status"]["phase"] == "Succeeded";
    world.until_fits(&world.volumes(), "iso", "imported", succeeded).await;
    assert!(is_bound(&world.get(&world.claims(), "iso").await));
    world.delete(&world.volumes(), "iso").await;
    world.until_fits(&world.claims(), "iso", "gone", Value::is_null).await;
    world.end().await;
}
