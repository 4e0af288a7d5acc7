//! The situation in which the profile drafts: the options, and the cluster as it was read.

use profile_sdk::kinds::hyper_converged;
use profile_sdk::platform::{self, Role};
use profile_sdk::{DraftError, Inputs};
use serde_json::{Value, json};

use crate::options::PlatformBaseline;

/// The options and the inputs of one draft.
pub(crate) struct Situation<'a> {
    pub(crate) options: &'a PlatformBaseline,
    pub(crate) inputs: &'a Inputs,
    /// Whether HyperConverged is served in v1, which groups the fields of v1beta1 differently.
    pub(crate) is_v1: bool,
}

impl<'a> Situation<'a> {
    pub(crate) fn new(options: &'a PlatformBaseline, inputs: &'a Inputs) -> Result<Self, DraftError> {
        let is_v1 = inputs.version(&hyper_converged())? != "v1beta1";
        Ok(Self { options, inputs, is_v1 })
    }

    /// Whether HyperConverged sets the field at `path`. An empty map counts as not set.
    pub(crate) fn hyper_converged_sets(&self, path: &str) -> Result<bool, DraftError> {
        let is_set = |value: Option<&Value>| {
            let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            Some(json!(value.is_some_and(|value| !is_empty(value))))
        };
        Ok(self.inputs.derive(&hyper_converged(), path, is_set)? == Some(json!(true)))
    }

    /// The roles whose machines carry virtual machines. A custom pool takes in what workers get.
    pub(crate) fn roles(&self) -> Vec<&'static str> {
        platform::roles(self.inputs).into_iter().map(Role::name).collect()
    }
}
