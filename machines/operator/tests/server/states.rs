//! What a Machine says of clusters that are slow, full, or without something.

use kubevirt_simulator::Fault;
use serde_json::json;

use crate::world::{NAMESPACE, World, condition, text};

/// K25: a class that waits for its first consumer is bound by the machine itself.
#[tokio::test]
async fn k25_claims_that_wait_for_the_machine_do_not_keep_it_from_being_made() {
    let Some(world) = World::new().await else { return };
    world
        .has("web", json!({"template": "small", "disks": [{"name": "root", "size": "20Gi", "storageClass": "local"}]}))
        .await;
    let machine = world.phase("web", "Running").await;
    assert_eq!(condition(&machine, "StorageReady")["status"], "True", "{machine:#}");
    world.end().await;
}

#[tokio::test]
async fn a_machine_without_room_says_so_and_runs_when_there_is_some() {
    let Some(world) = World::new().await else { return };
    world.simulator.fail(NAMESPACE, "web", Fault::Unschedulable);
    world.has("web", json!({"template": "small"})).await;
    let machine = world.phase("web", "Failed").await;
    assert_eq!(condition(&machine, "Ready")["reason"], "InsufficientResources", "{machine:#}");
    assert_eq!(condition(&machine, "Stalled")["status"], "True");
    assert_eq!(machine["status"]["failureReason"], "InsufficientResources");
    world.simulator.repair(NAMESPACE, "web");
    let machine = world.phase("web", "Running").await;
    assert!(condition(&machine, "Stalled").is_null() && machine["status"]["failureReason"].is_null(), "{machine:#}");
    world.end().await;
}

/// V9: theirs never says Failed.
#[tokio::test]
async fn v9_a_machine_that_fails_to_start_says_failed_and_why() {
    let Some(world) = World::new().await else { return };
    world.simulator.fail(NAMESPACE, "web", Fault::StartFailure);
    world.has("web", json!({"template": "small"})).await;
    let machine = world.phase("web", "Failed").await;
    assert!(!text(&machine, "/status/failureMessage").is_empty(), "{machine:#}");
    world.end().await;
}

/// A quota is found before anything is made, and the Machine is made when there is room.
#[tokio::test]
async fn a_quota_refuses_the_whole_machine_and_nothing_is_left_half_made() {
    let Some(world) = World::new().await else { return };
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/virtualmachines.kubevirt.io": "0"}},
    });
    let quotas = world.api("", "v1", "ResourceQuota", "resourcequotas");
    world.create(&quotas, &quota).await.unwrap();
    // The quota has effect once its status says so, which no controller here writes.
    let status = json!({"status": {"hard": {"count/virtualmachines.kubevirt.io": "0"}, "used": {"count/virtualmachines.kubevirt.io": "0"}}});
    quotas.patch_status("none", &Default::default(), &kube::api::Patch::Merge(status)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    world.has("web", json!({"template": "small"})).await;
    let machine = world.until(&world.machines(), "web", |machine| !condition(machine, "Ready").is_null()).await;
    assert_eq!(condition(&machine, "Ready")["reason"], "InsufficientResources", "{machine:#}");
    assert!(text(&machine, "/status/message").contains("exceeded quota"), "{machine:#}");
    assert!(world.get(&world.claims(), "web-root").await.is_none(), "nothing is half made");
    world.delete(&quotas, "none").await;
    world.phase("web", "Running").await;
    world.end().await;
}

/// V18: data of the first boot is in a Secret, and never in the virtual machine.
#[tokio::test]
async fn v18_first_boot_data_is_only_in_secrets() {
    let Some(world) = World::new().await else { return };
    let long = format!("#cloud-config\n# {}\n", "x".repeat(4096));
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own"}, "stringData": {"userdata": long, "odd": "#cloud-config\n# odd\n"}});
    world.create(&world.api("", "v1", "Secret", "secrets"), &secret).await.unwrap();
    world
        .has("referenced", json!({"template": "small", "cloudInit": {"secretRef": {"name": "own", "key": "userdata"}}}))
        .await;
    world.has("copied", json!({"template": "small", "cloudInit": {"secretRef": {"name": "own", "key": "odd"}}})).await;
    world.has("written", json!({"template": "small", "cloudInit": {"userData": long}})).await;
    for name in ["referenced", "copied", "written"] {
        world.phase(name, "Running").await;
        let vm = world.get(&world.vms(), name).await.unwrap();
        assert!(!vm.to_string().contains("#cloud-config") && !vm.to_string().contains("xxxx"), "{vm:#}");
    }
    let secrets = world.api("", "v1", "Secret", "secrets");
    assert!(world.get(&secrets, "referenced-cloudinit").await.is_none(), "a key that KubeVirt reads is not copied");
    assert!(
        world.get(&secrets, "copied-cloudinit").await.is_some()
            && world.get(&secrets, "written-cloudinit").await.is_some()
    );
    world.end().await;
}
