//! The base MachineConfigs, pools and machines of a cluster that nobody has changed. Pure.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed names, labels and
//! kernel arguments): templates/ and manifests/{worker,master}.machineconfigpool.yaml. The contents
//! are made up.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::api::{
    APPLIED_DRAIN, CURRENT_CONFIG, DESIRED_CONFIG, DESIRED_DRAIN, GENERATED_BY, MachineConfig, MachineConfigPool,
    NODE_ROLE_PREFIX, POOL_LABEL_PREFIX, REASON, ROLE_LABEL, STATE, STATE_DONE, VERSION,
};
use crate::rules::daemon::UNCORDON;
use crate::rules::kubelet::{ignition_file, kubelet_conf, template};
use crate::rules::release::Release;

/// The MachineConfigs that the operator itself makes for a role.
pub fn machine_configs(role: &str, padding: usize, release: Release) -> Vec<MachineConfig> {
    let mut gates = template(role);
    gates["featureGates"] = json!({"ServiceAccountTokenNodeBinding": true});
    let mut files = vec![ignition_file("/etc/containers/registries.conf", "unqualified-search-registries = []\n")];
    if padding > 0 {
        files.push(json!({"path": "/usr/local/share/filler", "mode": 420,
            "contents": {"source": format!("data:,{}", "x".repeat(padding))}}));
    }
    let folder = if release.reads_settings { " --config-dir=/etc/openshift/kubelet.conf.d" } else { "" };
    let kubelet = format!("[Unit]\nDescription=Kubernetes Kubelet\n[Service]\nExecStart=/usr/bin/kubelet{folder}\n");
    let units = json!([{"name": "kubelet.service", "enabled": true, "contents": kubelet}]);
    let core = json!([{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA simulated"]}]);
    let arguments = json!(["systemd.unified_cgroup_hierarchy=1", "cgroup_no_v1=\"all\""]);
    [
        (format!("00-{role}"), json!({"osImageURL": "registry.example/os@sha256:0", "config": ignition("storage", json!({"files": files}))})),
        (format!("01-{role}-kubelet"), json!({"config": ignition("systemd", json!({"units": units}))})),
        (
            format!("97-{role}-generated-kubelet"),
            json!({"kernelArguments": arguments, "config": ignition("storage", json!({"files": [kubelet_conf(&template(role))]}))}),
        ),
        (
            format!("98-{role}-generated-kubelet"),
            json!({"config": ignition("storage", json!({"files": [kubelet_conf(&gates)]}))}),
        ),
        (format!("99-{role}-ssh"), json!({"config": ignition("passwd", json!({"users": core}))})),
    ]
    .into_iter()
    .map(|(name, spec)| machine_config(&name, role, spec))
    .collect()
}

fn ignition(section: &str, content: Value) -> Value {
    json!({"ignition": {"version": "3.5.0"}, section: content})
}

fn machine_config(name: &str, role: &str, spec: Value) -> MachineConfig {
    let spec = serde_json::from_value(spec).unwrap_or_default();
    let mut config = MachineConfig::new(name, spec);
    config.metadata.labels = Some([(ROLE_LABEL.to_owned(), role.to_owned())].into());
    if !name.ends_with("-ssh") {
        config.metadata.annotations = Some([(GENERATED_BY.to_owned(), VERSION.to_owned())].into());
    }
    config
}

/// The built-in pool of a role.
pub fn built_in_pool(role: &str) -> MachineConfigPool {
    let mut pool = pool(role, json!({"matchLabels": {ROLE_LABEL: role}}));
    pool.metadata.labels = Some([(format!("{POOL_LABEL_PREFIX}{role}"), String::new())].into());
    pool
}

/// A custom pool as in the documentation: it selects everything for workers and its own
/// MachineConfigs, and has no labels.
pub fn custom_pool(name: &str) -> MachineConfigPool {
    let both = json!({"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": ["worker", name]}]});
    pool(name, both)
}

fn pool(name: &str, configs: Value) -> MachineConfigPool {
    let nodes = json!({"matchLabels": {format!("{NODE_ROLE_PREFIX}{name}"): ""}});
    let spec = json!({"machineConfigSelector": configs, "nodeSelector": nodes, "maxUnavailable": 1});
    MachineConfigPool::new(name, serde_json::from_value(spec).unwrap_or_default())
}

/// A machine with this configuration.
pub fn machine(name: &str, role: &str, config: &str) -> Node {
    let settled = format!("{UNCORDON}{config}");
    let node = json!({
        "metadata": {
            "name": name,
            "labels": {
                format!("{NODE_ROLE_PREFIX}{role}"): "",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
            "annotations": {
                CURRENT_CONFIG: config, DESIRED_CONFIG: config, STATE: STATE_DONE, REASON: "",
                DESIRED_DRAIN: settled, APPLIED_DRAIN: settled,
            },
        },
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "250"},
            "allocatable": {"cpu": "15500m", "memory": "62Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    });
    serde_json::from_value(node).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::node;
    use crate::rules::render::render;

    #[test]
    fn the_base_renders_and_has_the_size_asked_for() {
        for role in ["worker", "master"] {
            let configs = machine_configs(role, 150_000, Release::default());
            let spec =
                render(role, &configs.iter().collect::<Vec<_>>(), crate::rules::release::MAIN).expect("renders").spec;
            assert_eq!(spec.kernel_arguments.as_deref().map(<[String]>::len), Some(2));
            assert_eq!(spec.config["storage"]["files"].as_array().map(Vec::len), Some(3), "kubelet.conf only once");
            assert!(serde_json::to_string(&spec).is_ok_and(|text| text.len() > 150_000));
        }
    }

    #[test]
    fn machines_and_pools_find_each_other() {
        let pools = [built_in_pool("worker"), built_in_pool("master"), custom_pool("infra")];
        let node = machine("worker-0", "worker", "rendered-worker-1");
        assert_eq!(node::pools_of(&node, pools.iter()), [&pools[0]]);
        assert!(node::is_done(&node) && node::unready(&node).is_none());
    }
}
