//! `virt-advisor render`: the plan of a profile, made from files alone, to review a change of its
//! options or of the profile itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use profile_sdk::{Access, Inputs, Kind, Planner, Prerequisite, Profile, Read, Surroundings};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::printed;
use advisor_core::api::{self, TargetRef};
use advisor_core::plan::Basis;
use advisor_core::plan::items::Effect;
use advisor_core::plan::offline::{self, ApproximatePlan};
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::remedy::Remedy;
use advisor_core::rollout::{Forecast, Forecasting, MachineConfigPools, PlannedChange, Rollouts};
use advisor_engine::engine::{answers, exclusions, undeclared};
use advisor_engine::registry;
use operator_kit::command::{CommandFailure, DIFFERENT, FAILED, SAME};

/// Print what a profile would change, from files instead of a cluster: an approximate plan, which can't be approved.
///
/// Exit codes: 0 no differences, 1 differences, 2 the plan could not be made or is blocked.
#[derive(Debug, Args)]
pub(super) struct RenderFlags {
    /// Name of the profile.
    #[arg(long, value_name = "NAME")]
    profile: String,

    /// A VirtPlatformConfig, or only its options (the content of spec.options.KEY), as YAML. If unset, the defaults are used.
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,

    /// A folder with the objects of a cluster as YAML, for example from `kubectl get --output=yaml`. If unset, the cluster is
    /// assumed to have what the profile needs, and none of the objects that it applies.
    #[arg(long, value_name = "DIR")]
    objects: Option<PathBuf>,

    /// A folder with the CRDs of a release as YAML. If unset, every kind that the profile uses is assumed to be served.
    #[arg(long, value_name = "DIR")]
    crds: Option<PathBuf>,
}

/// Makes the plan, and prints it with `print`.
pub(super) fn run(
    flags: RenderFlags,
    print: impl FnOnce(&str) -> Result<(), String>,
) -> Result<ExitCode, CommandFailure> {
    let Rendered { plan, left, pools } = plan(&flags).map_err(CommandFailure::of_comparison)?;
    let plan = plan.to_read();
    let mut text = match pools {
        Some(_) => printed::live(plan),
        None => printed::approximate(plan, |item| MachineConfigPools::default().has_effects(&item.target)),
    };
    for object in &left {
        text.push_str(&format!(
            "#\n# {object} is not part of this plan: if this profile has applied it, a plan on the cluster would remove it.\n"
        ));
    }
    text.push_str(
        "#\n# approximate, from files: what only an API server knows is missing. This plan can't be approved.\n",
    );
    print(&text).map_err(CommandFailure::of_comparison)?;
    Ok(ExitCode::from(match (plan.blocked().next(), plan.is_satisfied() && left.is_empty()) {
        (Some(_), _) => FAILED,
        (None, true) => SAME,
        (None, false) => DIFFERENT,
    }))
}

struct Rendered {
    plan: ApproximatePlan,
    /// Existing objects that the profile creates, but no longer wants.
    left: Vec<TargetRef>,
    /// The pools, if they are among the objects: then it is known which machines reboot.
    pools: Option<MachineConfigPools>,
}

