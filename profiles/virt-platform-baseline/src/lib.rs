//! virt-platform-baseline: what a cluster for virtual machines needs beneath them, as one plan.
//!
//! A table of features (`features`), each with what decides about it and what it brings (`feature`). All that HyperConverged is told is one
//! item, in the first wave; all that machines get is in the second one, with one KubeletConfig for each pool, so that machines
//! reboot once.

mod feature;
mod features;
mod machines;
mod options;
mod situation;
mod table;

use profile_sdk::{
    About, Access, Body, Declared, Draft, DraftError, Grant, Impact, Inputs, Kind, LeftOut, NodeQuestion, OptionsError,
    Planner, Prerequisite, Profile, Read, Rival, parse_options,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use feature::{Brings, Feature, Part, Standing};
use features::FEATURES;
use options::PlatformBaseline;
use situation::{QUESTIONS, Situation, hyper_converged, scheduler};
pub use table::page;

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &VirtPlatformBaseline;

static ABOUT: About = About {
    name: "virt-platform-baseline",
    options_key: "platformBaseline",
    description: "Sets up what a cluster for virtual machines needs beneath them: swap, kubelets, devices, remediation, and more by choice",
    category: "platform",
    impact_summary: "Machines that carry virtual machines reboot one by one, once for all features; by default they get swap where a partition or file for it is there",
    impact: Impact::High,
    advertised: true,
};

pub(crate) const MACHINE_CONFIG: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfig",
    plural: "machineconfigs",
};
pub(crate) const KUBELET_CONFIG: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "KubeletConfig",
    plural: "kubeletconfigs",
};
/// v1 groups the fields of v1beta1 differently; the one that is served is written.
pub(crate) const HYPER_CONVERGED: Kind =
    Kind { group: "hco.kubevirt.io", versions: &["v1", "v1beta1"], kind: "HyperConverged", plural: "hyperconvergeds" };
pub(crate) const SCHEDULER: Kind =
    Kind { group: "config.openshift.io", versions: &["v1"], kind: "Scheduler", plural: "schedulers" };
pub(crate) const NODE_HEALTH_CHECK: Kind = Kind {
    group: "remediation.medik8s.io",
    versions: &["v1alpha1"],
    kind: "NodeHealthCheck",
    plural: "nodehealthchecks",
};
pub(crate) const FORKLIFT_CONTROLLER: Kind = Kind {
    group: "forklift.konveyor.io",
    versions: &["v1beta1"],
    kind: "ForkliftController",
    plural: "forkliftcontrollers",
};
pub(crate) const METAL_LB: Kind =
    Kind { group: "metallb.io", versions: &["v1beta1"], kind: "MetalLB", plural: "metallbs" };

pub(crate) const OPERATION_RULE_SET: Kind =
    Kind { group: "ifo.kubevirt.io", versions: &["v1alpha1"], kind: "OperationRuleSet", plural: "operationrulesets" };

/// Written by the profile load-aware-rebalancing; whether it is there decides about its dashboard.
pub(crate) const KUBE_DESCHEDULER: Kind =
    Kind { group: "operator.openshift.io", versions: &["v1"], kind: "KubeDescheduler", plural: "kubedeschedulers" };
pub(crate) const UI_PLUGIN: Kind =
    Kind { group: "observability.openshift.io", versions: &["v1alpha1"], kind: "UIPlugin", plural: "uiplugins" };
pub(crate) const PERSES_DASHBOARD: Kind =
    Kind { group: "perses.dev", versions: &["v1alpha2"], kind: "PersesDashboard", plural: "persesdashboards" };
pub(crate) const PERSES_DATASOURCE: Kind =
    Kind { group: "perses.dev", versions: &["v1alpha2"], kind: "PersesDatasource", plural: "persesdatasources" };
pub(crate) const PROMETHEUS_RULE: Kind =
    Kind { group: "monitoring.coreos.com", versions: &["v1"], kind: "PrometheusRule", plural: "prometheusrules" };
pub(crate) const POD_MONITOR: Kind =
    Kind { group: "monitoring.coreos.com", versions: &["v1"], kind: "PodMonitor", plural: "podmonitors" };
pub(crate) const STORAGE_BASED_REMEDIATION_CONFIG: Kind = Kind {
    group: "storage-based-remediation.medik8s.io",
    versions: &["v1alpha1"],
    kind: "StorageBasedRemediationConfig",
    plural: "storagebasedremediationconfigs",
};
pub(crate) const LOKI_STACK: Kind =
    Kind { group: "loki.grafana.com", versions: &["v1"], kind: "LokiStack", plural: "lokistacks" };
