//! The platform baseline on clusters of different shapes, with the real CRDs: a golden plan of
//! each, and then its whole life.

use std::path::PathBuf;

use advisor_core::api::{Item, Operation, Phase, VirtPlatformConfigStatus};
use controlplane::{real_crd, real_crds};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PATIENCE, Setup, create_namespace, hyper_converged, third_party};
use crate::profiles::releases::{golden, only};
use crate::program::rights::NAMESPACES_OF_FEATURES;

const BASELINE: &str = "virt-platform-baseline";
/// The real CRDs of the features, by their file.
const REAL: [&str; 10] = [
    "openshift/securitycontextconstraints.yaml",
    "operators/forklift.konveyor.io_forkliftcontrollers.yaml",
    "operators/ifo.kubevirt.io_operationrulesets.yaml",
    "operators/metallb.io_metallbs.yaml",
    "operators/monitoring.coreos.com_prometheusrules.yaml",
    "operators/nodehealthchecks.remediation.medik8s.io.yaml",
    "operators/observability.openshift.io_uiplugins.yaml",
    "operators/perses.dev_persesdashboards.yaml",
    "operators/perses.dev_persesdatasources.yaml",
    "operators/storagebasedremediationconfigs.storage-based-remediation.medik8s.io.yaml",
];
/// Of these there is no real one at hand.
const REDUCED: [&str; 4] = ["podmonitors", "lokistacks", "clusterlogforwarders", "fenceagentsremediationtemplates"];

/// A shape of cluster.
struct Shape {
    name: &'static str,
    workers: usize,
    masters: usize,
    masters_schedulable: bool,
    /// Annotations of HyperConverged: what administrators have asked for.
    annotations: Value,
    options: Value,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            name: "empty",
            workers: 2,
            masters: 1,
            masters_schedulable: false,
            annotations: json!({}),
            options: json!({}),
        }
    }
}

impl Shape {
    /// The cluster; `None` where the real CRDs are not at hand.
    async fn build(&self) -> Option<Fixture> {
        let features = real_crds(REAL)?;
        let hyper_converged_crd = only(&real_crd("hco/hyperconvergeds-v1.18.1.yaml")?, "v1");
        let mut hyper_converged = hyper_converged("v1", json!({}));
        hyper_converged["metadata"]["annotations"] = self.annotations.clone();
        let fixture = Fixture::without_operator(Setup {
            workers: self.workers,
            masters: self.masters,
            pool_crds: real_crd("openshift")?,
            descheduler_crd: Some(real_crd("descheduler/kubedeschedulers-ocp-4.21.yaml")?),
            hyper_converged_crd: Some(hyper_converged_crd.to_path_buf()),
            hyper_converged: Some(hyper_converged),
            profile: BASELINE,
            ..Setup::default()
        })
        .await;
        controlplane::install_crds(&fixture.admin, &all_crds(features)).await.unwrap();
        for namespace in NAMESPACES_OF_FEATURES {
            create_namespace(&fixture.admin, namespace).await;
        }
        for number in 0..if self.masters_schedulable { self.masters } else { 0 } {
            mco_simulator::set_role(&fixture.admin, &format!("master-{number}"), "worker", true).await.unwrap();
        }
        Some(fixture)
    }

