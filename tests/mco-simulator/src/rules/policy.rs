//! How a change disrupts a machine: node disruption policies, and the list of files in releases
//! without them. Pure.
//!
//! Source: openshift/machine-config-operator, release-4.17 to 5.0: pkg/apihelpers/apihelpers.go
//! `defaultClusterPolicies` and `MergeClusterPolicies`; pkg/daemon/update.go
//! `calculatePostConfigChangeNodeDisruptionAction` and `…FromMCDiffs`;
//! pkg/controller/common/helpers.go `FindClosestFilePolicyPathMatch`; pkg/daemon/drain.go
//! `isDrainRequiredForNodeDisruptionActions`. release-4.14: pkg/daemon/update.go
//! `calculatePostConfigChangeActionFromFileDiffs`. All from the source, nothing observed: daemons
//! need a machine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::{MachineConfigSpec, MachineConfiguration};

/// Name of the MachineConfiguration that is in force.
pub const CLUSTER: &str = "cluster";

/// How a change disrupts a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disruption {
    /// Whether it is drained.
    pub drains: bool,
    /// Whether it reboots.
    pub reboots: bool,
}

/// The disruption of most changes.
pub const REBOOT: Disruption = Disruption { drains: true, reboots: true };

/// Files that releases without policies change without a reboot.
const WITHOUT_POLICIES: [&str; 7] = [
    "/etc/kubernetes/kubelet-ca.crt",
    "/etc/mco/internal-registry-pull-secret.json",
    "/var/lib/kubelet/config.json",
    "/etc/containers/registries.conf",
    "/etc/machine-config-daemon/no-reboot/containers-gpg.pub",
    "/etc/containers/policy.json",
    "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
];

/// The policies of every cluster; for files, those that all releases from 4.17 on share.
fn defaults() -> Value {
    let file = |path: &str, actions: Value| json!({"path": path, "actions": actions});
    let reload = || json!([{"type": "Reload", "reload": {"serviceName": "crio.service"}}]);
    json!({
        "files": [
            file("/var/lib/kubelet/config.json", json!([{"type": "None"}])),
            file("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", reload()),
            file("/etc/containers/policy.json", reload()),
            file("/etc/containers/registries.conf", json!([{"type": "Special"}])),
            file("/etc/containers/registries.d", reload()),
            file("/etc/nmstate/openshift", json!([{"type": "None"}])),
        ],
        "sshkey": {"actions": [{"type": "None"}]},
    })
}

/// The policies in the status: those of `spec` over those of every cluster.
pub fn merged(spec: &Value) -> Value {
    let mut merged = defaults();
    for (list, key) in [("files", "path"), ("units", "name")] {
        let mut entries = merged[list].as_array().cloned().unwrap_or_default();
        for policy in spec[list].as_array().into_iter().flatten() {
            match entries.iter_mut().find(|entry| entry[key] == policy[key]) {
                Some(entry) => *entry = policy.clone(),
                None => entries.push(policy.clone()),
            }
        }
        merged[list] = Value::Array(entries);
    }
    if spec["sshkey"]["actions"].as_array().is_some_and(|actions| !actions.is_empty()) {
        merged["sshkey"] = spec["sshkey"].clone();
    }
    merged
}

