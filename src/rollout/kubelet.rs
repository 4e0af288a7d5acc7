//! What a planned KubeletConfig will do: the machine-config controllers render a whole kubelet configuration from it for
//! each pool that it selects, and the machines reboot with it (facts/machine-config-pools.md section 6).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::foresight::{ROLE, reaches_no_machine};
use super::pool::Pool;
use super::{KUBELET_CONFIG, Outlook, Planned};
use crate::api::TargetRef;
use crate::plan::item::{Effect, part};

/// The annotation with the number of a KubeletConfig among those of its pools.
const SUFFIX: &str = "machineconfiguration.openshift.io/mc-name-suffix";
const SELECTOR: &str = "/spec/machineConfigPoolSelector";
/// The file that is made of a KubeletConfig as a whole.
pub(super) const FILE: &str = "/etc/kubernetes/kubelet.conf";
/// In the name of what the controllers make of a KubeletConfig: the role is before it, the number after it.
const GENERATED: &str = "-generated-kubelet";

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

/// The pools that render what the controllers make of `object`, each with the name of the pool that it is made for. That is the pool
/// itself if `object` selects it; else one whose role it takes in, as pools of one's own take in what workers get.
pub(super) fn reached<'a>(pools: &'a BTreeMap<String, Pool>, object: &Value) -> Vec<(&'a Pool, &'a str)> {
    let selected: Vec<_> = pools.values().filter(|pool| pool.is_selected_by(object, SELECTOR)).collect();
    let last_made_for = |pool: &Pool| {
        let takes_in = |made_for: &&&Pool| pool.selects(&[(ROLE.to_owned(), made_for.name.clone())].into());
        selected.iter().filter(takes_in).map(|made_for| made_for.name.as_str()).max_by_key(|role| place(role, ""))
    };
    pools.values().filter_map(|pool| Some((pool, last_made_for(pool)?))).collect()
}

/// The order in which what is made of KubeletConfigs is merged: for workers first, then by name. Each brings the whole file, so the last
/// one is the only one that counts.
fn place<'a>(role: &str, name: &'a str) -> (bool, String, &'a str) {
    (role != "worker", role.to_owned(), name)
}

/// Who made what pools list, by the rendered configuration that lists it and its name; `None` if that is there no more.
pub(super) type Makers = BTreeMap<(String, String), Option<String>>;

/// The KubeletConfig that the controllers made `generated` of.
pub(super) fn maker(generated: &Value) -> Option<String> {
    let owners = generated.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner =
        owners.into_iter().flatten().find(|owner| owner.get("kind").is_some_and(|kind| kind == KUBELET_CONFIG.kind));
    owner.and_then(|owner| owner.get("name")).and_then(Value::as_str).map(str::to_owned)
}

/// What `pool` lists that is made of KubeletConfigs, except what is made of `object`, as far as names tell.
fn listed<'a>(pool: &'a Pool, made_for: &str, object: Option<&Value>) -> impl Iterator<Item = &'a str> {
    let own = object.map(|object| generated(object, made_for));
    let sources = pool.sources.iter().filter(|source| is_generated(source));
    sources.filter(move |source| Some(*source) != own.as_ref()).map(String::as_str)
}

/// Whether `source` comes later than what is made of `object`. Of a new object that is the last one of its role.
fn is_later(source: &str, made_for: &str, object: Option<&Value>) -> bool {
    let Some(role) = role_of(source) else { return false };
    match object.map(|object| generated(object, made_for)) {
        Some(own) => place(role, source) > place(made_for, &own),
        None => role != made_for && place(role, "") > place(made_for, ""),
    }
}

/// Another KubeletConfig than `name` of which `pool` renders something: what is made of it, and whether that counts instead.
fn other<'a>(
    pool: &'a Pool,
    made_for: &str,
    (name, live): (&str, Option<&Value>),
    makers: &Makers,
) -> Option<(&'a str, bool)> {
    let is_of_another = |source: &&str| {
        let maker = makers.get(&(pool.wanted.clone(), (*source).to_owned()));
        maker.and_then(Option::as_deref).is_some_and(|maker| maker != name)
    };
    let others = listed(pool, made_for, live).filter(is_of_another);
    others.map(|source| (source, is_later(source, made_for, live))).max_by_key(|(source, later)| (*later, *source))
}

