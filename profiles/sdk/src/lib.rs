//! The contract a profile is written against.
//!
//! A profile turns typed options and recorded inputs into *drafts*: the objects it wants, nothing more. It talks to no
//! cluster and reads no clock, so that it is tested with data alone. The engine in the root package reads what the
//! profile asks for, previews every draft on the API server and makes the plan that a person reviews.

mod draft;
mod inputs;
mod kind;
pub mod kinds;
pub mod platform;
mod template;

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

pub use draft::{Body, Draft, DraftError, Impact};
pub use inputs::{Inputs, NodeQuestion, Read, Recorded, Remembered, Surroundings};
pub use kind::{
    AUTOPILOT, Access, Declared, Document, Grant, Kind, ObjectRef, Prerequisite, Rival, is_powerful, is_talkative,
};
pub use template::{parse, render};

/// What a profile says about itself, in its advertised object and in the CRD.
#[derive(Debug)]
pub struct About {
    /// The profile's name: a DNS label, and the name of its only `VirtPlatformConfig`.
    pub name: &'static str,
    /// The member of `spec.options` that belongs to this profile, for example `loadAware`.
    pub options_key: &'static str,
    /// One sentence, at most 200 characters.
    pub description: &'static str,
    /// A single word for the label `advisor.kubevirt.io/category`.
    pub category: &'static str,
    /// What applying the profile may cost, in one sentence.
    pub impact_summary: &'static str,
    /// The impact that is shown before there is a plan.
    pub impact: Impact,
    /// Whether a configuration with action Ignore is created for everybody to find.
    pub advertised: bool,
}

/// One profile: a named set of objects that are tuned together.
pub trait Profile: Send + Sync {
    /// Name, texts and the place of the options.
    fn about(&self) -> &'static About;

    /// The schema of this profile's options, CEL rules included (`x-kubernetes-validations`).
    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema;

    /// Every kind that the profile reads or writes, whatever the options: watches and RBAC follow from it.
    fn kinds(&self) -> &'static [Declared];

    /// Other programs that are known to write the same objects; none, for most.
    fn rivals(&self) -> &'static [Rival] {
        &[]
    }

    /// Rights that its objects grant to others; none, for most.
    fn grants(&self) -> &'static [Grant] {
        &[]
    }

    /// Parses the options, once, at the edge. `None` means that the user gave none.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] names the option and the remedy; the configuration fails until it is edited.
    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError>;
}

/// A profile whose options are known to be valid.
pub trait Planner: Send + Sync {
    /// What must exist before a plan can be made.
    fn prerequisites(&self) -> Vec<Prerequisite>;

    /// The objects whose values [`Planner::draft`] depends on. They are fetched together, before it runs.
    fn reads(&self) -> Vec<Read>;

    /// What [`Planner::draft`] depends on of the nodes. All nodes are listed, in pages and without their status, when everything is read
    /// again: with another spec, and every six hours.
    fn node_questions(&self) -> &'static [NodeQuestion] {
        &[]
    }

    /// The object, among [`Planner::reads`], whose annotation [`DISABLED_RESOURCES`] lists what administrators have excluded. The engine
    /// keeps to it.
    fn exclusions(&self) -> Option<Read> {
        None
    }

    /// The objects that this profile wants. Equal inputs must give equal drafts, in the same order.
    ///
    /// # Errors
    ///
    /// [`DraftError`] if an input is not what its kind promises. An object that this cluster can't have is no error but
    /// a [`Body::Blocked`] draft.
    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError>;

    /// The parts of the profile of which nothing is drafted from these inputs, in a fixed order.
    ///
    /// # Errors
    ///
    /// As [`Planner::draft`].
    fn left_out(&self, _inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        Ok(Vec::new())
    }
}

/// A part of a profile of which nothing is planned on this cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFeature {
    /// The feature.
    pub feature: String,
    /// Why, and what to do for it, in one sentence without a full stop.
    pub reason: String,
}

/// The annotation that lists objects to be left alone, a YAML list of `{kind, name, namespace}` with `*` and `?` in names.
pub const DISABLED_RESOURCES: &str = "platform.kubevirt.io/disabled-resources";

/// Options that do not fit the profile, although the API server accepted them.
#[derive(Debug, thiserror::Error)]
#[error("spec.options.{key} is not valid: {problem}. Correct it to continue")]
pub struct OptionsError {
    /// The member of `spec.options`.
    pub key: &'static str,
    /// What is wrong, naming the option.
    pub problem: String,
}

/// Parses `options` into `T`; no options at all are an empty object, so that the defaults of `T` apply.
///
/// # Errors
///
/// [`OptionsError`] with the text of the first field that does not fit.
pub fn parse_options<T: serde::de::DeserializeOwned>(
    key: &'static str,
    options: Option<&Value>,
) -> Result<T, OptionsError> {
    let value = options.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    serde_json::from_value(value).map_err(|error| OptionsError { key, problem: error.to_string() })
}