pub(crate) const CLUSTER_LOG_FORWARDER: Kind = Kind {
    group: "observability.openshift.io",
    versions: &["v1"],
    kind: "ClusterLogForwarder",
    plural: "clusterlogforwarders",
};
pub(crate) const SECURITY_CONTEXT_CONSTRAINTS: Kind = Kind {
    group: "security.openshift.io",
    versions: &["v1"],
    kind: "SecurityContextConstraints",
    plural: "securitycontextconstraints",
};
pub(crate) const NAMESPACE: Kind = Kind { group: "", versions: &["v1"], kind: "Namespace", plural: "namespaces" };
pub(crate) const CONFIG_MAP: Kind = Kind { group: "", versions: &["v1"], kind: "ConfigMap", plural: "configmaps" };
pub(crate) const SERVICE_ACCOUNT: Kind =
    Kind { group: "", versions: &["v1"], kind: "ServiceAccount", plural: "serviceaccounts" };
pub(crate) const DAEMON_SET: Kind = Kind { group: "apps", versions: &["v1"], kind: "DaemonSet", plural: "daemonsets" };
pub(crate) const CLUSTER_ROLE: Kind = rbac("ClusterRole", "clusterroles");
pub(crate) const CLUSTER_ROLE_BINDING: Kind = rbac("ClusterRoleBinding", "clusterrolebindings");
pub(crate) const ROLE: Kind = rbac("Role", "roles");
pub(crate) const ROLE_BINDING: Kind = rbac("RoleBinding", "rolebindings");

const fn rbac(kind: &'static str, plural: &'static str) -> Kind {
    Kind { group: "rbac.authorization.k8s.io", versions: &["v1"], kind, plural }
}

pub(crate) const HYPER_CONVERGED_NAMESPACE: &str = "openshift-cnv";
pub(crate) const HYPER_CONVERGED_NAME: &str = "kubevirt-hyperconverged";

const fn machine_config(name: &'static str) -> Declared {
    written(MACHINE_CONFIG, name)
}

const fn operation_rules(name: &'static str) -> Declared {
    written(OPERATION_RULE_SET, name)
}

const fn written(kind: Kind, name: &'static str) -> Declared {
    Declared { kind, access: Access::Write, name: Some(name), namespace: None }
}