fn plan(flags: &RenderFlags) -> Result<Rendered, String> {
    let profile = registry::profile_named(&flags.profile)?;
    let about = profile.about();
    let (own, mut choices) = match &flags.options {
        Some(path) => {
            let document = document(path)?;
            (Some(options(path, &document, profile)?), choices(path, &document)?)
        }
        None => (None, Choices::default()),
    };
    let planner = profile.configure(own.as_ref()).map_err(|error| error.to_string())?;
    let crds = flags.crds.as_deref().map(objects).transpose()?;
    let recorded = flags.objects.as_deref().map(objects).transpose()?.unwrap_or_default();
    let known: Vec<Value> = recorded.iter().chain(crds.iter().flatten()).cloned().collect();
    // If no folder was given, it is not known what the cluster has.
    let objects = flags.objects.as_ref().map(|_| recorded.as_slice());
    if let Some(error) = undeclared(planner.as_ref(), profile.kinds()) {
        return Err(format!("the plan could not be made: {error}"));
    }
    let missing: Vec<_> = planner
        .prerequisites()
        .into_iter()
        .filter_map(|needed| missing(&needed, objects, crds.as_deref()).map(|what| format!("{what}: {}", needed.hint)))
        .collect();
    if !missing.is_empty() {
        return Err(missing.join("\n"));
    }
    let definitions = planner.reads().into_iter().filter(|read| read.kind.kind == "CustomResourceDefinition");
    if let Some(read) = definitions.into_iter().find(|read| !known.iter().any(|object| is(object, read))) {
        return Err(format!(
            "the plan depends on CRD {}, which is in none of the folders: pass the CRDs of a release with --crds",
            read.name
        ));
    }
    let not_served = crds.as_deref().map(|crds| not_served(profile, crds)).unwrap_or_default();
    let nodes = recorded.iter().filter(|object| text(object, "/kind") == "Node");
    let of_nodes = nodes.flat_map(|node| answers(planner.node_questions(), node)).collect();
    let inputs = inputs(planner.as_ref(), &known).in_surroundings(Surroundings { not_served, of_nodes });
    let inputs = inputs.declaring(profile.kinds());
    let drafts = planner.draft(&inputs).map_err(|error| format!("the plan could not be made: {error}"))?;
    choices.exclusions = exclusions(planner.as_ref(), &inputs).map_err(|error| error.to_string())?;
    let options = own.map(|own| json!({about.options_key: own}));
    let pools = pools(&recorded);
    let plan = offline::plan(
        Basis { profile: about.name.to_owned(), options, ..Basis::default() },
        &drafts,
        profile.kinds(),
        &choices,
        &recorded,
        &|target, live, result| match &pools {
            Some(pools) if pools.has_effects(target) => effect(pools, &recorded, live, result),
            Some(_) | None => Ok(Effect::default()),
        },
    )?;
    let left_out = planner.left_out(&inputs).map_err(|error| error.to_string())?;
    inputs.check().map_err(|error| format!("the plan could not be made: {error}"))?;
    let plan = plan.with_left_out(left_out);
    let left = recorded.iter().filter(|object| is_written(profile, object)).map(TargetRef::of);
    let left =
        left.filter(|object| !plan.to_read().items.iter().any(|item| item.target.is_same_object(object))).collect();
    Ok(Rendered { plan, left, pools })
}

/// The recorded pools, if there are any and their rendered configurations are recorded too.
fn pools(recorded: &[Value]) -> Option<MachineConfigPools> {
    let pools = MachineConfigPools::default();
    let is_one = |object: &&Value| is_of(object, &pools.watched_kind());
    let found: Vec<_> = recorded.iter().filter(is_one).cloned().collect();
    let is_there = |pool: &Value| {
        let rendered = text(pool, "/spec/configuration/name");
        recorded.iter().any(|object| is_of(object, &pools.read_kind()) && text(object, "/metadata/name") == rendered)
    };
    let is_known = !found.is_empty() && found.iter().all(is_there);
    pools.pools_listed(&found);
    is_known.then_some(pools)
}

/// The effect of applying `result`, as far as the recorded objects show it.
fn effect(
    pools: &MachineConfigPools,
    recorded: &[Value],
    live: Option<&Value>,
    result: &Value,
) -> Result<Effect, Remedy> {
    let planned = PlannedChange { live, result: Some(result), takes_back: false, leaving: &[] };
    loop {
        match pools.forecast(planned) {
            Forecast::Known(known) => return known,
            Forecast::Unlisted(kind) => {
                let found: Vec<_> = recorded.iter().filter(|object| is_of(object, &kind)).cloned().collect();
                pools.kind_listed(kind, &found);
            }
            Forecast::Unread(all) => {
                for needed in all {
                    let is_it = |object: &&Value| {
                        is_of(object, &pools.read_kind()) && text(object, "/metadata/name") == needed.name()
                    };
                    pools.record_for_forecast(planned, &needed, recorded.iter().find(is_it));
                }
            }
        }
    }
}

/// Whether the profile creates this object.
fn is_written(profile: &dyn Profile, object: &Value) -> bool {
    profile.kinds().iter().any(|declared| {
        let read = |name: &str| Read {
            kind: declared.kind,
            namespace: declared.namespace.map(str::to_owned),
            name: name.to_owned(),
            elsewhere: false,
        };
        matches!(declared.access, Access::Create | Access::Write)
            && declared.name.is_some_and(|name| is(object, &read(name)))
    })
}

/// The kinds of the profile that none of the CRDs define.
fn not_served(profile: &dyn Profile, crds: &[Value]) -> BTreeSet<Kind> {
    let defined = |kind: &Kind| crds.iter().any(|crd| text(crd, "/metadata/name") == kind.crd_name());
    let kinds = profile.kinds().iter().map(|declared| declared.kind);
    // Built-in kinds have no CRD, nor has that of the CRDs.
    kinds.filter(|kind| !kind.is_built_in() && !defined(kind)).collect()
}

