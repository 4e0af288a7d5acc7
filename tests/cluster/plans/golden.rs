//! Golden plans: create, update, remove and blocked, on the kinds that profiles tune.

use std::path::PathBuf;

use advisor_core::api::TargetRef;
use advisor_core::plan::items::PlanItem;
use advisor_core::rollout::Rollouts;
use advisor_engine::engine::manager;
use profile_sdk::{Body, Draft, ObjectRef};
use serde_json::{Value, json};

use super::world::{PROFILE, World, draft};
use controlplane::real_crds;

/// One kind: what we want of it, what others have made of it, and what it would refuse.
struct Case {
    name: &'static str,
    crd: Option<&'static str>,
    object: Value,
    theirs: Value,
    refused: Value,
}

fn object(api_version: &str, kind: &str, namespaced: bool, name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let mut object = object.clone();
    object.pointer_mut(parent).unwrap()[key] = value;
    object
}

fn descheduler(name: &'static str, crd: &'static str, profile: &str) -> Case {
    let make = |spec: Value| object("operator.openshift.io/v1", "KubeDescheduler", true, "cluster", spec);
    Case {
        name,
        crd: Some(crd),
        object: make(json!({"deschedulingIntervalSeconds": 60, "mode": "Automatic", "profiles": [profile]})),
        theirs: make(
            json!({"deschedulingIntervalSeconds": 3600, "profiles": ["AffinityAndTaints", "TopologyAndDuplicates"]}),
        ),
        refused: make(json!({"profiles": ["Nonsense"]})),
    }
}

fn cases() -> Vec<Case> {
    let machine = |kind: &str, spec: Value| {
        with(
            &object("machineconfiguration.openshift.io/v1", kind, false, "50-x", spec),
            "/metadata/labels",
            json!({"machineconfiguration.openshift.io/role": "worker"}),
        )
    };
    let file =
        |text: &str| json!({"path": "/etc/x.conf", "mode": 420, "contents": {"source": format!("data:,{text}")}});
    let config = |text: &str| json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file(text)]}, "systemd": {"units": [{"name": "x.service", "contents": "[Service]\nExecStart=/bin/true\n"}]}}});
    let pools = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    let hco = |version: &str, spec: Value| {
        object(&format!("hco.kubevirt.io/{version}"), "HyperConverged", true, "kubevirt-hyperconverged", spec)
    };
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"password": value}});
    let widget = |spec: Value| object("example.dev/v1", "Widget", true, "w", spec);
    vec![
        descheduler("kube_descheduler_4_14", "descheduler/kubedeschedulers-ocp-4.14.yaml", "LifecycleAndUtilization"),
        descheduler("kube_descheduler_4_20", "descheduler/kubedeschedulers-ocp-4.20.yaml", "KubeVirtRelieveAndMigrate"),
        descheduler("kube_descheduler_4_22", "descheduler/kubedeschedulers-ocp-4.22.yaml", "KubeVirtRelieveAndMigrate"),
        Case {
            name: "machine_config",
            crd: Some("openshift/machineconfigs.yaml"),
            object: machine("MachineConfig", config("new%0Alines%0A")),
            theirs: machine("MachineConfig", config("old%0Alines%0A")),
            refused: machine("MachineConfig", json!({"kernelArguments": "text"})),
        },
        Case {
            name: "kubelet_config",
            crd: Some("openshift/kubeletconfigs.yaml"),
            object: machine(
                "KubeletConfig",
                json!({"machineConfigPoolSelector": pools, "kubeletConfig": {"maxPods": 300}}),
            ),
            theirs: machine(
                "KubeletConfig",
                json!({"machineConfigPoolSelector": pools, "kubeletConfig": {"maxPods": 250, "podPidsLimit": 1000}}),
            ),
            refused: machine("KubeletConfig", json!({"kubeletConfig": {"failSwapOn": false}})),
        },
        Case {
            name: "hyper_converged_v1beta1",
            crd: Some("hco/hyperconvergeds-v1.16.0.yaml"),
            object: hco("v1beta1", json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}})),
            theirs: hco(
                "v1beta1",
                json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}, "featureGates": {"deployKubeSecondaryDNS": true}}),
            ),
            refused: hco("v1beta1", json!({"virtualization": {}})),
        },
        Case {
            name: "hyper_converged_v1",
            crd: Some("hco/hyperconvergeds-main.yaml"),
            object: hco(
                "v1",
                json!({"virtualization": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}}}),
            ),
            theirs: hco(
                "v1",
                json!({"virtualization": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 100}}, "featureGates": [{"name": "deployKubeSecondaryDNS"}]}),
            ),
            refused: hco("v1", json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}})),
        },
        Case {
            name: "secret",
            crd: None,
            object: secret("bmV3"),
            theirs: secret("b2xk"),
            refused: secret("not base64!"),
        },
        Case {
            name: "lists",
            crd: None,
            object: widget(json!({"atomic": ["ours"], "map": [{"name": "ours", "size": 1}], "set": ["ours"]})),
            theirs: widget(
                json!({"atomic": ["theirs"], "map": [{"name": "theirs"}], "set": ["theirs"], "selector": {"a": "b"}}),
            ),
            refused: widget(json!({"set": ["a", "a"]})),
        },
    ]
}

