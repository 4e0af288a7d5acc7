//! Owns what a rendered MachineConfig contains and how it is named. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed), pkg/controller/common/helpers.go:
//! `MergeMachineConfigs`, `ValidateMachineConfig`, `ValidateMachineConfigSize`; pkg/controller/render/hash.go:
//! `getMachineConfigHashedName` (there MD5 over YAML, here the first half of SHA-256 over sorted JSON).

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::api::{MachineConfig, MachineConfigSpec, ROLE_LABEL};

const SALT: &[u8] = b"mco-simulator rendered MachineConfig";
const IGNITION_VERSION: &str = "3.5.0";
const MAX_SIZE: usize = 3 * 1024 * 1024 / 2;

/// Why a pool cannot be rendered. The text ends up in the message of `RenderDegraded`.
#[derive(Debug, Error, PartialEq)]
pub enum RenderError {
    /// The pool selects nothing.
    #[error("no MachineConfigs found matching selector {0}")]
    NoMachineConfigs(String),
    /// A MachineConfig asks for a kernel that does not exist.
    #[error("could not generate rendered MachineConfig: kernelType={0} is invalid")]
    KernelType(String),
    /// A MachineConfig holds no Ignition configuration of a known version.
    #[error("could not generate rendered MachineConfig: parsing Ignition config of {0} failed: unknown version {1:?}")]
    Ignition(String, String),
    /// The result does not fit into an object.
    #[error("could not generate rendered MachineConfig: rendered MachineConfig has {0} bytes, the limit is {MAX_SIZE}")]
    Size(usize),
    /// Machines that have the current configuration cannot get this one.
    #[error("could not generate rendered MachineConfig: reconciliation failed between current config {current:?} and base config {base:?}: {reason}")]
    Irreconcilable {
        /// The pool's rendered configuration.
        current: String,
        /// The MachineConfig to blame.
        base: String,
        /// Which part cannot change.
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
pub fn render(pool: &str, configs: &[&MachineConfig]) -> Result<Rendered, RenderError> {
    configs.iter().try_for_each(|config| validate(config))?;
    let spec = merge(configs);
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

/// Role=worker by name, then every other role by name; later files and units replace earlier ones, lists of words are
/// joined with their duplicates.
fn merge(configs: &[&MachineConfig]) -> MachineConfigSpec {
    let mut ordered = configs.to_vec();
    ordered.sort_by_key(|config| {
        let role = config.metadata.labels.as_ref().and_then(|labels| labels.get(ROLE_LABEL));
        (role.is_none_or(|role| role != "worker"), config.metadata.name.clone())
    });
    let specs = || ordered.iter().map(|config| &config.spec);
    let last = |field: fn(&MachineConfigSpec) -> &String| {
        specs().map(field).filter(|value| !value.is_empty()).next_back().cloned().unwrap_or_default()
    };
    let mut ignition = json!({});
    for spec in specs() {
        merge_ignition(&mut ignition, &spec.config);
    }
    finish_ignition(&mut ignition);
    MachineConfigSpec {
        extensions_image: last(|spec| &spec.extensions_image),
        config: ignition,
        extensions: Some(specs().flat_map(|spec| spec.extensions.iter().flatten().cloned()).collect()),
        fips: Some(specs().any(|spec| spec.fips == Some(true))),
        kernel_arguments: Some(specs().flat_map(|spec| spec.kernel_arguments.iter().flatten().cloned()).collect()),
        kernel_type: specs()
            .map(|spec| spec.kernel_type.as_str())
            .find(|kernel| !matches!(*kernel, "" | "default"))
            .unwrap_or("default")
            .to_owned(),
        os_image_url: last(|spec| &spec.os_image_url),
    }
}

/// Ignition's own rule: objects field by field, lists of things with an identity entry by entry, other values by the
/// later one.
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
            // A file is replaced as a whole, a unit keeps the drop-ins the later one does not mention.
            Some(at) if entry.get("path").is_some() => old[at] = entry.clone(),
            Some(at) => merge_ignition(&mut old[at], entry),
            None if identity(entry).is_none() && old.contains(entry) => {}
            None => old.push(entry.clone()),
        }
    }
}

fn identity(entry: &Value) -> Option<&str> {
    ["path", "name", "device"].iter().find_map(|key| entry.get(*key)?.as_str())
}

fn finish_ignition(config: &mut Value) {
    config["ignition"]["version"] = json!(IGNITION_VERSION);
    for file in config.pointer_mut("/storage/files").and_then(Value::as_array_mut).into_iter().flatten() {
        file["overwrite"] = json!(true);
    }
}

