//! What the owners of applied objects say of them, during an execution and afterwards.

use advisor_core::plan::decision::execution::SETTLING;
use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, create_namespace, descheduler, hyper_converged, third_party};

/// As the descheduler operator says it (945dcaa9d895): one manager for each part, the sentence in
/// the reason.
fn part(degraded: bool) -> Value {
    let (status, reason) = match degraded {
        true => ("True", r#"route.route.openshift.io "prometheus-k8s" not found"#),
        false => ("False", "AsExpected"),
    };
    json!({"type": "TargetConfigControllerDegraded", "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

async fn say(fixture: &Fixture, object: &Value, status: Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams { field_manager: Some("its-operator".to_owned()), ..PatchParams::default() };
    fixture.api(object).patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await.unwrap();
}

fn trouble(status: &VirtPlatformConfigStatus) -> Option<(&str, &str)> {
    let found = status.conditions.iter().find(|found| found.type_ == "OwnerUnhealthy")?;
    Some((&found.status, &found.message))
}

/// Faults R10 and R11: Completed and "In effect" while the operator of the object says that it is
/// degraded; and what it says later was not looked at. Fault R15: each write of a status cost
/// requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_r11_r15_what_an_owner_says_is_followed_and_costs_nothing_while_it_is_the_same() {
    let mut fixture = Fixture::without_operator(Setup::default()).await;
    fixture.patience = Duration::from_millis(1500);
    fixture.settling = SETTLING;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::Completed).await;
    let target = descheduler(json!({}));
    say(&fixture, &target, json!({"conditions": [part(false)]})).await;
    fixture.rest().await;

    let options = json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 600}});
    fixture.patch(json!({"options": options})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    // Its conditions are those of before, and good.
    let written = |status: &VirtPlatformConfigStatus| {
        assert_ne!(status.phase, Some(Phase::Completed), "the owner has had no time");
        status.items[0].message.starts_with("Applied")
    };
    fixture.wait("the write", written).await;
    say(&fixture, &target, json!({"conditions": [part(true)]})).await;
    let degraded = fixture.wait("its word", |status| status.items[0].message.contains("prometheus-k8s")).await;
    assert_eq!((degraded.phase, trouble(&degraded)), (Some(Phase::InProgress), None));
    say(&fixture, &target, json!({"conditions": [part(false)]})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.rest().await;

    // It becomes unwell later: told, and no other plan.
    let before = fixture.config().await.status.unwrap();
    say(&fixture, &target, json!({"conditions": [part(true)]})).await;
    let unwell = fixture.wait("trouble", |status| trouble(status).is_some_and(|(status, _)| status == "True")).await;
    let (_, told) = trouble(&unwell).unwrap();
    assert!(told.contains("KubeDescheduler") && told.contains("TargetConfigControllerDegraded=True"), "{told}");
    assert_eq!((unwell.phase, &unwell.plan_hash), (Some(Phase::Completed), &before.plan_hash));
    assert_eq!(unwell.items, before.items);
    assert!(unwell.summary.unwrap().text.contains("prometheus-k8s"));
    say(&fixture, &target, json!({"conditions": [part(false)]})).await;
    fixture.wait("its end", |status| trouble(status).is_some_and(|(status, _)| status == "False")).await;
    fixture.rest().await;
    let events = kube::Api::<k8s_openapi::api::events::v1::Event>::all(fixture.admin.clone());
    let events = events.list(&Default::default()).await.unwrap();
    let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert!(reasons.contains(&"OwnerUnhealthy") && reasons.contains(&"OwnerHealthy"), "{reasons:?}");

    // A plan that waits says it too, and so does one that is carried out.
    say(&fixture, &target, json!({"conditions": [part(true)]})).await;
    fixture.wait("trouble", |status| trouble(status).is_some_and(|(status, _)| status == "True")).await;
    fixture.patch(json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 300}}})).await;
    let waits = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(trouble(&waits).map(|found| found.0), Some("True"), "{:#?}", waits.conditions);
    say(&fixture, &target, json!({"conditions": [part(false)]})).await;
    fixture
        .patch(json!({"options": {"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 600}}}))
        .await;
    fixture.wait_for(Phase::Completed).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.rest().await;

    // An input and a target whose owners write all the time that nothing is new.
    let input = hyper_converged("v1beta1", json!({}));
    for written in 0..2 {
        say(&fixture, &input, json!({"relatedObjects": [{"resourceVersion": written.to_string()}]})).await;
        say(&fixture, &target, json!({"readyReplicas": written})).await;
    }
    fixture.rest().await;
    let mark = fixture.mark();
    for written in 2..22 {
        say(&fixture, &input, json!({"relatedObjects": [{"resourceVersion": written.to_string()}]})).await;
        say(&fixture, &target, json!({"readyReplicas": written})).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fixture.rest().await;
    let asked: Vec<_> = fixture.requests(&mark).into_iter().filter(|request| !request.is_watch()).collect();
    assert!(asked.is_empty(), "{asked:#?}");
    // What matters is seen all the same.
    fixture.edit(&target, json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    fixture.finish().await;
}

/// Fault R26: that virt-platform-autopilot writes its own values back was said by one profile only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r26_every_profile_says_that_the_autopilot_manages_its_object() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let mut theirs = descheduler(json!({"managementState": "Managed", "deschedulingIntervalSeconds": 300}));
    theirs["metadata"]["labels"] = json!({"platform.kubevirt.io/managed-by": "virt-platform-autopilot"});
    controlplane::apply_yaml(&fixture.admin, &theirs.to_string(), "virt-platform-autopilot").await.unwrap();
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let item = plan.items.iter().find(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
    assert!(item.message.contains("also managed by virt-platform-autopilot"), "{}", item.message);
    fixture.finish().await;
}

/// Beside the descheduler operator: what its config observer writes is no drift, and what keeps the
/// descheduler from running holds the item until it has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_descheduler_operator_is_waited_for_and_its_own_writes_are_no_drift() {
    let mut fixture = Fixture::without_operator(Setup::default()).await;
    fixture.patience = Duration::from_millis(1500);
    let no_route = r#"unable to get openshift-monitoring/prometheus-k8s route: route.route.openshift.io "prometheus-k8s" not found"#;
    let operator = descheduler_simulator::Simulator::start(fixture.admin.clone(), Some(no_route));
    fixture.settling = SETTLING;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let held = fixture.wait("its word", |status| status.items[0].message.contains("prometheus-k8s")).await;
    assert_eq!(held.phase, Some(Phase::InProgress));
    operator.becomes(None).await.unwrap();
    let done = fixture.wait_for(Phase::Completed).await;
    let written = fixture.get(&descheduler(json!({}))).await.unwrap();
    assert!(written["spec"]["observedConfig"].is_object(), "{written}");
    assert_eq!(written["metadata"]["generation"], 2, "one write of ours, and one of its operator");
    assert!(written["status"]["observedGeneration"].is_null());
    fixture.rest().await;

    operator.becomes(Some(no_route)).await.unwrap();
    let unwell = fixture.wait("trouble", |status| trouble(status).is_some_and(|(status, _)| status == "True")).await;
    assert_eq!((unwell.phase, &unwell.plan_hash), (Some(Phase::Completed), &done.plan_hash), "no drift, no other plan");
    operator.becomes(None).await.unwrap();
    fixture.wait("its end", |status| trouble(status).is_some_and(|(status, _)| status == "False")).await;
    fixture.finish().await;
}

/// Beside the node health check operator: a check whose template is not there is applied and
/// inactive, and active once it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_health_check_without_its_template_is_told_to_be_inactive_until_it_is_there() {
    let setup = Setup { profile: "virt-platform-baseline", ..Setup::default() };
    let mut fixture = Fixture::without_operator(setup).await;
    fixture.patience = Duration::from_millis(1500);
    let kinds = ["nodehealthchecks", "fenceagentsremediationtemplates"].map(third_party);
    controlplane::install_crds(&fixture.admin, &kinds).await.unwrap();
    create_namespace(&fixture.admin, "openshift-workload-availability").await;
    let _operator = node_healthcheck_simulator::Simulator::start(fixture.admin.clone(), 30.0);
    fixture.settling = SETTLING;
    fixture.start_operator();
    let features = json!({"features": {"nodeHealthCheck": "Enabled", "swap": "Disabled"}});
    fixture.configure_baseline(features).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    let of_check = |status: &VirtPlatformConfigStatus| {
        let item = status.items.iter().find(|item| item.target_ref.kind == "NodeHealthCheck");
        item.map(|item| item.message.clone()).unwrap_or_default()
    };
    let is_inactive = |status: &VirtPlatformConfigStatus| {
        let told = of_check(status);
        told.contains("pplied, but inactive") && told.contains("Remediation template not found")
    };
    fixture.wait("that it is inactive", is_inactive).await;
    let unwell = fixture.wait("trouble", |status| trouble(status).is_some_and(|(status, _)| status == "True")).await;
    assert_eq!(unwell.phase, Some(Phase::Completed));

    let template = json!({
        "apiVersion": "fence-agents-remediation.medik8s.io/v1alpha1", "kind": "FenceAgentsRemediationTemplate",
        "metadata": {"name": "fenceagentsremediationtemplate-default", "namespace": "openshift-workload-availability"},
        "spec": {"template": {}},
    });
    fixture.create(&template, "somebody").await;
    let well = fixture.wait("its end", |status| trouble(status).is_some_and(|(status, _)| status == "False")).await;
    assert!(!of_check(&well).contains("inactive"), "{}", of_check(&well));
    fixture.finish().await;
}
