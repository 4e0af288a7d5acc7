//! Who reads a plan and not its targets: of what others keep he reads no more than what changes,
//! and of what somebody writes no less than all of it.

use std::path::Path;

use advisor_core::api::{Item, Operation, Phase, VirtPlatformConfigStatus};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, create_namespace, hyper_converged, root};
use crate::program::cli::run;

const BASELINE: &str = "virt-platform-baseline";
const EXAMPLE: &str = "example-profile";
const CANARY: &str = "hunter2-canary";
/// What is shown in the place of a document.
const CLOSED: &str = "(a document that others keep too; its changed lines are in the diff)";

fn monitoring(status: &VirtPlatformConfigStatus) -> Option<&Item> {
    status.items.iter().find(|item| item.name == "cluster-monitoring")
}

fn document(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cluster-monitoring-config", "namespace": "openshift-monitoring"}, "data": {"config.yaml": text}})
}

impl Fixture {
    /// The item as soon as it fits; nothing of the document is in the configuration, in the events,
    /// or in what `diff` prints.
    async fn closed(&self, what: &str, kubeconfig: &Path, fits: impl Fn(&Item) -> bool) -> Item {
        let status = self.wait(what, |status| monitoring(status).is_some_and(&fits)).await;
        let config = serde_json::to_string(&self.config().await).unwrap();
        assert!(!config.contains(CANARY), "{what}: {config}");
        let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(self.admin.clone());
        for event in events.list(&ListParams::default()).await.unwrap().items {
            assert!(!format!("{event:?}").contains(CANARY), "{what}: {}: {event:?}", event.name_any());
        }
        let printed = format!("{:?}", run(&["diff", BASELINE], kubeconfig.to_str().unwrap()));
        assert!(printed.contains("cluster-monitoring") && !printed.contains(CANARY), "{what}: {printed}");
        monitoring(&status).unwrap().clone()
    }
}

