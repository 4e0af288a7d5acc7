//! Case W-39: what `render` plans from files is what the operator plans on the cluster that the
//! files are of, over the whole catalogue of the platform baseline.

use std::collections::BTreeSet;

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, root};
use crate::program::cli::{run, tempfile_folder};
use crate::program::rights::every_feature;

const BASELINE: &str = "virt-platform-baseline";

/// An item in the text of a plan: what it is, which machines reboot, and the lines that are added.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    heading: String,
    reboots: Vec<String>,
    added: Vec<String>,
}

/// The items of a printed plan. What is previewed only later, because its namespace comes with the
/// plan, is to be created.
fn printed(text: &str) -> Vec<Printed> {
    let mut items: Vec<Printed> = Vec::new();
    for line in text.lines() {
        let operations = [": Create ", ": Update ", ": Deferred ", ": NoChange ", ": Blocked ", ": Skipped "];
        match line.strip_prefix("# ").filter(|line| operations.iter().any(|operation| line.contains(operation))) {
            Some(line) => {
                let heading = line.replace(": Deferred ", ": Create ");
                items.push(Printed { heading, reboots: Vec::new(), added: Vec::new() });
            }
            None if line.starts_with("# ") && line.contains("Reboots the") => {
                let reboots = line.split("Reboots the").skip(1).map(|rest| rest.split('.').next().unwrap().to_owned());
                items.last_mut().unwrap().reboots.extend(reboots);
            }
            None if line.starts_with('+') && !line.starts_with("+++") => {
                items.last_mut().unwrap().added.push(line.to_owned());
            }
            None => {}
        }
    }
    items
}

/// The sentences on what is not planned.
fn left_out(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("# - ")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w_39_what_is_rendered_from_files_is_what_the_operator_plans() {
    let mut fixture = Fixture::without_operator(Setup { profile: BASELINE, workers: 2, ..Setup::default() }).await;
    fixture.bring_everything().await;
    let hyper_converged = crate::fixture::hyper_converged("v1beta1", json!({}));
    let asks = json!({"metadata": {"annotations": {
        "platform.kubevirt.io/enable-mtv": "true", "platform.kubevirt.io/disabled-resources": "- kind: MetalLB\n  name: metallb\n"}}});
    fixture.edit(&hyper_converged, asks, "kubectl-annotate").await;
    fixture.start_operator();
    let folder = tempfile_folder().join("catalogue");
    std::fs::create_dir_all(folder.join("objects")).unwrap();
    fixture.export(&folder.join("objects/cluster.yaml"), &hyper_converged).await;
    let kubeconfig = folder.join("kubeconfig");
    fixture.plane.write_kubeconfig("reader", &["system:masters"], &kubeconfig).unwrap();

    let (mut items, mut rebooting, mut defaulted) = (Vec::new(), 0, BTreeSet::new());
    for (number, options) in
        [every_feature("Enabled"), json!({"platformBaseline": {"features": {"metalLb": "Disabled"}}})]
            .into_iter()
            .enumerate()
    {
        let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": BASELINE}, "spec": {"profile": BASELINE, "action": "DryRun", "options": options}});
        let file = folder.join(format!("config-{number}.yaml"));
        std::fs::write(&file, config.to_string()).unwrap();
        controlplane::apply_yaml(&fixture.admin, &config.to_string(), "somebody").await.unwrap();
        let is_planned = |status: &VirtPlatformConfigStatus| {
            status.phase == Some(Phase::ReviewRequired) || !status.left_out.is_empty()
        };
        fixture.wait("a plan", is_planned).await;
        fixture.rest().await;
        let text = |arguments: &[&str]| {
            let output = run(arguments, kubeconfig.to_str().unwrap());
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {problem}");
            String::from_utf8(output.stdout).unwrap()
        };
        let live = text(&["diff", BASELINE]);
        let rendered = text(&[
            "render",
            "--profile",
            BASELINE,
            "--options",
            file.to_str().unwrap(),
            "--objects",
            folder.join("objects").to_str().unwrap(),
            "--crds",
            root().join("crds/third-party").to_str().unwrap(),
        ]);
        assert_eq!(left_out(&rendered), left_out(&live));
        let (ours, theirs) = (printed(&rendered), printed(&live));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!((&ours.heading, &ours.reboots), (&theirs.heading, &theirs.reboots));
            rebooting += ours.reboots.len();
            if ours.added.len() < theirs.added.len() {
                defaulted.insert(ours.heading.split(':').next().unwrap().to_owned());
            }
            // The server adds what it sets by default, and changes nothing.
            let mut lines = theirs.added.iter();
            for line in &ours.added {
                assert!(lines.any(|found| found == line), "{}: {line} is not in {:#?}", ours.heading, theirs.added);
            }
        }
        items.push(ours.len());
    }
    assert_eq!(items, [86, 8], "the whole catalogue, and the default");
    assert_eq!(rebooting, 15, "what reboots machines does so in both");
    // All else that is in the live plan alone would be lost from the rendered one.
    assert_eq!(
        defaulted,
        BTreeSet::from(["metrics-exporter-namespace", "storage-based-remediation"].map(str::to_owned))
    );
    fixture.finish().await;
}

impl Fixture {
    /// Writes what the plan is made from as `kubectl get --output=yaml` does: HyperConverged, how
    /// kubelets are started, and the nodes.
    async fn export(&self, file: &std::path::Path, hyper_converged: &Value) {
        let named = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        let mut objects = vec![
            self.get(hyper_converged).await.unwrap(),
            self.get(&named("machineconfiguration.openshift.io/v1", "MachineConfig", "01-worker-kubelet"))
                .await
                .unwrap(),
        ];
        for node in ["worker-0", "worker-1", "master-0"] {
            objects.push(self.get(&named("v1", "Node", node)).await.unwrap());
        }
        for kind in ["MachineConfigPool", "MachineConfig"] {
            let kind = named("machineconfiguration.openshift.io/v1", kind, "");
            for object in self.api(&kind).list(&ListParams::default()).await.unwrap().items {
                objects.push(
                    self.get(&named(
                        "machineconfiguration.openshift.io/v1",
                        kind["kind"].as_str().unwrap(),
                        &object.name_any(),
                    ))
                    .await
                    .unwrap(),
                );
            }
        }
        std::fs::write(file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    }
}
