//! The MachineConfig made from a KubeletConfig, when a KubeletConfig is refused, and which pools it
//! blocks. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/kubelet-config/kubelet_config_controller.go: `syncKubeletConfig`,
//! `syncStatusOnly`; helpers.go: `validateUserKubeletConfig`, `getManagedKubeletConfigKey`,
//! `generateKubeletIgnFiles`; pkg/apihelpers/apihelpers.go:
//! `AreMCGeneratingSubControllersCompletedForPool`.

use k8s_openapi::ByteString;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::api::{
    Condition, GENERATED_BY, KubeletConfig, KubeletConfigSpec, KubeletConfigStatus, MachineConfig, MachineConfigPool,
    NAME_SUFFIX, ROLE_LABEL, VERSION,
};
use crate::rules::release::Release;
use crate::rules::select::{self, Labels};

const KUBELET_CONF: &str = "/etc/kubernetes/kubelet.conf";
/// How many conditions of one type a KubeletConfig keeps.
const MAX_KEPT: usize = 3;
const MAX_SUFFIX: u32 = 9;

/// The kubelet's configuration for a role without any KubeletConfig.
pub(crate) fn template(role: &str) -> Value {
    json!({
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {"x509": {"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"}, "anonymous": {"enabled": false}},
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDNS": ["172.30.0.10"],
        "clusterDomain": "cluster.local",
        "containerLogMaxSize": "50Mi",
        "failSwapOn": role == "master",
        "maxPods": 250,
        "memorySwap": {"swapBehavior": "NoSwap"},
        "podPidsLimit": 4096,
        "rotateCertificates": true,
        "serializeImagePulls": false,
        "serverTLSBootstrap": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    })
}

/// An Ignition file with this text, as the controllers write one: with an empty compression
/// (`NewIgnFileBytesOverwriting`, pkg/controller/common/helpers.go, release-4.14 to 4.23).
pub(crate) fn ignition_file(path: &str, text: &str) -> Value {
    let encoded = serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap_or_default();
    let source = format!("data:text/plain;charset=utf-8;base64,{}", encoded.as_str().unwrap_or_default());
    json!({"path": path, "mode": 420, "overwrite": true, "contents": {"compression": "", "source": source}})
}

/// The kubelet's configuration file.
pub(crate) fn kubelet_conf(content: &Value) -> Value {
    ignition_file(KUBELET_CONF, &serde_json::to_string_pretty(content).unwrap_or_default())
}

/// Why the controller refuses a KubeletConfig that the API server has accepted.
pub(crate) fn refusal(spec: &KubeletConfigSpec) -> Option<String> {
    if let Some(level) = spec.log_level.filter(|level| !(0..=10).contains(level)) {
        return Some(format!("KubeletConfig's LogLevel is not valid [0,10]: {level}"));
    }
    let config = &spec.kubelet_config;
    for pointer in FORBIDDEN {
        if let Some(value) = config.pointer(pointer).filter(|value| !is_unset(value)) {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Some(format!("KubeletConfiguration: {field} is not allowed to be set, but contains: {value}"));
        }
    }
    let reserved = config.get("systemReserved").is_some_and(|reserved| !is_unset(reserved));
    (reserved && spec.auto_sizing_reserved == Some(true))
        .then(|| "KubeletConfiguration: autoSizingReserved and systemdReserved cannot be set together".to_owned())
}

const FORBIDDEN: &[&str] = &[
    "/cgroupDriver",
    "/clusterDNS",
    "/clusterDomain",
    "/featureGates",
    "/failSwapOn",
    "/memorySwap/swapBehavior",
    "/staticPodPath",
];

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The number that a KubeletConfig keeps in its annotation: empty for the first of a pool, then 1
/// to 9.
///
/// # Errors
/// If the pool has ten already.
pub(crate) fn suffix(
    config: &KubeletConfig,
    all: &[&KubeletConfig],
    pool: &MachineConfigPool,
) -> Result<String, String> {
    if let Some(known) = config.annotations().get(NAME_SUFFIX) {
        return Ok(known.clone());
    }
    let others = all.iter().filter(|other| other.name_any() != config.name_any() && is_for(other, pool.labels()));
    let taken = others.filter_map(|other| other.annotations().get(NAME_SUFFIX)).map(|text| text.parse().unwrap_or(0));
    match taken.max() {
        None => Ok(String::new()),
        Some(number) if number < MAX_SUFFIX => Ok((number + 1).to_string()),
        Some(_) => Err("max number of supported kubelet config (10) has been reached. Please delete old kubelet \
                        configs before retrying"
            .to_owned()),
    }
}

/// Name of the MachineConfig that is generated for a pool.
pub(crate) fn generated_name(pool: &str, suffix: &str) -> String {
    let separator = if suffix.is_empty() { "" } else { "-" };
    format!("99-{pool}-generated-kubelet{separator}{suffix}")
}

