//! The options of the profile, `spec.options.virtHigherDensity`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Above this, guests count on more memory than machines without swap can give them.
pub(crate) const RATIO_WITHOUT_SWAP: i32 = 120;
/// Guests have just the memory that is requested for them (HyperConverged Cluster Operator,
/// controllers/handlers/wasp-agent, `NoOverCommitPercentage`).
pub(crate) const NO_OVERCOMMIT: i32 = 100;

/// Options of the profile virt-higher-density.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.memoryToRequestRatio) || self.memoryToRequestRatio <= 120 || (has(self.enableSwap) && self.enableSwap)",
    "message": "memoryToRequestRatio > 120 requires enableSwap=true; lower the ratio or enable swap",
}]))]
pub(crate) struct HigherDensity {
    /// Whether worker machines use their partition labeled CNV_SWAP as swap for virtual machines. A
    /// change of this option reboots them.
    #[serde(default = "default_swap")]
    pub(crate) enable_swap: bool,
    /// The nodes on which kernel samepage merging (KSM) runs. If unset, it runs on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ksm_configuration: Option<Ksm>,
    /// The memory that guests see, in percent of the memory requested for them. If unset, it is 150
    /// with swap and 100 without swap. A value above 120 requires swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub(crate) memory_to_request_ratio: Option<i32>,
}

fn default_swap() -> bool {
    true
}

/// The nodes on which kernel samepage merging (KSM) runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ksm {
    /// Whether KSM runs at all.
    #[serde(default = "default_ksm")]
    pub(crate) enabled: bool,
    /// The labels of the nodes on which KSM runs. If unset or empty, it runs on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub(crate) node_label_selector: Option<Selector>,
}

fn default_ksm() -> bool {
    true
}

/// A Kubernetes label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_labels: Option<BTreeMap<String, String>>,
    /// Label requirements, all of which must be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_expressions: Option<Vec<Requirement>>,
}

/// A requirement for one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requirement {
    /// The key of the label.
    key: String,
    /// The relation of the label to values.
    operator: Operator,
    /// The values: at least one for In and NotIn, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
}

/// The operators of label selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl HigherDensity {
    /// Memory that guests see, in percent of what is requested for them.
    pub(crate) fn ratio(&self) -> i32 {
        self.memory_to_request_ratio.unwrap_or(if self.enable_swap { 150 } else { 100 })
    }

    /// The nodes on which KSM runs; `None` if it is to run on none.
    pub(crate) fn ksm(&self) -> Option<Selector> {
        match &self.ksm_configuration {
            None => Some(Selector::default()),
            Some(Ksm { enabled: true, node_label_selector }) => Some(node_label_selector.clone().unwrap_or_default()),
            Some(Ksm { enabled: false, .. }) => None,
        }
    }

    /// What the schema can't say: values and operators of a selector go together, and so do ratio
    /// and swap.
    pub(crate) fn problem(&self) -> Option<String> {
        if !self.enable_swap && self.ratio() > RATIO_WITHOUT_SWAP {
            return Some(format!("memoryToRequestRatio > {RATIO_WITHOUT_SWAP} requires enableSwap=true"));
        }
        let selector = self.ksm_configuration.as_ref()?.node_label_selector.as_ref()?;
        let wrong = selector.match_expressions.iter().flatten().find(|wanted| {
            let some = wanted.values.as_ref().is_some_and(|values| !values.is_empty());
            some != matches!(wanted.operator, Operator::In | Operator::NotIn)
        })?;
        let Requirement { key, operator, .. } = wrong;
        Some(format!(
            "ksmConfiguration.nodeLabelSelector: operator {operator:?} of label {key} {}",
            if matches!(operator, Operator::In | Operator::NotIn) {
                "requires one or more values"
            } else {
                "takes no values"
            }
        ))
    }
}
