//! What is planned in which situation, from data alone.

use std::collections::BTreeSet;

use profile_sdk::kinds::{KUBE_DESCHEDULER, MACHINE_CONFIG, hyper_converged};
use profile_sdk::platform::{CONTROL_PLANE_WORKS, kubelet_of_workers};
use profile_sdk::{Body, Draft, Inputs, Kind, NodeQuestion, Surroundings};
use serde_json::{Value, json};

use crate::PROFILE;
use crate::feature::{AskedBy, Condition, Maturity, WAVE_OF_MACHINES};
use crate::features::FEATURES;
use crate::kinds::{
    FENCE_AGENTS_REMEDIATION_TEMPLATE, NODE_HEALTH_CHECK, PERSES_DASHBOARD, PERSES_DATASOURCE, PROMETHEUS_RULE,
    UI_PLUGIN,
};
use crate::node_questions::{IOMMU, NUMA, PCI_DEVICES, QUESTIONS, USB_DEVICES};

/// A cluster: HyperConverged as it is, whether masters take virtual machines, and what is so of its nodes.
struct Cluster {
    hyper_converged: Value,
    masters_schedulable: bool,
    nodes: &'static [&'static str],
    not_served: BTreeSet<Kind>,
    /// How the kubelets of workers are started.
    kubelet: Option<Value>,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            hyper_converged: json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "spec": {}}),
            masters_schedulable: false,
            nodes: &["workers that are no control plane"],
            not_served: OBSERVED.into(),
            kubelet: Some(json!({"metadata": {"name": "01-worker-kubelet"}})),
        }
    }
}

/// The kinds without which nothing is observed: most tests are about other features.
const OBSERVED: [Kind; 4] = [UI_PLUGIN, PERSES_DATASOURCE, PERSES_DASHBOARD, PROMETHEUS_RULE];

impl Cluster {
    fn inputs(&self) -> Inputs {
        let objects =
            [(hyper_converged(), Some(self.hyper_converged.clone())), (kubelet_of_workers(), self.kubelet.clone())];
        let work = self.masters_schedulable.then_some(CONTROL_PLANE_WORKS.name);
        let of_nodes = self.nodes.iter().copied().chain(work).collect();
        let surroundings = Surroundings { not_served: self.not_served.clone(), of_nodes };
        Inputs::new(objects).in_surroundings(surroundings).declaring(PROFILE.kinds())
    }

    fn planned(&self, options: Value) -> Vec<Draft> {
        PROFILE.configure(Some(&options)).unwrap().draft(&self.inputs()).unwrap()
    }

    fn names(&self, options: Value) -> Vec<String> {
        self.planned(options).into_iter().map(|draft| draft.name).collect()
    }

    fn why_not(&self, feature: &str, options: Value) -> String {
        let left_out = PROFILE.configure(Some(&options)).unwrap().left_out(&self.inputs()).unwrap();
        left_out
            .into_iter()
            .find(|part| part.feature == feature)
            .unwrap_or_else(|| panic!("{feature} is planned"))
            .reason
    }
}

fn object(draft: &Draft) -> &Value {
    match &draft.body {
        Body::Ensure(object) => object,
        other => panic!("{other:?}"),
    }
}

fn of<'a>(drafts: &'a [Draft], name: &str) -> &'a Draft {
    drafts.iter().find(|draft| draft.name == name).unwrap_or_else(|| panic!("{name}: {drafts:#?}"))
}

/// Every feature, as `choice`.
fn all(choice: &str) -> Value {
    let features = FEATURES.iter().map(|feature| (feature.name.to_owned(), json!(choice)));
    let devices = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}]);
    json!({
        "features": features.collect::<serde_json::Map<_, _>>(), "usbDevices": devices, "vfioDevices": ["10de:1eb8"],
        "logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1", "env": {"ENABLE_EBPF": "false"}},
    })
}

