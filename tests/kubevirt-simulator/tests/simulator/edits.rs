//! Edits of running machines: live, waiting for a move, or for a restart.

use kubevirt_simulator::{
    Binding, Settings, UpdateMethod, add_volume, configure, remove_volume, set_mac, storage_class, virtctl_restart,
};
use serde_json::{Value, json};

use super::world::{NAMESPACE, World, condition, machine, with_disk};

fn settings(methods: &[UpdateMethod]) -> Settings {
    Settings { speed: 4.0, methods: methods.to_vec(), ..Settings::default() }
}

fn template(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

fn cpu(cores: u64, sockets: u64) -> Value {
    template(json!({"domain": {"cpu": {"cores": cores, "sockets": sockets}}}))
}

fn guest(memory: &str) -> Value {
    template(json!({"domain": {"memory": {"guest": memory}}}))
}

/// Waits until the machine has come up completely.
async fn running(world: &World, machine: &Value) -> String {
    world.has(machine).await;
    let name = machine["metadata"]["name"].as_str().expect("a name").to_owned();
    world.until_condition(&name, "AgentConnected", "True").await;
    name
}

#[tokio::test]
async fn cores_need_a_restart_unless_they_are_put_back() {
    let Some(world) = World::new(settings(&[])).await else { return };
    let name = running(&world, &machine("cores")).await;
    world.patch(&world.machines(), &name, cpu(2, 1)).await;
    let vm = world.until_condition(&name, "RestartRequired", "True").await;
    let message = "a non-live-updatable field was changed in the template spec";
    assert_eq!(condition(&vm, "RestartRequired")["message"], message);
    assert_ne!(vm["status"]["observedGeneration"], vm["metadata"]["generation"]);

    world.patch(&world.machines(), &name, cpu(1, 1)).await;
    world.until_condition(&name, "RestartRequired", "").await;
    let observed = |vm: &Value| vm["status"]["observedGeneration"] == vm["metadata"]["generation"];
    world.until_fits(&world.machines(), &name, "observed", observed).await;

    world.patch(&world.machines(), &name, cpu(2, 1)).await;
    world.until_condition(&name, "RestartRequired", "True").await;
    virtctl_restart(&world.client, NAMESPACE, &name).await.unwrap();
    world.until_condition(&name, "RestartRequired", "").await;
    let has_two =
        |vmi: &Value| vmi["status"]["currentCPUTopology"]["cores"] == 2 && vmi["status"]["phase"] == "Running";
    world.until_fits(&world.instances(), &name, "two cores", has_two).await;
    world.end().await;
}

#[tokio::test]
async fn sockets_and_memory_grow_by_a_migration() {
    let Some(world) = World::new(settings(&[UpdateMethod::LiveMigrate])).await else { return };
    let name = running(&world, &machine("grows")).await;
    let before = world.get(&world.instances(), &name).await;
    world.patch(&world.machines(), &name, cpu(1, 2)).await;
    let has_two = |vmi: &Value| vmi["status"]["currentCPUTopology"]["sockets"] == 2;
    let vmi = world.until_fits(&world.instances(), &name, "two sockets", has_two).await;
    assert_eq!(vmi["metadata"]["uid"], before["metadata"]["uid"]);
    assert_ne!(vmi["status"]["nodeName"], before["status"]["nodeName"]);
    world.until_condition(&name, "HotVCPUChange", "").await;

    world.patch(&world.machines(), &name, guest("3Gi")).await;
    let has_more = |vmi: &Value| vmi["status"]["memory"]["guestCurrent"] == "3Gi";
    let vmi = world.until_fits(&world.instances(), &name, "more memory", has_more).await;
    assert_eq!(vmi["status"]["memory"]["guestAtBoot"], "2Gi");

    for (edit, message) in [
        (cpu(1, 5), "CPU sockets updated in template spec to a value higher than what's available"),
        (cpu(1, 1), "Reduction of CPU socket count requires a restart"),
        (guest("1Gi"), "memory updated in template spec to a value lower than what the VM started with"),
        (guest("9Gi"), "memory hotplug not supported, Guest memory is greater than the configured maxGuest memory"),
    ] {
        world.patch(&world.machines(), &name, edit).await;
        let vm = world.until_condition(&name, "RestartRequired", "True").await;
        assert_eq!(condition(&vm, "RestartRequired")["message"], message);
        world.patch(&world.machines(), &name, cpu(1, 2)).await;
        world.patch(&world.machines(), &name, guest("3Gi")).await;
        world.until_condition(&name, "RestartRequired", "").await;
    }
    world.end().await;
}

#[tokio::test]
async fn without_update_methods_sockets_wait_for_ever() {
    let Some(world) = World::new(settings(&[])).await else { return };
    let name = running(&world, &machine("waits")).await;
    world.patch(&world.machines(), &name, cpu(1, 2)).await;
    let vm = world.until_condition(&name, "HotVCPUChange", "True").await;
    assert!(condition(&vm, "RestartRequired").is_null());
    let vmi = world.get(&world.instances(), &name).await;
    assert_eq!(vmi["spec"]["domain"]["cpu"]["sockets"], 2);
    assert_eq!(vmi["status"]["currentCPUTopology"]["sockets"], 1);
    // The KubeVirt object takes effect without any other change.
    configure(&world.client, &json!({"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}))
        .await
        .unwrap();
    world.until_condition(&name, "HotVCPUChange", "").await;
    world.end().await;
}

#[tokio::test]
async fn eviction_restarts_a_machine_that_cannot_move() {
    let Some(world) = World::new(settings(&[UpdateMethod::LiveMigrate, UpdateMethod::Evict])).await else { return };
    storage_class(&world.client, "fast", Binding::Immediate, true, false).await.unwrap();
    world.has_claim("alone", "fast", "ReadWriteOnce").await;
    let name = running(&world, &with_disk(machine("evicted"), "alone")).await;
    let vmi = world.get(&world.instances(), &name).await;
    assert_eq!(condition(&vmi, "LiveMigratable")["reason"], "DisksNotLiveMigratable");
    world.patch(&world.machines(), &name, cpu(1, 2)).await;
    let is_new = |new: &Value| new["metadata"]["uid"] != vmi["metadata"]["uid"] && new["status"]["phase"] == "Running";
    let vmi = world.until_fits(&world.instances(), &name, "another instance", is_new).await;
    assert_eq!(vmi["status"]["currentCPUTopology"]["sockets"], 2);

    world.patch(&world.machines(), &name, guest("4Gi")).await;
    let vm = world.until_condition(&name, "RestartRequired", "True").await;
    let message = "memory updated in template spec. Memory-hotplug is only available for migratable VMs";
    assert_eq!(condition(&vm, "RestartRequired")["message"], message);
    world.end().await;
}

#[tokio::test]
async fn under_stage_everything_needs_a_restart() {
    let Some(world) = World::new(settings(&[UpdateMethod::LiveMigrate])).await else { return };
    configure(&world.client, &json!({"configuration": {"vmRolloutStrategy": "Stage"}})).await.unwrap();
    let name = running(&world, &machine("staged")).await;
    let vmi = world.get(&world.instances(), &name).await;
    assert!(vmi["spec"]["domain"]["cpu"]["maxSockets"].is_null());
    world.patch(&world.machines(), &name, cpu(1, 2)).await;
    world.until_condition(&name, "RestartRequired", "True").await;
    world.end().await;
}

#[tokio::test]
async fn placement_is_live_and_an_address_is_not() {
    let Some(world) = World::new(settings(&[])).await else { return };
    let name = running(&world, &machine("placed")).await;
    world.patch(&world.machines(), &name, template(json!({"nodeSelector": {"zone": "a"}}))).await;
    let placed = |vmi: &Value| vmi["spec"]["nodeSelector"]["zone"] == "a";
    world.until_fits(&world.instances(), &name, "placed", placed).await;
    let vm = world.get(&world.machines(), &name).await;
    assert!(condition(&vm, "RestartRequired").is_null());

    set_mac(&world.client, NAMESPACE, &name, "default", "02:00:00:00:00:07").await.unwrap();
    world.until_condition(&name, "RestartRequired", "True").await;
    let vm = world.get(&world.machines(), &name).await;
    let managers = vm["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["manager"] == "kubemacpool"));
    world.end().await;
}

#[tokio::test]
async fn a_disk_comes_and_goes_while_the_machine_runs() {
    let Some(world) = World::new(settings(&[])).await else { return };
    storage_class(&world.client, "late", Binding::WaitForFirstConsumer, false, false).await.unwrap();
    let name = running(&world, &machine("plugged")).await;
    world.has_claim("extra", "late", "ReadWriteOnce").await;
    add_volume(&world.client, NAMESPACE, &name, "extra").await.unwrap();
    let is_ready = |vmi: &Value| vmi["status"]["volumeStatus"][0]["phase"] == "Ready";
    let vmi = world.until_fits(&world.instances(), &name, "the disk", is_ready).await;
    let volume = &vmi["status"]["volumeStatus"][0];
    assert_eq!((&volume["name"], &volume["target"]), (&json!("extra"), &json!("sda")));
    assert_eq!(volume["persistentVolumeClaimInfo"]["capacity"]["storage"], "1Gi");
    let vm = world.get(&world.machines(), &name).await;
    assert!(condition(&vm, "RestartRequired").is_null());

    remove_volume(&world.client, NAMESPACE, &name, "extra").await.unwrap();
    let is_gone = |vmi: &Value| vmi["spec"]["volumes"] == json!([]) && vmi["status"]["volumeStatus"] == json!([]);
    world.until_fits(&world.instances(), &name, "no disk", is_gone).await;
    world.end().await;
}