/// For which role `source` is made, if it is made of a KubeletConfig.
fn role_of(source: &str) -> Option<&str> {
    let (role, _) = source.strip_prefix("99-")?.split_once(GENERATED)?;
    Some(role)
}

/// Whether `source` is made of a KubeletConfig.
pub(super) fn is_generated(source: &str) -> bool {
    role_of(source).is_some()
}

/// Whether what is made of `object` counts on `pool`, and nothing that is made of another one.
pub(super) fn counts(object: &Value, pool: &Pool, made_for: &str) -> bool {
    later(object, pool, made_for).is_none()
}

/// What is made of another KubeletConfig and counts on `pool` instead of what is made of `object`.
pub(super) fn later<'a>(object: &Value, pool: &'a Pool, made_for: &str) -> Option<&'a str> {
    let later = listed(pool, made_for, Some(object)).filter(|source| is_later(source, made_for, Some(object)));
    later.max_by_key(|source| role_of(source).map(|role| place(role, source)))
}

pub(super) fn outlook(pools: &BTreeMap<String, Pool>, makers: &Makers, planned: Planned<'_>) -> Outlook {
    let spec = |object: Option<&Value>| object.and_then(|object| object.get("spec").cloned());
    let objects = [planned.live, planned.result].into_iter().flatten();
    // A pool that is reached no more loses the configuration, and reboots too.
    let concerned: BTreeMap<_, _> = objects
        .flat_map(|object| reached(pools, object))
        .map(|(pool, made_for)| (&pool.name, (pool, made_for)))
        .collect();
    if let Some(problem) = planned.result.filter(|_| !planned.takes_back).and_then(|result| problem(&concerned, result))
    {
        return Outlook::Known(Err(problem));
    }
    if spec(planned.live) == spec(planned.result) {
        return Outlook::Known(Ok(Effect::default()));
    }
    let unread: BTreeSet<_> = concerned
        .values()
        .flat_map(|(pool, made_for)| listed(pool, made_for, planned.live).map(|source| (&pool.wanted, source)))
        .filter(|(wanted, source)| !makers.contains_key(&((*wanted).clone(), (*source).to_owned())))
        .map(|(_, source)| source.to_owned())
        .collect();
    if !unread.is_empty() {
        return Outlook::Unread(unread.into_iter().collect());
    }
    let name = planned.live.or(planned.result).map(|object| TargetRef::of(object).name).unwrap_or_default();
    let mut effect = Effect::default();
    let (mut overridden, mut takes_it) = (Vec::new(), false);
    for (pool, made_for) in concerned.into_values() {
        let of_pool = &pool.name;
        if let Some((other, counts)) = other(pool, made_for, (&name, planned.live), makers) {
            let is_second = role_of(other) == Some(made_for);
            if is_second && !planned.takes_back && (counts || planned.live.is_none()) {
                // Settings of one of them are lost, whichever counts.
                return Outlook::Known(Err(format!(
                    "MachineConfigPool {of_pool} has a KubeletConfig already (rendered as {other}), and only one counts: put what this \
                     one sets into that one and set this item aside, or delete that one"
                )));
            }
            if counts {
                effect.overridden.insert(part(of_pool, FILE));
            }
            if counts && files_beside(planned.live) != files_beside(planned.result) {
                effect.notes.push(format!(
                    "Pool {of_pool} has a KubeletConfig of its own (rendered as {other}), which overrides this one but for what is in files \
                     beside kubelet.conf (autoSizingReserved, systemReserved, logLevel): its machines reboot for these."
                ));
                effect.pools.insert(of_pool.clone(), pool.effect());
                effect.notes.extend(pool.obstacles());
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
                    "Pool {of_pool} has another KubeletConfig (rendered as {other}), which this one overrides: only one of them counts."
                ));
            }
        }
        takes_it |= pool.machines > 0;
        effect.pools.insert(of_pool.clone(), pool.effect());
        effect
            .notes
            .push(format!("The kubelet of each machine of pool {of_pool} restarts with another configuration."));
        effect.notes.extend(pool.obstacles());
    }
    if !takes_it && !planned.takes_back && planned.result.is_some() {
        return Outlook::Known(Err(match overridden.as_slice() {
            [] => reaches_no_machine(&effect.pools.keys().map(String::as_str).collect::<Vec<_>>()),
            pools => format!(
                "no machine would take it in: MachineConfigPool {} has a KubeletConfig of its own, which overrides this one",
                pools.join(", ")
            ),
        }));
    }
    Outlook::Known(Ok(effect))
}