#[test]
fn the_default_is_what_is_generally_available() {
    let cluster = Cluster::default();
    assert_eq!(cluster.names(json!({})), ["hyper-converged", "swap-worker"]);
    for feature in FEATURES.iter().filter(|feature| feature.maturity != Maturity::GeneralAvailability) {
        assert!(!cluster.why_not(feature.name, json!({})).is_empty(), "{}", feature.name);
    }
}

#[test]
fn every_feature_can_be_switched_on_and_off_and_is_one_of_the_options() {
    let cluster = Cluster { nodes: &[], ..Cluster::default() };
    assert!(PROFILE.configure(Some(&all("Disabled"))).is_ok());
    assert_eq!(cluster.names(all("Disabled")), Vec::<String>::new());
    for &feature in FEATURES {
        assert_eq!(
            cluster.why_not(feature.name, all("Disabled")),
            format!("options.platformBaseline.features.{} is Disabled", feature.name)
        );
    }
    let drafts = cluster.planned(all("Enabled"));
    let inputs = cluster.inputs();
    let left_out = PROFILE.configure(Some(&all("Enabled"))).unwrap().left_out(&inputs).unwrap();
    assert_eq!(left_out.iter().map(|part| part.feature.as_str()).collect::<Vec<_>>(), ["loadAwareRebalancing"]);
    insta::assert_yaml_snapshot!(
        "every_feature",
        drafts
            .iter()
            .map(|draft| {
                // Of what is long, the file tells more than a copy of it.
                let mut object = object(draft).clone();
                if object["kind"] == "PersesDashboard" || object["kind"] == "PrometheusRule" {
                    object["spec"] = json!("…");
                }
                (&draft.name, draft.wave, &draft.reason, &draft.notes, object)
            })
            .collect::<Vec<_>>()
    );
}

/// Machines reboot once: all that they get is in one wave, and a pool has one KubeletConfig (W-33).
#[test]
fn w_33_all_that_machines_get_is_in_one_wave_with_one_kubelet_config_for_a_pool() {
    let drafts = Cluster { masters_schedulable: true, ..Cluster::default() }.planned(all("Enabled"));
    let kind = |draft: &Draft| object(draft)["kind"].as_str().unwrap_or_default().to_owned();
    let of_machines = drafts.iter().filter(|draft| matches!(kind(draft).as_str(), "MachineConfig" | "KubeletConfig"));
    let waves: BTreeSet<_> = of_machines.map(|draft| draft.wave).collect();
    assert_eq!(waves, BTreeSet::from([WAVE_OF_MACHINES]));
    let kubelets: Vec<_> = drafts.iter().filter(|draft| kind(draft) == "KubeletConfig").collect();
    assert_eq!(kubelets.len(), 2);
    // W-8: it is a field of spec.
    assert_eq!(object(kubelets[0])["spec"]["autoSizingReserved"], true);
    assert_eq!(object(kubelets[0])["spec"]["kubeletConfig"]["topologyManagerPolicy"], "best-effort");
    assert!(object(kubelets[0])["spec"]["kubeletConfig"].get("autoSizingReserved").is_none());
}

