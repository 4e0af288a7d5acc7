//! Edits of Machines: what they do is told, no claim is deleted, and what others wrote is kept.

use kubevirt_simulator::{add_volume, virtctl_restart, virtctl_stop};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World, condition, text};

fn pending<'a>(machine: &'a Value, path: &str) -> &'a Value {
    let all = machine["status"]["pending"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|change| text(change, "/path").ends_with(path)).unwrap_or(&Value::Null)
}

#[tokio::test]
async fn v8_an_edit_that_needs_a_restart_is_written_and_waits_for_one() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    let before = world.get(&world.vmis(), "web").await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"template": "large"}})).await;
    let machine = world
        .until(&world.machines(), "web", |machine| condition(machine, "RestartRequired")["status"] == "True")
        .await;
    assert_eq!(pending(&machine, "domain.cpu.cores")["effect"], "Restart", "{machine:#}");
    assert_eq!(machine["status"]["phase"], "Running");
    let vm = world.until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 4).await;
    assert!(!vm.is_null());
    let now = world.get(&world.vmis(), "web").await.unwrap();
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "nothing restarts a machine unasked");
    virtctl_restart(&world.client, NAMESPACE, "web").await.unwrap();
    let machine = world
        .until(&world.machines(), "web", |machine| {
            machine["status"]["phase"] == "Running" && machine["status"]["pending"].is_null()
        })
        .await;
    assert!(condition(&machine, "RestartRequired").is_null(), "{machine:#}");
    // The root disk was 20Gi and the large template has 80Gi.
    world.until(&world.claims(), "web-root", |claim| claim["spec"]["resources"]["requests"]["storage"] == "80Gi").await;
    world.end().await;
}

#[tokio::test]
async fn updates_restart_restarts_and_hold_writes_nothing() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small", "updates": "Hold"})).await;
    let machine =
        world.until(&world.machines(), "web", |machine| condition(machine, "UpdatesHeld")["status"] == "True").await;
    assert!(
        world.get(&world.vms(), "web").await.is_none() && world.get(&world.claims(), "web-root").await.is_none(),
        "{machine:#}"
    );
    world.patch(&world.machines(), "web", json!({"spec": {"updates": "Restart"}})).await;
    world.phase("web", "Running").await;
    let before = world.get(&world.vmis(), "web").await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"resources": {"cpu": {"cores": 3}}}})).await;
    let uid = before["metadata"]["uid"].clone();
    world
        .until(&world.vmis(), "web", |vmi| vmi["metadata"]["uid"] != uid && vmi["spec"]["domain"]["cpu"]["cores"] == 3)
        .await;
    let is_settled =
        |machine: &Value| machine["status"]["phase"] == "Running" && machine["status"]["pending"].is_null();
    world.until(&world.machines(), "web", is_settled).await;
    world.end().await;
}

#[tokio::test]
async fn a_disk_that_leaves_the_spec_is_kept_and_named() {
    let Some(world) = World::new().await else { return };
    let data = json!([{"name": "data", "size": "5Gi"}]);
    world.has("web", json!({"template": "small", "disks": data})).await;
    world.phase("web", "Running").await;
    let claim = world.get(&world.claims(), "web-data").await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"disks": null}})).await;
    let machine =
        world.until(&world.machines(), "web", |machine| condition(machine, "DisksDetached")["status"] == "True").await;
    assert!(text(condition(&machine, "DisksDetached"), "/message").contains("web-data"), "{machine:#}");
    let kept = world.get(&world.claims(), "web-data").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], claim["metadata"]["uid"]);
    virtctl_restart(&world.client, NAMESPACE, "web").await.unwrap();
    world
        .until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["volumes"].as_array().unwrap().len() == 1)
        .await;
    // And it comes back with its data.
    world.patch(&world.machines(), "web", json!({"spec": {"disks": data}})).await;
    world
        .until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["volumes"].as_array().unwrap().len() == 2)
        .await;
    let again = world.get(&world.claims(), "web-data").await.unwrap();
    assert_eq!(again["metadata"]["uid"], claim["metadata"]["uid"]);
    world.end().await;
}