static KINDS: &[Declared] = &[
    Declared { kind: HYPER_CONVERGED, access: Access::Update, name: Some(HYPER_CONVERGED_NAME), namespace: None },
    Declared { kind: SCHEDULER, access: Access::Read, name: Some("cluster"), namespace: None },
    Declared { kind: KUBE_DESCHEDULER, access: Access::Read, name: Some("cluster"), namespace: None },
    machine_config("90-worker-swap-online"),
    machine_config("50-virt-pci-passthrough"),
    machine_config("50-worker-virt-vfio"),
    machine_config("99-worker-ksm-zero-only"),
    machine_config("99-worker-thp-tuning"),
    machine_config("99-worker-vm-drain-shutdown-inhibitor"),
    machine_config("90-master-swap-online"),
    machine_config("50-master-virt-pci-passthrough"),
    machine_config("50-master-virt-vfio"),
    machine_config("99-master-ksm-zero-only"),
    machine_config("99-master-thp-tuning"),
    machine_config("99-master-vm-drain-shutdown-inhibitor"),
    written(KUBELET_CONFIG, "virt-perf-settings"),
    written(KUBELET_CONFIG, "virt-perf-settings-master"),
    written(NODE_HEALTH_CHECK, "far"),
    written(STORAGE_BASED_REMEDIATION_CONFIG, "autopilot-recommended-values-detection-only"),
    written(FORKLIFT_CONTROLLER, "forklift-controller"),
    written(METAL_LB, "metallb"),
    written(UI_PLUGIN, "monitoring"),
    written(UI_PLUGIN, "troubleshooting-panel"),
    written(UI_PLUGIN, "logging"),
    written(PERSES_DATASOURCE, "thanos-querier"),
    written(PERSES_DASHBOARD, "virtualization-platform"),
    written(PERSES_DASHBOARD, "descheduler-memory-aware-rebalancing"),
    written(PERSES_DASHBOARD, "kubevirt-metrics-exporter"),
    written(PROMETHEUS_RULE, "virtualization-platform"),
    written(PROMETHEUS_RULE, "kubevirt-metrics-exporter-alerts"),
    written(POD_MONITOR, "kubevirt-metrics-exporter"),
    written(LOKI_STACK, "logging-loki"),
    written(CLUSTER_LOG_FORWARDER, "instance"),
    written(SERVICE_ACCOUNT, "collector"),
    written(SERVICE_ACCOUNT, "kubevirt-metrics-exporter"),
    written(CLUSTER_ROLE, "kubevirt-metrics-exporter"),
    written(CLUSTER_ROLE, "kubevirt-metrics-exporter-scc"),
    written(CLUSTER_ROLE_BINDING, "logging-collector-application"),
    written(CLUSTER_ROLE_BINDING, "logging-collector-infrastructure"),
    written(CLUSTER_ROLE_BINDING, "logging-collector-logs-writer"),
    written(CLUSTER_ROLE_BINDING, "logging-collector-audit"),
    written(CLUSTER_ROLE_BINDING, "kubevirt-metrics-exporter"),
    written(CLUSTER_ROLE_BINDING, "kubevirt-metrics-exporter-scc"),
    written(ROLE, "kubevirt-metrics-exporter-prometheus"),
    written(ROLE_BINDING, "kubevirt-metrics-exporter-prometheus"),
    written(SECURITY_CONTEXT_CONSTRAINTS, "kubevirt-metrics-exporter"),
    // Never deleted: nobody knows what else has been put into it.
    Declared { kind: NAMESPACE, access: Access::Create, name: Some("kubevirt-metrics-exporter"), namespace: None },
    written(DAEMON_SET, "kubevirt-metrics-exporter"),
    Declared {
        kind: CONFIG_MAP,
        access: Access::Merge(&features::ksm_metrics::SETTINGS),
        name: Some("cluster-monitoring-config"),
        namespace: None,
    },
    operation_rules("aaq-rules"),
    operation_rules("build-rules"),
    operation_rules("cdi-rules"),
    operation_rules("clusteroperator-rules"),
    operation_rules("clusterversion-rules"),
    operation_rules("cnao-rules"),
    operation_rules("csv-rules"),
    operation_rules("datavolume-rules"),
    operation_rules("fenceagentsremediation-rules"),
    operation_rules("hco-rules"),
    operation_rules("hpp-rules"),
    operation_rules("installplan-rules"),
    operation_rules("kubevirt-rules"),
    operation_rules("machine-rules"),
    operation_rules("machineconfigpool-rules"),
    operation_rules("machineset-rules"),
    operation_rules("nnce-rules"),
    operation_rules("nncp-rules"),
    operation_rules("nodemaintenance-rules"),
    operation_rules("plan-rules"),
    operation_rules("ssp-rules"),
    operation_rules("storageversionmigration-rules"),
    operation_rules("subscription-rules"),
    operation_rules("velero-backup-rules"),
    operation_rules("velero-datadownload-rules"),
    operation_rules("velero-dataupload-rules"),
    operation_rules("velero-deletebackuprequest-rules"),
    operation_rules("velero-podvolumebackup-rules"),
    operation_rules("velero-podvolumerestore-rules"),
    operation_rules("velero-restore-rules"),
    operation_rules("vm-clone-rules"),
    operation_rules("vm-export-rules"),
    operation_rules("vm-lifecycle-rules"),
    operation_rules("vm-restore-rules"),
    operation_rules("vm-snapshot-rules"),
    operation_rules("vmi-rules"),
    operation_rules("vmim-rules"),
    operation_rules("volumesnapshot-rules"),
];

/// What the objects above grant to others, which nobody may grant who does not have it.
static GRANTS: &[Grant] = &[
    Grant {
        group: "rbac.authorization.k8s.io",
        resources: &["clusterroles"],
        names: &[
            "collect-application-logs",
            "collect-audit-logs",
            "collect-infrastructure-logs",
            "kubevirt-metrics-exporter",
            "kubevirt-metrics-exporter-scc",
            "logging-collector-logs-writer",
        ],
        verbs: &["bind"],
    },
    // Without it the server looks into the role, which is not there yet when its binding is previewed.
    Grant {
        group: "rbac.authorization.k8s.io",
        resources: &["roles"],
        names: &["kubevirt-metrics-exporter-prometheus"],
        verbs: &["bind"],
    },
    Grant { group: "", resources: &["pods", "persistentvolumeclaims"], names: &[], verbs: &["get", "list", "watch"] },
    Grant { group: "kubevirt.io", resources: &["virtualmachineinstances"], names: &[], verbs: &["get"] },
    Grant {
        group: "security.openshift.io",
        resources: &["securitycontextconstraints"],
        names: &["kubevirt-metrics-exporter"],
        verbs: &["use"],
    },
];