    /// Plan, review, apply, drift, override, switch off; the first plan is the golden one.
    async fn live(&self, mut fixture: Fixture) {
        fixture.start_operator();
        fixture.configure_baseline(self.options.clone()).await;
        let plan = fixture.wait_for(Phase::ReviewRequired).await;
        let mut shortened = plan.clone();
        shortened.items.iter_mut().for_each(|item| item.diff = beginning(&item.diff));
        let mut text = golden(&shortened);
        for part in &plan.left_out {
            text.push_str(&format!("\nnot planned: {}: {}", part.feature, part.reason));
        }
        insta::assert_snapshot!(format!("baseline_{}", self.name), text);
        fixture.approve_all().await;

        // What somebody changes is told of, and put back after a review.
        let alerts = json!({"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
            "metadata": {"name": "virtualization-platform", "namespace": "openshift-cnv"}});
        let nothing = json!({"spec": {"groups": []}});
        fixture.edit(&alerts, nothing.clone(), "kubectl-edit").await;
        let drifted = fixture.wait_for(Phase::Drifted).await;
        assert_eq!(of(&drifted, "platform-alerts").operation, Operation::Update);
        fixture.approve_all().await;
        assert_ne!(fixture.get(&alerts).await.unwrap()["spec"], nothing["spec"]);

        // Who wants it otherwise says so; it is reviewed like any other change.
        let entry = json!({"target": {"group": "monitoring.coreos.com", "kind": "PrometheusRule",
            "name": "virtualization-platform", "namespace": "openshift-cnv"}, "mode": "Unmanaged"});
        fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "overrides": [entry]})).await;
        let is_skipped = |status: &VirtPlatformConfigStatus| {
            status.items.iter().any(|item| item.name == "platform-alerts" && item.operation == Operation::Skipped)
        };
        fixture.wait("it is set aside", is_skipped).await;
        fixture.patch(json!({"overrides": []})).await;
        fixture.wait("it is not any more", |status| !is_skipped(status)).await;

        // Switched off, it takes back what it has brought.
        let brought: Vec<_> = plan.items.iter().filter(|item| item.operation == Operation::Create).collect();
        let features = advisor_core::api::options_schema(advisor_engine::registry::profile_named(BASELINE).unwrap());
        let features = features.pointer("/properties/features/properties").and_then(Value::as_object).unwrap();
        let off: serde_json::Map<_, _> = features.keys().map(|name| (name.clone(), json!("Disabled"))).collect();
        fixture.patch(json!({"action": "DryRun", "options": {"platformBaseline": {"features": off}}})).await;
        let goes = |status: &VirtPlatformConfigStatus| {
            status.plan_hash.is_some() && status.items.iter().any(|item| item.operation == Operation::Remove)
        };
        let plan = fixture.wait("a plan to take it back", goes).await;
        // What another program has left of a MachineConfig could not be rendered: its owner is
        // asked to take it away.
        for item in plan.items.iter().filter(|item| item.operation == Operation::Blocked) {
            assert_eq!((self.name, item.name.as_str()), ("autopilot", "swap-worker"), "{item:#?}");
            assert!(
                item.message.contains("without this configuration's fields, it would have no Ignition version"),
                "{}",
                item.message
            );
            let target = &item.target_ref;
            let object =
                json!({"apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": target.name}});
            fixture.api(&object).delete(&target.name, &Default::default()).await.unwrap();
        }
        let is_clear = |status: &VirtPlatformConfigStatus| {
            goes(status) && status.items.iter().all(|item| item.operation != Operation::Blocked)
        };
        fixture.wait("nothing is blocked", is_clear).await;
        fixture.approve_all().await;
        for item in brought {
            let target = &item.target_ref;
            let object = json!({"apiVersion": target.api_version, "kind": target.kind,
                "metadata": {"name": target.name, "namespace": target.namespace}});
            assert_eq!(fixture.get(&object).await, None, "{target}");
        }
        fixture.finish().await;
    }
}

