//! What every registered profile keeps, whatever it does. A profile that is added to the registry
//! is asked all of this without another line of test.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use advisor_core::plan::check_drafts;
use advisor_engine::registry::PROFILES;
use profile_sdk::{
    About, Access, Body, Declared, Draft, DraftError, Impact, Inputs, Kind, LeftOutFeature, OptionsError, Planner,
    Prerequisite, Profile, Read, Surroundings,
};
use serde_json::{Map, Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema(profile: &dyn Profile) -> Value {
    advisor_core::api::options_schema(profile)
}

/// What a cluster holds on which nothing is set yet: the CRDs that the project brings.
fn inputs(planner: &dyn Planner) -> Inputs {
    Inputs::new(planner.reads().into_iter().map(|read| {
        let object = match read.kind.kind {
            "CustomResourceDefinition" => {
                let plural = read.name.split('.').next().unwrap();
                let path = root().join("crds/third-party").join(format!("{plural}.yaml"));
                fs::read_to_string(path).ok().map(|text| serde_saphyr::from_str(&text).unwrap())
            }
            _ => None,
        };
        (read, object)
    }))
}

fn drafts(profile: &dyn Profile, options: Option<&Value>) -> Vec<Draft> {
    let drafts = drafts_around(profile, options, Surroundings::default());
    drafts.unwrap_or_else(|error| panic!("{} with options {options:?}: {error}", profile.about().name))
}

/// What the profile drafts there, having said what it leaves out; an error if it asks for what it
/// does not declare.
fn drafts_around(
    profile: &dyn Profile,
    options: Option<&Value>,
    surroundings: Surroundings,
) -> Result<Vec<Draft>, DraftError> {
    let planner = profile.configure(options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    let inputs = inputs(planner.as_ref()).in_surroundings(surroundings).declaring(profile.kinds());
    let drafts = planner.draft(&inputs)?;
    planner.left_out(&inputs)?;
    inputs.check()?;
    Ok(drafts)
}

/// T20: what a profile asks of kinds that it does not declare, on clusters that serve all of its
/// kinds and on those that serve none.
fn undeclared(profile: &dyn Profile, options: Option<&Value>) -> Option<String> {
    let kinds = profile.kinds().iter().map(|declared| declared.kind);
    let nothing = Surroundings { not_served: kinds.collect(), ..Surroundings::default() };
    let all = [Surroundings::default(), nothing];
    let found = all.into_iter().find_map(|around| match drafts_around(profile, options, around) {
        Err(error @ (DraftError::UndeclaredKind { .. } | DraftError::Undeclared { .. })) => Some(error.to_string()),
        Ok(_) | Err(_) => None,
    });
    let planner = profile.configure(options).unwrap();
    found.or_else(|| {
        advisor_engine::engine::undeclared(planner.as_ref(), profile.kinds()).map(|error| error.to_string())
    })
}

/// Values of `schema` that are as different as it allows, the least and the most of them.
fn values(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.clone();
    }
    // What a pattern or required members allow is not made up.
    if let Some(example) = schema.get("example") {
        return vec![example.clone()];
    }
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => vec![json!(true), json!(false)],
        #[expect(clippy::cast_possible_truncation, reason = "bounds of options are small whole numbers")]
        "integer" => ["minimum", "maximum"].map(|bound| json!(schema[bound].as_f64().unwrap() as i64)).to_vec(),
        "string" => vec![json!("one"), json!("another")],
        "array" => values(&schema["items"]).into_iter().map(|value| json!([value])).collect(),
        "object" => {
            let mut all = vec![json!({})];
            for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                all.extend(values(inner).into_iter().map(|value| json!({name: value})));
            }
            if schema.get("additionalProperties").is_some() {
                all.push(json!({"key": "value"}));
            }
            all
        }
        "" => {
            panic!("an option has no type in {schema}: do not document the variants of an enum, but the option itself")
        }
        other => {
            panic!("an option of type {other:?} in {schema}: options are booleans, integers, texts, lists and objects")
        }
    }
}