#[tokio::test]
async fn k14_growing_works_where_the_class_allows_it_and_immutable_edits_are_refused() {
    let Some(world) = World::new().await else { return };
    let disks = json!([{"name": "grows", "size": "1Gi"}, {"name": "stays", "size": "1Gi", "storageClass": "fixed"}]);
    world.has("web", json!({"template": "small", "disks": disks})).await;
    world.phase("web", "Running").await;
    let edited = json!([
        {"name": "grows", "size": "2Gi", "accessMode": "ReadWriteMany"},
        {"name": "stays", "size": "2Gi", "storageClass": "fixed"},
    ]);
    world.patch(&world.machines(), "web", json!({"spec": {"disks": edited}})).await;
    world.until(&world.claims(), "web-grows", |claim| claim["spec"]["resources"]["requests"]["storage"] == "2Gi").await;
    let machine =
        world.until(&world.machines(), "web", |machine| condition(machine, "EditRefused")["status"] == "True").await;
    let refused = text(condition(&machine, "EditRefused"), "/message");
    for words in ["ReadWriteOnce", "ReadWriteMany", "spec.disks[1].size", "fixed", "allowVolumeExpansion"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(pending(&machine, "spec.disks[1].size")["effect"], "Refused");
    world.end().await;
}

#[tokio::test]
async fn k2_a_machine_that_is_stopped_stays_stopped() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    virtctl_stop(&world.client, NAMESPACE, "web").await.unwrap();
    let machine = world.phase("web", "Stopped").await;
    assert_eq!(condition(&machine, "Ready")["status"], "False");
    world.patch(&world.machines(), "web", json!({"spec": {"template": "medium"}})).await;
    world.until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2).await;
    let vm = world.get(&world.vms(), "web").await.unwrap();
    assert_eq!(vm["spec"]["runStrategy"], "Halted");
    world.patch(&world.machines(), "web", json!({"spec": {"runStrategy": "Always"}})).await;
    world.phase("web", "Running").await;
    world.end().await;
}

#[tokio::test]
async fn k3_disks_of_others_are_kept() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "hot"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "standard"},
    });
    world.create(&world.claims(), &claim).await.unwrap();
    add_volume(&world.client, NAMESPACE, "web", "hot").await.unwrap();
    world.patch(&world.machines(), "web", json!({"spec": {"resources": {"cpu": {"cores": 2}}}})).await;
    let vm = world.until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2).await;
    assert!(vm["spec"]["template"]["spec"]["volumes"].to_string().contains("hot"), "{vm:#}");
    // Now a list of ours changes, which the other has taken over.
    world.patch(&world.machines(), "web", json!({"spec": {"disks": [{"name": "data", "size": "1Gi"}]}})).await;
    let vm = world
        .until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["volumes"].to_string().contains("web-data"))
        .await;
    assert!(vm["spec"]["template"]["spec"]["volumes"].to_string().contains("hot"), "{vm:#}");
    world.end().await;
}

#[tokio::test]
async fn drift_is_told_with_its_manager_and_taken_back_by_word() {
    let Some(world) = World::new().await else { return };
    world.has("web", json!({"template": "small"})).await;
    world.phase("web", "Running").await;
    let params = kube::api::PatchParams { field_manager: Some("somebody".to_owned()), ..Default::default() };
    let change = json!({"spec": {"template": {"spec": {"domain": {"cpu": {"cores": 7}}}}}});
    world.vms().patch("web", &params, &kube::api::Patch::Merge(change)).await.unwrap();
    let machine =
        world.until(&world.machines(), "web", |machine| condition(machine, "Drifted")["status"] == "True").await;
    let told = text(condition(&machine, "Drifted"), "/message");
    assert!(told.contains("somebody") && told.contains("cores") && told.contains("take-back"), "{told}");
    // A field that is removed is nobody's any more: it is written again, and an event says so.
    let removed = json!({"metadata": {"labels": {"vitistack.io/source-machine": null}}});
    world.vms().patch("web", &params, &kube::api::Patch::Merge(removed)).await.unwrap();
    let annotation = json!({"metadata": {"annotations": {"machine.vitistack.io/take-back": "somebody"}}});
    world.patch(&world.machines(), "web", annotation).await;
    world.until(&world.vms(), "web", |vm| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 1).await;
    world.until(&world.machines(), "web", |machine| condition(machine, "Drifted").is_null()).await;
    world.until(&world.vms(), "web", |vm| vm["metadata"]["labels"]["vitistack.io/source-machine"] == "web").await;
    let events = world.api("events.k8s.io", "v1", "Event", "events").list(&Default::default()).await.unwrap();
    let is_told = |note: &str| note.contains("written again") && note.contains("source-machine");
    assert!(events.items.iter().any(|event| is_told(text(&event.data, "/note"))), "{events:#?}");
    world.end().await;
}