/// The objects that the profile reads, as far as they are `known`.
fn inputs(planner: &dyn Planner, known: &[Value]) -> Inputs {
    Inputs::new(planner.reads().into_iter().map(|read| {
        let found = known.iter().find(|object| is(object, &read)).cloned();
        (read, found)
    }))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn is(object: &Value, read: &Read) -> bool {
    let (group, version) = text(object, "/apiVersion").rsplit_once('/').unwrap_or(("", text(object, "/apiVersion")));
    group == read.kind.group
        && read.kind.versions.contains(&version)
        && text(object, "/kind") == read.kind.kind
        && text(object, "/metadata/name") == read.name
        && (read.namespace.is_none() || read.may_be_in(Some(text(object, "/metadata/namespace"))))
}

fn is_of(object: &Value, kind: &Kind) -> bool {
    let target = TargetRef::of(object);
    (target.group(), target.kind.as_str()) == (kind.group, kind.kind)
}

/// The missing part of a prerequisite, if there is one.
fn missing(needed: &Prerequisite, objects: Option<&[Value]>, crds: Option<&[Value]>) -> Option<String> {
    let kind = needed.kind;
    let defined = |crd: &Value| text(crd, "/metadata/name") == kind.crd_name();
    if let Some(crds) = crds
        && !kind.group.is_empty()
        && !crds.iter().any(defined)
    {
        return Some(format!("{} (CRD {}) is not among the CRDs", kind.kind, kind.crd_name()));
    }
    let read = needed.object.clone()?;
    let there = objects?.iter().any(|object| is(object, &read));
    (!there).then(|| format!("{} {} is not among the objects", kind.kind, read.name))
}

/// The only document in the file.
fn document(path: &Path) -> Result<Value, String> {
    match <[Value; 1]>::try_from(documents(path)?) {
        Ok([document]) => Ok(document),
        Err(_) => Err(format!("{}: exactly one document is expected", path.display())),
    }
}

/// The overrides in a whole configuration. Files have no clock: an item that is skipped for a
/// limited time is skipped.
fn choices(path: &Path, document: &Value) -> Result<Choices, String> {
    fn list<T: DeserializeOwned>(path: &Path, document: &Value, field: &str) -> Result<Vec<T>, String> {
        let found = document.pointer(field).cloned().unwrap_or_else(|| json!([]));
        serde_json::from_value(found).map_err(|error| format!("{}: {field}: {error}", path.display()))
    }
    let (overrides, items) = (list(path, document, "/spec/overrides")?, list(path, document, "/spec/items")?);
    Ok(Choices { overrides, items, ..Choices::default() })
}

/// The options in a document that holds only them or a whole configuration, checked like the API
/// server would.
fn options(path: &Path, document: &Value, profile: &dyn Profile) -> Result<Value, String> {
    let about = profile.about();
    let wrong = |problem: String| format!("{}: {problem}", path.display());
    let options = match (document.get("kind"), text(document, "/spec/profile")) {
        (None, _) => document.clone(),
        (Some(_), name) if name == about.name => {
            document.pointer(&format!("/spec/options/{}", about.options_key)).cloned().unwrap_or_else(|| json!({}))
        }
        (Some(_), _) => return Err(wrong(format!("this is not a configuration of profile {}", about.name))),
    };
    let schema = api::options_schema(profile);
    match refused(&options, &schema, "") {
        Some(problem) => Err(wrong(format!("spec.options.{}{problem}", about.options_key))),
        None => Ok(options),
    }
}

/// The first part of `value` that the schema does not allow. The API server prunes unknown fields;
/// in a review they are mistakes.
fn refused(value: &Value, schema: &Value, path: &str) -> Option<String> {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        return Some(format!("{path}: {value} is not one of {}", Value::from(allowed.clone())));
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(number) = value.as_f64()
        && (bound("minimum").is_some_and(|least| number < least) || bound("maximum").is_some_and(|most| number > most))
    {
        return Some(format!("{path}: {value} is out of range"));
    }
    let Value::Object(fields) = value else { return None };
    let known = schema.get("properties").and_then(Value::as_object)?;
    fields.iter().find_map(|(name, value)| match known.get(name) {
        Some(schema) => refused(value, schema, &format!("{path}.{name}")),
        None => Some(format!("{path}.{name}: there is no such option")),
    })
}

/// All objects in the YAML files below `folder`, including those in lists.
fn objects(folder: &Path) -> Result<Vec<Value>, String> {
    let unreadable = |path: &Path, error: &std::io::Error| format!("{} can't be read: {error}", path.display());
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unreadable(folder, &error))?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(objects(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
        {
            for document in documents(&path)? {
                match document.get("items").and_then(Value::as_array) {
                    Some(items) => found.extend(items.iter().cloned()),
                    None => found.push(document),
                }
            }
        }
    }
    Ok(found)
}

fn documents(path: &Path) -> Result<Vec<Value>, String> {
    let unreadable = |problem: String| format!("{} can't be read: {problem}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    // No limits: these are the user's own files, and some definitions are larger than what others
    // may send.
    let limits = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(&text, limits).map_err(|error| unreadable(error.to_string()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}