/// Every option with each of its values, alone.
fn settings(profile: &dyn Profile) -> Vec<(String, Value)> {
    let schema = schema(profile);
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (name, inner) in properties {
        all.extend(values(&inner).into_iter().map(|value| (name.clone(), json!({&name: value}))));
    }
    all
}

/// The settings that the profile takes: some are only valid together with others.
fn valid_settings(profile: &dyn Profile) -> Vec<(String, Value)> {
    let mut all = settings(profile);
    all.retain(|(_, options)| profile.configure(Some(options)).is_ok());
    all
}

fn declared(profile: &dyn Profile, api_version: &str, kind: &str) -> Vec<&'static Declared> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let fits = |declared: &&Declared| {
        declared.kind.group == group && declared.kind.kind == kind && declared.kind.versions.contains(&version)
    };
    profile.kinds().iter().filter(fits).collect()
}

#[test]
fn about_is_complete_and_nothing_is_there_twice() {
    let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for profile in PROFILES {
        let about = profile.about();
        assert!(names.insert(about.name) && keys.insert(about.options_key), "{} is there twice", about.name);
        for (what, text) in [("description", about.description), ("impact summary", about.impact_summary)] {
            assert!((10..=200).contains(&text.len()), "{}: {what} {text:?}", about.name);
        }
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_word = |text: &str| !text.is_empty() && text.chars().all(fits);
        assert!(is_word(about.category) && is_word(about.name), "{}: {}", about.name, about.category);
    }
}

#[test]
fn drafts_are_complete_and_the_same_each_time() {
    for profile in PROFILES {
        let name = profile.about().name;
        let all = valid_settings(*profile);
        for options in std::iter::once(None).chain(all.iter().map(|(_, options)| Some(options))) {
            let made = drafts(*profile, options);
            assert!(!made.is_empty(), "{name} {options:?}: nothing is wanted");
            assert_eq!(made, drafts(*profile, options), "{name} {options:?}");
            assert_eq!(check_drafts::all(&made, &[]), Ok(()), "{name} {options:?}");
            for draft in &made {
                assert_eq!(check_drafts::one(draft, &made), None, "{name} {options:?}: {}", draft.name);
                assert!(!draft.reason.is_empty(), "{name}: {} has no reason", draft.name);
            }
        }
    }
}

#[test]
fn what_is_drafted_and_read_is_declared() {
    for profile in PROFILES {
        let name = profile.about().name;
        for (_, options) in valid_settings(*profile) {
            let planner = profile.configure(Some(&options)).unwrap();
            for Read { kind, namespace, name: object, .. } in planner.reads() {
                let known = profile.kinds().iter().filter(|declared| declared.kind == kind);
                let fits = |declared: &Declared| {
                    declared.name.is_none_or(|only| only == object)
                        && (declared.namespace.is_none() || declared.namespace == namespace.as_deref())
                };
                assert!(known.clone().any(fits), "{name} reads {} {object} and does not declare it", kind.kind);
            }
            for draft in drafts(*profile, Some(&options)) {
                let Body::Ensure(object) = &draft.body else { continue };
                let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
                let (api_version, kind) = (text("/apiVersion").unwrap(), text("/kind").unwrap());
                let fits = |declared: &&Declared| {
                    !matches!(declared.access, Access::Ask | Access::Read)
                        && declared.name.is_none_or(|only| text("/metadata/name") == Some(only))
                        && declared.namespace.is_none_or(|only| text("/metadata/namespace") == Some(only))
                };
                let known = declared(*profile, api_version, kind);
                let how: Vec<_> = known.iter().map(|known| (known.access, known.namespace, known.name)).collect();
                assert!(
                    known.iter().any(fits),
                    "{name} writes {kind} {:?}, but declares it as {how:?} (access, namespace, name): declare it so that it may be written",
                    text("/metadata/name")
                );
            }
        }
    }
}

#[test]
fn t20_no_profile_asks_for_a_kind_that_it_does_not_declare() {
    for profile in PROFILES {
        let all = valid_settings(*profile);
        for options in std::iter::once(None).chain(all.iter().map(|(_, options)| Some(options))) {
            assert_eq!(undeclared(*profile, options), None, "{} {options:?}", profile.about().name);
        }
    }
}

