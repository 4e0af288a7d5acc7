//! The objects that the profile touches, and the rights that they grant to others.

use profile_sdk::kinds::{
    HYPER_CONVERGED, HYPER_CONVERGED_NAME, KUBE_DESCHEDULER, KUBE_DESCHEDULER_NAME, KUBELET_CONFIG, MACHINE_CONFIG,
};
use profile_sdk::platform::KUBELET_OF_WORKERS;
use profile_sdk::{Access, Declared, Grant, Kind};

use crate::features::ksm_metrics;
use crate::kinds::{
    CLUSTER_LOG_FORWARDER, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, DAEMON_SET,
    FENCE_AGENTS_REMEDIATION_TEMPLATE, FORKLIFT_CONTROLLER, LOKI_STACK, METAL_LB, NAMESPACE, NODE_HEALTH_CHECK,
    OPERATION_RULE_SET, PERSES_DASHBOARD, PERSES_DATASOURCE, POD_MONITOR, PROMETHEUS_RULE, ROLE, ROLE_BINDING,
    SECURITY_CONTEXT_CONSTRAINTS, SERVICE_ACCOUNT, STORAGE_BASED_REMEDIATION_CONFIG, UI_PLUGIN,
};

const fn machine_config(name: &'static str) -> Declared {
    writable(MACHINE_CONFIG, name)
}

const fn operation_rules(name: &'static str) -> Declared {
    writable(OPERATION_RULE_SET, name)
}

const fn writable(kind: Kind, name: &'static str) -> Declared {
    Declared { kind, access: Access::Write, name: Some(name), namespace: None }
}

/// Every object that the profile may touch, whatever the options.
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
    writable(KUBELET_CONFIG, "virt-perf-settings"),
    writable(KUBELET_CONFIG, "virt-perf-settings-master"),
    writable(NODE_HEALTH_CHECK, "far"),
    writable(STORAGE_BASED_REMEDIATION_CONFIG, "autopilot-recommended-values-detection-only"),
    writable(FORKLIFT_CONTROLLER, "forklift-controller"),
    writable(METAL_LB, "metallb"),
    writable(UI_PLUGIN, "monitoring"),
    writable(UI_PLUGIN, "troubleshooting-panel"),
    writable(UI_PLUGIN, "logging"),
    writable(PERSES_DATASOURCE, "thanos-querier"),
    writable(PERSES_DASHBOARD, "virtualization-platform"),
    writable(PERSES_DASHBOARD, "descheduler-memory-aware-rebalancing"),
    writable(PERSES_DASHBOARD, "kubevirt-metrics-exporter"),
    writable(PROMETHEUS_RULE, "virtualization-platform"),
    writable(PROMETHEUS_RULE, "kubevirt-metrics-exporter-alerts"),
    writable(POD_MONITOR, "kubevirt-metrics-exporter"),
    writable(LOKI_STACK, "logging-loki"),
    writable(CLUSTER_LOG_FORWARDER, "instance"),
    writable(SERVICE_ACCOUNT, "collector"),
    writable(SERVICE_ACCOUNT, "kubevirt-metrics-exporter"),
    writable(CLUSTER_ROLE, "kubevirt-metrics-exporter"),
    writable(CLUSTER_ROLE, "kubevirt-metrics-exporter-scc"),
    writable(CLUSTER_ROLE_BINDING, "logging-collector-application"),
    writable(CLUSTER_ROLE_BINDING, "logging-collector-infrastructure"),
    writable(CLUSTER_ROLE_BINDING, "logging-collector-logs-writer"),
    writable(CLUSTER_ROLE_BINDING, "logging-collector-audit"),
    writable(CLUSTER_ROLE_BINDING, "kubevirt-metrics-exporter"),
    writable(CLUSTER_ROLE_BINDING, "kubevirt-metrics-exporter-scc"),
    writable(ROLE, "kubevirt-metrics-exporter-prometheus"),
    writable(ROLE_BINDING, "kubevirt-metrics-exporter-prometheus"),
    writable(SECURITY_CONTEXT_CONSTRAINTS, "kubevirt-metrics-exporter"),
    // Never deleted: others may have put something into it.
    Declared { kind: NAMESPACE, access: Access::Create, name: Some("kubevirt-metrics-exporter"), namespace: None },
    writable(DAEMON_SET, "kubevirt-metrics-exporter"),
    Declared {
        kind: CONFIG_MAP,
        access: Access::Merge(&ksm_metrics::SETTINGS),
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

/// The rights that these objects grant to others: the operator must have them to grant them.
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
    // Without this right the server checks the rules of the role, which does not exist yet when the
    // binding is previewed.
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
