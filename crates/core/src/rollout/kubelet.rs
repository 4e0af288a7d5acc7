//! Predicts the effect of a planned KubeletConfig: for each pool that it selects, the
//! machine-config controllers render a whole kubelet configuration from it, and the machines reboot
//! with it (pkg/controller/kubelet-config of machine-config-operator).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::disruption::{Disruption, Policies};
use super::facts::Facts;
use super::pool::{Pool, ROLE, reaches_no_machine};
use super::{Forecast, KUBELET_CONFIG, MACHINE_CONFIGURATION, Needed, PlannedChange};
use crate::api::TargetRef;
use crate::plan::items::{Effect, part};

/// The annotation with the number of a KubeletConfig among those of its pools.
const SUFFIX: &str = "machineconfiguration.openshift.io/mc-name-suffix";
const SELECTOR: &str = "/spec/machineConfigPoolSelector";
/// The file that is generated from a KubeletConfig as a whole.
pub(super) const FILE: &str = "/etc/kubernetes/kubelet.conf";
/// Part of the name of a MachineConfig that the controllers generate from a KubeletConfig: the role
/// precedes it, the number follows.
const GENERATED: &str = "-generated-kubelet";

/// Fields that the controllers refuse after the API server has accepted them. A refused
/// KubeletConfig blocks its pools without any sign.
const REFUSED: [&str; 7] = [
    "/cgroupDriver",
    "/clusterDNS",
    "/clusterDomain",
    "/featureGates",
    "/failSwapOn",
    "/memorySwap/swapBehavior",
    "/staticPodPath",
];

pub(super) fn is(target: &TargetRef) -> bool {
    target.kind == KUBELET_CONFIG.kind && target.api_version.split('/').next() == Some(KUBELET_CONFIG.group)
}

/// Whether `object` is a KubeletConfig for `pool`.
pub(super) fn selects(object: &Value, pool: &Pool) -> bool {
    is(&TargetRef::of(object)) && pool.is_selected_by(object, SELECTOR)
}

/// The pools that render what the controllers generate from `object`, each with the name of the
/// pool for which it is generated. That is the pool itself if `object` selects it, or else one
/// whose role it includes, as custom pools include what workers get.
pub(super) fn reached<'a>(pools: &'a BTreeMap<String, Pool>, object: &Value) -> Vec<(&'a Pool, &'a str)> {
    let selected: Vec<_> = pools.values().filter(|pool| pool.is_selected_by(object, SELECTOR)).collect();
    let last_made_for = |pool: &Pool| {
        let takes_in = |made_for: &&&Pool| pool.selects(&[(ROLE.to_owned(), made_for.name.clone())].into());
        selected.iter().filter(takes_in).map(|made_for| made_for.name.as_str()).max_by_key(|role| place(role, ""))
    };
    pools.values().filter_map(|pool| Some((pool, last_made_for(pool)?))).collect()
}

/// The order in which MachineConfigs generated from KubeletConfigs are merged: those for workers
/// first, then by name. Each contains the whole file, so only the last one counts.
fn place<'a>(role: &str, name: &'a str) -> (bool, String, &'a str) {
    (role != "worker", role.to_owned(), name)
}

/// Of which KubeletConfig `source`, which `pool` lists, was made, if that was read and is there.
fn maker_of<'a>(facts: &'a Facts, pool: &Pool, source: &str) -> Option<&'a str> {
    facts.of(pool)?.makers.get(source)?.as_deref()
}

/// Records of which KubeletConfig `name`, which `pools` may list, was made; `None` says that it is
/// gone.
pub(super) fn record_maker(facts: &mut Facts, pools: &BTreeMap<String, Pool>, name: &str, read: Option<&Value>) {
    let maker = read.and_then(maker);
    for pool in pools.values().filter(|pool| pool.sources.contains(name)) {
        facts.of_mut(pool).makers.insert(name.to_owned(), maker.clone());
    }
}

/// The KubeletConfig from which the controllers generated `generated`.
fn maker(generated: &Value) -> Option<String> {
    let owners = generated.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner =
        owners.into_iter().flatten().find(|owner| owner.get("kind").is_some_and(|kind| kind == KUBELET_CONFIG.kind));
    owner.and_then(|owner| owner.get("name")).and_then(Value::as_str).map(str::to_owned)
}

/// The MachineConfigs in the list of `pool` that are generated from KubeletConfigs, except that of
/// `object`, judged by name.
fn listed<'a>(pool: &'a Pool, made_for: &str, object: Option<&Value>) -> impl Iterator<Item = &'a str> {
    let own = object.map(|object| generated(object, made_for));
    let sources = pool.sources.iter().filter(|source| is_generated(source));
    sources.filter(move |source| Some(*source) != own.as_ref()).map(String::as_str)
}

