//! How a plan is carried out, beside its items.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::FailurePolicy;

/// The terms on which a plan is carried out, apart from its items. They are part of the plan's
/// digest. A term that has its default is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Terms {
    /// spec.failurePolicy, if it is Continue.
    #[serde(skip_serializing_if = "FailurePolicy::is_default")]
    pub failure_policy: FailurePolicy,
    /// spec.waitTimeout, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub wait_timeout: Option<String>,
    /// For each pool whose machines reboot: how many may reboot at a time, roughly how many there
    /// are, and what else affects the rollout.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, PoolTerms>,
}

impl Terms {
    /// Whether the digest need not name them.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The terms on which the machines of a pool reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolTerms {
    /// The pool's spec.maxUnavailable, if it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub max_unavailable: Option<String>,
    /// The order of magnitude of the number of machines: 10, 100, 1000 and so on; absent below 10.
    /// Adding or removing a machine therefore usually does not change the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines_at_least: Option<u32>,
    /// Whether the machines reboot into an image that is built first, because a MachineOSConfig
    /// names the pool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub layered: bool,
    /// Whether the pool was degraded when the plan was made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}