/// The test above finds one that does, whatever it asks.
#[test]
fn t20_a_profile_that_asks_for_a_kind_that_it_does_not_declare_is_found() {
    for (asks, found) in
        [(Asks::Nothing, false), (Asks::Served, true), (Asks::LeftOut, true), (Asks::Read, true), (Asks::Needs, true)]
    {
        let told = undeclared(&Careless(asks), None);
        assert_eq!(told.is_some(), found, "{asks:?}: {told:?}");
        assert!(
            told.iter().all(|told| told.contains("Gadget (example.dev)") && told.contains("profile's owners")),
            "{told:?}"
        );
    }
}

/// A profile that declares nothing, and asks for a kind all the same.
struct Careless(Asks);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asks {
    Nothing,
    Served,
    LeftOut,
    Read,
    Needs,
}

const GADGET: Kind = Kind { group: "example.dev", versions: &["v1"], kind: "Gadget", plural: "gadgets" };

static CARELESS: About = About {
    name: "careless",
    options_key: "careless",
    description: "Asks for what it does not declare",
    category: "tests",
    impact_summary: "None at all",
    impact: Impact::Low,
    advertised: false,
};

impl Profile for Careless {
    fn about(&self) -> &'static About {
        &CARELESS
    }

    fn options_schema(&self, _: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }

    fn kinds(&self) -> &'static [Declared] {
        &[]
    }

    fn configure(&self, _: Option<&Value>) -> Result<Box<dyn Planner>, OptionsError> {
        Ok(Box::new(Careless(self.0)))
    }
}

impl Planner for Careless {
    fn prerequisites(&self) -> Vec<Prerequisite> {
        let needed = Prerequisite { kind: GADGET, object: None, hint: "install the kind" };
        if self.0 == Asks::Needs { vec![needed] } else { Vec::new() }
    }

    fn reads(&self) -> Vec<Read> {
        let read = Read { kind: GADGET, namespace: None, name: "g".into(), elsewhere: false };
        if self.0 == Asks::Read { vec![read] } else { Vec::new() }
    }

    fn draft(&self, inputs: &Inputs) -> Result<Vec<Draft>, DraftError> {
        if self.0 == Asks::Served {
            // The answer is not even looked at.
            let _ = inputs.serves(&GADGET);
        }
        Ok(Vec::new())
    }

    fn left_out(&self, inputs: &Inputs) -> Result<Vec<LeftOutFeature>, DraftError> {
        let is_left_out = self.0 == Asks::LeftOut && !inputs.serves(&GADGET);
        let left_out = LeftOutFeature { feature: "f".into(), reason: "the kind is not there".into() };
        Ok(if is_left_out { vec![left_out] } else { Vec::new() })
    }
}

/// H5: HyperConverged writes these, and writes over whatever somebody else writes there: it is told
/// instead.
#[test]
fn h5_nothing_is_written_to_what_hyper_converged_owns() {
    let owned = [
        ("kubevirt.io", "KubeVirt"),
        ("cdi.kubevirt.io", "CDI"),
        ("ssp.kubevirt.io", "SSP"),
        ("networkaddonsoperator.network.kubevirt.io", "NetworkAddonsConfig"),
        ("aaq.kubevirt.io", "AAQ"),
    ];
    for profile in PROFILES {
        for declared in profile.kinds().iter().filter(|declared| !matches!(declared.access, Access::Ask | Access::Read))
        {
            let Kind { group, kind, .. } = declared.kind;
            assert!(!owned.contains(&(group, kind)), "{} writes {kind}", profile.about().name);
        }
    }
}

#[test]
fn prerequisites_say_what_to_do() {
    for profile in PROFILES {
        let name = profile.about().name;
        for options in [None, Some(json!({}))] {
            for needed in profile.configure(options.as_ref()).unwrap().prerequisites() {
                assert!(needed.hint.len() > 10, "{name}: {} has no hint", needed.kind.kind);
                let declared = profile.kinds().iter().any(|declared| declared.kind == needed.kind);
                assert!(declared, "{name} needs {} and does not declare it", needed.kind.kind);
            }
        }
    }
}