/// The MachineConfig of a KubeletConfig for one pool. It has the whole file, made from the
/// template, so that settings from the pool's other KubeletConfigs are lost.
pub(crate) fn generate(config: &KubeletConfig, pool: &str, suffix: &str) -> MachineConfig {
    let mut content = template(pool);
    overlay(&mut content, &config.spec.kubelet_config);
    let mut files = vec![kubelet_conf(&content)];
    if let Some(level) = config.spec.log_level {
        let text = format!("[Service]\nEnvironment=\"KUBELET_LOG_LEVEL={level}\"\n");
        files.push(ignition_file("/etc/systemd/system/kubelet.service.d/20-logging.conf", &text));
    }
    if let Some(auto) = config.spec.auto_sizing_reserved {
        files.push(ignition_file("/etc/node-sizing-enabled.env", &format!("NODE_SIZING_ENABLED={auto}\n")));
    } else if config.spec.kubelet_config.get("systemReserved").is_some_and(|reserved| !is_unset(reserved)) {
        files.push(ignition_file("/etc/node-sizing-enabled.env", "NODE_SIZING_ENABLED=false\n"));
    }
    let spec = crate::api::MachineConfigSpec {
        config: json!({"ignition": {"version": "3.5.0"}, "storage": {"files": files}}),
        ..Default::default()
    };
    let mut machine_config = MachineConfig::new(&generated_name(pool, suffix), spec);
    machine_config.metadata.labels = Some([(ROLE_LABEL.to_owned(), pool.to_owned())].into());
    machine_config.metadata.annotations = Some([(GENERATED_BY.to_owned(), VERSION.to_owned())].into());
    machine_config.metadata.owner_references = config.controller_owner_ref(&()).map(|owner| vec![owner]);
    machine_config
}

fn overlay(into: &mut Value, from: &Value) {
    match (into.as_object_mut(), from) {
        (Some(target), Value::Object(source)) => {
            for (key, value) in source {
                overlay(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        _ => *into = from.clone(),
    }
}

/// Whether the KubeletConfig selects a pool with these labels.
pub(crate) fn is_for(config: &KubeletConfig, pool_labels: &Labels) -> bool {
    select::selects(config.spec.machine_config_pool_selector.as_ref(), pool_labels)
}

/// Whether the controller has finished with the current generation of the KubeletConfig; `observed`
/// is the generation it has seen.
pub(crate) fn is_settled(config: &KubeletConfig, observed: Option<i64>) -> bool {
    config.metadata.deletion_timestamp.is_none()
        && observed.is_some_and(|observed| Some(observed) >= config.metadata.generation)
        && config.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
}

/// Why a pool with these labels is not rendered: a KubeletConfig that selects it has not succeeded.
/// `observed` returns the generation of a KubeletConfig that the controller has seen.
pub(crate) fn blocker<'a>(
    configs: impl Iterator<Item = &'a KubeletConfig>,
    pool_labels: &Labels,
    observed: impl Fn(&KubeletConfig) -> Option<i64>,
) -> Option<String> {
    let is_success = |config: &KubeletConfig| {
        let newest = config.status.as_ref().and_then(|status| status.conditions.last());
        is_settled(config, observed(config))
            && newest.is_some_and(|newest| newest.kind == "Success" && newest.status == "True")
    };
    configs
        .filter(|config| is_for(config, pool_labels))
        .find(|config| !is_success(config))
        .map(|config| format!("KubeletConfig {} is not a success for its generation", config.name_any()))
}

/// The status after a sync: an `Accepted` entry if the release has them, and the old-style
/// condition last. The type of the old-style condition is the outcome, whatever its status; older
/// ones with another message stay, three in all.
pub(crate) fn outcome(config: &KubeletConfig, error: Option<&str>, now: &str, release: Release) -> KubeletConfigStatus {
    let before = config.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    let message = error.map_or_else(|| "Success".to_owned(), |error| format!("Error: {error}"));
    let condition = |kind: &str, status: &str| {
        let known = before.iter().rev().find(|old| old.kind == kind);
        // Up to 4.22 the time is that of the last sync, even for the same message.
        let unchanged = known.filter(|old| release.accepted && old.status == status && old.message == message);
        unchanged.cloned().unwrap_or_else(|| Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            message: message.clone(),
            last_transition_time: Some(now.to_owned()),
            ..Condition::default()
        })
    };
    let old_style = match error {
        None => condition("Success", "True"),
        Some(_) => condition("Failure", release.failure),
    };
    let kept = if release.accepted { "Accepted" } else { "" };
    let mut conditions: Vec<Condition> =
        before.iter().filter(|old| kept.is_empty() || old.kind == kept).cloned().collect();
    if release.accepted {
        let accepted = condition("Accepted", if error.is_none() { "True" } else { "False" });
        if conditions.last() != Some(&accepted) {
            conditions.push(accepted);
        }
        conditions.drain(..conditions.len().saturating_sub(MAX_KEPT));
        conditions.push(old_style);
    } else {
        if conditions.last().is_some_and(|last| last.message == old_style.message) {
            conditions.pop();
        }
        conditions.push(old_style);
        conditions.drain(..conditions.len().saturating_sub(MAX_KEPT));
    }
    let observed = config.status.as_ref().and_then(|status| status.observed_generation);
    let observed_generation = if release.observes { config.metadata.generation } else { observed };
    KubeletConfigStatus { observed_generation, conditions }
}

#[cfg(test)]
#[path = "kubelet_tests.rs"]
mod tests;