/// It applies by force whatever it finds otherwise, and looks at everything every five minutes.
static RIVALS: [Rival; 1] = [Rival {
    manager: "virt-platform-autopilot",
    label: ("platform.kubevirt.io/managed-by", "virt-platform-autopilot"),
    remedy: "virt-platform-autopilot manages it too and writes its own values back: switch that off first, with the annotation \
             platform.kubevirt.io/autopilot of HyperConverged, which is \"false\" or lists what it is to keep",
}];

struct VirtPlatformBaseline;

impl Profile for VirtPlatformBaseline {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<PlatformBaseline>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn rivals(&self) -> &'static [Rival] {
        &RIVALS
    }

    fn grants(&self) -> &'static [Grant] {
        GRANTS
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        let options = parse_options::<PlatformBaseline>(ABOUT.options_key, options)?;
        match options.problem() {
            Some(problem) => Err(OptionsError { key: ABOUT.options_key, problem }),
            None => Ok(Box::new(options)),
        }
    }
}

impl Planner for PlatformBaseline {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        vec![Prerequisite {
            kind: HYPER_CONVERGED,
            object: Some((Some(HYPER_CONVERGED_NAMESPACE.to_owned()), HYPER_CONVERGED_NAME.to_owned())),
            hint: "install OpenShift Virtualization and create its HyperConverged object",
        }]
    }

    fn reads(&self) -> Vec<Read> {
        vec![hyper_converged(), scheduler()]
    }

    fn node_questions(&self) -> &'static [NodeQuestion] {
        &QUESTIONS
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let situation = Situation::new(self, inputs)?;
        let (mut planned, mut wanted) = (Vec::new(), Vec::new());
        for feature in FEATURES {
            if let Standing::On { notes, insists } = feature.standing(&situation)? {
                if let Brings::Objects { objects, .. } = &feature.brings {
                    wanted.extend(of_others(feature, &notes, insists, objects(&situation)?, &situation));
                }
                planned.push((feature, notes));
            }
        }
        let mut drafts = Vec::new();
        drafts.extend(told_to_hyper_converged(&situation, &planned)?);
        if planned.iter().any(|(feature, _)| is_of_machines(feature)) {
            for role in situation.roles()? {
                drafts.extend(kubelets(role, &planned));
                for (feature, notes) in &planned {
                    drafts.extend(machines(self, role, feature, notes)?);
                }
            }
        }
        drafts.extend(wanted);
        Ok(drafts)
    }

    fn left_out(&self, inputs: &Inputs) -> Result<Vec<LeftOut>, DraftError> {
        let situation = Situation::new(self, inputs)?;
        let mut left_out = vec![elsewhere()];
        for feature in FEATURES {
            let reason = match feature.standing(&situation)? {
                Standing::Off(reason) => Some(reason),
                Standing::On { insists: true, .. } => None,
                Standing::On { insists: false, .. } => feature.misses(&situation),
            };
            left_out.extend(reason.map(|reason| LeftOut { feature: feature.name.to_owned(), reason }));
        }
        Ok(left_out)
    }
}

/// Load-aware rebalancing has one owner.
fn elsewhere() -> LeftOut {
    let reason = "it is a configuration of its own, load-aware-rebalancing, so that one owner writes the descheduler: set its action to \
                  DryRun for a plan";
    LeftOut { feature: "loadAwareRebalancing".to_owned(), reason: reason.to_owned() }
}

/// A feature that is planned, and what the reviewer should know of that.
type Planned = (&'static Feature, Vec<String>);

/// What machines get is written together, after HyperConverged has been told its part.
const WAVE_OF_MACHINES: u32 = 1;
/// What reacts to machines that are away goes live when they are back.
pub(crate) const WAVE_AFTER_MACHINES: u32 = 2;

fn is_of_machines(feature: &Feature) -> bool {
    matches!(feature.brings, Brings::Kubelet(_) | Brings::Machines(_))
}

/// The HyperConverged object with the fields of all features that have some.
fn told_to_hyper_converged(situation: &Situation<'_>, planned: &[Planned]) -> Result<Option<Draft>, DraftError> {
    let mut spec = json!({});
    let (mut reasons, mut all_notes) = (Vec::new(), Vec::new());
    for (feature, notes) in planned {
        if let Brings::HyperConverged(fields) = &feature.brings {
            merge(&mut spec, fields(situation)?);
            reasons.push(feature.does);
            all_notes.extend(notes.iter().cloned());
        }
    }
    if reasons.is_empty() {
        return Ok(None);
    }
    let version = if situation.is_v1 { "v1" } else { "v1beta1" };
    let object = json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"),
        "kind": "HyperConverged",
        "metadata": {"name": HYPER_CONVERGED_NAME, "namespace": HYPER_CONVERGED_NAMESPACE},
        "spec": spec,
    });
    let draft = Draft::new("hyper-converged", Body::Ensure(object), reasons.join("; "));
    Ok(Some(Draft { impact: Impact::Medium, notes: all_notes, ..draft }))
}

