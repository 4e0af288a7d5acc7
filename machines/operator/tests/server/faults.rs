//! A whole story with one fault at one of its requests: the end is always the same. No claim is
//! lost, none is left behind.

use controlplane::faults::{Fault, Script, scripted};
use http::Request;
use kube::api::ListParams;
use kube::client::Body;
use kubevirt_operator::controller::Settings;
use serde_json::json;

use crate::world::World;

/// Every request but those that open and list watches.
fn counted(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    !query.contains("watch=") && !query.contains("limit=50")
}

const FAULTS: [Fault; 8] = [
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::Cut,
    Fault::LoseAnswer,
    Fault::Truncate,
    Fault::Answer(409, "Conflict"),
    Fault::Answer(500, "InternalError"),
    Fault::Answer(503, "ServiceUnavailable"),
];

/// Creates, edits and deletes a Machine while `script` has its way, and returns how many requests
/// that took.
async fn story(world: &World, name: &str, script: &std::sync::Arc<Script>) -> usize {
    let client = scripted(world.client.clone(), script.clone());
    world.start_as(client, Settings::default());
    let (root, data) = (format!("{name}-root"), format!("{name}-data"));
    let told = async {
        world
            .has(name, json!({"template": "small", "disks": [{"name": "data", "size": "1Gi", "onDelete": "Keep"}]}))
            .await;
        world.phase(name, "Running").await;
        let claims =
            [world.get(&world.claims(), &root).await.unwrap(), world.get(&world.claims(), &data).await.unwrap()];
        let edit = json!({"spec": {"template": "medium", "cloudInit": {"userData": "#cloud-config\n"}}});
        world.patch(&world.machines(), name, edit).await;
        let is_edited = |vm: &serde_json::Value| vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2;
        world.until(&world.vms(), name, is_edited).await;
        let machine = world.until(&world.machines(), name, |machine| machine["status"]["pending"].is_array()).await;
        let disks = machine["status"]["disks"].as_array().unwrap();
        for claim in &claims {
            let recorded = disks.iter().find(|disk| disk["pvcName"] == claim["metadata"]["name"]).unwrap();
            assert_eq!(recorded["uuid"], claim["metadata"]["uid"], "{machine:#}");
        }
        world.delete(&world.machines(), name).await;
        world.until_gone(&world.machines(), name).await;
        world.until_gone(&world.claims(), &root).await;
        let kept = world.get(&world.claims(), &data).await.unwrap();
        assert_eq!(kept["metadata"]["uid"], claims[1]["metadata"]["uid"]);
        assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept:#}");
        assert!(world.get(&world.vms(), name).await.is_none() && world.get(&world.vmis(), name).await.is_none());
    };
    let restarted = async {
        script.killed().await;
        true
    };
    let mut told = Box::pin(told);
    let is_killed = tokio::select! {
        () = &mut told => false,
        killed = restarted => killed,
    };
    if is_killed {
        world.kill();
        world.start(Settings::default());
        (&mut told).await;
    }
    drop(told);
    world.stop_operator().await;
    world.delete(&world.claims(), &data).await;
    script.count()
}

#[tokio::test]
async fn whatever_happens_at_whichever_request_the_end_is_the_same() {
    let Some(world) = World::without_operator().await else { return };
    let none = Script::among(Fault::Delay, usize::MAX, counted);
    let count = story(&world, "story", &none).await;
    assert!((15..80).contains(&count), "a story takes {count} requests");
    // All of them with ADVISOR_TEST_FAULTS, else a part that moves through faults and requests.
    let step = if std::env::var_os("ADVISOR_TEST_FAULTS").is_some() { 1 } else { 11 };
    let all = FAULTS.iter().flat_map(|fault| (0..count).map(move |at| (*fault, at)));
    for (number, (fault, at)) in all.enumerate().filter(|(number, _)| number % step == 0) {
        println!("{fault:?} at request {at} of {count}");
        story(&world, &format!("story-{number}"), &Script::among(fault, at, counted)).await;
    }
    let left = world.vms().list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(left, 0, "no virtual machine is left");
    world.end().await;
}
