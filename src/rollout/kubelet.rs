//! What a planned KubeletConfig will do: the machine-config controllers render a whole kubelet configuration from it for
//! each pool that it selects, and the machines reboot with it (facts/machine-config-pools.md section 6).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::foresight::state_of;
use super::pool::Pool;
use super::{KUBELET_CONFIG, Outlook, Planned};
use crate::api::TargetRef;
use crate::plan::item::Effect;

/// The annotation with the number of a KubeletConfig among those of its pools.
const SUFFIX: &str = "machineconfiguration.openshift.io/mc-name-suffix";
const SELECTOR: &str = "/spec/machineConfigPoolSelector";

/// Fields that the controllers refuse after the API server has taken them; a refused one blocks its pools without a sign.
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

pub(super) fn outlook(pools: &BTreeMap<String, Pool>, planned: Planned<'_>) -> Outlook {
    let spec = |object: Option<&Value>| object.and_then(|object| object.get("spec").cloned());
    let mut effect = Effect::default();
    if let Some(result) = planned.result.filter(|_| !planned.takes_back) {
        if let Some(field) = refused(result) {
            return Outlook::Known(Err(format!(
                "the machine-config controllers refuse {field}, although the API server takes it, and would stop rendering \
                 for its pools"
            )));
        }
        if !pools.values().any(|pool| selects(result, pool)) {
            return Outlook::Known(Err(
                "its machineConfigPoolSelector selects no MachineConfigPool: correct it, or label the pool".to_owned(),
            ));
        }
    }
    if spec(planned.live) == spec(planned.result) {
        return Outlook::Known(Ok(effect));
    }
    // A pool that is selected no more loses the configuration, and reboots too.
    let concerned =
        |pool: &&Pool| [planned.live, planned.result].into_iter().flatten().any(|object| selects(object, pool));
    for pool in pools.values().filter(concerned) {
        effect.pools.insert(pool.name.clone(), pool.machines);
        effect
            .notes
            .push(format!("The kubelet of each machine of pool {} restarts with another configuration.", pool.name));
        if planned.live.is_none()
            && let Some(other) = other_config(pool)
        {
            effect.notes.push(format!(
                "Pool {} has a KubeletConfig already (rendered as {other}): only one of them counts, and the settings of \
                 the other are lost.",
                pool.name
            ));
        }
        effect.notes.extend(state_of(pool));
    }
    Outlook::Known(Ok(effect))
}

/// The MachineConfig that another KubeletConfig was rendered to.
fn other_config(pool: &Pool) -> Option<&String> {
    let prefix = format!("99-{}-generated-kubelet", pool.name);
    pool.sources.iter().find(|source| source.starts_with(&prefix))
}

/// What is kept of a KubeletConfig whose rollout is followed.
pub(super) fn followed(object: &Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "apiVersion": part("/apiVersion"), "kind": part("/kind"),
        "metadata": {
            "name": part("/metadata/name"), "generation": part("/metadata/generation"),
            "annotations": {SUFFIX: object.pointer("/metadata/annotations").and_then(|all| all.get(SUFFIX))},
        },
        "spec": part("/spec"),
        "status": {
            "observedGeneration": part("/status/observedGeneration"), "conditions": part("/status/conditions"),
        },
    })
}

/// The name of the MachineConfig that the controllers make of `object` for the pool of that name.
pub(super) fn generated(object: &Value, pool: &str) -> String {
    let suffix = object.pointer("/metadata/annotations").and_then(|all| all.get(SUFFIX)).and_then(Value::as_str);
    match suffix {
        None | Some("") => format!("99-{pool}-generated-kubelet"),
        Some(number) => format!("99-{pool}-generated-kubelet-{number}"),
    }
}

/// What the controllers say of a KubeletConfig.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They have accepted it as it is now.
    Accepted,
    /// They have not looked at its last change.
    Unseen,
    /// They refuse it, for this reason. That keeps them from rendering for its pools until it is corrected.
    Refused(String),
}

/// What the controllers say of `object` as it is now.
pub(super) fn verdict(object: &Value) -> Verdict {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Verdict::Unseen;
    }
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    // The newest is the last.
    match conditions.into_iter().flatten().rfind(|entry| text(entry, "type") == "Accepted") {
        Some(entry) if text(entry, "status") == "True" => Verdict::Accepted,
        Some(entry) => Verdict::Refused(text(entry, "message")),
        None => Verdict::Unseen,
    }
}

