//! Objects and users that should not be: each is told what is wrong, and the others go on.

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use controlplane::apply_yaml;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PROFILE, Setup, our_crd};

/// The CRD as a careless version might have had it: nothing is checked.
pub async fn loosen(fixture: &Fixture) {
    let crd = std::fs::read_to_string(our_crd()).unwrap();
    let mut crd: Value = serde_saphyr::from_str(&crd).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    });
    apply_yaml(&fixture.admin, &crd.to_string(), "test").await.unwrap();
}

fn raw(fixture: &Fixture) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
    Api::all_with(fixture.admin.clone(), &ApiResource::from_gvk(&kind))
}

pub async fn create(fixture: &Fixture, name: &str, spec: Value) {
    let object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": name}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    raw(fixture).create(&PostParams::default(), &object).await.unwrap();
}

pub async fn failure(fixture: &Fixture, name: &str) -> String {
    for _ in 0..1000 {
        let object = raw(fixture).get(name).await.unwrap();
        let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let failed = conditions.iter().find(|condition| condition["type"] == "Failed" && condition["status"] == "True");
        if let Some(failed) = failed {
            return failed["message"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{name} was not told that it fails");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_does_not_fit_does_not_stop_its_neighbours() {
    let mut fixture = Fixture::without_operator(Setup::default()).await;
    loosen(&fixture).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    create(&fixture, "nonsense", json!({"profile": 7, "action": ["Apply"]})).await;
    create(&fixture, "unknown", json!({"profile": "unknown", "action": "DryRun"})).await;
    create(&fixture, "old", json!({"profile": "old", "action": "DryRun", "waitTimeout": "2 hours"})).await;
    let wrong = json!({"profile": PROFILE, "action": "DryRun", "options": {"loadAware": {"mode": "Sometimes"}}});
    create(&fixture, PROFILE, wrong).await;
    fixture.start_operator();
    assert!(failure(&fixture, "nonsense").await.contains("does not match this version's schema"));
    assert!(failure(&fixture, "unknown").await.contains("Profile unknown is not known to this version"));
    assert!(failure(&fixture, "old").await.contains("Profile old is not known"));
    assert!(failure(&fixture, PROFILE).await.contains("spec.options.loadAware is not valid"));

    // What is corrected goes on.
    fixture.patch(json!({"options": {"loadAware": {"mode": "Predictive"}}})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.finish().await;
}

/// While an object does not fit nothing of it is watched, and so nothing is remembered: what
/// happened meanwhile is found when it fits again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_while_an_object_does_not_fit_is_found_afterwards() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    loosen(&fixture).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let patch = async |spec: Value| {
        let patch = kube::api::Patch::Merge(json!({"spec": spec}));
        raw(&fixture).patch(PROFILE, &Default::default(), &patch).await.unwrap();
    };
    patch(json!({"profile": 7})).await;
    failure(&fixture, PROFILE).await;
    let object = crate::fixture::descheduler(json!({}));
    fixture.edit(&object, json!({"spec": {"deschedulingIntervalSeconds": 1}}), "somebody").await;
    patch(json!({"profile": PROFILE})).await;
    let interval = |status: &VirtPlatformConfigStatus, value: &str| {
        status.items.iter().any(|item| item.diff.contains(&format!("-  deschedulingIntervalSeconds: {value}\n")))
    };
    fixture.wait("what was changed meanwhile", |status| interval(status, "1")).await;
    fixture.edit(&object, json!({"spec": {"deschedulingIntervalSeconds": 2}}), "somebody").await;
    fixture.wait("what is changed now", |status| interval(status, "2")).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_rights_waits_for_them() {
    let mut fixture = Fixture::without_operator(Setup { rights: false, ..Setup::default() }).await;
    fixture.start_operator();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let mark = fixture.mark();
    fixture.grant_rights().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    let tries = fixture.requests(&mark).into_iter().filter(|request| request.code == 403).count();
    assert!(tries <= 3, "{tries} tries without rights");
    fixture.rest().await;
    fixture.stop_operator().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_right_on_a_target_is_named_in_the_plan() {
    let fixture = Fixture::without_operator(Setup::default()).await;
    // Everything but writing KubeDeschedulers.
    let text = std::fs::read_to_string(crate::fixture::root().join("config/rbac/role.yaml")).unwrap();
    let mut role: Value = serde_saphyr::from_multiple(&text).unwrap().remove(0);
    for rule in role["rules"].as_array_mut().unwrap() {
        if rule["resources"] == json!(["kubedeschedulers"]) {
            rule["verbs"] = json!(["get", "list", "watch"]);
        }
    }
    apply_yaml(&fixture.admin, &role.to_string(), "test").await.unwrap();
    let mut fixture = fixture;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let message = &plan.items[1].message;
    assert!(message.contains("a Role in namespace openshift-kube-descheduler-operator"), "{message}");
    let rule = "{apiGroups: [\"operator.openshift.io\"], resources: [\"kubedeschedulers\"], resourceNames: [\"cluster\"], verbs: \
        [\"create\", \"patch\"]}";
    assert!(message.contains(rule), "{message}");
    fixture.rest().await;
    fixture.stop_operator().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_namespace_blocks_until_it_is_there() {
    let fixture = Fixture::without_operator(Setup { descheduler_namespace: false, ..Setup::default() }).await;
    let mut fixture = fixture;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let blocked = fixture.wait_for(Phase::ReviewRequired).await;
    let message = &blocked.items[1].message;
    assert!(message.contains("namespace openshift-kube-descheduler-operator does not exist"), "{message}");
    crate::fixture::create_namespace(&fixture.admin, "openshift-kube-descheduler-operator").await;
    let long = "x".repeat(300);
    let replan = kube::api::Patch::Merge(json!({"metadata": {"annotations": {"advisor.kubevirt.io/replan": long}}}));
    fixture.configs().patch(PROFILE, &Default::default(), &replan).await.unwrap();
    fixture
        .wait("the unblocked plan", |status| status.summary.as_ref().is_some_and(|summary| summary.blocked == 0))
        .await;
    fixture.finish().await;
}
