//! Installing, running as installed, and taking away again.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use advisor_core::api::Phase;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, OWN_NAMESPACE, Setup, descheduler, root};
use crate::program::replica::{Replica, leader_but};
use crate::program::tools::{check, documents};

const ACCOUNT: &str = "virt-advisor-operator-controller-manager";

/// Runs kubectl as the administrator; it must be content.
fn kubectl(fixture: &Fixture, arguments: &[&str]) -> String {
    let output = Command::new("kubectl")
        .args(arguments)
        .env("KUBECONFIG", fixture.plane.kubeconfig())
        .current_dir(root())
        .output()
        .expect("kubectl is installed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout) + &text(&output.stderr)
}

/// A cluster with a namespace that lets nothing in but what is *restricted*.
async fn cluster(namespace: &str) -> Fixture {
    let fixture =
        Fixture::without_operator(Setup { our_crd: false, rights: false, workers: 1, ..Setup::default() }).await;
    let restricted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {
        "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}}});
    controlplane::apply_yaml(&fixture.admin, &restricted.to_string(), "test").await.unwrap();
    fixture
}

/// A token of the operator's service account, as its Pod has it.
async fn token(fixture: &Fixture, namespace: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(fixture.admin.clone(), namespace);
    let (params, wanted) = (PostParams::default(), TokenRequest::default());
    let request = accounts.create_subresource::<TokenRequest, TokenRequest>("token", ACCOUNT, &params, &wanted);
    request.await.unwrap().status.unwrap().token
}

/// Nobody runs Deployments here: the Pod that one would make is made, to be admitted or refused.
async fn admit_pod(fixture: &Fixture, namespace: &str, deployment: &Value) {
    let template = &deployment["spec"]["template"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x-controller-manager", "namespace": namespace,
        "labels": template["metadata"]["labels"]}, "spec": template["spec"]});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let pods: Api<Pod> = Api::namespaced(fixture.admin.clone(), namespace);
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let mut loose = pod;
    loose.metadata.name = Some("loose".to_owned());
    loose.spec.as_mut().unwrap().security_context = None;
    let refused = pods.create(&PostParams::default(), &loose).await.unwrap_err().to_string();
    assert!(refused.contains("violates PodSecurity"), "the namespace refuses what is not restricted: {refused}");
}