/// Masters that carry virtual machines get what workers get; a compact cluster has no others (W-34).
#[test]
fn w_34_masters_and_compact_clusters_are_covered() {
    let both = Cluster { masters_schedulable: true, ..Cluster::default() };
    let tuned = json!({"features": {"transparentHugePages": "Enabled"}});
    let names = ["hyper-converged", "swap-worker", "transparent-huge-pages-worker", "transparent-huge-pages-master"];
    assert_eq!(both.names(tuned.clone()), names);
    let compact = Cluster { masters_schedulable: true, nodes: &[], ..Cluster::default() };
    assert_eq!(compact.names(tuned), ["hyper-converged", "transparent-huge-pages-master"]);
    let names: Vec<_> = both
        .planned(all("Enabled"))
        .iter()
        .map(|draft| {
            let object = object(draft);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{} {} {}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        })
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

/// M14: machines of the control plane swap only where the options say so, and then it is said what to think of.
#[test]
fn m14_the_control_plane_swaps_only_where_the_options_say_so() {
    for nodes in [&[][..], &["workers that are no control plane"]] {
        let cluster = Cluster { masters_schedulable: true, nodes, ..Cluster::default() };
        let names = cluster.names(json!({}));
        assert!(!names.contains(&"swap-master".to_owned()), "{names:?}");
        let why = cluster.why_not("swap", json!({}));
        assert!(why.contains("share a disk") && why.ends_with("features.swap to Enabled for them too"), "{why}");
        let planned = cluster.planned(json!({"features": {"swap": "Enabled"}}));
        assert!(of(&planned, "swap-master").notes[0].contains("fast enough for etcd"), "{planned:?}");
        assert!(planned.iter().filter(|draft| draft.name == "swap-worker").all(|draft| draft.notes.is_empty()));
    }
}

/// W-42, N1: a check without what it fences by is no plan of its own; what does not go with it is said.
#[test]
fn w_42_machines_are_fenced_by_something_that_is_there() {
    let asked = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
        "metadata": {"annotations": {"platform.kubevirt.io/enable-node-remediation": "true"}}});
    let without = Cluster {
        hyper_converged: asked.clone(),
        not_served: [FENCE_AGENTS_REMEDIATION_TEMPLATE].into_iter().chain(OBSERVED).collect(),
        ..Cluster::default()
    };
    let why = without.why_not("nodeHealthCheck", json!({}));
    assert!(why.contains("no kind FenceAgentsRemediationTemplate"), "{why}");
    let insists = without.planned(json!({"features": {"nodeHealthCheck": "Enabled"}}));
    assert!(of(&insists, "node-health-check").notes[0].contains("no kind FenceAgents"), "{insists:?}");
    let selector = |masters_schedulable, nodes| {
        let cluster = Cluster { hyper_converged: asked.clone(), masters_schedulable, nodes, ..Cluster::default() };
        let planned = cluster.planned(json!({}));
        let check = of(&planned, "node-health-check");
        assert_eq!(check.unwanted, ["/spec/maxUnhealthy"]);
        assert!(check.notes[0].contains("which you make") && check.notes[1].contains("pauseRequests"), "{check:?}");
        (object(check)["spec"]["selector"]["matchExpressions"].as_array().unwrap().len(), check.notes.len())
    };
    let workers: &[_] = &["workers that are no control plane"];
    assert_eq!(selector(false, workers), (1, 2));
    assert_eq!(selector(true, workers), (3, 2), "one check for both would count them together");
    assert_eq!(selector(true, &[]), (1, 3), "who is fenced is said");
}

/// W-28: an annotation that can't be what it is meant to be is said, and asks for nothing.
#[test]
fn w_28_annotations_that_ask_for_nothing_are_said() {
    let of = |text: &str| {
        let hyper_converged = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
            "metadata": {"annotations": {"platform.kubevirt.io/enable-metallb": text}}});
        Cluster { hyper_converged, ..Cluster::default() }.why_not("metalLb", json!({}))
    };
    for unclear in ["True", "1", "yes", "true "] {
        assert!(of(unclear).contains(&format!("is {unclear:?}, which asks for nothing")), "{}", of(unclear));
    }
    for clear in ["", "false"] {
        assert!(of(clear).contains("not on by default"), "{}", of(clear));
    }
}