impl Fixture {
    /// Waits until all `machines` of the pool have what it wants, `sources` among it.
    async fn pool_settles(&self, pool: &str, machines: u64, sources: &[&str]) {
        let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": pool}});
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(&object).await.unwrap();
            let has_all =
                ["machineCount", "updatedMachineCount"].iter().all(|count| found["status"][*count] == machines);
            let of_pool = found["status"]["configuration"]["source"].as_array().cloned().unwrap_or_default();
            if has_all && sources.iter().all(|name| of_pool.iter().any(|source| source["name"] == *name)) {
                return;
            }
            assert!(tokio::time::Instant::now() < until, "pool {pool} does not settle: {found:#}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// Approves what is to be reviewed until everything is as planned.
    async fn approve_all(&self) {
        loop {
            let status = self
                .wait("an end or a review", |status| match status.phase {
                    Some(Phase::Completed) => true,
                    Some(Phase::ReviewRequired | Phase::Drifted) => {
                        status.plan_hash.is_some() && status.approval.is_none()
                    }
                    _ => false,
                })
                .await;
            if status.phase == Some(Phase::Completed) {
                return;
            }
            self.patch(json!({"action": "Apply", "approvedPlanHash": status.plan_hash})).await;
            self.wait("it is begun", |later| later.plan_hash != status.plan_hash || later.phase != status.phase).await;
        }
    }
}

fn all_crds(real: Vec<PathBuf>) -> Vec<PathBuf> {
    real.into_iter().chain(REDUCED.map(third_party)).collect()
}

/// As much of a diff as tells what it is: the files that it is made of are in the profile.
fn beginning(diff: &str) -> String {
    const LINES: usize = 40;
    let more = diff.lines().count().saturating_sub(LINES);
    let beginning: String = diff.split_inclusive('\n').take(LINES).collect();
    if more == 0 { beginning } else { format!("{beginning}… {more} more lines\n") }
}

fn of<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> &'a Item {
    status.items.iter().find(|item| item.name == name).unwrap_or_else(|| panic!("{name}: {status:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_cluster_on_which_nothing_is_set() {
    let shape = Shape::default();
    let Some(fixture) = shape.build().await else {
        return;
    };
    shape.live(fixture).await;
}

/// Three machines that are control plane and workers at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_compact_cluster() {
    let kubelets = json!({"features": {"kubeletPerformance": "Enabled", "cpuManager": "Enabled"}});
    let shape = Shape {
        name: "compact",
        workers: 0,
        masters: 3,
        masters_schedulable: true,
        options: kubelets,
        ..Shape::default()
    };
    let Some(fixture) = shape.build().await else {
        return;
    };
    shape.live(fixture).await;
}

/// Some of the workers are in a pool of their own: they get what workers get, and reboot with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_cluster_with_a_pool_of_its_own() {
    let shape = Shape {
        name: "custom_pool",
        workers: 3,
        options: json!({"features": {"kubeletPerformance": "Enabled", "transparentHugePages": "Enabled"}}),
        ..Shape::default()
    };
    let Some(fixture) = shape.build().await else {
        return;
    };
    mco_simulator::add_pool(&fixture.admin, "fast").await.unwrap();
    mco_simulator::set_role(&fixture.admin, "worker-2", "fast", true).await.unwrap();
    fixture.pool_settles("fast", 1, &[]).await;
    shape.live(fixture).await;
}

/// Devices that labels tell of, and that the annotation or the option asks for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_cluster_with_devices() {
    let shape = Shape {
        name: "devices",
        annotations: json!({"platform.kubevirt.io/enable-pci-passthrough": "true"}),
        options: json!({
            "vfioDevices": ["10de:1eb8"],
            "usbDevices": [{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}],
        }),
        ..Shape::default()
    };
    let Some(fixture) = shape.build().await else {
        return;
    };
    let labels = json!({"metadata": {"labels": {
        "nvidia.com/gpu.present": "true", "feature.node.kubernetes.io/iommu-enabled": "true",
        "feature.node.kubernetes.io/pci-10de.present": "true", "feature.node.kubernetes.io/usb-ff_46f4_0001.present": "true"}}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}});
    fixture.edit(&node, labels, "nfd").await;
    shape.live(fixture).await;
}

/// The autopilot has applied its objects by force, with its label, and its opt-ins are the
/// administrator's choice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plan_of_a_cluster_that_the_autopilot_has_managed() {
    let opt_in = |name: &str| (format!("platform.kubevirt.io/{name}"), json!("true"));
    let annotations = ["autopilot", "enable-kubelet-performance-settings", "enable-mtv", "enable-node-remediation"];
    let shape = Shape {
        name: "autopilot",
        annotations: Value::Object(annotations.map(opt_in).into_iter().collect()),
        ..Shape::default()
    };
    let Some(fixture) = shape.build().await else {
        return;
    };
    for object in of_the_autopilot() {
        controlplane::apply_yaml(&fixture.admin, &object.to_string(), "virt-platform-autopilot").await.unwrap();
    }
    fixture.pool_settles("worker", 2, &["90-worker-swap-online", "99-worker-generated-kubelet"]).await;
    shape.live(fixture).await;
}

/// What the autopilot applies, as its catalogue has it (its main branch of August 2026),
/// without the texts of its scripts.
fn of_the_autopilot() -> Vec<Value> {
    let object = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>, spec: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "spec": spec, "metadata": {
            "name": name, "labels": {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object
    };
    let mut swap = object(
        "machineconfiguration.openshift.io/v1",
        "MachineConfig",
        "90-worker-swap-online",
        None,
        json!({"config": {"ignition": {"version": "3.5.0"}, "systemd": {"units": [{"name": "swap-disk-enable.service", "enabled": true}]}}}),
    );
    swap["metadata"]["labels"]["machineconfiguration.openshift.io/role"] = json!("worker");
    vec![
        swap,
        object(
            "machineconfiguration.openshift.io/v1",
            "KubeletConfig",
            "virt-perf-settings",
            None,
            json!({
                "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
                "kubeletConfig": {"nodeStatusMaxImages": -1, "maxPods": 500},
            }),
        ),
        object(
            "observability.openshift.io/v1alpha1",
            "UIPlugin",
            "monitoring",
            None,
            json!({"type": "Monitoring", "monitoring": {"perses": {"enabled": true}}}),
        ),
        object(
            "forklift.konveyor.io/v1beta1",
            "ForkliftController",
            "forklift-controller",
            Some("openshift-mtv"),
            json!({"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "false"}),
        ),
    ]
}