/// What the controllers write beside /etc/kubernetes/kubelet.conf, which another KubeletConfig does not override unless it sets the same:
/// /etc/node-sizing-enabled.env and the kubelet's log level (pkg/controller/kubelet-config/helpers.go of machine-config-operator,
/// `generateKubeletIgnFiles`, release-4.14 to 5.0).
fn files_beside(object: Option<&Value>) -> Vec<&Value> {
    let pointers = ["/spec/autoSizingReserved", "/spec/logLevel"].map(str::to_owned);
    let reserved =
        ["memory", "cpu", "ephemeral-storage"].map(|name| format!("/spec/kubeletConfig/systemReserved/{name}"));
    let all = pointers.iter().chain(&reserved);
    all.map(|pointer| object.and_then(|object| object.pointer(pointer)).unwrap_or(&Value::Null)).collect()
}

/// Whether something of `object` takes effect where another KubeletConfig overrides it.
pub(super) fn has_files_beside(object: &Value) -> bool {
    files_beside(Some(object)).iter().any(|value| !value.is_null())
}

/// Why `result` must not be written, whatever else there is.
fn problem(concerned: &BTreeMap<&String, (&Pool, &str)>, result: &Value) -> Option<String> {
    if let Some(field) = refused(result) {
        return Some(format!(
            "the machine-config controllers refuse {field}, although the API server takes it, and would stop rendering \
             for its pools"
        ));
    }
    let selects_none = !concerned.values().any(|(pool, _)| selects(result, pool));
    selects_none
        .then(|| "its machineConfigPoolSelector selects no MachineConfigPool: correct it, or label the pool".to_owned())
}

/// What is kept of a KubeletConfig whose rollout is followed.
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