/// What administrators have asked for by annotation or gate is kept where the options say nothing, and the option wins.
#[test]
fn earlier_choices_are_kept_where_the_options_say_nothing() {
    for &feature in FEATURES {
        let mut hyper_converged = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {}});
        let needed = feature.conditions.iter().filter_map(|condition| match condition {
            Condition::Planned(needed) => Some(*needed),
            Condition::NodeHas(..)
            | Condition::HyperConvergedLacks { .. }
            | Condition::Served(_)
            | Condition::KubeletsReadDropIns => None,
        });
        for asked in needed.chain([feature]) {
            match &asked.asked_by {
                AskedBy::Nothing => {}
                AskedBy::Annotation(name) => {
                    hyper_converged["metadata"]["annotations"][format!("platform.kubevirt.io/{name}")] = json!("true");
                }
            }
        }
        if matches!(feature.asked_by, AskedBy::Nothing) {
            continue;
        }
        let nodes = &["PCI devices", "workers that are no control plane"];
        let cluster = Cluster { hyper_converged, nodes, not_served: BTreeSet::new(), ..Cluster::default() };
        let mut options = json!({"logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1"}});
        let planned = cluster.planned(options.clone());
        let is_planned = planned.iter().any(|draft| draft.feature.as_deref() == Some(feature.name));
        let is_told_elsewhere = ["kubeletPerformance", "cpuManager", "incidentDetection"].contains(&feature.name);
        assert!(is_planned || is_told_elsewhere, "{} is asked for and not planned", feature.name);
        options["features"] = json!({feature.name: "Disabled"});
        let without = cluster.planned(options);
        assert_ne!(planned, without, "{}", feature.name);
        assert!(without.iter().all(|draft| draft.feature.as_deref() != Some(feature.name)), "{}", feature.name);
    }
}

/// What the nodes do not have is said; the option overrules labels, and the plan says so.
#[test]
fn hardware_decides_unless_the_option_does() {
    let asked = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
        "metadata": {"annotations": {"platform.kubevirt.io/enable-pci-passthrough": "true"}}});
    let mut cluster = Cluster { hyper_converged: asked, ..Cluster::default() };
    let why = cluster.why_not("pciPassthrough", json!({}));
    assert!(why.starts_with("no node has PCI devices for virtual machines: set options.platformBaseline"), "{why}");
    let insists = cluster.planned(json!({"features": {"pciPassthrough": "Enabled"}}));
    assert!(of(&insists, "pci-passthrough-worker").notes[0].contains("because the options ask for it"), "{insists:?}");
    cluster.nodes = &["PCI devices", "workers that are no control plane"];
    let planned = cluster.planned(json!({}));
    assert_eq!(of(&planned, "pci-passthrough-worker").notes, Vec::<String>::new());
}

/// Who names devices asks for the feature; one that needs some does nothing without.
#[test]
fn naming_devices_asks_for_what_they_are_for() {
    let cluster = Cluster::default();
    assert_eq!(cluster.names(json!({"vfioDevices": ["10de:1eb8"]})), ["hyper-converged", "swap-worker", "vfio-worker"]);
    let notes = |options: Value| of(&cluster.planned(options), "vfio-worker").notes.join("; ");
    let alone = notes(json!({"vfioDevices": ["10de:1eb8"]}));
    assert!(alone.contains("no effect without the feature pciPassthrough"), "{alone}");
    let both = notes(json!({"vfioDevices": ["10de:1eb8"], "features": {"pciPassthrough": "Enabled"}}));
    assert!(!both.contains("no effect"), "{both}");
    let device = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}]);
    let drafts = cluster.planned(json!({"usbDevices": device}));
    let entry = object(&drafts[0]).pointer("/spec/virtualization/permittedHostDevices/usbHostDevices/0/resourceName");
    assert_eq!(entry, Some(&json!("kubevirt.io/storage")));
    let why = cluster.why_not("usbPassthrough", json!({"features": {"usbPassthrough": "Enabled"}}));
    assert_eq!(why, "options.platformBaseline.usbDevices is not set, and there is nothing to do without");
    let disabled = json!({"usbDevices": device, "features": {"usbPassthrough": "Disabled"}});
    assert!(cluster.why_not("usbPassthrough", disabled).ends_with("is Disabled"));
}

