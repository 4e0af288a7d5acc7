//! The options of the profile, `spec.options.virtHigherDensity`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Above this, guests count on more memory than machines without swap can give them.
pub(crate) const RATIO_WITHOUT_SWAP: i32 = 120;
/// Guests have just the memory that is requested for them (HyperConverged Cluster Operator, controllers/handlers/wasp-agent,
/// `NoOverCommitPercentage`).
pub(crate) const NO_OVERCOMMIT: i32 = 100;

/// Options of the profile virt-higher-density.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.memoryToRequestRatio) || self.memoryToRequestRatio <= 120 || (has(self.enableSwap) && self.enableSwap)",
    "message": "memoryToRequestRatio > 120 requires enableSwap=true; lower the ratio or switch swap on",
}]))]
pub(crate) struct HigherDensity {
    /// Whether the workers use their partition labelled CNV_SWAP as swap for virtual machines, which reboots them.
    #[serde(default = "default_swap")]
    pub(crate) enable_swap: bool,
    /// Where kernel samepage merging (KSM) runs. Left out, it runs on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ksm_configuration: Option<Ksm>,
    /// Memory that guests see, in percent of what is requested for them. Left out, it is 150 with swap and 100 without.
    /// More than 120 requires swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub(crate) memory_to_request_ratio: Option<i32>,
}

fn default_swap() -> bool {
    true
}

/// Where kernel samepage merging runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ksm {
    /// Whether it runs at all.
    #[serde(default = "default_ksm")]
    pub(crate) enabled: bool,
    /// The nodes on which it runs; left out or empty, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub(crate) node_label_selector: Option<Selector>,
}

fn default_ksm() -> bool {
    true
}

/// A label selector, as Kubernetes has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_labels: Option<BTreeMap<String, String>>,
    /// Requirements of labels, all of which must be met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    match_expressions: Option<Vec<Requirement>>,
}

/// What is required of one label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requirement {
    /// The label.
    key: String,
    /// How its value relates to `values`.
    operator: Operator,
    /// At least one for In and NotIn, none for Exists and DoesNotExist.
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

    /// What the schema can't say: values and operators of a selector go together, and so do ratio and swap.
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
            "ksmConfiguration.nodeLabelSelector: {operator:?} of label {key} needs {} values",
            if matches!(operator, Operator::In | Operator::NotIn) { "one or more" } else { "no" }
        ))
    }
}