/// How the change from `old` to `new` disrupts a machine. `None` while it waits because the
/// policies in force are behind their spec.
pub fn disruption(
    old: &MachineConfigSpec,
    new: &MachineConfigSpec,
    configuration: Option<&MachineConfiguration>,
    has_policies: bool,
) -> Option<Disruption> {
    let beside = |spec: &MachineConfigSpec| MachineConfigSpec { config: Value::Null, ..spec.clone() };
    let (files, units) = (changed(old, new, "/storage/files", "path"), changed(old, new, "/systemd/units", "name"));
    if !has_policies {
        let reboots = beside(old) != beside(new)
            || !units.is_empty()
            || files.iter().any(|path| !WITHOUT_POLICIES.contains(&path.as_str()));
        let drains = files.iter().any(|path| path == "/etc/containers/registries.conf");
        return Some(if reboots { REBOOT } else { Disruption { drains, reboots } });
    }
    let status = configuration?.status.as_ref()?;
    if status.observed_generation != configuration?.metadata.generation {
        return None;
    }
    if beside(old) != beside(new) {
        return Some(REBOOT);
    }
    let policies = status.node_disruption_policy_status.get("clusterPolicies")?;
    let entries = |list: &str| policies[list].as_array().cloned().unwrap_or_default();
    let closest = |path: &String| {
        let fits = |of: &str| path == of || path.starts_with(&format!("{}/", of.trim_end_matches('/')));
        let fitting = entries("files").into_iter().filter(|policy| policy["path"].as_str().is_some_and(fits));
        fitting.max_by_key(|policy| policy["path"].as_str().map(str::len))
    };
    let of_unit = |name: &String| entries("units").into_iter().find(|policy| policy["name"] == name.as_str());
    let keys = (users(old) != users(new)).then(|| Some(policies["sshkey"].clone()));
    let found = files.iter().map(closest).chain(units.iter().map(of_unit)).chain(keys);
    let of_policy = |policy: Option<Value>| match policy {
        None => REBOOT,
        Some(policy) => {
            let actions = policy["actions"].as_array().cloned().unwrap_or_default();
            let has = |names: &[&str]| actions.iter().any(|action| names.iter().any(|name| action["type"] == *name));
            Disruption { drains: has(&["Drain", "Special", "Reboot"]), reboots: has(&["Reboot"]) }
        }
    };
    let both = |sum: Disruption, of: Disruption| Disruption {
        drains: sum.drains || of.drains,
        reboots: sum.reboots || of.reboots,
    };
    Some(found.map(of_policy).fold(Disruption::default(), both))
}

fn users(spec: &MachineConfigSpec) -> Option<&Value> {
    spec.config.pointer("/passwd")
}

/// The entries of a list in the Ignition configuration that differ.
fn changed(old: &MachineConfigSpec, new: &MachineConfigSpec, list: &str, key: &str) -> BTreeSet<String> {
    let of = |spec: &MachineConfigSpec| -> BTreeMap<String, Value> {
        let entries = spec.config.pointer(list).and_then(Value::as_array).into_iter().flatten();
        entries.map(|entry| (entry[key].as_str().unwrap_or_default().to_owned(), entry.clone())).collect()
    };
    let (old, new) = (of(old), of(new));
    old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(path: &str) -> MachineConfigSpec {
        MachineConfigSpec { config: json!({"storage": {"files": [{"path": path}]}}), ..Default::default() }
    }

    fn cluster(spec: Value) -> MachineConfiguration {
        let status = json!({"observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": merged(&spec)}});
        serde_json::from_value(json!({"metadata": {"generation": 1}, "spec": {}, "status": status})).expect("parses")
    }

    #[test]
    fn the_worst_action_of_the_closest_policies_counts() {
        let policies = cluster(json!({"files": [
            {"path": "/etc/a", "actions": [{"type": "None"}]},
            {"path": "/etc/a/b", "actions": [{"type": "Drain"}]},
            {"path": "/etc/containers/policy.json", "actions": [{"type": "Reboot"}]},
        ]}));
        let none = MachineConfigSpec::default();
        for (path, drains, reboots) in [
            ("/etc/a", false, false),
            ("/etc/a/c", false, false),
            ("/etc/a/b/c", true, false),
            ("/etc/ab", true, true),
            ("/etc/containers/registries.d/x", false, false),
            ("/etc/containers/policy.json", true, true),
        ] {
            let found = disruption(&none, &with_file(path), Some(&policies), true);
            assert_eq!(found, Some(Disruption { drains, reboots }), "{path}");
        }
        let kernel = MachineConfigSpec { kernel_arguments: Some(vec!["psi=1".into()]), ..with_file("/etc/a") };
        assert_eq!(disruption(&none, &kernel, Some(&policies), true), Some(REBOOT));
    }

    #[test]
    fn policies_that_are_behind_are_waited_for_and_early_releases_have_none() {
        let mut behind = cluster(json!({}));
        behind.metadata.generation = Some(2);
        let none = MachineConfigSpec::default();
        assert_eq!(disruption(&none, &with_file("/etc/a"), Some(&behind), true), None);
        assert_eq!(disruption(&none, &with_file("/etc/a"), None, true), None);
        assert_eq!(disruption(&none, &with_file("/etc/a"), None, false), Some(REBOOT));
        let quiet = disruption(&none, &with_file("/etc/containers/policy.json"), None, false);
        assert_eq!(quiet, Some(Disruption::default()));
    }
}