#[test]
fn ksm_for_zero_pages_keeps_out_of_the_way_of_kubevirts_own() {
    let wants = json!({"features": {"ksmZeroPages": "Enabled"}});
    for (version, spec) in [
        ("v1", json!({"virtualization": {"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}}}})),
        ("v1beta1", json!({"ksmConfiguration": {"nodeLabelSelector": {}}})),
    ] {
        let hyper_converged = json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": spec});
        let why = Cluster { hyper_converged, ..Cluster::default() }.why_not("ksmZeroPages", wants.clone());
        assert!(why.contains("take it out first"), "{why}");
    }
    let empty = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {"virtualization": {"ksmConfiguration": {}}}});
    let names = Cluster { hyper_converged: empty, ..Cluster::default() }.names(wants);
    assert!(names.contains(&"ksm-zero-pages-worker".to_owned()), "{names:?}");
}

/// W-18: what this cluster can't have is left out with a reason, and is said to be missing only to who asks for it.
#[test]
fn w_18_kinds_that_are_not_served_are_missed_by_nobody_who_did_not_ask() {
    let cluster = Cluster {
        not_served: [MACHINE_CONFIG, NODE_HEALTH_CHECK].into_iter().chain(OBSERVED).collect(),
        ..Cluster::default()
    };
    assert_eq!(cluster.names(json!({})), ["hyper-converged"]);
    assert_eq!(cluster.why_not("swap", json!({})), "this cluster has no kind MachineConfig");
    let asked = cluster.names(json!({"features": {"nodeHealthCheck": "Enabled"}}));
    assert!(asked.contains(&"node-health-check".to_owned()), "the engine says what is missing: {asked:?}");
}

/// Alerts are of use where nothing shows dashboards; what is missing for the rest is said.
#[test]
fn what_is_served_of_several_kinds_is_planned_and_the_rest_is_named() {
    let names_of = |cluster: &Cluster, options: Value| cluster.names(options)[2..].to_vec();
    let names = |cluster: &Cluster| names_of(cluster, json!({}));
    let all = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    assert_eq!(
        names(&all),
        ["monitoring-plugin", "platform-datasource", "platform-dashboard", "platform-alerts", "descheduler-dashboard",]
    );
    let without_descheduler = Cluster { not_served: [KUBE_DESCHEDULER].into(), ..Cluster::default() };
    assert_eq!(names(&without_descheduler).len(), 4);
    let alerts = Cluster { not_served: OBSERVED[..3].iter().copied().collect(), ..Cluster::default() };
    assert_eq!(names(&alerts), ["platform-alerts"]);
    let why = alerts.why_not("observability", json!({}));
    assert_eq!(
        why,
        "only a part of it is planned: this cluster does not have UIPlugin, PersesDatasource, PersesDashboard"
    );
    let why = Cluster::default().why_not("observability", json!({}));
    assert!(why.starts_with("this cluster has no kind of these: UIPlugin, "), "{why}");
    let insists = json!({"features": {"observability": "Enabled"}});
    assert_eq!(alerts.names(insists).len(), 7, "the engine says what is missing");
    let insists = json!({"features": {"incidentDetection": "Enabled"}});
    assert_eq!(names_of(&alerts, insists), ["monitoring-plugin", "platform-alerts"]);
}

/// N3: what fences machines that are away is not started before their reboots.
#[test]
fn n3_machines_are_fenced_only_after_the_reboots_of_the_plan() {
    let planned = Cluster::default().planned(all("Enabled"));
    assert!(of(&planned, "node-health-check").wave > WAVE_OF_MACHINES);
    let before = planned.iter().filter(|draft| draft.name != "node-health-check");
    assert!(before.clone().all(|draft| draft.wave <= WAVE_OF_MACHINES), "{:?}", before.map(|draft| draft.wave).max());
}

/// W-36: whatever a dashboard asks is in its own namespace.
#[test]
fn w_36_dashboards_ask_sources_that_are_shipped() {
    let cluster = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    let planned = cluster.planned(all("Enabled"));
    let of_kind = |kind: &str| planned.iter().map(object).filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let sources: BTreeSet<_> = of_kind("PersesDatasource")
        .iter()
        .map(|source| (source["metadata"]["namespace"].to_string(), source["metadata"]["name"].to_string()))
        .collect();
    let dashboards = of_kind("PersesDashboard");
    assert_eq!(dashboards.len(), 3);
    for dashboard in dashboards {
        let text = dashboard["spec"].to_string();
        let asked: BTreeSet<_> = text
            .split("\"datasource\":{")
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap().split("\"name\":").nth(1).unwrap().to_owned())
            .collect();
        assert!(!asked.is_empty(), "{}", dashboard["metadata"]);
        for name in asked {
            let name = name.split(',').next().unwrap().to_owned();
            let place = dashboard["metadata"]["namespace"].to_string();
            assert!(sources.contains(&(place, name.clone())), "{} asks {name}", dashboard["metadata"]);
        }
    }
}

/// Features that are told in the objects of others.
#[test]
fn features_meet_in_objects() {
    let cluster = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    let planned = cluster.planned(all("Enabled"));
    assert_eq!(
        object(of(&planned, "monitoring-plugin"))["spec"]["monitoring"]["clusterHealthAnalyzer"]["enabled"],
        true
    );
    let unhealthy = object(of(&planned, "node-health-check"))["spec"]["unhealthyConditions"].as_array().unwrap().len();
    assert_eq!(unhealthy, 3);
    let pipelines = |planned: &[Draft]| {
        let pipelines = object(of(planned, "logging-forwarder"))["spec"]["pipelines"].as_array().unwrap().clone();
        pipelines.iter().map(|pipeline| pipeline["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(pipelines(&planned), ["infra-logs", "app-logs", "audit-logs"]);
    let mut options = all("Enabled");
    options["features"]["auditLogging"] = json!("Disabled");
    options["features"]["storageBasedRemediation"] = json!("Disabled");
    let planned = cluster.planned(options);
    assert_eq!(pipelines(&planned), ["infra-logs", "app-logs"]);
    assert!(planned.iter().all(|draft| draft.name != "logging-of-audit"), "W-42: a binding without a collector");
    assert_eq!(object(of(&planned, "node-health-check"))["spec"]["unhealthyConditions"].as_array().unwrap().len(), 2);
}

/// W-35: what is switched off stays so, and what the exporter does not know is refused.
#[test]
fn w_35_settings_of_the_exporter_are_texts() {
    let drafts = Cluster::default().planned(all("Enabled"));
    let container = &object(of(&drafts, "metrics-exporter-daemon"))["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "exporter:1");
    let env = container["env"].as_array().unwrap();
    let value = |name: &str| env.iter().find(|entry| entry["name"] == name).map(|entry| entry["value"].clone());
    assert_eq!((value("ENABLE_EBPF"), value("ENABLE_KVM")), (Some(json!("false")), Some(json!("true"))));
    let alerts =
        |options: Value| object(of(&Cluster::default().planned(options), "metrics-exporter-alerts")).to_string();
    assert!(!alerts(all("Enabled")).contains("KMEeBPFSubsystemDown"), "what is switched off is not down");
    assert!(alerts(json!({"metricsExporter": {"image": "exporter:1"}})).contains("KMEeBPFSubsystemDown"));
    for (env, problem) in [
        (json!({"ENABLE_ALL": "true"}), "no setting of it"),
        (json!({"QMP_POLL_INTERVAL": "5m"}), "at most 150s"),
        (json!({"KVM_POLL_INTERVAL": "2m"}), "at most 90s"),
        (json!({"QGA_POLL_INTERVAL": "0s"}), "seconds or minutes"),
        (json!({"CGROUP_POLL_INTERVAL": "99999999999m"}), "seconds or minutes"),
        (json!({"ENABLE_EBPF": false}), "string"),
    ] {
        let error = PROFILE.configure(Some(&json!({"metricsExporter": {"env": env}}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(problem), "{env}: {error}");
    }
}

#[test]
fn the_quota_is_switched_on_where_the_release_has_the_switch() {
    let wants = json!({"features": {"applicationAwareQuota": "Enabled"}});
    for (version, spec, path) in [
        ("v1", json!({}), "/spec/deployment/applicationAwareConfig/enable"),
        ("v1beta1", json!({"enableApplicationAwareQuota": false}), "/spec/enableApplicationAwareQuota"),
        (
            "v1beta1",
            json!({"featureGates": {"enableApplicationAwareQuota": false}}),
            "/spec/featureGates/enableApplicationAwareQuota",
        ),
    ] {
        let hyper_converged = json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": spec});
        let drafts = Cluster { hyper_converged, ..Cluster::default() }.planned(wants.clone());
        assert_eq!(object(&drafts[0]).pointer(path), Some(&json!(true)), "{:?}", drafts[0]);
    }
}

/// 38 objects, each rule of which says what it reads before it reads it.
#[test]
fn rules_for_operations_guard_what_they_read() {
    let wants = json!({"features": {"inFlightOperations": "Enabled"}});
    let rule_sets = |cluster: &Cluster| {
        let drafts = cluster.planned(wants.clone());
        drafts.into_iter().filter(|draft| object(draft)["kind"] == "OperationRuleSet").collect::<Vec<_>>()
    };
    let drafts = rule_sets(&Cluster::default());
    assert_eq!(drafts.len(), 38);
    let mut rules = 0;
    for draft in &drafts {
        let mut operations = BTreeSet::new();
        for rule in object(draft)["spec"]["rules"].as_array().unwrap() {
            rules += 1;
            let (operation, expression) = (rule["operation"].as_str().unwrap(), rule["expression"].as_str().unwrap());
            assert!(operations.insert(operation.to_owned()), "{}: {operation} is there twice", draft.name);
            assert!(expression.starts_with("has(object.") || expression.starts_with("(has(object."), "{expression}");
            // W-43: each field is only read behind questions whether it and all above it are there.
            let read: BTreeSet<_> = expression
                .split("object.")
                .skip(1)
                .map(|rest| rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.').next().unwrap())
                .map(|path| path.split(".exists").next().unwrap().split(".size").next().unwrap())
                .collect();
            for path in read {
                let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
                for part in ends.map(|end| &path[..end]) {
                    let asks = expression.contains(&format!("has(object.{part})"));
                    assert!(asks, "{}: {operation} reads {path} without {part}", draft.name);
                }
            }
        }
    }
    assert_eq!(rules, 156);
    let old = json!({"apiVersion": "hco.kubevirt.io/v1beta1", "spec": {}});
    for (cluster, version) in
        [(Cluster::default(), "v1"), (Cluster { hyper_converged: old, ..Cluster::default() }, "v1beta1")]
    {
        let drafts = rule_sets(&cluster);
        assert_eq!(object(of(&drafts, "hco-rules"))["spec"]["target"]["version"], version);
    }
}

#[test]
fn labels_of_nodes_are_understood() {
    let has = |question: &NodeQuestion, labels: Value| (question.is_so)(&serde_json::from_value(labels).unwrap());
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-10de.present": "true"})));
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-present": "true"})));
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-0302_10de.present": "true"})));
    // W-30: what every machine has is nothing to give away.
    for display in ["pci-0300_1a03.present", "pci-102b.present", "pci-1af4.present", "pci-0300_1234.sriov.capable"] {
        assert!(!has(&PCI_DEVICES, json!({format!("feature.node.kubernetes.io/{display}"): "true"})), "{display}");
    }
    assert!(has(&PCI_DEVICES, json!({"nvidia.com/gpu.present": "true"})));
    assert!(!has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-10de.present": "false"})));
    assert!(has(&USB_DEVICES, json!({"feature.node.kubernetes.io/usb-ff_1a6e_089a.present": "true"})));
    assert!(has(&IOMMU, json!({"feature.node.kubernetes.io/iommu-enabled": "true"})));
    assert!(has(&NUMA, json!({"feature.node.kubernetes.io/memory-numa": "true"})));
    // W-30: neither devices of KubeVirt nor hyper-threading tell of hardware.
    for question in &QUESTIONS {
        assert!(!has(question, json!({"feature.node.kubernetes.io/cpu-hardware_multithreading": "true", "a": "b"})));
    }
}

#[test]
fn devices_that_are_none_are_refused_with_the_reason() {
    for id in ["10de", "10DE:1eb8", "10de:1eb8,0000:0000", "10de:1eb8 rd.break", "::", ""] {
        let error = PROFILE.configure(Some(&json!({"vfioDevices": [id]}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("vendor:device"), "{id}: {error}");
    }
    for number in ["46f", "46f45", "xyz0", ""] {
        let device = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": number}]);
        let error = PROFILE.configure(Some(&json!({"usbDevices": device}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("four hexadecimal digits"), "{number}: {error}");
    }
    assert!(PROFILE.configure(Some(&json!({"features": {"swap": "On"}}))).is_err());
}

/// Fault R21: CPUManager is a gate of KubeVirt, and HyperConverged has none of that name: what somebody wrote there asks for nothing.
#[test]
fn r21_a_gate_of_kubevirt_asks_hyper_converged_for_nothing() {
    let gates = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {"featureGates": [{"name": "CPUManager"}, {"name": "cpumanager"}]}});
    let cluster = Cluster { hyper_converged: gates, ..Cluster::default() };
    assert!(!cluster.names(json!({})).contains(&"kubelet-worker".to_owned()));
    assert!(
        cluster
            .why_not("cpuManager", json!({}))
            .contains("set options.platformBaseline.features.cpuManager to Enabled")
    );
}

/// Kubelets that read no settings get no swap by them: machines would reboot for nothing.
#[test]
fn swap_is_left_out_where_kubelets_read_no_settings() {
    let started = |arguments: &str| {
        let unit = json!({"name": "kubelet.service", "contents": format!("ExecStart=/usr/bin/kubelet {arguments}")});
        let kubelet =
            json!({"metadata": {"name": "01-worker-kubelet"}, "spec": {"config": {"systemd": {"units": [unit]}}}});
        let kubelet = Some(kubelet);
        Cluster { kubelet, ..Cluster::default() }
    };
    let planned = |cluster: &Cluster, options| cluster.names(options).contains(&"swap-worker".to_owned());
    let enabled = json!({"features": {"swap": "Enabled"}});
    assert!(planned(&started("--config-dir=/etc/openshift/kubelet.conf.d"), json!({})));
    assert!(planned(&Cluster::default(), json!({})), "where it can't be told");
    let old = started("--v=2");
    assert!(!planned(&old, json!({})));
    assert!(old.why_not("swap", json!({})).contains("update to OpenShift 4.21"), "{}", old.why_not("swap", json!({})));
    assert!(planned(&old, enabled.clone()));
    let drafts = old.planned(enabled);
    assert!(of(&drafts, "swap-worker").notes.iter().any(|note| note.contains("does nothing yet")));
}

/// Machines of a hosted control plane are set up elsewhere: the kinds are served there, and mean nothing.
#[test]
fn nothing_for_machines_is_planned_where_no_machine_config_reaches_them() {
    let hosted = Cluster { kubelet: None, ..Cluster::default() };
    assert_eq!(hosted.names(json!({})), ["hyper-converged"]);
    let why = hosted.why_not("swap", json!({}));
    assert!(why.contains("set it up in the NodePools of the hosting cluster"), "{why}");
    // Who insists is told what is missing when the server is asked.
    let insisted = json!({"features": {"swap": "Enabled"}});
    assert!(hosted.names(insisted).contains(&"swap-worker".to_owned()));
    assert!(Cluster::default().names(json!({})).contains(&"swap-worker".to_owned()));
}
