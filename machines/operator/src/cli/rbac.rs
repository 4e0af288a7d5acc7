//! The rights of the operator, beside the code that needs them.

use serde_json::{Value, json};

use super::documents;
use crate::cluster::kinds::{self, Kind};

const READ: [&str; 3] = ["get", "list", "watch"];

/// Verbs on each kind.
fn rules() -> Vec<(Kind, &'static str, Vec<&'static str>)> {
    let watched = READ.to_vec();
    let and = |more: &[&'static str]| -> Vec<&'static str> { READ.iter().chain(more).copied().collect() };
    vec![
        (kinds::MACHINE, "", and(&["patch"])),
        (kinds::MACHINE, "/status", vec!["patch"]),
        // Owner references with blockOwnerDeletion need it where the cluster enforces that.
        (kinds::MACHINE, "/finalizers", vec!["update"]),
        (kinds::NETWORK_CONFIGURATION, "", watched.clone()),
        (kinds::MACHINE_CLASS, "", watched.clone()),
        (kinds::NETWORK_NAMESPACE, "", watched.clone()),
        (kinds::VM, "", and(&["create", "patch", "delete"])),
        (kinds::VMI, "", and(&["delete"])),
        (kinds::KUBEVIRT, "", watched.clone()),
        (kinds::CLAIM, "", and(&["create", "patch", "delete"])),
        // By name: nobody lists the Secrets of the cluster.
        (kinds::SECRET, "", vec!["get", "create", "patch"]),
        (kinds::CONFIG_MAP, "", vec!["get"]),
        (kinds::POD, "", vec!["list"]),
        (kinds::STORAGE_CLASS, "", watched.clone()),
        (kinds::STORAGE_PROFILE, "", watched.clone()),
        (kinds::DATA_VOLUME, "", vec!["get", "create", "patch"]),
        (kinds::NETWORK_ATTACHMENT, "", and(&["create", "patch"])),
        (kinds::DEFINITION, "", watched),
    ]
}

/// ClusterRole and Role, as YAML.
#[must_use]
pub fn rbac_yaml() -> String {
    documents(&roles())
}

/// The ClusterRole alone, as YAML.
#[must_use]
pub fn cluster_role_yaml() -> String {
    documents(&roles()[..1])
}

fn roles() -> [Value; 2] {
    let rule = |group: &str, resource: String, verbs: Vec<&str>| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let mut all: Vec<Value> = rules()
        .into_iter()
        .map(|(kind, part, verbs)| rule(kind.group, format!("{}{part}", kind.plural), verbs))
        .collect();
    all.push(rule("events.k8s.io", "events".to_owned(), vec!["create"]));
    all.push(rule("authentication.k8s.io", "tokenreviews".to_owned(), vec!["create"]));
    all.push(rule("authorization.k8s.io", "subjectaccessreviews".to_owned(), vec!["create"]));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "kubevirt-operator"},
        "rules": all,
    });
    let lease = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "kubevirt-operator-leader-election", "namespace": "kubevirt-operator-system"},
        "rules": [rule("coordination.k8s.io", "leases".to_owned(), vec!["get", "create", "update"])],
    });
    [role, lease]
}