/// T10: somebody who may edit a configuration, and may not read the document that is merged into,
/// is shown its changed lines only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t10_nothing_of_a_document_that_others_keep_is_read_through_a_plan() {
    let mut fixture = Fixture::without_operator(Setup { profile: BASELINE, ..Setup::default() }).await;
    create_namespace(&fixture.admin, "openshift-monitoring").await;
    let rest = format!(
        "# {CANARY}\nprometheusK8s:\n  remoteWrite:\n  - basicAuth: {{password: {CANARY}}}\nnodeExporter:\n  # {CANARY}\n  collectors:\n    other: {{note: {CANARY}}}\n"
    );
    let with =
        |enabled: bool| rest.replace("collectors:\n", &format!("collectors:\n    ksmd:\n      enabled: {enabled}\n"));
    fixture.create(&document(&with(false)), "kubectl-create").await;
    fixture.start_operator();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();

    // Somebody else owns the document, with another value.
    let features =
        json!({"swap": "Disabled", "hyperConverged": "Disabled", "ksmZeroPages": "Enabled", "ksmMetrics": "Enabled"});
    fixture.configure_baseline(json!({"features": features})).await;
    let updates = |item: &Item| item.operation == Operation::Update;
    let item = fixture.closed("a plan", &kubeconfig, updates).await;
    let changed: Vec<_> = item.diff.lines().skip(2).filter(|line| !line.starts_with("@@")).collect();
    assert_eq!(changed, ["-          enabled: false", "+          enabled: true"], "{}", item.diff);
    let conflict = &item.conflicts[0];
    assert_eq!((&conflict.live, &conflict.desired), (&Some(json!(CLOSED)), &Some(json!(CLOSED))));
    assert_eq!(item.desired_state.unwrap()["data"]["config.yaml"], CLOSED);
    assert!(item.message.contains("Only the changed lines of"), "{}", item.message);

    // What reads it, writes it or guesses at it by a patch is refused.
    let target = json!({"kind": "ConfigMap", "namespace": "openshift-monitoring", "name": "cluster-monitoring-config"});
    let says = |item: &Item, pointer: &str| {
        item.operation == Operation::Blocked
            && item.message.contains(&format!("a patch names {pointer}, but /data/config.yaml is a document"))
    };
    for (operation, pointer) in [
        (json!({"op": "copy", "from": "/data/config.yaml", "path": "/data/copy"}), "/data/config.yaml"),
        (json!({"op": "move", "from": "/data", "path": "/binaryData"}), "/data"),
        (json!({"op": "test", "path": "/data/config.yaml", "value": "a guess"}), "/data/config.yaml"),
        (json!({"op": "replace", "path": "/data", "value": {}}), "/data"),
        (json!({"op": "add", "path": "/data/config.yaml/x", "value": "y"}), "/data/config.yaml/x"),
    ] {
        fixture.patch(json!({"overrides": [{"target": target, "patch": [operation]}]})).await;
        fixture.closed(&operation.to_string(), &kubeconfig, |item| says(item, pointer)).await;
    }
    fixture.patch(json!({"overrides": null})).await;
    fixture.closed("no override", &kubeconfig, updates).await;
    let annotated = |value: Value| json!({"metadata": {"annotations": {"platform.kubevirt.io/patch": value}}});
    let patch = json!([{"op": "replace", "path": "/data/config.yaml", "value": "x: y\n"}]).to_string();
    fixture.edit(&document(""), annotated(json!(patch)), "kubectl-annotate").await;
    fixture.closed("an annotation", &kubeconfig, |item| says(item, "/data/config.yaml")).await;
    fixture.edit(&document(""), annotated(Value::Null), "kubectl-annotate").await;
    let ignored = json!({"overrides": [{"target": target, "ignoreFields": ["/data/config.yaml"]}]});
    fixture.patch(ignored).await;
    fixture.closed("a field that is left alone", &kubeconfig, |item| !item.overrides.is_empty()).await;
    fixture.patch(json!({"overrides": null})).await;
    // Beside it, whatever is changed shows nothing of it.
    let beside = json!({"op": "add", "path": "/data/another", "value": "text"});
    fixture.patch(json!({"overrides": [{"target": target, "patch": [beside]}]})).await;
    let item =
        fixture.closed("an override beside it", &kubeconfig, |item| updates(item) && !item.overrides.is_empty()).await;
    assert!(item.diff.contains("+  another: text\n"), "{}", item.diff);
    fixture.patch(json!({"overrides": null})).await;
    fixture.closed("no override", &kubeconfig, |item| updates(item) && item.overrides.is_empty()).await;

    // Nor from files.
    let recorded = [document(&with(false)), fixture.get(&hyper_converged("v1beta1", json!({}))).await.unwrap()];
    std::fs::create_dir(folder.path().join("objects")).unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": recorded}).to_string();
    std::fs::write(folder.path().join("objects/all.yaml"), list).unwrap();
    std::fs::write(folder.path().join("options.yaml"), json!({"features": features}).to_string()).unwrap();
    let (objects, options, crds) =
        (folder.path().join("objects"), folder.path().join("options.yaml"), root().join("crds/third-party"));
    let [objects, options, crds] = [&objects, &options, &crds].map(|path| path.to_str().unwrap());
    let rendered =
        run(&["render", "--profile", BASELINE, "--options", options, "--objects", objects, "--crds", crds], "");
    let printed = format!("{}{}", String::from_utf8_lossy(&rendered.stdout), String::from_utf8_lossy(&rendered.stderr));
    assert!(printed.contains("+          enabled: true\n") && !printed.contains(CANARY), "{printed}");

    // It is written all the same, and then somebody takes our part out.
    let plan = fixture.config().await.status.unwrap();
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    let text = async || fixture.get(&document("")).await.unwrap()["data"]["config.yaml"].as_str().unwrap().to_owned();
    assert_eq!(text().await, with(true));
    fixture.closed("as wanted", &kubeconfig, |item| item.operation == Operation::NoChange).await;
    fixture.edit(&document(""), json!({"data": {"config.yaml": with(false)}}), "kubectl-edit").await;
    fixture.wait_for(Phase::Drifted).await;
    fixture.closed("drift", &kubeconfig, updates).await;
    let drifted = serde_json::to_string(&fixture.config().await.status).unwrap();
    assert!(
        drifted.contains("/data/config.yaml differs from what was applied, changed by field manager kubectl-edit"),
        "{drifted}"
    );
    fixture.edit(&document(""), json!({"data": {"config.yaml": with(true)}}), "kubectl-edit").await;
    fixture.wait_for(Phase::Completed).await;

    // What a bug report holds of it goes to others.
    let bundle = folder.path().join("bundle");
    let gathered = run(&["must-gather", "--dest-dir", bundle.to_str().unwrap()], kubeconfig.to_str().unwrap());
    assert!(gathered.status.success(), "{gathered:?}");
    let place = bundle.join("targets/ConfigMap/openshift-monitoring/cluster-monitoring-config.yaml");
    assert!(std::fs::read_to_string(place).unwrap().contains(CLOSED));
    let found = std::process::Command::new("grep").args(["-r", CANARY]).arg(&bundle).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));

    let off = json!({"platformBaseline": {"features": {"ksmMetrics": "Disabled"}}});
    fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": off})).await;
    let item = fixture.closed("a removal", &kubeconfig, |item| item.operation == Operation::Remove).await;
    assert!(item.diff.contains("-          enabled: true\n"), "{}", item.diff);
    let plan = fixture.config().await.status.unwrap();
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(text().await, rest);
    fixture.finish().await;
}

/// T11: what an override sets stands in spec in the clear, so the approver reads it whatever it is
/// called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t11_what_an_override_sets_is_shown_whatever_it_is_called() {
    let fixture = Fixture::start(Setup { profile: EXAMPLE, ..Setup::default() }).await;
    let target = json!({"kind": "ConfigMap", "namespace": "openshift-cnv", "name": "example-config"});
    let patch = json!([
        {"op": "add", "path": "/data/password", "value": "hunter2"},
        {"op": "add", "path": "/metadata/annotations", "value": {"keyFile": "/etc/key"}},
    ]);
    let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": EXAMPLE},
        "spec": {"profile": EXAMPLE, "action": "DryRun", "overrides": [{"target": target, "patch": patch}]}});
    controlplane::apply_yaml(&fixture.admin, &config.to_string(), "somebody").await.unwrap();
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();
    let printed = run(&["diff", EXAMPLE], kubeconfig.to_str().unwrap());
    let printed = String::from_utf8(printed.stdout).unwrap();
    for text in [plan.items[0].diff.as_str(), printed.as_str()] {
        assert!(text.contains("+  password: hunter2\n") && text.contains("+    keyFile: /etc/key\n"), "{text}");
    }
    let shown = plan.items[0].desired_state.as_ref().unwrap();
    assert_eq!(
        (&shown["data"]["password"], &shown["metadata"]["annotations"]["keyFile"]),
        (&json!("hunter2"), &json!("/etc/key"))
    );
    assert!(!plan.items[0].message.contains("not shown"), "{}", plan.items[0].message);
    fixture.finish().await;
}
