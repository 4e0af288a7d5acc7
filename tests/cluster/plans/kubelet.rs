//! KubeletConfigs on their way to the machines: traps of the real controllers, played by the simulator.

use std::time::Duration;

use advisor_core::plan::items::health::Rollout;
use advisor_core::rollout::{ChangeKind, Progress, Rollouts};
use mco_simulator::{Settings, Simulator};
use serde_json::{Value, json};

use super::world::World;

const SPEED: f64 = 50.0;

fn kubelet(kubelet: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "limits"},
        "spec": {
            "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
            "kubeletConfig": kubelet,
        },
    })
}

fn machine_config(name: &str) -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name}})
}

/// How far the object is, as the operator finds it out, by what it keeps of it.
async fn standing(world: &World, followed: &Value, change: ChangeKind) -> Rollout {
    world.see_pools().await;
    loop {
        match world.pools.standing(followed, change) {
            Progress::Known(rollout) => return rollout,
            Progress::Unread(names) => {
                for name in names {
                    let read = world.get(&machine_config(&name)).await;
                    assert!(read.is_some() || change == ChangeKind::Removed, "what a pool names exists: {name}");
                    world.pools.learn(followed, &name, read.as_ref());
                }
            }
        }
    }
}

async fn standing_of(world: &World, wanted: &Value, change: ChangeKind) -> Rollout {
    let live = world.get(wanted).await.expect("the object exists");
    standing(world, &world.pools.follow(&live).expect("it is followed"), change).await
}

/// What is said of it until it is done.
async fn told_until_done(world: &World, wanted: &Value, change: ChangeKind) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for _ in 0..2000 {
        let found = match change {
            ChangeKind::Removed => standing(world, wanted, change).await,
            ChangeKind::New | ChangeKind::Edited => standing_of(world, wanted, change).await,
        };
        match found {
            Rollout::Done(_) => return told,
            Rollout::Waiting { text, .. } | Rollout::Failed(text) => {
                if told.last() != Some(&text) {
                    told.push(text);
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it is never done: {told:#?}");
}

/// Whether every machine of the pool has the setting.
async fn machines_have(world: &World, text: &str) -> bool {
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = world.get(&pool).await.unwrap();
    let rendered = world.get(&machine_config(pool["status"]["configuration"]["name"].as_str().unwrap())).await.unwrap();
    let files = rendered["spec"]["config"]["storage"]["files"].as_array().cloned().unwrap_or_default();
    let file = files.iter().find(|file| file["path"] == "/etc/kubernetes/kubelet.conf").cloned().unwrap_or_default();
    let source = file["contents"]["source"].as_str().unwrap_or_default().to_owned();
    let decoded = data_url::DataUrl::process(&source).map(|url| url.decode_to_vec().unwrap().0).unwrap_or_default();
    String::from_utf8_lossy(&decoded).contains(text) && pool["status"]["updatedMachineCount"] == 3
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_config_is_done_when_every_machine_has_what_was_made_of_it_also_after_an_edit() {
    let world = World::with_machines().await;
    let simulator =
        Simulator::start(world.admin.clone(), Settings { speed: SPEED, rendered_padding: 0, ..Settings::default() });
    let wanted = kubelet(json!({"maxPods": 411}));
    world.create(&wanted, "us").await;
    let told = told_until_done(&world, &wanted, ChangeKind::New).await;
    assert!(told.iter().any(|text| text.contains("machines are updated")), "{told:#?}");
    assert!(machines_have(&world, "411").await);

    // The pool listed its MachineConfig before the edit, and goes on saying Updated for a while.
    world.edit(&wanted, json!({"spec": {"kubeletConfig": {"maxPods": 422}}}), "us").await;
    told_until_done(&world, &wanted, ChangeKind::Edited).await;
    assert!(machines_have(&world, "422").await);

    // Removed, it and what was made of it are gone at once, and the pool says Updated until it has rendered without it.
    world.delete(&wanted).await;
    while world.get(&wanted).await.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let target = json!({"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": wanted["metadata"], "pools": ["worker"]});
    let told = told_until_done(&world, &target, ChangeKind::Removed).await;
    assert!(told[0].contains("has not rendered without it yet"), "{told:#?}");
    assert!(!machines_have(&world, "422").await);
    simulator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_kubelet_config_has_failed_with_what_the_controllers_say() {
    let world = World::with_machines().await;
    let wanted = kubelet(json!({"cgroupDriver": "cgroupfs"}));
    world.create(&wanted, "us").await;
    assert!(
        matches!(standing_of(&world, &wanted, ChangeKind::New).await, Rollout::Waiting { .. }),
        "nobody has looked at it"
    );
    let simulator =
        Simulator::start(world.admin.clone(), Settings { speed: SPEED, rendered_padding: 0, ..Settings::default() });
    for _ in 0..1000 {
        match standing_of(&world, &wanted, ChangeKind::New).await {
            Rollout::Failed(text) => {
                assert!(text.contains("refuse it") && text.contains("cgroupDriver"), "{text}");
                simulator.stop().await;
                return;
            }
            Rollout::Waiting { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            Rollout::Done(text) => panic!("{text}"),
        }
    }
    panic!("it is never refused");
}