/// The name of the MachineConfig that the controllers make of `object` for the pool of that name.
pub(super) fn generated(object: &Value, pool: &str) -> String {
    let suffix = object.pointer("/metadata/annotations").and_then(|all| all.get(SUFFIX)).and_then(Value::as_str);
    match suffix {
        None | Some("") => format!("99-{pool}{GENERATED}"),
        Some(number) => format!("99-{pool}{GENERATED}-{number}"),
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
///
/// `wrapErrorWithCondition` and `cleanUpStatusConditions` (pkg/controller/kubelet-config/helpers.go and kubelet_config_controller.go of
/// machine-config-operator) append the newest condition. release-4.14 to 4.22 write Success, or Failure, whose status is False up to 4.21 and
/// True in 4.22: that it is there says it. release-4.23 and later write Accepted, and after it one of the two for whoever reads them.
pub(super) fn verdict(object: &Value) -> Verdict {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let said = |entry: &&Value| matches!(text(entry, "type"), "Accepted" | "Success" | "Failure");
    let Some(newest) = conditions.into_iter().flatten().rfind(said) else { return Verdict::Unseen };
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64).unwrap_or_default();
    let is_of_now =
        number("/status/observedGeneration") >= number("/metadata/generation") || is_later_than_edit(newest, object);
    match (text(newest, "type"), text(newest, "status")) {
        _ if !is_of_now => Verdict::Unseen,
        ("Success", _) | ("Accepted", "True") => Verdict::Accepted,
        _ => Verdict::Refused(text(newest, "message").to_owned()),
    }
}

/// Whether the controllers have written `condition` after the last edit of the spec, as far as the seconds tell that both times have. Releases
/// before openshift/machine-config-operator#4900 write no observedGeneration, or leave it behind after an edit; the time of the newest condition
/// they always write.
fn is_later_than_edit(condition: &Value, object: &Value) -> bool {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let edited = edits(object).filter_map(|entry| time(text(entry, "time"))).max();
    edited.is_some_and(|edited| time(text(condition, "lastTransitionTime")).is_some_and(|said| said >= edited))
}

/// The entries of managedFields by which somebody has edited the spec.
fn edits(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    entries.filter(|entry| entry.pointer("/fieldsV1/f:spec").is_some())
}

fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
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
    use crate::plan::item::one_by_one;

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
                "spec": {
                    "configuration": {"name": "r", "source": sources},
                    "machineConfigSelector": {"matchLabels": {ROLE: name}},
                },
                "status": {"machineCount": 3},
            }))
        };
        [("worker".to_owned(), pool("worker")), ("master".to_owned(), pool("master"))].into()
    }

    fn outlook_of(sources: &[&str], live: Option<&Value>, result: Option<&Value>) -> Result<Effect, String> {
        match outlook(&pools(sources), &makers(sources, Some("theirs")), Planned { live, result, takes_back: false }) {
            Outlook::Known(known) => known,
            Outlook::Unread(names) => panic!("{names:?}"),
        }
    }

    fn makers(sources: &[&str], maker: Option<&str>) -> Makers {
        let key = |source: &&str| ("r".to_owned(), (*source).to_owned());
        sources.iter().map(|source| (key(source), maker.map(str::to_owned))).collect()
    }

    #[test]
    fn the_machines_of_the_selected_pools_reboot() {
        let (one, two) = (config(json!({"maxPods": 300})), config(json!({"maxPods": 400})));
        let effect = outlook_of(&[], None, Some(&one)).unwrap();
        assert_eq!(effect.pools, one_by_one(&[("worker", 3)]));
        assert!(effect.notes[0].contains("kubelet"), "{effect:?}");
        assert_eq!(outlook_of(&[], Some(&one), Some(&two)).unwrap().machines(), 3);
        assert_eq!(outlook_of(&[], Some(&one), Some(&one)).unwrap(), Effect::default());
        assert_eq!(outlook_of(&[], Some(&one), None).unwrap().machines(), 3);
    }

    /// R1: what each release writes of a KubeletConfig, and when it says nothing of its last edit.
    #[test]
    fn r1_every_release_says_what_it_has_accepted() {
        let condition = |kind: &str, status: &str, second: u8| {
            json!({
                "type": kind, "status": status, "message": format!("{kind} {status}"), "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
            })
        };
        let said = |observed: Option<i64>, conditions: &[Value]| {
            let edit = json!({"manager": "m", "time": "2026-01-01T00:00:10Z", "fieldsV1": {"f:spec": {"f:kubeletConfig": {}}}});
            let status = json!({"manager": "c", "time": "2026-01-01T00:00:50Z", "subresource": "status", "fieldsV1": {"f:status": {}}});
            let mut object = config(json!({}));
            object["metadata"]["generation"] = json!(2);
            object["metadata"]["managedFields"] = json!([edit, status]);
            object["status"] = json!({"observedGeneration": observed, "conditions": conditions});
            assert_eq!(verdict(&object), verdict(&followed(&object)), "what is followed is judged alike");
            verdict(&object)
        };
        let refused = |text: &str| Verdict::Refused(text.to_owned());
        let (success, accepted) = (condition("Success", "True", 20), condition("Accepted", "True", 20));
        for (release, observed, conditions, expected) in [
            ("4.14 to 4.22", Some(2), vec![success.clone()], Verdict::Accepted),
            (
                "4.14 to 4.21",
                Some(2),
                vec![success.clone(), condition("Failure", "False", 20)],
                refused("Failure False"),
            ),
            ("4.22", Some(2), vec![success.clone(), condition("Failure", "True", 20)], refused("Failure True")),
            (
                "4.14 to 4.22, mended",
                Some(2),
                vec![condition("Failure", "True", 5), success.clone()],
                Verdict::Accepted,
            ),
            ("4.23", Some(2), vec![accepted.clone(), success.clone()], Verdict::Accepted),
            (
                "4.23",
                Some(2),
                vec![accepted.clone(), condition("Accepted", "False", 20), condition("Failure", "True", 20)],
                refused("Failure True"),
            ),
            ("main without what is old", Some(2), vec![condition("Accepted", "False", 20)], refused("Accepted False")),
            ("an edit that is not seen", Some(1), vec![condition("Success", "True", 9)], Verdict::Unseen),
            ("observedGeneration is left behind", Some(1), vec![success.clone()], Verdict::Accepted),
            ("observedGeneration is not written", None, vec![condition("Success", "True", 10)], Verdict::Accepted),
            (
                "observedGeneration is not written",
                None,
                vec![condition("Failure", "False", 10)],
                refused("Failure False"),
            ),
            ("observedGeneration is not written", None, vec![condition("Success", "True", 9)], Verdict::Unseen),
            ("nothing yet", Some(2), vec![], Verdict::Unseen),
            ("something else", Some(2), vec![condition("Other", "True", 20)], Verdict::Unseen),
        ] {
            assert_eq!(said(observed, &conditions), expected, "{release}: {conditions:?}");
        }
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

    /// Case M8: a pool of one's own takes in what is made for workers, and reboots with it.
    #[test]
    fn m8_pools_that_take_in_what_workers_get_reboot_too() {
        let role = |names: &[&str]| json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": names}]});
        let pools_with = |machines: i64, sources: &[&str]| -> BTreeMap<String, Pool> {
            let sources: Vec<_> = sources.iter().map(|name| json!({"name": name})).collect();
            let mut fast = json!({
                "metadata": {"name": "fast"}, "spec": {"machineConfigSelector": role(&["worker", "fast"])},
                "status": {"machineCount": 2},
            });
            fast["spec"]["configuration"] = json!({"name": "r", "source": sources});
            let worker = json!({
                "metadata": {"name": "worker", "labels": {"pool": "worker"}},
                "spec": {"machineConfigSelector": role(&["worker"])}, "status": {"machineCount": machines},
            });
            [fast, worker].iter().map(Pool::read).map(|pool| (pool.name.clone(), pool)).collect()
        };
        let wanted = config(json!({"maxPods": 300}));
        let makers = makers(&["99-fast-generated-kubelet"], Some("theirs"));
        let known_of = |pools: &BTreeMap<String, Pool>| match outlook(
            pools,
            &makers,
            Planned { live: None, result: Some(&wanted), takes_back: false },
        ) {
            Outlook::Known(known) => known,
            Outlook::Unread(names) => panic!("{names:?}"),
        };
        let outlook_of = |pools: &BTreeMap<String, Pool>| known_of(pools).unwrap();
        assert_eq!(outlook_of(&pools_with(3, &[])).pools, one_by_one(&[("fast", 2), ("worker", 3)]));
        // All machines of workers may be in pools of their own.
        assert_eq!(outlook_of(&pools_with(0, &[])).machines(), 2);
        let overridden = outlook_of(&pools_with(3, &["99-fast-generated-kubelet"]));
        assert_eq!(overridden.pools, one_by_one(&[("worker", 3)]));
        assert!(
            overridden.notes[0].contains("a KubeletConfig of its own (rendered as 99-fast-generated-kubelet)"),
            "{overridden:?}"
        );
        // M9: the only machines there are would not take it in.
        let nobody = known_of(&pools_with(0, &["99-fast-generated-kubelet"])).unwrap_err();
        assert!(nobody.contains("no machine would take it in: MachineConfigPool fast"), "{nobody}");
    }

    /// Case M9.
    #[test]
    fn m9_what_would_reach_no_machine_is_no_plan() {
        let mut empty = pools(&[]);
        let worker = json!({"metadata": {"name": "worker", "labels": {"pool": "worker"}}, "spec": {"machineConfigSelector": {}}});
        empty.insert("worker".to_owned(), Pool::read(&worker));
        let wanted = config(json!({}));
        let planned = |takes_back| Planned { live: None, result: Some(&wanted), takes_back };
        let none = Makers::new();
        let Outlook::Known(Err(problem)) = outlook(&empty, &none, planned(false)) else { panic!("a plan") };
        assert!(problem.contains("has no machines"), "{problem}");
        assert!(matches!(outlook(&empty, &none, planned(true)), Outlook::Known(Ok(_))));
    }

    /// Fault R5: what is in a file of its own reboots machines that another KubeletConfig keeps from the rest.
    #[test]
    fn r5_files_beside_the_configuration_reach_pools_that_override_it() {
        let sources = ["99-infra-generated-kubelet"];
        let mut all = pools(&[]);
        let infra = json!({
            "metadata": {"name": "infra", "labels": {"pool": "infra"}}, "status": {"machineCount": 2},
            "spec": {
                "configuration": {"name": "r", "source": [{"name": sources[0]}]},
                "machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]},
            },
        });
        all.insert("infra".to_owned(), Pool::read(&infra));
        let known = makers(&sources, Some("theirs"));
        let plain = config(json!({"maxPods": 300}));
        for (more, reboot) in [
            (json!({"kubeletConfig": {"maxPods": 400}}), vec!["worker"]),
            (json!({"autoSizingReserved": true}), vec!["infra", "worker"]),
            (json!({"logLevel": 4}), vec!["infra", "worker"]),
            (json!({"kubeletConfig": {"systemReserved": {"memory": "2Gi"}}}), vec!["infra", "worker"]),
        ] {
            let mut result = plain.clone();
            result["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            for live in [None, Some(&plain)] {
                let planned = Planned { live, result: Some(&result), takes_back: false };
                let Outlook::Known(Ok(effect)) = outlook(&all, &known, planned) else { panic!("{more}") };
                assert_eq!(effect.pools.into_keys().collect::<Vec<_>>(), reboot, "{more}");
            }
        }
    }

    /// Case M11: of two for one pool the settings of one are lost.
    #[test]
    fn m11_a_second_one_for_a_pool_is_no_plan() {
        let refused = outlook_of(&["99-worker-generated-kubelet"], None, Some(&config(json!({})))).unwrap_err();
        assert!(refused.contains("has a KubeletConfig already (rendered as 99-worker-generated-kubelet)"), "{refused}");
        let with_number = |number: &str| {
            let mut object = config(json!({"maxPods": 300}));
            object["metadata"]["annotations"] = json!({SUFFIX: number});
            object
        };
        let both = ["99-worker-generated-kubelet", "99-worker-generated-kubelet-1"];
        let other = config(json!({"maxPods": 400}));
        let earlier = outlook_of(&both, Some(&with_number("")), Some(&other)).unwrap_err();
        assert!(earlier.contains("rendered as 99-worker-generated-kubelet-1"), "{earlier}");
        let later = outlook_of(&both, Some(&with_number("1")), Some(&other)).unwrap();
        assert!(later.notes[0].contains("which this one overrides"), "{later:?}");
        assert!(outlook_of(&both[..1], Some(&with_number("")), Some(&other)).unwrap().notes.len() == 1);
        // What a pool still lists may be what is left of our own, or of one that is gone.
        let first = |makers: &Makers| {
            let planned = Planned { live: None, result: Some(&other), takes_back: false };
            outlook(&pools(&both[..1]), makers, planned)
        };
        assert_eq!(first(&Makers::new()), Outlook::Unread(vec![both[0].to_owned()]));
        for maker in [None, Some("k")] {
            assert!(matches!(first(&makers(&both[..1], maker)), Outlook::Known(Ok(_))), "{maker:?}");
        }
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "KubeletConfig", "name": "theirs"}]}});
        assert_eq!((maker(&owned), maker(&json!({}))), (Some("theirs".to_owned()), None));
    }
}