/// 32 hexadecimal digits that depend on the content only.
fn hash(text: &str) -> String {
    let digest = Sha256::new().chain_update(SALT).chain_update(text).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys: equal content gives equal text, however serde_json keeps its maps.
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
mod tests {
    use super::*;

    fn config(name: &str, role: &str, spec: Value) -> MachineConfig {
        let spec = serde_json::from_value(spec).expect("specs of the tests parse");
        let mut config = MachineConfig::new(name, spec);
        config.metadata.labels = Some([(ROLE_LABEL.to_owned(), role.to_owned())].into());
        config
    }

    fn arguments(name: &str, role: &str, arguments: &[&str]) -> MachineConfig {
        config(name, role, json!({ "kernelArguments": arguments }))
    }

    fn file(name: &str, path: &str, text: &str) -> MachineConfig {
        let file = json!({"path": path, "mode": 420, "contents": {"source": format!("data:,{text}")}});
        config(name, "worker", json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}}}))
    }

    fn rendered(configs: &[MachineConfig]) -> Rendered {
        render("worker", &configs.iter().collect::<Vec<_>>()).expect("renders")
    }

    fn kernel_arguments(configs: &[MachineConfig]) -> Vec<String> {
        rendered(configs).spec.kernel_arguments.expect("always there")
    }

    #[test]
    fn duplicates_of_kernel_arguments_stay_in_order_of_names() {
        let configs = [
            arguments("c", "worker", &["psi=1"]),
            arguments("a", "worker", &["psi=1"]),
            arguments("b", "worker", &["psi=0"]),
        ];
        assert_eq!(kernel_arguments(&configs), ["psi=1", "psi=0", "psi=1"]);
    }

    #[test]
    fn other_roles_come_after_all_of_worker() {
        let configs = [arguments("10-infra-z", "infra", &["z=1"]), arguments("99-worker", "worker", &["a=1"])];
        assert_eq!(kernel_arguments(&configs), ["a=1", "z=1"]);
    }

    #[test]
    fn equal_content_has_an_equal_hash_in_every_pool() {
        let base = file("00", "/a", "1");
        let name = |configs: &[&MachineConfig], pool| {
            render(pool, configs).expect("renders").name.rsplit('-').next().map(str::to_owned)
        };
        let hash = name(&[&base], "worker");
        assert_eq!(hash.as_ref().map(String::len), Some(32));
        assert_eq!(hash, name(&[&base], "infra"), "not of the pool");
        assert_eq!(hash, name(&[&file("17", "/a", "1")], "worker"), "not of names");
        assert_eq!(hash, name(&[&base, &config("50", "worker", json!({}))], "worker"), "an empty one adds nothing");
        assert_eq!(hash, name(&[&base, &file("50", "/a", "1")], "worker"), "byte for byte the same file");
        assert_ne!(hash, name(&[&base, &file("50", "/a", "2")], "worker"));
        assert_ne!(hash, name(&[&base, &arguments("50", "worker", &["psi=1"])], "worker"));
    }

    #[test]
    fn later_files_and_units_replace_earlier_ones() {
        let unit = |name: &str, unit: Value| {
            config(name, "worker", json!({"config": {"ignition": {"version": "3.2.0"}, "systemd": {"units": [unit]}}}))
        };
        let result = rendered(&[
            file("01", "/a", "old"),
            file("02", "/b", "b"),
            file("03", "/a", "new"),
            unit("04", json!({"name": "u", "contents": "old", "dropins": [{"name": "d", "contents": "d"}]})),
            unit("05", json!({"name": "u", "contents": "new"})),
        ]);
        let files = &result.spec.config["storage"]["files"];
        assert_eq!(files[0]["contents"]["source"], "data:,new");
        assert_eq!((&files[1]["path"], files.as_array().map(Vec::len)), (&json!("/b"), Some(2)));
        assert_eq!(files[1]["overwrite"], true);
        let units = &result.spec.config["systemd"]["units"];
        assert_eq!(units, &json!([{"name": "u", "contents": "new", "dropins": [{"name": "d", "contents": "d"}]}]));
        assert_eq!(result.spec.config["ignition"]["version"], IGNITION_VERSION);
    }

    #[test]
    fn single_values_win_by_their_rule() {
        let configs = [
            config("00", "worker", json!({"osImageURL": "base", "kernelType": "default"})),
            config("10", "worker", json!({"osImageURL": "mine", "kernelType": "realtime", "fips": true})),
            config("20", "worker", json!({"fips": false, "extensions": ["usbguard"]})),
            config("30", "worker", json!({"extensions": ["usbguard"], "kernelArguments": null})),
        ];
        let spec = rendered(&configs).spec;
        assert_eq!((spec.os_image_url.as_str(), spec.kernel_type.as_str(), spec.fips), ("mine", "realtime", Some(true)));
        assert_eq!(spec.extensions.unwrap_or_default(), ["usbguard", "usbguard"]);
        assert_eq!(rendered(&[file("00", "/a", "1")]).spec.kernel_type, "default");
    }

    #[test]
    fn invalid_ones_are_named() {
        let refused = |config: MachineConfig| render("worker", &[&config]).expect_err("is refused");
        assert_eq!(
            refused(config("50", "worker", json!({"kernelType": "banana"}))),
            RenderError::KernelType("banana".into())
        );
        assert_eq!(
            refused(config("50", "worker", json!({"config": {"storage": {}}}))),
            RenderError::Ignition("50".into(), String::new())
        );
        let huge = refused(file("50", "/a", &"x".repeat(MAX_SIZE)));
        assert!(matches!(huge, RenderError::Size(size) if size > MAX_SIZE));
    }
}