/// Whether `source` is merged later than what is generated from `object`. A new object comes last
/// within its role.
fn is_later(source: &str, made_for: &str, object: Option<&Value>) -> bool {
    let Some(role) = role_of(source) else { return false };
    match object.map(|object| generated(object, made_for)) {
        Some(own) => place(role, source) > place(made_for, &own),
        None => role != made_for && place(role, "") > place(made_for, ""),
    }
}

/// A MachineConfig that `pool` renders from a KubeletConfig other than `name`, and whether it
/// overrides that of `name`.
fn other<'a>(
    pool: &'a Pool,
    made_for: &str,
    (name, live): (&str, Option<&Value>),
    facts: &Facts,
) -> Option<(&'a str, bool)> {
    let is_of_another = |source: &&str| maker_of(facts, pool, source).is_some_and(|maker| maker != name);
    let others = listed(pool, made_for, live).filter(is_of_another);
    others.map(|source| (source, is_later(source, made_for, live))).max_by_key(|(source, later)| (*later, *source))
}

/// The role for which `source` is generated, if it is generated from a KubeletConfig.
fn role_of(source: &str) -> Option<&str> {
    let (role, _) = source.strip_prefix("99-")?.split_once(GENERATED)?;
    Some(role)
}

/// Whether `source` is generated from a KubeletConfig.
pub(super) fn is_generated(source: &str) -> bool {
    role_of(source).is_some()
}

/// Whether the configuration generated from `object` is the one that counts on `pool`.
pub(super) fn counts(object: &Value, pool: &Pool, made_for: &str) -> bool {
    later(object, pool, made_for).is_none()
}

/// The MachineConfig, generated from another KubeletConfig, that overrides that of `object` on
/// `pool`.
pub(super) fn later<'a>(object: &Value, pool: &'a Pool, made_for: &str) -> Option<&'a str> {
    let later = listed(pool, made_for, Some(object)).filter(|source| is_later(source, made_for, Some(object)));
    later.max_by_key(|source| role_of(source).map(|role| place(role, source)))
}

/// What `planned`, a KubeletConfig, sets in motion on `pools`, where these node disruption
/// `policies` are in force.
pub(super) fn forecast(
    pools: &BTreeMap<String, Pool>,
    facts: &Facts,
    policies: Option<&Policies>,
    planned: PlannedChange<'_>,
) -> Forecast {
    let spec = |object: Option<&Value>| object.and_then(|object| object.get("spec").cloned());
    let objects = [planned.live, planned.result].into_iter().flatten();
    // A pool that is no longer reached loses the configuration, and reboots too.
    let concerned: BTreeMap<_, _> = objects
        .flat_map(|object| reached(pools, object))
        .map(|(pool, made_for)| (&pool.name, (pool, made_for)))
        .collect();
    if let Some(problem) = planned.result.filter(|_| !planned.takes_back).and_then(|result| problem(&concerned, result))
    {
        return Forecast::Known(Err(problem.into()));
    }
    if spec(planned.live) == spec(planned.result) {
        return Forecast::Known(Ok(Effect::default()));
    }
    let is_known = |pool: &Pool, source: &str| facts.of(pool).is_some_and(|facts| facts.makers.contains_key(source));
    let unread = concerned.values().flat_map(|(pool, made_for)| {
        listed(pool, made_for, planned.live).filter(|source| !is_known(pool, source)).map(str::to_owned)
    });
    let unread: BTreeSet<_> = unread.map(Needed::Maker).collect();
    if !unread.is_empty() {
        return Forecast::Unread(unread.into_iter().collect());
    }
    let Some(policies) = policies else { return Forecast::Unlisted(MACHINE_CONFIGURATION) };
    let name = planned.live.or(planned.result).map(|object| TargetRef::of(object).name).unwrap_or_default();
    let mut effect = Effect::default();
    let (mut overridden, mut empty, mut takes_it) = (Vec::new(), Vec::new(), false);
    for (pool, made_for) in concerned.into_values() {
        let of_pool = &pool.name;
        if let Some((other, counts)) = other(pool, made_for, (&name, planned.live), facts) {
            let is_second = role_of(other) == Some(made_for);
            if is_second && !planned.takes_back && (counts || planned.live.is_none()) {
                // The settings of one of them are lost, whichever counts.
                let maker = maker_of(facts, pool, other).unwrap_or_default();
                return Forecast::Known(Err(format!(
                    "MachineConfigPool {of_pool} already has KubeletConfig {maker} (rendered as {other}), and only one of them takes effect: move \
                     these settings into that one and skip this item in spec.items, or delete that one"
                ).into()));
            }
            if counts {
                effect.overridden.insert(part(of_pool, FILE));
            }
            let beside = changed_beside(planned);
            if counts && !beside.is_empty() {
                effect.notes.push(format!(
                    "Pool {of_pool} has a KubeletConfig of its own (rendered as {other}), which overrides this one except for {}.",
                    beside.iter().copied().collect::<Vec<_>>().join(" and ")
                ));
                pool.disturb(&mut effect, policies.disruption(beside));
                overridden.push(of_pool.as_str());
                continue;
            }
            if counts {
                overridden.push(of_pool.as_str());
                effect.notes.push(format!(
                    "Pool {of_pool} has a KubeletConfig of its own (rendered as {other}), which overrides this one: its machines keep \
                     what they have."
                ));
                continue;
            }
            if is_second {
                effect.notes.push(format!(
                    "Pool {of_pool} has another KubeletConfig (rendered as {other}), which this one overrides: only one of them takes effect."
                ));
            }
        }
        takes_it |= pool.machines > 0;
        let disruption = policies.disruption(changed(planned));
        if pool.machines == 0 {
            empty.push(of_pool.as_str());
        } else if disruption == Disruption::Reboot {
            effect
                .notes
                .push(format!("With that, the kubelet of each machine of pool {of_pool} gets another configuration."));
        }
        pool.disturb(&mut effect, disruption);
    }
    if !takes_it && !planned.takes_back && planned.result.is_some() {
        return Forecast::Known(Err(match overridden.as_slice() {
            [] => reaches_no_machine(&empty).into(),
            pools => format!(
                "it would reach no machine: MachineConfigPool {} has a KubeletConfig of its own, which overrides this one: put these settings into that KubeletConfig and skip this item in spec.items, or delete that KubeletConfig",
                pools.join(", ")
            ).into(),
        }));
    }
    Forecast::Known(Ok(effect))
}

