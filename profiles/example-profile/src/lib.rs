//! example-profile: the smallest complete profile, to try the way from plan to drift without
//! touching anything, and to begin a new profile from.

use profile_sdk::{
    About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, OptionsError, Planner, Prerequisite,
    Profile, Read, parse_options, render,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// The profile, for the registry.
pub const PROFILE: &dyn Profile = &ExampleProfile;

static ABOUT: About = About {
    name: "example-profile",
    options_key: "exampleProfile",
    description: "Writes one ConfigMap that nothing reads, to demonstrate how plans are reviewed, approved and carried out",
    category: "example",
    impact_summary: "None: nothing reads the ConfigMap",
    impact: Impact::Low,
    advertised: false,
};

const CONFIG_MAP: Kind = Kind { group: "", versions: &["v1"], kind: "ConfigMap", plural: "configmaps" };
const NAMESPACE: Kind = Kind { group: "", versions: &["v1"], kind: "Namespace", plural: "namespaces" };

const WHERE: &str = "openshift-cnv";

static KINDS: &[Declared] = &[
    Declared { kind: CONFIG_MAP, access: Access::Create, name: Some("example-config"), namespace: Some(WHERE) },
    Declared { kind: NAMESPACE, access: Access::Read, name: Some(WHERE), namespace: None },
];

struct ExampleProfile;

/// Options of the profile example-profile.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExampleProfileOptions {
    /// The value of the key example-key in the ConfigMap.
    #[serde(default = "default_value")]
    #[schemars(length(min = 1, max = 100))]
    value: String,
}

fn default_value() -> String {
    "example-value".to_owned()
}

impl Profile for ExampleProfile {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<ExampleProfileOptions>()
    }

    fn kinds(&self) -> &'static [Declared] {
        KINDS
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        Ok(Box::new(parse_options::<ExampleProfileOptions>(ABOUT.options_key, options)?))
    }
}

impl Planner for ExampleProfileOptions {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        vec![Prerequisite {
            kind: NAMESPACE,
            object: Some(Read { kind: NAMESPACE, namespace: None, name: WHERE.to_owned(), elsewhere: false }),
            hint: "create it, or install OpenShift Virtualization, which creates it",
        }]
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn draft(&self, _: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let template = include_str!("../templates/config-map.yaml.hbs");
        let object = render("config-map.yaml", template, &json!({"value": self.value}))?;
        let reason = "shows what a plan looks like";
        let draft = Draft::new("configure-example-component", Body::Ensure(object), reason);
        Ok(vec![Draft { impact: Impact::Low, ..draft }])
    }
}

#[cfg(test)]
mod tests;
