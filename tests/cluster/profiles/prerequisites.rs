//! What the profile needs and the cluster lacks: told, waited for, and seen when it comes or goes.

use advisor_core::api::Phase;
use controlplane::install_crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use serde_json::json;

use crate::fixture::{Fixture, Setup, hyper_converged, third_party};

fn text(status: &advisor_core::api::VirtPlatformConfigStatus) -> String {
    let condition = status.conditions.iter().find(|condition| condition.type_ == "PrerequisiteFailed").unwrap();
    condition.message.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crd_that_is_missing_at_start_is_named_and_seen_when_it_is_installed() {
    let fixture = Fixture::start(Setup { descheduler_crd: None, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await;
    let text = text(&missing);
    assert!(text.contains("KubeDescheduler") && text.contains("CRD kubedeschedulers.operator.openshift.io"), "{text}");
    assert!(!text.contains("HyperConverged"), "only what is missing is named: {text}");
    fixture.rest().await;
    install_crds(&fixture.admin, &[third_party("kubedeschedulers")]).await.unwrap();
    fixture.wait_for(Phase::ReviewRequired).await;

    // It goes again.
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.admin.clone());
    crds.delete("kubedeschedulers.operator.openshift.io", &Default::default()).await.unwrap();
    fixture.wait_for(Phase::PrerequisiteFailed).await;
    install_crds(&fixture.admin, &[third_party("kubedeschedulers")]).await.unwrap();
    fixture.wait_for(Phase::ReviewRequired).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_hyper_converged_nothing_is_planned() {
    let fixture = Fixture::start(Setup { hyper_converged: None, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await;
    assert!(
        text(&missing).contains("HyperConverged kubevirt-hyperconverged does not exist in any namespace"),
        "{}",
        text(&missing)
    );
    fixture.rest().await;

    // The plan that can be made later was not asked for in advance: it waits.
    fixture.create(&hyper_converged("v1beta1", json!({})), "kubectl-create").await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_machine_config_operator_psi_must_be_left_out() {
    let fixture = Fixture::start(Setup { pools: false, ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await;
    assert!(text(&missing).contains("enablePSIMetrics"), "the remedy is said: {}", text(&missing));
    fixture.patch(json!({"options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(plan.items.len(), 1);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_hyper_converged_are_an_input_of_the_plan() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    let mark = fixture.mark();
    let hco = hyper_converged("v1beta1", json!({}));
    let limits = |total: u32| json!({"spec": {"liveMigrationConfig": {"parallelMigrationsPerCluster": total}}});
    fixture.edit(&hco, limits(20), "somebody").await;
    let changed = fixture.wait_for(Phase::ReviewRequired).await;
    let condition = changed.conditions.iter().find(|condition| condition.type_ == "InputDependencyDrift").unwrap();
    for part in ["/spec/liveMigrationConfig/parallelMigrationsPerCluster", "from 5 to 20"] {
        assert!(condition.message.contains(part), "{part}: {}", condition.message);
    }
    assert!(changed.items[0].diff.contains("+    total: 18"), "{}", changed.items[0].diff);
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.edit(&hco, limits(5), "somebody").await;
    fixture.wait_for(Phase::Completed).await;

    // A status update of HyperConverged concerns nobody.
    fixture.edit(&hco, json!({"metadata": {"annotations": {"unrelated": "1"}}}), "somebody").await;
    fixture.rest().await;

    // Defect D20: what somebody does to the limits of the descheduler itself is drift, and no
    // change of an input.
    let target = crate::fixture::descheduler(json!({}));
    fixture.edit(&target, json!({"spec": {"evictionLimits": {"total": 50}}}), "somebody").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    assert!(drifted.summary.as_ref().unwrap().text.contains("/spec/evictionLimits/total is 50"), "{drifted:#?}");
    let input = drifted.conditions.iter().find(|condition| condition.type_ == "InputDependencyDrift");
    assert!(input.is_none_or(|condition| condition.status == "False"));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_crd_is_waited_for() {
    let fixture = Fixture::start(Setup { our_crd: false, ..Setup::default() }).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    install_crds(&fixture.admin, &[crate::fixture::our_crd()]).await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crd_that_changes_its_defaults_changes_the_plan() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(plan.items[0].diff.contains("+  logLevel: Normal"), "{}", plan.items[0].diff);
    let crd = std::fs::read_to_string(third_party("kubedeschedulers")).unwrap();
    let crd = crd.replace("default: Normal", "default: Debug");
    controlplane::apply_yaml(&fixture.admin, &crd, "test").await.unwrap();
    fixture.wait("the new default", |status| status.items[0].diff.contains("+  logLevel: Debug")).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    fixture.finish().await;
}
