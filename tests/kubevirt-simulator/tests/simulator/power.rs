//! Start, stop and restart, and what goes wrong with them.

use kubevirt_simulator::{Fault, Settings, virtctl_restart, virtctl_start, virtctl_stop};
use serde_json::json;

use super::world::{NAMESPACE, World, condition, machine};

#[tokio::test]
async fn a_machine_starts_step_by_step() {
    let Some(world) = World::new(Settings::default()).await else { return };
    let phases = world.record(&world.instances(), "steps", "/status/phase", "Running");
    let printed = world.record(&world.machines(), "steps", "/status/printableStatus", "Running");
    world.has(&machine("steps")).await;
    assert_eq!(phases.await.unwrap(), ["", "Pending", "Scheduling", "Scheduled", "Running"]);
    assert_eq!(printed.await.unwrap(), ["", "Starting", "Running"]);

    let vm = world.until_condition("steps", "AgentConnected", "True").await;
    assert_eq!((&vm["status"]["created"], &vm["status"]["ready"]), (&json!(true), &json!(true)));
    assert_eq!(vm["status"]["observedGeneration"], vm["metadata"]["generation"]);
    assert_eq!(vm["status"]["runStrategy"], "Always");
    assert_eq!(condition(&vm, "Ready")["status"], "True");
    assert!(
        vm["metadata"]["finalizers"]
            .as_array()
            .unwrap()
            .contains(&json!("kubevirt.io/virtualMachineControllerFinalize"))
    );

    let vmi = world.get(&world.instances(), "steps").await;
    assert_eq!(vmi["metadata"]["ownerReferences"][0]["uid"], vm["metadata"]["uid"]);
    assert_eq!(vmi["metadata"]["labels"]["vitistack.io/machine"], "steps");
    assert_eq!(vmi["spec"]["domain"]["cpu"]["maxSockets"], 4);
    assert_eq!(vmi["spec"]["domain"]["memory"]["maxGuest"], "8Gi");
    assert_eq!(vmi["spec"]["domain"]["firmware"], vm["spec"]["template"]["spec"]["domain"]["firmware"]);
    let interface = &vmi["status"]["interfaces"][0];
    assert_eq!((&interface["name"], &interface["linkState"]), (&json!("default"), &json!("up")));
    assert_eq!(interface["ipAddresses"][0], interface["ipAddress"]);
    assert_eq!(vmi["status"]["memory"]["guestAtBoot"], "2Gi");
    assert_eq!(vmi["status"]["currentCPUTopology"], json!({"cores": 1, "sockets": 1, "threads": 1}));
    assert_eq!(condition(&vmi, "LiveMigratable")["status"], "True");
    world.end().await;
}

#[tokio::test]
async fn virtctl_stops_starts_and_restarts() {
    let Some(world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    world.has(&machine("power")).await;
    world.until("power", "Running").await;
    let first = world.get(&world.instances(), "power").await["metadata"]["uid"].clone();

    let printed = world.record(&world.machines(), "power", "/status/printableStatus", "Stopped");
    virtctl_stop(&world.client, NAMESPACE, "power").await.unwrap();
    assert_eq!(printed.await.unwrap(), ["Running", "Stopping", "Stopped"]);
    world.until_fits(&world.instances(), "power", "gone", serde_json::Value::is_null).await;
    let vm = world.until_fits(&world.machines(), "power", "gone", |vm| vm["status"]["created"] == false).await;
    assert_eq!(vm["spec"]["runStrategy"], "Halted");
    assert_eq!(condition(&vm, "Ready")["reason"], "VMINotExists");

    virtctl_start(&world.client, NAMESPACE, "power").await.unwrap();
    let vm = world.until("power", "Running").await;
    assert_eq!(vm["spec"]["runStrategy"], "Always");
    let second = world.get(&world.instances(), "power").await["metadata"]["uid"].clone();
    assert_ne!(first, second);

    virtctl_restart(&world.client, NAMESPACE, "power").await.unwrap();
    let runs_anew = |vmi: &serde_json::Value| vmi["metadata"]["uid"] != second && vmi["status"]["phase"] == "Running";
    world.until_fits(&world.instances(), "power", "another instance", runs_anew).await;
    let done = |vm: &serde_json::Value| vm["status"]["stateChangeRequests"].is_null();
    world.until_fits(&world.machines(), "power", "no requests", done).await;
    world.end().await;
}

#[tokio::test]
async fn other_run_strategies_wait_to_be_asked() {
    let Some(world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    let mut manual = machine("manual");
    manual["spec"]["runStrategy"] = "Manual".into();
    world.has(&manual).await;
    world.until("manual", "Stopped").await;
    virtctl_start(&world.client, NAMESPACE, "manual").await.unwrap();
    world.until("manual", "Running").await;
    virtctl_stop(&world.client, NAMESPACE, "manual").await.unwrap();
    let vm = world.until("manual", "Stopped").await;
    assert_eq!(vm["spec"]["runStrategy"], "Manual");

    let mut rerun = machine("rerun");
    rerun["spec"]["runStrategy"] = "RerunOnFailure".into();
    world.has(&rerun).await;
    world.until("rerun", "Running").await;
    virtctl_stop(&world.client, NAMESPACE, "rerun").await.unwrap();
    world.until("rerun", "Stopped").await;
    world.end().await;
}

#[tokio::test]
async fn faults_show_as_in_a_real_cluster() {
    let Some(world) = World::new(Settings { speed: 4.0, ..Settings::default() }).await else { return };
    world.simulator.fail(NAMESPACE, "nowhere", Fault::Unschedulable);
    world.simulator.fail(NAMESPACE, "crashes", Fault::StartFailure);
    world.simulator.fail(NAMESPACE, "silent", Fault::NoAddresses);
    for name in ["nowhere", "crashes", "silent"] {
        world.has(&machine(name)).await;
    }
    let vm = world.until("nowhere", "ErrorUnschedulable").await;
    assert_eq!(condition(&vm, "PodScheduled")["reason"], "Unschedulable");
    world.simulator.repair(NAMESPACE, "nowhere");
    world.until("nowhere", "Running").await;

    let vm = world.until("crashes", "CrashLoopBackOff").await;
    assert!(vm["status"]["startFailure"]["consecutiveFailCount"].as_u64().unwrap() > 0);
    world.simulator.repair(NAMESPACE, "crashes");
    let vm = world.until("crashes", "Running").await;
    assert!(vm["status"]["startFailure"].is_null());

    world.until_condition("silent", "AgentConnected", "True").await;
    let vmi = world.get(&world.instances(), "silent").await;
    assert!(vmi["status"]["interfaces"][0]["ipAddress"].is_null());
    world.end().await;
}
