//! The options of the profile, `spec.options.loadAware`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of the profile load-aware-rebalancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadAware {
    /// Seconds between two runs of the descheduler.
    #[serde(default = "default_interval")]
    #[schemars(range(min = 60, max = 86400))]
    pub(crate) descheduling_interval_seconds: i32,
    /// Automatic evicts virtual machines, which live-migrates them. Predictive only reports what it
    /// would evict.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Whether to enable pressure stall information (PSI), with which the descheduler measures
    /// load. This sets the kernel argument psi=1 on the machines that can run virtual machines, and
    /// reboots them.
    #[serde(default = "default_psi", rename = "enablePSIMetrics")]
    pub(crate) enable_psi_metrics: bool,
    /// How far the load of a node must be from the average before the node counts as underloaded or
    /// overloaded.
    #[serde(default)]
    pub(crate) dev_deviation_thresholds: Thresholds,
    /// The maximum number of evictions at a time in the whole cluster. If unset, it is derived from
    /// HyperConverged's limit of parallel migrations per cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) eviction_limit_total: Option<i32>,
    /// The maximum number of evictions at a time from one node. If unset, it is derived from
    /// HyperConverged's limit of parallel outbound migrations per node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) eviction_limit_node: Option<i32>,
}

fn default_interval() -> i32 {
    60
}

fn default_psi() -> bool {
    true
}

/// The descheduler's mode: to evict the pods that it selects, or only to report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Mode {
    #[default]
    Automatic,
    Predictive,
}

/// The deviation thresholds that the descheduler operator offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Thresholds {
    Low,
    Medium,
    High,
    #[default]
    AsymmetricLow,
    AsymmetricMedium,
    AsymmetricHigh,
}
