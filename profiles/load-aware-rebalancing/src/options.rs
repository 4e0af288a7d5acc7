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
    /// Automatic evicts virtual machines, which live-migrates them; Predictive only says what it would evict.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Whether pressure stall information is switched on by the kernel argument psi=1 on the workers, which reboots them.
    /// The descheduler measures load with it.
    #[serde(default = "default_psi", rename = "enablePSIMetrics")]
    pub(crate) enable_psi_metrics: bool,
    /// How far from the average a node's load must be before it counts as under- or overloaded.
    #[serde(default)]
    pub(crate) dev_deviation_thresholds: Thresholds,
    /// Evictions at a time in the whole cluster. Without it, HyperConverged's limit of parallel migrations is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) eviction_limit_total: Option<i32>,
    /// Evictions at a time from one node. Without it, HyperConverged's limit of outbound migrations is followed.
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

/// What the descheduler does with the pods it selects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Mode {
    #[default]
    Automatic,
    Predictive,
}

/// The deviations that the descheduler operator knows.
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
