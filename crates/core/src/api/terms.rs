//! How a plan is carried out, beside its items.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spec::FailurePolicy;

/// How a plan is carried out, as far as that is no part of its items: it is part of the digest. What is left to its default is absent.
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
    /// Of each pool whose machines reboot, how many at a time and how many in all, and what else decides how that goes.
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

/// How many machines of a pool reboot, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolTerms {
    /// The pool's spec.maxUnavailable, if it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub max_unavailable: Option<String>,
    /// The order of magnitude of its machines: 10, 100, 1000, ... or absent below 10. A machine that comes or goes makes no other plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines_at_least: Option<u32>,
    /// Whether an image is built first, into which its machines reboot: a MachineOSConfig names the pool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub layered: bool,
    /// Whether it was degraded when the plan was made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}
