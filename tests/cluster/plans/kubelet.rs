//! KubeletConfigs on their way to the machines: traps of the real controllers, played by the
//! simulator.

use std::time::Duration;

use advisor_core::api::TargetRef;
use advisor_core::plan::items::health::Rollout;
use advisor_core::rollout::{ChangeKind, Progress, Tracked, Tracking};
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

/// How far it is, as the operator finds it out, by what it keeps of it.
async fn progress(world: &World, tracked: &Tracked, change: ChangeKind) -> Rollout {
    world.see_pools().await;
    loop {
        match world.pools.progress(tracked, change) {
            Progress::Known(rollout) => return rollout,
            Progress::Unread(unread) => {
                for needed in unread {
                    let read = world.get(&machine_config(needed.name())).await;
                    assert!(read.is_some() || needed.may_be_gone(), "what a pool names exists: {needed:?}");
                    world.pools.record_for_progress(tracked, &needed, read.as_ref());
                }
            }
        }
    }
}

async fn progress_of(world: &World, wanted: &Value, change: ChangeKind) -> Rollout {
    let live = world.get(wanted).await.expect("the object exists");
    progress(world, &world.pools.snapshot(&live).expect("it is tracked"), change).await
}

/// What is said of it until it is done: `change` says how it was changed, if it was not removed
/// from pool worker.
async fn told_until_done(world: &World, wanted: &Value, change: Option<ChangeKind>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let removed = Tracked::Removed { target: TargetRef::of(wanted), pools: vec!["worker".to_owned()] };
    for _ in 0..2000 {
        let found = match change {
            None => progress(world, &removed, ChangeKind::New).await,
            Some(change) => progress_of(world, wanted, change).await,
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
    let told = told_until_done(&world, &wanted, Some(ChangeKind::New)).await;
    assert!(told.iter().any(|text| text.contains("machines are updated")), "{told:#?}");
    assert!(machines_have(&world, "411").await);

    // The pool listed its MachineConfig before the edit, and goes on saying Updated for a while.
    world.edit(&wanted, json!({"spec": {"kubeletConfig": {"maxPods": 422}}}), "us").await;
    told_until_done(&world, &wanted, Some(ChangeKind::Edited)).await;
    assert!(machines_have(&world, "422").await);

    // Removed, it and what was made of it are gone at once, and the pool says Updated until it has
    // rendered without it.
    world.delete(&wanted).await;
    while world.get(&wanted).await.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let told = told_until_done(&world, &wanted, None).await;
    assert!(told[0].contains("to render a configuration without it"), "{told:#?}");
    assert!(!machines_have(&world, "422").await);
    simulator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_kubelet_config_has_failed_with_what_the_controllers_say() {
    let world = World::with_machines().await;
    let wanted = kubelet(json!({"cgroupDriver": "cgroupfs"}));
    world.create(&wanted, "us").await;
    assert!(
        matches!(progress_of(&world, &wanted, ChangeKind::New).await, Rollout::Waiting { .. }),
        "nobody has looked at it"
    );
    let simulator =
        Simulator::start(world.admin.clone(), Settings { speed: SPEED, rendered_padding: 0, ..Settings::default() });
    for _ in 0..1000 {
        match progress_of(&world, &wanted, ChangeKind::New).await {
            Rollout::Failed(text) => {
                assert!(text.contains("rejects it") && text.contains("cgroupDriver"), "{text}");
                simulator.stop().await;
                return;
            }
            Rollout::Waiting { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            Rollout::Done(text) => panic!("{text}"),
        }
    }
    panic!("it is never refused");
}
