//! The platform baseline on the real server: what decides about its features, and what it finds of
//! others.

use advisor_core::api::{Item, Operation, Phase, VirtPlatformConfigStatus};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, create_namespace, hyper_converged};

const BASELINE: &str = "virt-platform-baseline";

impl Fixture {
    pub async fn configure_baseline(&self, options: Value) {
        let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": BASELINE},
            "spec": {"profile": BASELINE, "action": "DryRun", "options": {"platformBaseline": options}}});
        controlplane::apply_yaml(&self.admin, &config.to_string(), "somebody").await.unwrap();
    }

    async fn merge_node(&self, name: &str, patch: Value) {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

fn of<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> &'a Item {
    status.items.iter().find(|item| item.name == name).unwrap_or_else(|| panic!("{name}: {status:#?}"))
}

fn why_not<'a>(status: &'a VirtPlatformConfigStatus, feature: &str) -> Option<&'a str> {
    status.left_out.iter().find(|part| part.feature == feature).map(|part| part.reason.as_str())
}

/// Masters that carry virtual machines get what workers get, and what another program of the field
/// has written is named before anything is taken over from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_34_masters_are_covered_and_the_autopilot_is_named() {
    let fixture = Fixture::without_operator(Setup { profile: BASELINE, ..Setup::default() }).await;
    mco_simulator::set_role(&fixture.admin, "master-0", "worker", true).await.unwrap();
    let theirs = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {
            "name": "90-worker-swap-online",
            "labels": {"machineconfiguration.openshift.io/role": "worker", "platform.kubevirt.io/managed-by": "virt-platform-autopilot"},
        },
        "spec": {"config": {"ignition": {"version": "3.5.0"}, "systemd": {"units": [{"name": "swap.service", "enabled": true}]}}},
    });
    fixture.create(&theirs, "virt-platform-autopilot").await;
    // W-31: another HyperConverged elsewhere counts for nothing.
    let mut another = hyper_converged("v1beta1", json!({}));
    another["metadata"] = json!({"name": "kubevirt-hyperconverged", "namespace": "default",
        "annotations": {"platform.kubevirt.io/enable-metallb": "true"}});
    fixture.create(&another, "somebody").await;
    let mut fixture = fixture;
    fixture.start_operator();
    fixture.configure_baseline(json!({"features": {"swap": "Enabled"}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let names: Vec<_> = plan.items.iter().map(|item| (item.name.as_str(), item.operation)).collect();
    assert_eq!(
        names,
        [
            ("hyper-converged", Operation::NoChange),
            ("swap-worker", Operation::Update),
            ("swap-master", Operation::Create)
        ]
    );
    let taken = of(&plan, "swap-worker");
    assert!(taken.message.contains("over from virt-platform-autopilot"), "{}", taken.message);
    assert!(taken.message.contains("first turn that off by setting the annotation"), "{}", taken.message);
    assert!(!of(&plan, "swap-master").message.contains("turn that off"), "nobody else manages it");
    assert!(taken.conflicts.iter().all(|conflict| conflict.manager == "virt-platform-autopilot"), "{taken:#?}");
    // What is not planned says why; what nobody asked for costs no request.
    let left_out: Vec<_> = plan.left_out.iter().map(|part| part.feature.as_str()).collect();
    assert_eq!(left_out.len(), 23, "{left_out:?}");
    assert!(
        why_not(&plan, "metalLb").unwrap().contains("set spec.options.platformBaseline.features.metalLb to Enabled")
    );
    fixture.finish().await;
}

/// Labels of the nodes are an input as an answer: their coming and going is no news, and lists
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_no_news_and_only_the_answer_counts() {
    let mut fixture = Fixture::without_operator(Setup { profile: BASELINE, ..Setup::default() }).await;
    let hyper_converged = crate::fixture::hyper_converged("v1beta1", json!({}));
    let asks = json!({"metadata": {"annotations": {"platform.kubevirt.io/enable-pci-passthrough": "true"}}});
    fixture.edit(&hyper_converged, asks, "kubectl-annotate").await;
    let mark = fixture.mark();
    fixture.start_operator();
    fixture.configure_baseline(json!({})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert!(
        why_not(&plan, "pciPassthrough").unwrap().starts_with("no node is labeled as having PCI devices"),
        "{plan:#?}"
    );
    let lists = |fixture: &Fixture| {
        fixture
            .requests(&mark)
            .into_iter()
            .filter(|request| request.resource == "nodes" && request.verb == "list")
            .count()
    };
    // A look may be made again while the watches of a new configuration open.
    fixture.rest().await;
    let before = lists(&fixture);
    assert!(before >= 1);
    let has_gpu = json!({"metadata": {"labels": {"feature.node.kubernetes.io/pci-10de.present": "true"}}});
    fixture.merge_node("worker-0", has_gpu).await;
    fixture.rest().await;
    assert_eq!(
        (fixture.configs().get(BASELINE).await.unwrap().status, lists(&fixture)),
        (Some(plan), before),
        "a node is no news"
    );
    // Whoever edits spec is told of the nodes as they are now.
    fixture.patch(json!({"options": {"platformBaseline": {"features": {"swap": "Disabled"}}}})).await;
    let plan = fixture
        .wait("a plan with the device", |status| status.items.iter().any(|item| item.name == "pci-passthrough-worker"))
        .await;
    assert!(lists(&fixture) > before);
    let answer = plan.inputs.iter().find(|input| input.target.kind == "Node" && input.path == "/PCI devices").unwrap();
    assert_eq!(answer.value, Some(json!(true)));
    assert_eq!(why_not(&plan, "swap"), Some("spec.options.platformBaseline.features.swap is Disabled"));
    fixture.finish().await;
}

/// Kinds that are not there are missed by nobody who did not ask; who asks is told what to install,
/// and the rest is planned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_18_without_machine_configs_the_rest_is_planned() {
    let fixture = Fixture::start(Setup { profile: BASELINE, pools: false, ..Setup::default() }).await;
    fixture.configure_baseline(json!({})).await;
    // Nothing is to be changed on such a cluster.
    let plan = fixture.wait("a plan", |status| !status.left_out.is_empty()).await;
    assert_eq!(plan.items.len(), 1, "{plan:#?}");
    assert_eq!(
        why_not(&plan, "swap"),
        Some("this cluster does not serve kind MachineConfig, which comes with OpenShift")
    );
    fixture
        .patch(json!({"options": {"platformBaseline": {"features": {"swap": "Enabled", "metalLb": "Enabled"}}}}))
        .await;
    let plan = fixture.wait("what is asked for", |status| status.items.len() == 3).await;
    for name in ["swap-worker", "metal-lb"] {
        let item = of(&plan, name);
        assert!(item.operation == Operation::Blocked && item.message.contains("install"), "{item:#?}");
    }
    assert_eq!(of(&plan, "hyper-converged").operation, Operation::NoChange);
    fixture.finish().await;
}

/// M11: a removed KubeletConfig is gone long before any machine hears of it; one that is made again
/// with other content is another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m11_what_a_kubelet_config_leaves_is_waited_for_and_is_not_taken_for_a_new_one() {
    let mut fixture = Fixture::without_operator(Setup { profile: BASELINE, speed: 50.0, ..Setup::default() }).await;
    fixture.start_operator();
    let features = |performance: &str, manager: &str| json!({"swap": "Disabled", "hyperConverged": "Disabled", "kubeletPerformance": performance, "cpuManager": manager});
    fixture.configure_baseline(json!({"features": features("Enabled", "Disabled")})).await;
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    for (wanted, operation, rendered) in [
        (features("Enabled", "Disabled"), Operation::Create, true),
        (features("Disabled", "Disabled"), Operation::Remove, false),
        (features("Disabled", "Enabled"), Operation::Create, true),
    ] {
        let options = json!({"platformBaseline": {"features": wanted}});
        fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": options})).await;
        let is_planned =
            |status: &VirtPlatformConfigStatus| status.items.iter().any(|item| item.operation == operation);
        let plan = fixture.wait(&format!("{operation:?}"), is_planned).await;
        assert_eq!(of(&plan, "kubelet-worker").pools, ["worker"], "{plan:#?}");
        fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
        fixture.wait_for(Phase::Completed).await;
        let found = fixture.get(&pool).await.unwrap();
        let sources = found["spec"]["configuration"]["source"].as_array().unwrap();
        let lists = sources.iter().any(|source| source["name"] == "99-worker-generated-kubelet");
        assert_eq!(lists, rendered, "{operation:?}: {found:#}");
        assert_eq!(found["spec"]["configuration"]["name"], found["status"]["configuration"]["name"], "{operation:?}");
        assert_eq!(found["status"]["updatedMachineCount"], found["status"]["machineCount"], "{operation:?}");
    }
    fixture.finish().await;
}

/// W-2, W-3: a setting in a document that administrators keep is merged by key, follows their edits
/// without a word, and goes without the rest; a document that can't be understood is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_2_the_monitoring_document_keeps_all_that_is_not_ours() {
    let mut fixture = Fixture::without_operator(Setup { profile: BASELINE, ..Setup::default() }).await;
    create_namespace(&fixture.admin, "openshift-monitoring").await;
    let document = |text: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "cluster-monitoring-config", "namespace": "openshift-monitoring"},
            "data": {"config.yaml": text, "more": "kept"}})
    };
    let admins = "# ask Ann before you change it\nprometheusK8s:\n  retention: 30d\n";
    fixture.create(&document(&format!("{admins}broken: [\n")), "kubectl-create").await;
    fixture.start_operator();
    let features =
        json!({"swap": "Disabled", "hyperConverged": "Disabled", "ksmZeroPages": "Enabled", "ksmMetrics": "Enabled"});
    fixture.configure_baseline(json!({"features": features})).await;
    let blocked = fixture.wait("it is blocked", |status| status.items.len() == 2).await;
    let item = of(&blocked, "cluster-monitoring");
    assert_eq!(item.operation, Operation::Blocked);
    assert!(item.message.contains("is not valid YAML, so nothing is merged into it"), "{}", item.message);

    let write = async |text: &str| {
        fixture.edit(&document(""), json!({"data": {"config.yaml": text}}), "kubectl-edit").await;
    };
    // Left alone it holds up nothing, whatever is in it.
    let mode = |mode: Value| json!({"metadata": {"annotations": {"platform.kubevirt.io/mode": mode}}});
    fixture.edit(&document(""), mode(json!("unmanaged")), "kubectl-annotate").await;
    fixture.wait("it is left alone", |status| of(status, "cluster-monitoring").operation == Operation::Skipped).await;
    fixture.edit(&document(""), mode(Value::Null), "kubectl-annotate").await;
    write(admins).await;
    let plan = fixture.wait("a plan", |status| of(status, "cluster-monitoring").operation == Operation::Update).await;
    let item = of(&plan, "cluster-monitoring");
    assert!(!item.diff.contains("prometheusK8s:") && item.diff.contains("+    nodeExporter:\n"), "{}", item.diff);
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    let text = async || fixture.get(&document("")).await.unwrap()["data"]["config.yaml"].as_str().unwrap().to_owned();
    let merged = format!("{admins}nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n");
    assert_eq!(text().await, merged);

    // Whoever edits the rest changes nothing of ours.
    let edited = merged.replace("30d", "60d");
    write(&edited).await;
    fixture.rest().await;
    assert_eq!(fixture.config().await.status.unwrap().phase, Some(Phase::Completed));
    // Who takes it out is told of.
    write(&edited.replace("enabled: true", "enabled: false")).await;
    fixture.wait_for(Phase::Drifted).await;
    write(&edited).await;
    fixture.wait_for(Phase::Completed).await;

    let off = json!({"platformBaseline": {"features": {"ksmMetrics": "Disabled"}}});
    fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": off.clone()})).await;
    let is_removed = |status: &VirtPlatformConfigStatus| {
        status.items.iter().any(|item| item.name == "cluster-monitoring" && item.operation == Operation::Remove)
    };
    let plan = fixture.wait("a removal", is_removed).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(text().await, admins.replace("30d", "60d"));
    let left = fixture.get(&document("")).await.unwrap();
    assert_eq!(left["data"]["more"], "kept");

    // What its owner had set before is his, and stays.
    write(&edited).await;
    let on = json!({"platformBaseline": {"features": {"ksmMetrics": "Enabled"}}});
    fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": on})).await;
    let is = |operation: Operation| {
        move |status: &VirtPlatformConfigStatus| {
            status.items.iter().any(|item| item.name == "cluster-monitoring" && item.operation == operation)
        }
    };
    fixture.wait("as wanted", is(Operation::NoChange)).await;
    fixture.patch(json!({"options": off})).await;
    let gone =
        |status: &VirtPlatformConfigStatus| status.items.iter().all(|item| item.operation == Operation::NoChange);
    fixture.wait("nothing to take back", gone).await;
    fixture.rest().await;
    assert_eq!(text().await, edited);
    fixture.finish().await;
}
