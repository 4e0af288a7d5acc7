//! virt-platform-baseline: the platform that virtual machines need beneath them, as one plan.
//!
//! ```text
//!   options ─► situation ◄─ what was read
//!                  │
//!   features ─► feature_state: planned, or left out and why
//!   (table)        │
//!                draft: HyperConverged as one item, a KubeletConfig for each pool,
//!                       MachineConfigs, and the objects of other operators
//! ```
//!
//! A feature is data, one folder each, in one table. Everything in HyperConverged is one item, in
//! the first wave; everything for machines is in the second one, so that machines reboot once.

mod declarations;
mod draft;
mod feature;
mod feature_state;
mod features;
mod kinds;
mod machine_config;
mod node_questions;
mod options;
mod situation;
mod table;

use profile_sdk::kinds::hyper_converged;
use profile_sdk::platform::{kubelet_of_workers, needs_hyper_converged};
use profile_sdk::{
    AUTOPILOT, About, Declared, Draft, DraftError, Grant, Impact, Inputs, LeftOutFeature, NodeQuestion, OptionsError,
    Planner, Prerequisite, Profile, Read, Rival, parse_options,
};
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use declarations::{GRANTS, KINDS};
use draft::{drafts, left_out_features};
use node_questions::QUESTIONS;
use options::PlatformBaseline;
use situation::Situation;
pub use table::page;

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &VirtPlatformBaseline;

static ABOUT: About = About {
    name: "virt-platform-baseline",
    options_key: "platformBaseline",
    description: "Configures the platform beneath virtual machines: swap and alerts by default, and kubelets, devices, node remediation, logging and more if enabled",
    category: "platform",
    impact_summary: "Machines that run virtual machines reboot once for all features, by default one at a time per pool; with the defaults, worker machines use swap if they have a partition or file for it",
    impact: Impact::High,
    advertised: true,
};

struct VirtPlatformBaseline;

impl Profile for VirtPlatformBaseline {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<PlatformBaseline>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn rivals(&self) -> &'static [Rival] {
        &[AUTOPILOT]
    }

    fn grants(&self) -> &'static [Grant] {
        GRANTS
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        let options = parse_options::<PlatformBaseline>(ABOUT.options_key, options)?;
        match options.problem() {
            Some(problem) => Err(OptionsError { key: ABOUT.options_key, problem }),
            None => Ok(Box::new(options)),
        }
    }
}

impl Planner for PlatformBaseline {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        vec![needs_hyper_converged()]
    }

    fn reads(&self) -> Vec<Read> {
        vec![hyper_converged(), kubelet_of_workers()]
    }

    fn node_questions(&self) -> &'static [NodeQuestion] {
        &QUESTIONS
    }

    fn exclusions(&self) -> Option<Read> {
        Some(hyper_converged())
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        drafts(&Situation::new(self, inputs)?)
    }

    fn left_out(&self, inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        left_out_features(&Situation::new(self, inputs)?)
    }
}

#[cfg(test)]
mod tests;