fn shown(title: &str, item: &PlanItem) -> String {
    let mut text = format!(
        "== {title}: {:?} {}, impact {:?}\n{}\n",
        item.operation, item.target, item.review.severity, item.review.message
    );
    for conflict in &item.review.conflicts {
        let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
        text.push_str(&format!(
            "takes {} from {}: {} -> {}\n",
            conflict.path,
            conflict.manager,
            value(&conflict.live),
            value(&conflict.desired)
        ));
    }
    for lost in &item.review.lost {
        text.push_str(&format!("loses {lost}\n"));
    }
    format!("{text}{}\n", item.review.diff)
}

fn removal(object: &Value) -> Draft {
    let TargetRef { api_version, kind, name, namespace } = TargetRef::of(object);
    let target = ObjectRef { api_version, kind, namespace, name };
    Draft::new("item", Body::Remove(target), "is not wanted any more")
}

async fn golden(case: &Case, crd: &[PathBuf]) -> String {
    let world = World::start(crd).await;
    // A pool that renders everything, and has rendered nothing yet.
    world.pools.pools_listed(&[json!({
        "metadata": {"name": "worker", "labels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
        "spec": {"machineConfigSelector": {}}, "status": {"machineCount": 3},
    })]);
    let mut text = shown("create", &world.item(&case.object).await);
    text.push_str(&shown("blocked", &world.item(&case.refused).await));
    world.create(&case.theirs, "somebody").await;
    text.push_str(&shown("update", &world.item(&case.object).await));
    world.apply(&case.object, &manager(PROFILE)).await;
    text.push_str(&shown("as wanted", &world.item(&case.object).await));
    text.push_str(&shown("removed, shared", &world.item_of(removal(&case.object)).await));
    world.delete(&case.object).await;
    world.apply(&case.object, &manager(PROFILE)).await;
    text.push_str(&shown("removed, ours alone", &world.item_of(removal(&case.object)).await));
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plans_of_every_kind() {
    for case in cases() {
        if let Some(crd) = real_crds(case.crd) {
            insta::assert_snapshot!(case.name, golden(&case, &crd).await);
        }
    }
}

/// A namespace with an object in it: the one is previewed, the other deferred.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_namespace_with_an_object_in_it() {
    let world = World::start(&[]).await;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "golden", "labels": {"a": "b"}}});
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "golden"}, "data": {"a": "b"}});
    let plan = world.plan(&[draft("namespace", &namespace), Draft { wave: 1, ..draft("inside", &inside) }]).await;
    let text: String = plan.items.iter().map(|item| shown(&item.name, item)).collect();
    insta::assert_snapshot!("namespace", text);
}