/// The files besides [`FILE`] that the controllers generate, each with a field of a KubeletConfig
/// that it contains. Another KubeletConfig does not override them unless it sets the same
/// (pkg/controller/kubelet-config/helpers.go of machine-config-operator, `generateKubeletIgnFiles`,
/// release-4.14 to 5.0).
const BESIDE: [(&str, &str); 5] = [
    (SIZING_FILE, "/spec/autoSizingReserved"),
    (SIZING_FILE, "/spec/kubeletConfig/systemReserved/memory"),
    (SIZING_FILE, "/spec/kubeletConfig/systemReserved/cpu"),
    (SIZING_FILE, "/spec/kubeletConfig/systemReserved/ephemeral-storage"),
    ("/etc/systemd/system/kubelet.service.d/20-logging.conf", "/spec/logLevel"),
];
const SIZING_FILE: &str = "/etc/node-sizing-enabled.env";

/// The files besides [`FILE`] that change.
fn changed_beside(planned: PlannedChange<'_>) -> BTreeSet<&'static str> {
    let of = |object: Option<&Value>, pointer: &str| object.and_then(|object| object.pointer(pointer)).cloned();
    let changed = BESIDE.iter().filter(|(_, pointer)| of(planned.live, pointer) != of(planned.result, pointer));
    changed.map(|(file, _)| *file).collect()
}

/// All files that change.
fn changed(planned: PlannedChange<'_>) -> BTreeSet<&'static str> {
    let of_file = |object: Option<&Value>| {
        let mut object = object?.clone();
        let spec = object.get_mut("spec")?.as_object_mut()?;
        ["autoSizingReserved", "logLevel"].iter().for_each(|beside| drop(spec.remove(*beside)));
        Some(std::mem::take(spec))
    };
    let is_changed = of_file(planned.live) != of_file(planned.result);
    changed_beside(planned).into_iter().chain(is_changed.then_some(FILE)).collect()
}

/// Whether part of `object` takes effect even where another KubeletConfig overrides it.
pub(super) fn has_files_beside(object: &Value) -> bool {
    BESIDE.iter().any(|(_, pointer)| object.pointer(pointer).is_some_and(|value| !value.is_null()))
}

/// Why `result` must not be written in any case, if so.
fn problem(concerned: &BTreeMap<&String, (&Pool, &str)>, result: &Value) -> Option<String> {
    if let Some(field) = refused(result) {
        return Some(format!(
            "the Machine Config Operator rejects {field}, although the API server accepts it, and would stop rendering \
             the selected pools. Remove it from the override that sets it, or report this to the profile's owners"
        ));
    }
    let selects_none = !concerned.values().any(|(pool, _)| selects(result, pool));
    selects_none
        .then(|| "its machineConfigPoolSelector selects no MachineConfigPool: correct it, or label the pool".to_owned())
}

/// The parts of a KubeletConfig that are kept to follow its rollout.
pub(super) fn followed(object: &Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "apiVersion": part("/apiVersion"), "kind": part("/kind"),
        "metadata": {
            "name": part("/metadata/name"), "uid": part("/metadata/uid"), "generation": part("/metadata/generation"),
            "managedFields": edits(object).map(|entry| json!({"time": entry.get("time"), "fieldsV1": {"f:spec": {}}})).collect::<Vec<_>>(),
            "annotations": {SUFFIX: object.pointer("/metadata/annotations").and_then(|all| all.get(SUFFIX))},
        },
        "spec": part("/spec"),
        "status": {
            "observedGeneration": part("/status/observedGeneration"), "conditions": part("/status/conditions"),
        },
    })
}

