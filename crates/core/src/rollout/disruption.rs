//! How much a change of files and units disturbs a machine: it reboots, unless the cluster's node
//! disruption policies prevent it.
//!
//! The rules are those of openshift/machine-config-operator, pkg/daemon/update.go, release-4.17 to
//! 5.0: `calculatePostConfigChangeNodeDisruptionAction` reboots for anything that is not a file, a
//! unit or an SSH key; `calculatePostConfigChangeNodeDisruptionActionFromMCDiffs` looks up the
//! policies for each file and unit that differs, and reboots if there is none. drain.go,
//! `isDrainRequiredForNodeDisruptionActions`, drains for Drain, and for Special if the change needs
//! it. Up to release-4.16 there are no policies, and `calculatePostConfigChangeActionFromFileDiffs`
//! has a list of files instead.

use std::collections::BTreeMap;

use serde_json::Value;

/// The name of the only MachineConfiguration that counts.
const NAME: &str = "cluster";

/// The effect of a change on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disruption {
    /// It restarts services at most.
    Nothing,
    /// It may be drained, depending on what changes in the file.
    MayDrain,
    /// It is drained.
    Drain,
    /// It is drained and reboots.
    Reboot,
}

/// Policies by path or name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policies {
    files: BTreeMap<String, Disruption>,
    units: BTreeMap<String, Disruption>,
    keys: Disruption,
}

/// The files that cause no reboot where there are no policies, in all releases without policies.
const WITHOUT_POLICIES: [(&str, Disruption); 7] = [
    ("/etc/containers/policy.json", Disruption::Nothing),
    ("/etc/containers/registries.conf", Disruption::MayDrain),
    ("/etc/kubernetes/kubelet-ca.crt", Disruption::Nothing),
    ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", Disruption::Nothing),
    ("/etc/mco/internal-registry-pull-secret.json", Disruption::Nothing),
    ("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", Disruption::Nothing),
    ("/var/lib/kubelet/config.json", Disruption::Nothing),
];

impl Policies {
    /// The policies in force according to `found`, which are all MachineConfigurations. If the
    /// status lags behind the spec, daemons wait for it, and the default applies here.
    pub(super) fn of(found: &[Value]) -> Self {
        let of_cluster = found.iter().find(|object| object.pointer("/metadata/name").is_some_and(|name| name == NAME));
        let in_force = of_cluster.and_then(|object| {
            let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
            let is_of_now = number("/metadata/generation") == number("/status/observedGeneration");
            object.pointer("/status/nodeDisruptionPolicyStatus/clusterPolicies").filter(|_| is_of_now)
        });
        let Some(policies) = in_force else {
            let files = WITHOUT_POLICIES.iter().map(|(path, disruption)| ((*path).to_owned(), *disruption));
            return Self { files: files.collect(), units: BTreeMap::new(), keys: Disruption::Nothing };
        };
        let read = |list: &str, key: &str| {
            let entries = policies.get(list).and_then(Value::as_array).into_iter().flatten();
            let policy = |entry: &Value| {
                let of = entry.get(key)?.as_str()?;
                let of = if list == "files" { of.trim_end_matches('/') } else { of };
                Some((of.to_owned(), of_actions(entry)))
            };
            entries.filter_map(policy).collect()
        };
        let keys = policies.get("sshkey").map_or(Disruption::Nothing, of_actions);
        Self { files: read("files", "path"), units: read("units", "name"), keys }
    }

    /// The effect of a change of SSH keys.
    pub(super) fn of_keys(&self) -> Disruption {
        self.keys
    }

    /// The effect of a change of all these files, given by path, and units, given by name.
    pub(super) fn disruption<'a>(&self, changed: impl IntoIterator<Item = &'a str>) -> Disruption {
        let of = |name: &str| if name.starts_with('/') { self.of_file(name) } else { self.units.get(name).copied() };
        changed.into_iter().map(|name| of(name).unwrap_or(Disruption::Reboot)).max().unwrap_or(Disruption::Nothing)
    }

    /// The policy of the file, or of the closest folder that has one.
    fn of_file(&self, path: &str) -> Option<Disruption> {
        let above = std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0));
        above.filter_map(|path| self.files.get(path)).next().copied()
    }
}

/// The effect of the most disruptive action.
fn of_actions(policy: &Value) -> Disruption {
    let actions = policy.get("actions").and_then(Value::as_array).into_iter().flatten();
    let of = |action: &Value| match action.get("type").and_then(Value::as_str) {
        Some("None" | "Reload" | "Restart" | "DaemonReload") => Disruption::Nothing,
        Some("Special") => Disruption::MayDrain,
        Some("Drain") => Disruption::Drain,
        _ => Disruption::Reboot,
    };
    actions.map(of).max().unwrap_or(Disruption::Nothing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(generation: i64) -> Value {
        let files = json!([
            {"path": "/etc/a", "actions": [{"type": "None"}]},
            {"path": "/etc/a/drained", "actions": [{"type": "Drain"}, {"type": "Restart", "restart": {"serviceName": "a.service"}}]},
            {"path": "/etc/containers/registries.conf", "actions": [{"type": "Special"}]},
            {"path": "/etc/new", "actions": [{"type": "SomethingNew"}]},
            {"path": "/etc/b", "actions": [{"type": "Reboot"}]},
        ]);
        let units = json!([{"name": "a.service", "actions": [{"type": "DaemonReload"}, {"type": "Reload"}]}]);
        json!({"metadata": {"name": "cluster", "generation": generation}, "status": {
            "observedGeneration": 2, "nodeDisruptionPolicyStatus": {"clusterPolicies": {"files": files, "units": units, "sshkey": {"actions": [{"type": "Drain"}]}}},
        }})
    }

    #[test]
    fn the_closest_policy_counts_and_the_worst_of_a_change() {
        let policies = Policies::of(&[json!({"metadata": {"name": "other"}}), cluster(2)]);
        for (changed, expected) in [
            (&["/etc/a"][..], Disruption::Nothing),
            (&["/etc/a/file"], Disruption::Nothing),
            (&["/etc/a/drained"], Disruption::Drain),
            (&["/etc/a/drained/file"], Disruption::Drain),
            (&["/etc/ab"], Disruption::Reboot),
            (&["/etc/containers/registries.conf"], Disruption::MayDrain),
            (&["/etc/new"], Disruption::Reboot),
            (&["/etc/b"], Disruption::Reboot),
            (&["a.service"], Disruption::Nothing),
            (&["b.service"], Disruption::Reboot),
            (&["a.service", "/etc/a", "/etc/a/drained"], Disruption::Drain),
            (&["a.service", "/etc/c"], Disruption::Reboot),
            (&[], Disruption::Nothing),
        ] {
            assert_eq!(policies.of_keys(), Disruption::Drain);
            assert_eq!(policies.disruption(changed.iter().copied()), expected, "{changed:?}");
        }
    }

    #[test]
    fn without_policies_that_are_in_force_a_list_of_files_counts() {
        for found in [vec![], vec![json!({"metadata": {"name": "cluster", "generation": 2}})], vec![cluster(3)]] {
            let policies = Policies::of(&found);
            assert_eq!(policies.of_keys(), Disruption::Nothing);
            assert_eq!(policies.disruption(["/etc/a"]), Disruption::Reboot, "{found:?}");
            assert_eq!(policies.disruption(["a.service"]), Disruption::Reboot);
            assert_eq!(policies.disruption(["/etc/containers/policy.json"]), Disruption::Nothing);
            assert_eq!(policies.disruption(["/etc/containers/registries.conf"]), Disruption::MayDrain);
        }
    }
}