/// The whole story, as installed: the operator as its own service account, two replicas, probes and
/// metrics on.
async fn story(fixture: &Fixture, namespace: &str) {
    let token = token(fixture, namespace).await;
    let account = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    let flags =
        ["--leader-election-namespace", namespace, "--health-probe-bind-address=:0", "--metrics-bind-address=:0"];
    let mark = fixture.mark();
    let first = Replica::start_as(fixture, &token, &flags).await;
    leader_but(fixture, &[]).await;
    let second = Replica::start_as(fixture, &token, &flags).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.edit(&descheduler(json!({})), json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    let asked: Vec<_> =
        fixture.plane.audit().since(&mark).into_iter().filter(|request| request.user == account).collect();
    let refused: Vec<_> = asked.iter().filter(|request| request.forbidden).collect();
    assert!(asked.len() > 40 && refused.is_empty(), "{} asked, {refused:#?}", asked.len());
    drop((first, second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_installed_it_tells_the_story_and_leaves_everything_when_it_goes() {
    let fixture = cluster(OWN_NAMESPACE).await;
    for file in ["dist/crd.yaml", "dist/install.yaml"] {
        let said = kubectl(&fixture, &["apply", "--server-side", "-f", file]);
        assert!(!said.contains("Warning"), "{said}");
    }
    let installed = documents(&std::fs::read_to_string(root().join("dist/install.yaml")).unwrap());
    let deployment = installed.iter().find(|object| object["kind"] == "Deployment").unwrap();
    admit_pod(&fixture, OWN_NAMESPACE, deployment).await;
    story(&fixture, OWN_NAMESPACE).await;

    kubectl(&fixture, &["delete", "-f", "dist/install.yaml"]);
    let configs = fixture.configs().list(&Default::default()).await.unwrap();
    assert!(configs.items.iter().any(|config| config.spec.profile == "load-aware-rebalancing"));
    let namespaces: Api<Namespace> = Api::all(fixture.admin.clone());
    let namespace = namespaces.get(OWN_NAMESPACE).await.unwrap();
    assert!(namespace.metadata.deletion_timestamp.is_none());
    assert!(fixture.get(&descheduler(json!({}))).await.is_some(), "what was applied stays");
}

/// Beside OpenShift Virtualization, with the optional parts; nothing is refused by the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_of_installing_is_accepted_by_the_server() {
    let fixture = cluster("openshift-cnv").await;
    monitoring_crds(&fixture).await;
    kubectl(&fixture, &["apply", "--server-side", "-f", "dist/crd.yaml"]);
    kubectl(&fixture, &["apply", "--server-side", "-f", "dist/openshift.yaml"]);
    for folder in ["approval", "approval-by-hash", "read-only", "prometheus", "network-policy", "rbac-namespaces"] {
        // Some belong into the namespace of the default installation.
        let _ = kubectl(&fixture, &["create", "namespace", OWN_NAMESPACE, "--dry-run=client", "-o", "yaml"]);
        let path = format!("config/{folder}");
        if folder == "prometheus" {
            kubectl(&fixture, &["create", "namespace", OWN_NAMESPACE]);
        }
        kubectl(&fixture, &["apply", "--server-side", "-k", &path]);
        if ["approval-by-hash", "read-only"].contains(&folder) {
            kubectl(&fixture, &["delete", "-k", &path]);
        }
    }
    kubectl(&fixture, &["delete", "-k", "config/approval"]);
    story(&fixture, "openshift-cnv").await;
    let chart = root().join("charts/virt-advisor");
    let values = "prometheus.enabled=true,networkPolicy.enabled=true,approvalPolicy.enabled=true,approvalByHash.enabled=true,readOnly.enabled=true,exampleProfile.enabled=true";
    let arguments =
        ["template", "x", chart.to_str().unwrap(), "-n", "openshift-cnv", "--kube-version", "1.33", "--set", values];
    let Some(text) = check("helm", &arguments, "") else { return };
    let file = fixture.plane.kubeconfig().with_file_name("chart.yaml");
    std::fs::write(&file, text).unwrap();
    let said = kubectl(&fixture, &["apply", "--server-side", "--force-conflicts", "-f", file.to_str().unwrap()]);
    assert!(!said.contains("Warning"), "{said}");
}

/// The Machine operator: by kustomize and by its chart, without a warning of the server. Its
/// samples are accepted strictly, with the admission policy in place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_machine_operator_is_installed_by_kustomize_and_by_its_chart() {
    const NAMESPACE: &str = "kubevirt-operator-system";
    let fixture = cluster("openshift-cnv").await;
    monitoring_crds(&fixture).await;
    kubectl(&fixture, &["create", "namespace", NAMESPACE]);
    for folder in ["crd", "default", "prometheus"] {
        let path = format!("config/machines/{folder}");
        let said = kubectl(&fixture, &["apply", "--server-side", "-k", &path]);
        assert!(!said.contains("Warning"), "{said}");
    }
    kubectl(&fixture, &["wait", "--for=condition=Established", "crd/machines.vitistack.io"]);
    kubectl(&fixture, &["apply", "--server-side", "--dry-run=server", "-f", "samples/machines"]);
    let chart = root().join("charts/kubevirt-operator");
    let chart = chart.to_str().unwrap();
    let Some(_) = check("helm", &["lint", "--strict", chart], "") else { return };
    let values = "prometheus.enabled=true,diskDeletion=Never,logLevel=debug,replicaCount=2";
    let arguments = ["template", "x", chart, "-n", NAMESPACE, "--kube-version", "1.33", "--set", values];
    let text = check("helm", &arguments, "").unwrap();
    assert_eq!(text.matches("helm.sh/resource-policy: keep").count(), 2, "definitions outlive the chart");
    let file = fixture.plane.kubeconfig().with_file_name("machines-chart.yaml");
    std::fs::write(&file, text).unwrap();
    let said = kubectl(&fixture, &["apply", "--server-side", "--force-conflicts", "-f", file.to_str().unwrap()]);
    assert!(!said.contains("Warning"), "{said}");
    for folder in ["prometheus", "default", "crd"] {
        kubectl(&fixture, &["delete", "--wait=false", "-k", &format!("config/machines/{folder}")]);
    }
}

/// Stands for the CRDs of the Prometheus operator: the kinds alone.
async fn monitoring_crds(fixture: &Fixture) {
    for (kind, plural) in [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")] {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        });
        controlplane::apply_yaml(&fixture.admin, &crd.to_string(), "test").await.unwrap();
        kubectl(fixture, &["wait", "--for=condition=Established", &format!("crd/{plural}.monitoring.coreos.com")]);
    }
}

/// A read-only installation plans, and whatever is approved, writes nothing; it says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_installation_plans_and_never_applies() {
    let fixture = cluster(OWN_NAMESPACE).await;
    for arguments in [["-f", "dist/crd.yaml"], ["-f", "dist/install.yaml"], ["-k", "config/read-only"]] {
        kubectl(&fixture, &[&["apply", "--server-side"][..], &arguments].concat());
    }
    let token = token(&fixture, OWN_NAMESPACE).await;
    let replica = Replica::start_as(&fixture, &token, &["--leader-election-namespace", OWN_NAMESPACE]).await;
    fixture.wait_for(Phase::Ignored).await;
    // A policy is in force a moment after it was made.
    tokio::time::sleep(Duration::from_secs(3)).await;
    fixture.patch(json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let status = fixture
        .wait("the refusal", |status| status.items.iter().any(|item| item.message.contains("plans and never applies")))
        .await;
    assert!(fixture.get(&descheduler(json!({}))).await.is_none(), "{status:#?}");
    assert_ne!(status.phase, Some(Phase::Completed));
    drop(replica);
}

/// The Go program's CRD with objects in it, made by hand or by it: ours takes its place, and they
/// are taken up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_the_go_program_are_taken_up() {
    let fixture = Fixture::without_operator(Setup { our_crd: false, ..Setup::default() }).await;
    // Its shape (by the API types of the Go program): the same names, a status with other members,
    // no list of inputs or history.
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "virtplatformconfigs.advisor.kubevirt.io"},
        "spec": {"group": "advisor.kubevirt.io", "scope": "Cluster",
            "names": {"kind": "VirtPlatformConfig", "listKind": "VirtPlatformConfigList", "plural": "virtplatformconfigs", "singular": "virtplatformconfig"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]},
    });
    controlplane::apply_yaml(&fixture.admin, &crd.to_string(), "go").await.unwrap();
    kubectl(&fixture, &["wait", "--for=condition=Established", "crd/virtplatformconfigs.advisor.kubevirt.io"]);
    let time = "2026-01-01T00:00:00Z";
    let condition = |name: &str, status: &str| json!({"type": name, "status": status, "reason": name, "message": "m", "lastTransitionTime": time});
    let status = |phase: &str| {
        json!({
            "phase": phase, "impactSeverity": "High", "observedGeneration": 1, "operatorVersion": "v0.1.31",
            "sourceSnapshotHash": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "appliedOptions": {"loadAware": {"deschedulingIntervalSeconds": 60, "mode": "Automatic", "enablePSIMetrics": true}},
            "conditions": [condition(phase, "True"), condition("Drafting", "False")],
            "items": [{"name": "enable-load-aware-descheduling", "impactSeverity": "Medium", "state": "Completed", "message": "Applied",
                "targetRef": {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
                "diff": "--- a\n+++ b\n", "desiredState": {"kind": "KubeDescheduler", "spec": {"mode": "Automatic"}},
                "lastTransitionTime": time, "managedFields": ["spec.mode"]}],
        })
    };
    let objects = [
        (
            "load-aware-rebalancing",
            json!({"profile": "load-aware-rebalancing", "action": "Apply", "failurePolicy": "Abort", "bypassOptimisticLock": false, "options": {"loadAware": {"enablePSIMetrics": false}}}),
            "Completed",
        ),
        (
            "virt-higher-density",
            json!({"profile": "virt-higher-density", "action": "DryRun", "waitTimeout": "soon"}),
            "InProgress",
        ),
        ("example-profile", json!({"profile": "example-profile", "action": "Ignore"}), "Ignored"),
    ];
    for (name, spec, phase) in &objects {
        let object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": name}, "spec": spec});
        fixture.create(&object, "manager").await;
        let patch = kube::api::Patch::Merge(json!({"status": status(phase)}));
        let api: Api<DynamicObject> = fixture.api(&object);
        api.patch_status(name, &Default::default(), &patch).await.unwrap();
    }
    kubectl(&fixture, &["apply", "--server-side", "--force-conflicts", "-f", "dist/crd.yaml"]);
    let mark = fixture.mark();
    let mut fixture = fixture;
    fixture.start_operator();
    // What the Go program called done is planned anew, and waits for a review: no hash of ours
    // approved it.
    let planned = fixture.wait_for(Phase::CompletedWithUpgrade).await;
    assert!(planned.plan_hash.is_some() && fixture.target_writes(&mark).is_empty(), "{planned:#?}");
    let phases: BTreeMap<_, _> = settled(&fixture).await;
    assert_eq!(phases["example-profile"], Some(Phase::Ignored));
    assert_eq!(phases["virt-higher-density"], Some(Phase::ReviewRequired));
    fixture.patch(json!({"approvedPlanHash": planned.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.configs().delete("virt-higher-density", &DeleteParams::default()).await.unwrap();
    fixture.stop_operator().await;
}

async fn settled(fixture: &Fixture) -> BTreeMap<String, Option<Phase>> {
    fixture.rest().await;
    let api: Api<DynamicObject> = fixture.api(
        &json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": "x"}}),
    );
    let list = api.list(&Default::default()).await.unwrap();
    let phase = |object: &DynamicObject| serde_json::from_value(object.data["status"]["phase"].clone()).ok();
    list.items.iter().map(|object| (object.metadata.name.clone().unwrap(), phase(object))).collect()
}
