//! Profiles for tests whose options say what they want: `{"items": [...], "reads": [...],
//! "exclusions": ...}`. An item may have a `feature` and `needs`. With `panic` the profile has a
//! fault.

use profile_sdk::{
    About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, LeftOutFeature, OptionsError, Planner,
    Prerequisite, Profile, Read,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

pub const WIDGET: Kind = Kind { group: "example.dev", versions: &["v2", "v1"], kind: "Widget", plural: "widgets" };
pub const GADGET: Kind = Kind { group: "example.dev", versions: &["v2", "v1"], kind: "Gadget", plural: "gadgets" };

/// Of a group that an APIService may take.
pub const GIZMO: Kind = Kind { group: "example.org", versions: &["v1"], kind: "Gizmo", plural: "gizmos" };

pub const NAMESPACE: Kind = Kind { group: "", versions: &["v1"], kind: "Namespace", plural: "namespaces" };

/// The profiles; the first is the one that most tests use.
pub static PROFILES: &[&dyn Profile] = &[&FIRST, &SECOND, &GADGETS, &GIZMOS];
pub const NAME: &str = "first";
pub const OTHER: &str = "second";
/// The only one that depends on the kind Gadget.
pub const WITH_GADGETS: &str = "gadgets";

/// Items with `optional` are only drafted where the kind Gizmo is served.
pub const WITH_GIZMOS: &str = "gizmos";

static FIRST: Free = Free {
    about: about(NAME, "first"),
    kinds: &[Declared { kind: WIDGET, access: Access::Write, name: None, namespace: None }],
    needs: &[WIDGET],
};
static SECOND: Free = Free {
    about: about(OTHER, "second"),
    kinds: &[Declared { kind: WIDGET, access: Access::Write, name: None, namespace: None }],
    needs: &[WIDGET],
};
static GADGETS: Free = Free {
    about: about(WITH_GADGETS, "gadgets"),
    kinds: &[
        Declared { kind: WIDGET, access: Access::Write, name: None, namespace: None },
        Declared { kind: GADGET, access: Access::Write, name: None, namespace: None },
        Declared { kind: NAMESPACE, access: Access::Write, name: None, namespace: None },
    ],
    needs: &[GADGET],
};

static GIZMOS: Free = Free {
    about: about(WITH_GIZMOS, "gizmos"),
    kinds: &[
        Declared { kind: WIDGET, access: Access::Write, name: None, namespace: None },
        Declared { kind: GIZMO, access: Access::Write, name: None, namespace: None },
    ],
    needs: &[WIDGET],
};

const fn about(name: &'static str, options_key: &'static str) -> About {
    About {
        name,
        options_key,
        description: "Objects for tests",
        category: "tests",
        impact_summary: "None",
        impact: Impact::Low,
        advertised: false,
    }
}

struct Free {
    about: About,
    kinds: &'static [Declared],
    needs: &'static [Kind],
}

impl Profile for Free {
    fn about(&self) -> &'static About {
        // Each is a static.
        match self.about.name {
            NAME => &FIRST.about,
            OTHER => &SECOND.about,
            WITH_GIZMOS => &GIZMOS.about,
            _ => &GADGETS.about,
        }
    }

    fn options_schema(&self, _: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }

    fn kinds(&self) -> &'static [Declared] {
        self.kinds
    }

    fn configure(&self, options: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        Ok(Box::new(Wishes { options: options.cloned().unwrap_or_default(), needs: self.needs }))
    }
}

struct Wishes {
    options: Value,
    needs: &'static [Kind],
}

impl Wishes {
    fn list(&self, name: &str) -> &[Value] {
        self.options[name].as_array().map_or(&[], Vec::as_slice)
    }
}

impl Planner for Wishes {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        self.needs.iter().map(|kind| Prerequisite { kind: *kind, object: None, hint: "install the kind" }).collect()
    }

    fn reads(&self) -> Vec<Read> {
        self.list("reads").iter().map(read).chain(self.exclusions()).collect()
    }

    fn exclusions(&self) -> Option<Read> {
        self.options.get("exclusions").map(read)
    }

    fn left_out(&self, inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        let optional =
            self.list("items").iter().filter(|item| item.get("optional").is_some() && !inputs.serves(&GIZMO));
        let left_out = |item: &Value| LeftOutFeature {
            feature: item["name"].as_str().unwrap().to_owned(),
            reason: "this cluster has no kind Gizmo".to_owned(),
        };
        Ok(optional.map(left_out).collect())
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        if let Some(words) = self.options["panic"].as_str() {
            panic!("{words}");
        }
        let mut drafts = Vec::new();
        for item in self.list("items") {
            if item.get("optional").is_some() && !inputs.serves(&GIZMO) {
                continue;
            }
            let mut object = item["object"].clone();
            if let Some(from) = item.get("from") {
                // The size is what another object says.
                let read = read(&self.list("reads")[0]);
                let plus = self.options["plus"].as_i64().unwrap_or_default();
                let sum = |size: Option<&Value>| Some(json!(size?.as_i64()? + plus));
                let size = inputs.derive(&read, from.as_str().unwrap(), sum)?;
                object["spec"]["size"] = size.unwrap_or(json!(0));
            }
            let wave = item["wave"].as_u64().unwrap_or_default() as u32;
            let name = item["name"].as_str().unwrap();
            let feature = item["feature"].as_str().map(str::to_owned);
            let needs = item["needs"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let draft = Draft::new(name, Body::Ensure(object), "is wanted by a test");
            drafts.push(Draft { wave, feature, needs: needs.collect(), ..draft });
        }
        Ok(drafts)
    }
}

fn read(wish: &Value) -> Read {
    let kind = match wish["kind"].as_str() {
        Some("Gadget") => GADGET,
        Some("Gizmo") => GIZMO,
        _ => WIDGET,
    };
    Read { kind, namespace: Some("default".into()), name: wish["name"].as_str().unwrap().into(), elsewhere: false }
}

/// The item called `name` that wants `spec` of the Widget of that name.
pub fn item(name: &str, wave: u32, spec: Value) -> Value {
    json!({"name": name, "wave": wave, "object": object("Widget", name, spec)})
}

/// The item called `name` whose size is that of the object called "source" of `kind`: options of a
/// profile, with `others` beside it.
pub fn following(name: &str, kind: &str, others: &[Value]) -> Value {
    let mut follower = item(name, 0, json!({}));
    follower["from"] = json!("/spec/size");
    let items: Vec<_> = std::iter::once(follower).chain(others.iter().cloned()).collect();
    json!({"items": items, "reads": [{"kind": kind, "name": "source"}]})
}

/// An object in the namespace that every cluster has.
pub fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}