/// The name of the MachineConfig that the controllers generate from `object` for the pool called
/// `pool`.
pub(super) fn generated(object: &Value, pool: &str) -> String {
    let suffix = object.pointer("/metadata/annotations").and_then(|all| all.get(SUFFIX)).and_then(Value::as_str);
    match suffix {
        None | Some("") => format!("99-{pool}{GENERATED}"),
        Some(number) => format!("99-{pool}{GENERATED}-{number}"),
    }
}

/// The verdict of the controllers on a KubeletConfig.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    /// They have accepted its present state.
    Accepted,
    /// They have not processed its last change.
    Unseen,
    /// They refuse it, for this reason. They render nothing for its pools until it is corrected.
    Refused(String),
}

/// The verdict of the controllers on the present state of `object`.
///
/// `wrapErrorWithCondition` and `cleanUpStatusConditions` (pkg/controller/kubelet-config/helpers.go
/// and kubelet_config_controller.go of machine-config-operator) append the newest condition.
/// release-4.14 to 4.22 write Success, or Failure, whose status is False up to 4.21 and True in
/// 4.22: its presence is what counts. release-4.23 and later write Accepted, followed by one of the
/// two for older clients.
pub(super) fn verdict(object: &Value) -> Acceptance {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let said = |entry: &&Value| matches!(text(entry, "type"), "Accepted" | "Success" | "Failure");
    let Some(newest) = conditions.into_iter().flatten().rfind(said) else { return Acceptance::Unseen };
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    let is_of_now =
        number("/status/observedGeneration") >= number("/metadata/generation") || is_later_than_edit(newest, object);
    match (text(newest, "type"), text(newest, "status")) {
        _ if !is_of_now => Acceptance::Unseen,
        ("Success", _) | ("Accepted", "True") => Acceptance::Accepted,
        _ => Acceptance::Refused(text(newest, "message").to_owned()),
    }
}

/// Whether the controllers wrote `condition` after the last edit of the spec; both times have a
/// precision of seconds. Releases before openshift/machine-config-operator#4900 write no
/// observedGeneration, or do not update it after an edit, but they always write the time of the
/// newest condition.
fn is_later_than_edit(condition: &Value, object: &Value) -> bool {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let edited = edits(object).filter_map(|entry| time(text(entry, "time"))).max();
    edited.is_some_and(|edited| time(text(condition, "lastTransitionTime")).is_some_and(|said| said >= edited))
}

/// The entries of managedFields that record edits of the spec.
fn edits(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    entries.filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some())
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The first field that the controllers will refuse.
fn refused(object: &Value) -> Option<String> {
    let kubelet = object.pointer("/spec/kubeletConfig");
    let set = |path: &&&str| kubelet.and_then(|kubelet| kubelet.pointer(path)).is_some();
    if let Some(path) = REFUSED.iter().find(set) {
        return Some(format!("/spec/kubeletConfig{path}"));
    }
    let auto = object.pointer("/spec/autoSizingReserved").and_then(Value::as_bool).unwrap_or_default();
    if auto && kubelet.and_then(|kubelet| kubelet.get("systemReserved")).is_some() {
        return Some("/spec/kubeletConfig/systemReserved together with autoSizingReserved".to_owned());
    }
    let level = object.pointer("/spec/logLevel").and_then(Value::as_i64);
    level.filter(|level| !(0..=10).contains(level)).map(|level| format!("/spec/logLevel {level}, which is not 0 to 10"))
}

#[cfg(test)]
mod tests;
