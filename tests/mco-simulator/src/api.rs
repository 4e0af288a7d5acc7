//! The objects that the simulator reads and writes, and the names of labels and annotations.
//!
//! Only fields the simulator uses are typed: it writes by merge patch, so fields it does not know
//! survive. Source: openshift/machine-config-operator at commit 7ff337a4ffac,
//! pkg/daemon/constants/constants.go and pkg/controller/common/constants.go (names), as observed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Field manager of the controllers (render, node, kubelet-config, drain).
pub const CONTROLLER: &str = "machine-config-controller";
/// Field manager of the machine-config operator.
pub const OPERATOR: &str = "machine-config-operator";
/// Field manager of the daemon on each machine.
pub const DAEMON: &str = "machine-config-daemon";

/// Label with the role that a MachineConfig is for.
pub const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";
/// Label by which KubeletConfigs select the two built-in pools: this prefix and the name of the
/// pool.
pub const POOL_LABEL_PREFIX: &str = "pools.operator.machineconfiguration.openshift.io/";
/// Node label of a role: this prefix and the name of the role.
pub const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io/";
/// Label of a machine's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Configuration that a machine has, written by the daemon.
pub const CURRENT_CONFIG: &str = "machineconfiguration.openshift.io/currentConfig";
/// Configuration that a machine is to have, written by the node controller.
pub const DESIRED_CONFIG: &str = "machineconfiguration.openshift.io/desiredConfig";
/// State of the daemon: [`STATE_DONE`], [`STATE_WORKING`] or [`STATE_DEGRADED`].
pub const STATE: &str = "machineconfiguration.openshift.io/state";
/// Why the daemon is degraded.
pub const REASON: &str = "machineconfiguration.openshift.io/reason";
/// Drain or uncordon that the daemon requests: `drain-CONFIG` or `uncordon-CONFIG`.
pub const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
/// The last request that the drain controller has fulfilled.
pub const APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
/// What the daemon does after it has written files; visible only while a machine reboots.
pub const POST_CONFIG_ACTION: &str = "machineconfiguration.openshift.io/post-config-action";
/// Version of the controller that generated a MachineConfig.
pub const GENERATED_BY: &str = "machineconfiguration.openshift.io/generated-by-controller-version";
/// Release a rendered MachineConfig belongs to.
pub const RELEASE_VERSION: &str = "machineconfiguration.openshift.io/release-image-version";
/// Number of the MachineConfig generated for a KubeletConfig.
pub const NAME_SUFFIX: &str = "machineconfiguration.openshift.io/mc-name-suffix";
/// Taint of every machine that has not yet been told to take the pool's configuration.
pub const UPDATE_TAINT: &str = "UpdateInProgress";

/// Daemon state: the machine has its desired configuration.
pub const STATE_DONE: &str = "Done";
/// Daemon state: an update is under way.
pub const STATE_WORKING: &str = "Working";
/// Daemon state: the update failed.
pub const STATE_DEGRADED: &str = "Degraded";
/// Daemon state: the update is impossible.
pub const STATE_UNRECONCILABLE: &str = "Unreconcilable";

/// The controller version that the simulator writes into generated objects: the observed commit.
pub const VERSION: &str = "7ff337a4ffac";

/// Content of a MachineConfig.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfig",
    plural = "machineconfigs",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineConfigSpec {
    /// Image with the extensions of the operating system.
    #[serde(rename = "baseOSExtensionsContainerImage", skip_serializing_if = "String::is_empty")]
    pub extensions_image: String,
    /// Ignition configuration.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub config: Value,
    /// Extensions of the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    /// FIPS mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fips: Option<bool>,
    /// Kernel arguments, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<String>>,
    /// `default`, `realtime`, `64k-pages` or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel_type: String,
    /// Image of the operating system.
    #[serde(rename = "osImageURL", skip_serializing_if = "String::is_empty")]
    pub os_image_url: String,
}

/// The spec of a MachineConfigPool.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfigPool",
    plural = "machineconfigpools",
    status = "PoolStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolSpec {
    /// MachineConfigs the pool renders. Empty or missing selects nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_config_selector: Option<LabelSelector>,
    /// Machines of the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// How many machines may be unavailable at once: a number or a percentage, 1 when missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// While set, no machine gets a new configuration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The rendered configuration that the machines are to have, written by the render controller.
    #[serde(skip_serializing_if = "Configuration::is_empty")]
    pub configuration: Configuration,
}

/// A rendered MachineConfig and its sources.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    /// Name of the rendered MachineConfig; empty before the first rendering.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The MachineConfigs it was rendered from, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<SourceRef>,
}

impl Configuration {
    /// Whether nothing has been rendered yet.
    pub fn is_empty(&self) -> bool {
        self.name.is_empty() && self.source.is_empty()
    }
}

/// Reference to one MachineConfig in [`Configuration::source`].
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceRef {
    /// Always `machineconfiguration.openshift.io/v1`.
    pub api_version: String,
    /// Always `MachineConfig`.
    pub kind: String,
    /// Name of the MachineConfig.
    pub name: String,
}

/// The status of a pool, written by the controllers.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    /// Generation that the node controller has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Machines in the pool.
    pub machine_count: i32,
    /// Machines that were told to take the pool's configuration and have it.
    pub updated_machine_count: i32,
    /// Updated machines that are also schedulable.
    pub ready_machine_count: i32,
    /// Machines that are cordoned, not ready or being updated.
    pub unavailable_machine_count: i32,
    /// Machines whose daemon failed.
    pub degraded_machine_count: i32,
    /// The last configuration that all machines had.
    pub configuration: Configuration,
    /// `Updated`, `Updating`, `Degraded`, `NodeDegraded`, `RenderDegraded`.
    pub conditions: Vec<Condition>,
}

impl PoolStatus {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether the condition of this type has this status.
    pub fn is(&self, kind: &str, status: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == status)
    }
}

/// A condition of a pool or a KubeletConfig.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// Reason; usually empty.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Since when it has this status.
    pub last_transition_time: Option<String>,
}

/// The spec of a KubeletConfig.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "KubeletConfig",
    plural = "kubeletconfigs",
    status = "KubeletConfigStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfigSpec {
    /// Fields of the kubelet's own configuration; the API server does not validate them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub kubelet_config: Value,
    /// Label selector of the pools it is for. Empty or missing selects nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_config_pool_selector: Option<LabelSelector>,
    /// Verbosity of the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<i32>,
    /// Whether resources are reserved by the size of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_sizing_reserved: Option<bool>,
}

/// The spec of a MachineConfiguration: how the machine-config operator works.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "operator.openshift.io",
    version = "v1",
    kind = "MachineConfiguration",
    plural = "machineconfigurations",
    status = "MachineConfigurationStatus",
    derive = "PartialEq",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineConfigurationSpec {
    /// Who manages the operator; required.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub management_state: String,
    /// Node disruption policies that an administrator has set.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub node_disruption_policy: Value,
}

/// The status of a MachineConfiguration, written by the machine-config operator.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineConfigurationStatus {
    /// Generation that the policies belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Under `clusterPolicies`, the policies that are in force.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub node_disruption_policy_status: Value,
}

/// The status that the kubelet-config controller writes.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfigStatus {
    /// Generation the conditions are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted` entries, newest last, and then the old-style `Success` or `Failure`.
    pub conditions: Vec<Condition>,
}
