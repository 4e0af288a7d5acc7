//! The content and the name of a rendered MachineConfig. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/common/helpers.go: `MergeMachineConfigs`, `ValidateMachineConfig`,
//! `ValidateMachineConfigSize`; pkg/controller/render/hash.go: `getMachineConfigHashedName` (there
//! MD5 over YAML, here the first half of SHA-256 over sorted JSON).

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::api::{MachineConfig, MachineConfigSpec, ROLE_LABEL};
use crate::rules::release::Release;

const SALT: &[u8] = b"mco-simulator rendered MachineConfig";
const IGNITION_VERSION: &str = "3.5.0";
const MAX_SIZE: usize = 3 * 1024 * 1024 / 2;

/// Why a pool cannot be rendered. The text becomes part of the message of `RenderDegraded`.
#[derive(Debug, Error, PartialEq)]
pub enum RenderError {
    /// The pool selects nothing.
    #[error("no MachineConfigs found matching selector {0}")]
    NoMachineConfigs(String),
    /// A MachineConfig asks for a kernel that does not exist.
    #[error("could not generate rendered MachineConfig: kernelType={0} is invalid")]
    KernelType(String),
    /// A MachineConfig has no Ignition configuration of a known version.
    #[error("could not generate rendered MachineConfig: parsing Ignition config of {0} failed: unknown version {1:?}")]
    Ignition(String, String),
    /// The result does not fit into an object.
    #[error("could not generate rendered MachineConfig: rendered MachineConfig has {0} bytes, the limit is {MAX_SIZE}")]
    Size(usize),
    /// Machines with the current configuration cannot take this one.
    #[error(
        "could not generate rendered MachineConfig: reconciliation failed between current config {current:?} and base config {base:?}: {reason}"
    )]
    Irreconcilable {
        /// The pool's rendered configuration.
        current: String,
        /// The MachineConfig that causes it.
        base: String,
        /// The part that cannot change.
        reason: String,
    },
}

/// A rendered configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// `rendered-POOL-HASH`.
    pub name: String,
    /// Its content.
    pub spec: MachineConfigSpec,
}

/// Renders the MachineConfigs a pool selects, whatever their order.
///
/// # Errors
/// When one of them is invalid, or the result is too large.
pub fn render(pool: &str, configs: &[&MachineConfig], release: Release) -> Result<Rendered, RenderError> {
    configs.iter().try_for_each(|config| validate(config))?;
    let spec = merge(configs, release);
    let text = canonical(&serde_json::to_value(&spec).unwrap_or_default());
    if text.len() > MAX_SIZE {
        return Err(RenderError::Size(text.len()));
    }
    Ok(Rendered { name: format!("rendered-{pool}-{}", hash(&text)), spec })
}

fn validate(config: &MachineConfig) -> Result<(), RenderError> {
    let spec = &config.spec;
    if !matches!(spec.kernel_type.as_str(), "" | "default" | "realtime" | "64k-pages") {
        return Err(RenderError::KernelType(spec.kernel_type.clone()));
    }
    if spec.config.as_object().is_none_or(Map::is_empty) {
        return Ok(());
    }
    let version = spec.config["ignition"]["version"].as_str().unwrap_or_default();
    if version.starts_with("2.2") || version.starts_with("3.") {
        return Ok(());
    }
    Err(RenderError::Ignition(config.metadata.name.clone().unwrap_or_default(), version.to_owned()))
}

/// MachineConfigs with role=worker by name, then all others by name. Later files and units are
/// merged into earlier ones of the same name; lists of words are concatenated with their
/// duplicates.
fn merge(configs: &[&MachineConfig], release: Release) -> MachineConfigSpec {
    let mut ordered = configs.to_vec();
    ordered.sort_by_key(|config| {
        let role = config.metadata.labels.as_ref().and_then(|labels| labels.get(ROLE_LABEL));
        (role.is_none_or(|role| role != "worker"), config.metadata.name.clone())
    });
    let specs = || ordered.iter().map(|config| &config.spec);
    let last = |field: fn(&MachineConfigSpec) -> &String| {
        specs().map(field).rfind(|value| !value.is_empty()).cloned().unwrap_or_default()
    };
    let mut ignition = json!({});
    for spec in specs() {
        let mut config = spec.config.clone();
        if release.settles_compression {
            each_contents(&mut config, |contents| {
                contents.entry("compression").or_insert_with(|| json!(""));
            });
        }
        merge_ignition(&mut ignition, &config);
    }
    finish_ignition(&mut ignition, release);
    MachineConfigSpec {
        extensions_image: last(|spec| &spec.extensions_image),
        config: ignition,
        extensions: Some(specs().flat_map(|spec| spec.extensions.iter().flatten().cloned()).collect()),
        fips: Some(specs().any(|spec| spec.fips == Some(true))),
        kernel_arguments: Some(specs().flat_map(|spec| spec.kernel_arguments.iter().flatten().cloned()).collect()),
        kernel_type: specs()
            .map(|spec| spec.kernel_type.as_str())
            .rfind(|kernel| !matches!(*kernel, "" | "default"))
            .unwrap_or("default")
            .to_owned(),
        os_image_url: last(|spec| &spec.os_image_url),
    }
}

/// Ignition's own rule: objects field by field, lists of entries with an identity entry by entry;
/// of other values the later one wins.
fn merge_ignition(into: &mut Value, from: &Value) {
    let (Some(target), Some(source)) = (into.as_object_mut(), from.as_object()) else {
        if !from.is_null() {
            *into = from.clone();
        }
        return;
    };
    for (key, value) in source {
        match (target.get_mut(key), value) {
            (Some(Value::Array(old)), Value::Array(new)) => merge_list(old, new),
            (Some(old @ Value::Object(_)), Value::Object(_)) => merge_ignition(old, value),
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

fn merge_list(old: &mut Vec<Value>, new: &[Value]) {
    for entry in new {
        let known = identity(entry).and_then(|id| old.iter().position(|other| identity(other) == Some(id)));
        match known {
            // Field by field: a file keeps its mode and a unit its drop-ins if the later one has
            // none.
            Some(at) => merge_ignition(&mut old[at], entry),
            None if identity(entry).is_none() && old.contains(entry) => {}
            None => old.push(entry.clone()),
        }
    }
}

fn identity(entry: &Value) -> Option<&str> {
    ["path", "name", "device"].iter().find_map(|key| entry.get(*key)?.as_str())
}

/// Calls `each` with the contents of each file.
fn each_contents(config: &mut Value, each: impl Fn(&mut Map<String, Value>)) {
    for file in config.pointer_mut("/storage/files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(file) = file.as_object_mut() {
            let contents = file.entry("contents").or_insert_with(|| json!({}));
            contents.as_object_mut().map(&each).unwrap_or_default();
        }
    }
}

fn finish_ignition(config: &mut Value, release: Release) {
    config["ignition"]["version"] = json!(IGNITION_VERSION);
    if release.settles_compression {
        each_contents(config, |contents| {
            if contents.get("compression").is_some_and(|compression| compression == "") {
                contents.remove("compression");
            }
        });
    }
    for file in config.pointer_mut("/storage/files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(file) = file.as_object_mut() {
            file.entry("overwrite").or_insert_with(|| json!(true));
        }
    }
}

/// 32 hexadecimal digits that depend only on the content.
fn hash(text: &str) -> String {
    let digest = Sha256::new().chain_update(SALT).chain_update(text).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys: equal content gives equal text, in whatever order serde_json keeps maps.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields: Vec<_> =
                fields.into_iter().map(|(key, value)| format!("{}:{}", json!(key), canonical(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(entries) => format!("[{}]", entries.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