/// An option that changes nothing is worse than none.
#[test]
fn every_option_changes_what_is_drafted() {
    for profile in PROFILES {
        let name = profile.about().name;
        let plain = drafts(*profile, None);
        assert_eq!(drafts(*profile, Some(&json!({}))), plain, "{name}: empty options are other than none");
        let all = valid_settings(*profile);
        let options: BTreeSet<_> = settings(*profile).into_iter().map(|(option, _)| option).collect();
        for option in options {
            let works = |(_, options): &&(String, Value)| drafts(*profile, Some(options)) != plain;
            let tried: Vec<_> = all.iter().filter(|(tried, _)| *tried == option).collect();
            let values: Vec<_> = tried.iter().map(|(_, options)| options.to_string()).collect();
            assert!(
                tried.iter().any(works),
                "{name}: option {option} has no effect on any draft with {}: use it in draft(), or remove it",
                values.join(", ")
            );
        }
    }
}

/// Defaults that the CRD fills in are those that the profile has without them.
#[test]
fn the_defaults_of_the_schema_are_those_of_the_profile() {
    for profile in PROFILES {
        let schema = schema(*profile);
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let defaults: Map<_, _> = properties
            .into_iter()
            .filter_map(|(name, schema)| schema.get("default").map(|value| (name, value.clone())))
            .collect();
        assert_eq!(
            drafts(*profile, Some(&Value::Object(defaults))),
            drafts(*profile, None),
            "{}",
            profile.about().name
        );
    }
}

#[test]
fn options_of_other_profiles_are_not_read() {
    for profile in PROFILES {
        let plain = drafts(*profile, None);
        for other in PROFILES.iter().filter(|other| other.about().name != profile.about().name) {
            for (_, options) in settings(*other) {
                let wrapped = json!({other.about().options_key: options});
                assert_eq!(drafts(*profile, Some(&wrapped)), plain, "{}: {wrapped}", profile.about().name);
            }
        }
    }
}

/// The README tells administrators of every option and of every field that is written.
#[test]
fn the_readme_names_every_option_and_every_field() {
    for profile in PROFILES {
        let name = profile.about().name;
        let readme = fs::read_to_string(root().join("profiles").join(name).join("README.md")).unwrap();
        for heading in ["## What it changes", "## What it needs", "## How to undo it"] {
            assert!(readme.contains(heading), "{name}: README.md lacks {heading:?}");
        }
        let mut undocumented = BTreeSet::new();
        let mut options = Vec::new();
        names(&schema(*profile), "", &mut options);
        options.retain(|option| !readme.contains(&format!("`{option}`")));
        undocumented.extend(options.into_iter().map(|option| format!("option {option}")));
        for (_, options) in valid_settings(*profile) {
            for draft in drafts(*profile, Some(&options)) {
                if !readme.contains(&format!("`{}`", draft.name)) {
                    undocumented.insert(format!("item {}", draft.name));
                }
                let Body::Ensure(object) = &draft.body else { continue };
                if object["kind"] == "PersesDashboard" {
                    // A drawing, of which the readme tells as a whole.
                    continue;
                }
                for group in ["spec", "data"] {
                    let Some(fields) = object[group].as_object() else { continue };
                    for path in leaves(fields) {
                        if !path.last().is_some_and(|field| readme.contains(field.as_str())) {
                            undocumented.insert(format!("field {group}.{}", path.join(".")));
                        }
                    }
                }
            }
        }
        assert!(undocumented.is_empty(), "{name}: README.md does not document {undocumented:?}");
    }
}

/// The options of a schema, with dots where they are inside of others; what is inside of a selector
/// is Kubernetes' own.
fn names(schema: &Value, prefix: &str, all: &mut Vec<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        if inner.get("x-kubernetes-map-type").is_none() {
            names(inner, &format!("{path}."), all);
        }
        all.push(path);
    }
}

/// Paths to everything in `fields` that is no map, or a selector.
fn leaves(fields: &Map<String, Value>) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (name, value) in fields {
        match value.as_object().filter(|inner| !inner.is_empty() && !name.ends_with("Selector")) {
            Some(inner) => all.extend(leaves(inner).into_iter().map(|path| [vec![name.clone()], path].concat())),
            None => all.push(vec![name.clone()]),
        }
    }
    all
}