/// The only KubeletConfig for the machines of `role`: of two for one pool the machine config controllers take one.
fn kubelets(role: &str, planned: &[Planned]) -> Option<Draft> {
    let mut spec = json!({
        "machineConfigPoolSelector": {"matchLabels": {format!("pools.operator.machineconfiguration.openshift.io/{role}"): ""}},
    });
    let (mut reasons, mut all_notes, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (feature, notes) in planned {
        if let Brings::Kubelet(fields) = &feature.brings {
            merge(&mut spec, fields());
            reasons.push(feature.does);
            names.push(feature.name);
            all_notes.extend(notes.iter().cloned());
        }
    }
    let missing =
        planned.iter().filter(|(feature, _)| names.contains(&feature.name)).flat_map(|(feature, _)| feature.needs);
    let missing: Vec<_> = missing.filter(|needed| !names.contains(needed)).collect();
    all_notes.extend(missing.iter().map(|needed| format!("part of it has no effect without the feature {needed}")));
    if reasons.is_empty() {
        return None;
    }
    let name = if role == "worker" { "virt-perf-settings".to_owned() } else { format!("virt-perf-settings-{role}") };
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "KubeletConfig",
        "metadata": {"name": name},
        "spec": spec,
    });
    let draft = Draft::new(format!("kubelet-{role}"), Body::Ensure(object), reasons.join("; "));
    Some(Draft { wave: WAVE_OF_MACHINES, notes: all_notes, ..draft })
}

/// The MachineConfig of `feature` for the machines of `role`.
fn machines(
    options: &PlatformBaseline,
    role: &str,
    feature: &Feature,
    notes: &[String],
) -> Result<Option<Draft>, DraftError> {
    let Brings::Machines(configs) = &feature.brings else { return Ok(None) };
    let object = machines::machine_config(&(configs.name)(role), role, &(configs.payload)(options))?;
    let draft = Draft::new(format!("{}-{role}", kebab(feature.name)), Body::Ensure(object), feature.does);
    let of_role = (role == "master").then_some(configs.note_for_masters).flatten().map(str::to_owned);
    let notes = notes.iter().cloned().chain(of_role).collect();
    Ok(Some(Draft { wave: WAVE_OF_MACHINES, notes, ..of(feature, draft) }))
}

/// The objects of other operators that `feature` brings. Those of kinds that are not served are left out unless somebody insists.
fn of_others(
    feature: &Feature,
    notes: &[String],
    insists: bool,
    parts: Vec<Part>,
    situation: &Situation<'_>,
) -> Vec<Draft> {
    let (needs, may_have) = feature.kinds();
    let is_served = |part: &Part| {
        let kind = part.kind(needs.iter().chain(may_have));
        insists || kind.is_none_or(|kind| situation.inputs.serves(kind))
    };
    let draft = |part: Part| {
        let draft = of(feature, Draft::new(part.item, Body::Ensure(part.object), feature.does));
        Draft {
            impact: part.impact,
            wave: part.wave,
            notes: notes.iter().cloned().chain(part.notes).collect(),
            ..draft
        }
    };
    parts.into_iter().filter(is_served).map(draft).collect()
}

fn of(feature: &Feature, draft: Draft) -> Draft {
    let needs = feature.needs.iter().map(|&needed| needed.to_owned()).collect();
    Draft { feature: Some(feature.name.to_owned()), needs, ..draft }
}

/// `camelCase` as `camel-case`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

/// Adds `more` to `fields`, maps inside of maps. No two features have a field in common.
fn merge(fields: &mut Value, more: Value) {
    match (fields, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
        (fields, more) => *fields = more,
    }
}

#[cfg(test)]
mod tests;
