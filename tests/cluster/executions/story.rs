//! The main job: DryRun, review, Apply, Completed, Drifted and back.

use advisor_core::api::{ItemState, Operation, Phase};
use serde_json::json;

use crate::fixture::{Fixture, PROFILE, Setup, descheduler};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_dry_run_to_drifted_and_back() {
    let fixture = Fixture::start(Setup::default()).await;
    let advertised = fixture.wait_for(Phase::Ignored).await;
    assert!(advertised.items.is_empty());

    let mark = fixture.mark();
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let operations: Vec<_> = plan.items.iter().map(|item| (item.name.as_str(), item.operation, item.wave)).collect();
    assert_eq!(
        operations,
        [("enable-psi-metrics", Operation::Create, 0), ("enable-load-aware-descheduling", Operation::Create, 1)]
    );
    let summary = plan.summary.clone().unwrap();
    assert_eq!((summary.create, summary.machines_to_reboot, summary.pools), (2, 3, vec!["worker".to_owned()]));
    assert!(fixture.target_writes(&mark).is_empty(), "a dry run writes nothing");
    eprintln!("plan: {} requests", fixture.requests(&mark).len());
    fixture.rest().await;

    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    let under_way = fixture.wait_for(Phase::InProgress).await;
    assert_eq!(under_way.approval.as_ref().map(|approval| &approval.plan_hash), plan.plan_hash.as_ref());
    let done = fixture.wait_for(Phase::Completed).await;
    assert!(done.items.iter().all(|item| item.state == ItemState::Completed), "{done:#?}");
    assert!(done.items[0].message.contains("MachineConfigPool worker"), "{}", done.items[0].message);
    assert_eq!(done.history[0].plan_hash, plan.plan_hash.clone().unwrap());
    assert_eq!(
        fixture.target_writes(&mark),
        ["patch machineconfigs 99-worker-psi-karg", "patch kubedeschedulers cluster"],
        "each once, the descheduler after the machines"
    );
    let requests = fixture.requests(&mark);
    for request in &requests {
        eprintln!(
            "  {} {} {}/{} {} {}",
            request.verb, request.resource, request.name, request.subresource, request.dry_run, request.code
        );
    }
    eprintln!("apply: {} requests", requests.len());
    fixture.rest().await;

    let target = descheduler(json!({}));
    let mark = fixture.mark();
    fixture.edit(&target, json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    let text = drifted.summary.clone().unwrap().text;
    for part in ["/spec/deschedulingIntervalSeconds", "3600", "60", "somebody"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    eprintln!("drift: {} requests", fixture.requests(&mark).len());
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty(), "drift is told, not corrected");

    fixture.edit(&target, json!({"spec": {"deschedulingIntervalSeconds": 60}}), "somebody").await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.config().await.metadata.name.as_deref(), Some(PROFILE));
    fixture.finish().await;
}
