//! The kinds that only this profile touches. Those that others touch too are in
//! `profile_sdk::kinds`.

use profile_sdk::Kind;

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

/// The profile asks only whether this kind is served: its objects belong to the administrator.
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
