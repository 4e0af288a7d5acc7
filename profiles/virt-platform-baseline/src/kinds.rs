//! What the profile touches: kinds and the names of its objects, what these grant to others, and who else writes them.

use profile_sdk::kinds::{
    HYPER_CONVERGED, HYPER_CONVERGED_NAME, KUBE_DESCHEDULER, KUBE_DESCHEDULER_NAME, KUBELET_CONFIG, MACHINE_CONFIG,
};
use profile_sdk::platform::KUBELET_OF_WORKERS;
use profile_sdk::{Access, Declared, Grant, Kind};

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

/// Only whether it is served matters: its objects are the administrator's.
pub(crate) const FENCE_AGENTS_REMEDIATION_TEMPLATE: Kind = Kind {
    group: "fence-agents-remediation.medik8s.io",
    versions: &["v1alpha1"],
    kind: "FenceAgentsRemediationTemplate",
    plural: "fenceagentsremediationtemplates",
};
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

const fn machine_config(name: &'static str) -> Declared {
    written(MACHINE_CONFIG, name)
}

const fn operation_rules(name: &'static str) -> Declared {
    written(OPERATION_RULE_SET, name)
}

const fn written(kind: Kind, name: &'static str) -> Declared {
    Declared { kind, access: Access::Write, name: Some(name), namespace: None }
}

pub(crate) static KINDS: &[Declared] = &[
    Declared { kind: HYPER_CONVERGED, access: Access::Update, name: Some(HYPER_CONVERGED_NAME), namespace: None },
    // Whether the descheduler is there decides about its dashboard.
    Declared { kind: KUBE_DESCHEDULER, access: Access::Read, name: Some(KUBE_DESCHEDULER_NAME), namespace: None },
    Declared { kind: FENCE_AGENTS_REMEDIATION_TEMPLATE, access: Access::Ask, name: None, namespace: None },
    Declared { kind: MACHINE_CONFIG, access: Access::Read, name: Some(KUBELET_OF_WORKERS), namespace: None },
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
        access: Access::Merge(&crate::features::ksm_metrics::SETTINGS),
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
pub(crate) static GRANTS: &[Grant] = &[
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
