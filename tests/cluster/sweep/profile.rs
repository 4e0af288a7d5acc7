//! A profile for tests: three objects in two waves.

use profile_sdk::{
    About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, OptionsError, Planner, Prerequisite,
    Profile, Read,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

pub const NAME: &str = "three-items";
pub static PROFILES: &[&dyn Profile] = &[&ThreeItems];
/// The objects, with the wave of each.
pub const WIDGETS: [(&str, u32); 3] = [("one", 0), ("two", 0), ("three", 1)];

const WIDGET: Kind = Kind { group: "example.dev", versions: &["v1"], kind: "Widget", plural: "widgets" };

static ABOUT: About = About {
    name: NAME,
    options_key: "threeItems",
    description: "Three objects for tests",
    category: "tests",
    impact_summary: "None",
    impact: Impact::Low,
    advertised: false,
};

struct ThreeItems;

impl Profile for ThreeItems {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn options_schema(&self, _: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "properties": {"size": {"type": "integer"}}})
    }

    fn kinds(&self) -> &'static [Declared] {
        &[Declared { kind: WIDGET, access: Access::Write, name: None }]
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        let size = options.and_then(|options| options.get("size")).and_then(Value::as_i64);
        Ok(Box::new(Sized(size.unwrap_or(1))))
    }
}

struct Sized(i64);

impl Planner for Sized {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        vec![Prerequisite { kind: WIDGET, object: None, hint: "install the kind Widget" }]
    }

    fn reads(&self) -> Vec<Read> {
        Vec::new()
    }

    fn draft(&self, _: &Inputs) -> Result<Vec<Draft>, DraftError> {
        let draft = |(name, wave): (&str, u32)| {
            let object = json!({
                "apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"},
                "spec": {"size": self.0},
            });
            Draft { wave, ..Draft::new(name, Body::Ensure(object), "is wanted by a test") }
        };
        Ok(WIDGETS.into_iter().map(draft).collect())
    }
}
