//! The interface that every profile implements.
//!
//! ```text
//!   options ─► Profile::configure ─► Planner: reads, questions, prerequisites
//!                                       │
//!   what the engine read ─► Inputs ─────┴─► draft ─► Draft: an object, why, and in which wave
//! ```
//!
//! A profile turns typed options and recorded inputs into *drafts*, the objects that it wants. It
//! neither talks to a cluster nor reads a clock, so it can be tested with data alone. The engine
//! reads what the profile asks for, previews every draft on the API server, and makes the plan that
//! a person reviews.

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

/// The description of a profile, shown in its advertised object and used in the CRD.
#[derive(Debug)]
pub struct About {
    /// The profile's name: a DNS label, and the name of its only `VirtPlatformConfig`.
    pub name: &'static str,
    /// The key under `spec.options` that belongs to this profile, for example `loadAware`.
    pub options_key: &'static str,
    /// What the profile does: one sentence of at most 200 characters, without a full stop. It is
    /// shown while the profile is not in use.
    pub description: &'static str,
    /// A single word for the label `advisor.kubevirt.io/category`.
    pub category: &'static str,
    /// The possible cost of applying the profile, in one sentence of at most 200 characters.
    pub impact_summary: &'static str,
    /// The impact that is shown before there is a plan.
    pub impact: Impact,
    /// Whether the operator creates a configuration of the profile with action Ignore, so that
    /// users find it.
    pub advertised: bool,
}

/// One profile: a named set of objects that are tuned together.
pub trait Profile: Send + Sync {
    /// The profile's name, its texts, and the key of its options.
    fn about(&self) -> &'static About;

    /// The schema of this profile's options, CEL rules included (`x-kubernetes-validations`).
    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema;

    /// Every kind that the profile asks for, reads or writes with any options. Watches and RBAC are
    /// derived from this.
    fn kinds(&self) -> &'static [Declared];

    /// Other programs that are known to write the same objects. Most profiles have none.
    fn rivals(&self) -> &'static [Rival] {
        &[]
    }

    /// Rights that the objects of the profile grant to others. Most profiles have none.
    fn grants(&self) -> &'static [Grant] {
        &[]
    }

    /// Parses and validates the options. `None` means that the user has set none.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] names the option and the remedy; the configuration fails until it is
    /// edited.
    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError>;
}

/// A profile with valid options.
pub trait Planner: Send + Sync {
    /// The kinds and objects that must exist before a plan can be made.
    fn prerequisites(&self) -> Vec<Prerequisite>;

    /// The objects whose values [`Planner::draft`] reads. They are fetched together before it runs.
    fn reads(&self) -> Vec<Read>;

    /// The questions about nodes on whose answers [`Planner::draft`] depends. The nodes are listed,
    /// in pages and without their status, whenever everything is read again: after an edit of spec,
    /// and every six hours.
    fn node_questions(&self) -> &'static [NodeQuestion] {
        &[]
    }

    /// The object, among [`Planner::reads`], whose annotation [`DISABLED_RESOURCES`] lists the
    /// objects that administrators have excluded. The engine leaves those alone.
    fn exclusions(&self) -> Option<Read> {
        None
    }

    /// The objects that this profile wants. Equal inputs must give equal drafts, in the same order.
    ///
    /// # Errors
    ///
    /// [`DraftError`] if an input does not have the form that its kind promises. An object that
    /// this cluster can't have is not an error: return a [`Body::Blocked`] draft for it.
    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError>;

    /// The features of the profile that are not drafted from these inputs, or only in part, in a
    /// fixed order.
    ///
    /// # Errors
    ///
    /// As [`Planner::draft`].
    fn left_out(&self, _inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        Ok(Vec::new())
    }
}

/// A feature of a profile that is not planned on this cluster, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFeature {
    /// The feature.
    pub feature: String,
    /// Why it is left out, and what to do to have it planned: one sentence without a full stop,
    /// remedy last.
    pub reason: String,
}

/// The annotation that lists objects to be left alone, a YAML list of `{kind, name, namespace}`
/// with `*` and `?` in names.
pub const DISABLED_RESOURCES: &str = "platform.kubevirt.io/disabled-resources";

/// Options that do not fit the profile, although the API server accepted them.
#[derive(Debug, thiserror::Error)]
#[error("spec.options.{key} is not valid: {problem}. Correct it to continue")]
pub struct OptionsError {
    /// The key under `spec.options`.
    pub key: &'static str,
    /// The fault, with the name of the option.
    pub problem: String,
}

/// Parses `options` into `T`. `None` is parsed as an empty object, so that the defaults of `T`
/// apply.
///
/// # Errors
///
/// [`OptionsError`] that describes the first field that does not fit.
pub fn parse_options<T: serde::de::DeserializeOwned>(
    key: &'static str,
    options: Option<&Value>,
) -> Result<T, OptionsError> {
    let value = options.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    serde_json::from_value(value).map_err(|error| OptionsError { key, problem: error.to_string() })
}