/// The first field that the controllers will not accept.
fn refused(object: &Value) -> Option<String> {
    let kubelet = object.pointer("/spec/kubeletConfig");
    let set = |path: &&&str| kubelet.and_then(|kubelet| kubelet.pointer(path)).is_some();
    if let Some(path) = REFUSED.iter().find(set) {
        return Some(format!("/spec/kubeletConfig{path}"));
    }
    let auto = object.pointer("/spec/autoSizingReserved").and_then(Value::as_bool).unwrap_or_default();
    if auto && kubelet.and_then(|kubelet| kubelet.get("systemReserved")).is_some() {
        return Some("/spec/kubeletConfig/systemReserved beside autoSizingReserved".to_owned());
    }
    let level = object.pointer("/spec/logLevel").and_then(Value::as_i64);
    level.filter(|level| !(0..=10).contains(level)).map(|level| format!("/spec/logLevel {level}, which is not 0 to 10"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(kubelet: Value) -> Value {
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "k"},
            "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}, "kubeletConfig": kubelet},
        })
    }

    fn pools(sources: &[&str]) -> BTreeMap<String, Pool> {
        let sources: Vec<_> = sources.iter().map(|name| json!({"name": name})).collect();
        let pool = |name: &str| {
            Pool::read(&json!({
                "metadata": {"name": name, "labels": {"pool": name}},
                "spec": {"configuration": {"name": "r", "source": sources}}, "status": {"machineCount": 3},
            }))
        };
        [("worker".to_owned(), pool("worker")), ("master".to_owned(), pool("master"))].into()
    }

    fn outlook_of(sources: &[&str], live: Option<&Value>, result: Option<&Value>) -> Result<Effect, String> {
        match outlook(&pools(sources), Planned { live, result, takes_back: false }) {
            Outlook::Known(known) => known,
            Outlook::Unread(names) => panic!("{names:?}"),
        }
    }

    #[test]
    fn the_machines_of_the_selected_pools_reboot() {
        let (one, two) = (config(json!({"maxPods": 300})), config(json!({"maxPods": 400})));
        let effect = outlook_of(&[], None, Some(&one)).unwrap();
        assert_eq!(effect.pools, [("worker".to_owned(), 3)].into());
        assert!(effect.notes[0].contains("kubelet"), "{effect:?}");
        assert_eq!(outlook_of(&[], Some(&one), Some(&two)).unwrap().machines(), 3);
        assert_eq!(outlook_of(&[], Some(&one), Some(&one)).unwrap(), Effect::default());
        assert_eq!(outlook_of(&[], Some(&one), None).unwrap().machines(), 3);
    }

    #[test]
    fn what_the_controllers_would_refuse_is_no_plan() {
        for (kubelet, says) in [
            (json!({"cgroupDriver": "x"}), "cgroupDriver"),
            (json!({"memorySwap": {"swapBehavior": "LimitedSwap"}}), "swapBehavior"),
            (json!({"failSwapOn": false}), "failSwapOn"),
        ] {
            assert!(outlook_of(&[], None, Some(&config(kubelet))).unwrap_err().contains(says), "{says}");
        }
        let mut both = config(json!({"systemReserved": {"cpu": "1"}}));
        both["spec"]["autoSizingReserved"] = json!(true);
        assert!(outlook_of(&[], None, Some(&both)).unwrap_err().contains("autoSizingReserved"));
        let mut loud = config(json!({}));
        loud["spec"]["logLevel"] = json!(11);
        assert!(outlook_of(&[], None, Some(&loud)).unwrap_err().contains("logLevel 11"));
        let mut nobody = config(json!({}));
        nobody["spec"]["machineConfigPoolSelector"] = json!({"matchLabels": {"pool": "none"}});
        assert!(outlook_of(&[], None, Some(&nobody)).unwrap_err().contains("selects no MachineConfigPool"));
    }

    #[test]
    fn a_second_one_for_a_pool_is_told() {
        let effect = outlook_of(&["99-worker-generated-kubelet"], None, Some(&config(json!({})))).unwrap();
        assert!(effect.notes.iter().any(|note| note.contains("has a KubeletConfig already")), "{effect:?}");
    }
}
