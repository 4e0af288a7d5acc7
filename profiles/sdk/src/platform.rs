//! The platform as every profile sees it: where HyperConverged is, and which machines carry virtual
//! machines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::{HYPER_CONVERGED, MACHINE_CONFIG, hyper_converged};
use crate::{DraftError, Inputs, NodeQuestion, Prerequisite, Read};

/// The prerequisite that HyperConverged exists.
#[must_use]
pub fn needs_hyper_converged() -> Prerequisite {
    Prerequisite {
        kind: HYPER_CONVERGED,
        object: Some(hyper_converged()),
        hint: "install OpenShift Virtualization, or KubeVirt's HyperConverged Cluster Operator, and create its HyperConverged object",
    }
}

const WORKER: &str = "node-role.kubernetes.io/worker";
/// The label by which machines are in pool master.
const MASTER: &str = "node-role.kubernetes.io/master";
const CONTROL_PLANE: [&str; 2] = [MASTER, "node-role.kubernetes.io/control-plane"];

type NodeLabels = BTreeMap<String, String>;

fn is_control_plane(labels: &NodeLabels) -> bool {
    CONTROL_PLANE.iter().any(|role| labels.contains_key(*role))
}

/// Whether machines of the control plane are workers too. The machine-config controllers put the
/// label there and take the taint away where `mastersSchedulable` is set on the Scheduler, and the
/// other way round (openshift/machine-config-operator, pkg/controller/node,
/// `makeMasterNodeSchedulable`, alike in release-4.14 to 5.0).
pub static CONTROL_PLANE_WORKS: NodeQuestion = NodeQuestion {
    name: "a control plane that carries workloads",
    selector: Some("node-role.kubernetes.io/master,node-role.kubernetes.io/worker"),
    only_after: None,
    is_so: |labels| labels.contains_key(MASTER) && labels.contains_key(WORKER),
};

/// Whether there are others: none on a compact cluster, or on a single node.
pub static DEDICATED_WORKERS: NodeQuestion = NodeQuestion {
    name: "workers that are no control plane",
    selector: Some(
        "node-role.kubernetes.io/worker,!node-role.kubernetes.io/master,!node-role.kubernetes.io/control-plane",
    ),
    only_after: Some("a control plane that carries workloads"),
    is_so: |labels| labels.contains_key(WORKER) && !is_control_plane(labels),
};

/// The questions about the nodes that [`roles`] uses. A profile that calls it returns them from
/// [`crate::Planner::node_questions`].
pub static QUESTIONS: [NodeQuestion; 2] = [CONTROL_PLANE_WORKS, DEDICATED_WORKERS];

/// The role, in MachineConfigs, of machines that can run virtual machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The machines of pool worker, and of custom pools that include the MachineConfigs of workers.
    Worker,
    /// The machines of the control plane.
    Master,
}

impl Role {
    /// The value of the label `machineconfiguration.openshift.io/role`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Master => "master",
        }
    }
}

/// The roles whose machines can run virtual machines, in a fixed order.
#[must_use]
pub fn roles(inputs: &Inputs) -> Vec<Role> {
    if !inputs.of_nodes(&CONTROL_PLANE_WORKS) {
        return vec![Role::Worker];
    }
    match inputs.of_nodes(&DEDICATED_WORKERS) {
        true => vec![Role::Worker, Role::Master],
        false => vec![Role::Master],
    }
}

/// The namespace in which HyperConverged is.
///
/// # Errors
///
/// As [`Inputs::value`].
pub fn namespace(inputs: &Inputs) -> Result<String, DraftError> {
    Ok(inputs.object_ref(&hyper_converged())?.namespace.unwrap_or_default())
}

/// The name of the MachineConfig that says how the kubelets of workers are started.
pub const KUBELET_OF_WORKERS: &str = "01-worker-kubelet";

/// The MachineConfig [`KUBELET_OF_WORKERS`]. A profile that calls [`reads_settings`] or
/// [`sets_up_machines`] must declare and read it.
#[must_use]
pub fn kubelet_of_workers() -> Read {
    Read { kind: MACHINE_CONFIG, namespace: None, name: KUBELET_OF_WORKERS.to_owned(), elsewhere: false }
}

/// Whether the kubelets of workers read settings from `/etc/openshift/kubelet.conf.d`, as they do
/// from OpenShift 4.21 on (openshift/machine-config-operator, templates/worker/01-worker-kubelet);
/// `None` if that can't be told.
///
/// # Errors
///
/// As [`Inputs::value`].
pub fn reads_settings(inputs: &Inputs) -> Result<Option<bool>, DraftError> {
    let found = inputs.derive(&kubelet_of_workers(), "/spec/config/systemd/units", |units| {
        let unit = units.and_then(Value::as_array)?.iter().find(|unit| unit["name"] == "kubelet.service")?;
        Some(json!(unit["contents"].as_str()?.contains("--config-dir=/etc/openshift/kubelet.conf.d")))
    })?;
    Ok(found.as_ref().and_then(Value::as_bool))
}

/// Whether the machines of this cluster are set up by MachineConfigs. Those of a hosted control
/// plane are not, even where the kind is served: the NodePools of its hosting cluster set them up.
/// There is no [`kubelet_of_workers`] then, which machine-config-operator keeps on every other
/// cluster.
///
/// # Errors
///
/// As [`Inputs::value`].
pub fn sets_up_machines(inputs: &Inputs) -> Result<bool, DraftError> {
    let name = inputs.derive(&kubelet_of_workers(), "/metadata/name", |name| name.map(|_| json!(true)))?;
    Ok(name.is_some())
}

/// A note for the draft if an annotation of HyperConverged patches one of these `fields`, named as
/// in KubeVirt, in the KubeVirt object: what the plan writes then does not reach KubeVirt
/// (kubevirt/hyperconverged-cluster-operator, `JSONPatchKVAnnotationName`).
///
/// # Errors
///
/// As [`Inputs::value`].
pub fn patched(inputs: &Inputs, fields: &[&str]) -> Result<Option<String>, DraftError> {
    let found =
        inputs.derive(&hyper_converged(), "/metadata/annotations/kubevirt.kubevirt.io~1jsonpatch", |patch| {
            let patch = patch.and_then(Value::as_str)?;
            let named: Vec<_> = fields.iter().filter(|field| patch.contains(**field)).copied().collect();
            (!named.is_empty()).then(|| json!(named))
        })?;
    let named = found.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let named: Vec<_> = named.collect();
    Ok((!named.is_empty()).then(|| {
        format!(
            "the annotation kubevirt.kubevirt.io/jsonpatch of HyperConverged sets {} of KubeVirt itself and overrides what this plan writes: remove that from \
             the annotation",
            named.join(" and ")
        )
    }))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::Surroundings;

    /// Fault R19: each shape of cluster.
    #[test]
    fn r19_machines_that_carry_virtual_machines_are_known_by_their_labels() {
        for (shape, nodes, expected) in [
            (
                "workers and a control plane of its own",
                vec![vec!["worker"], vec!["master", "control-plane"]],
                vec![Role::Worker],
            ),
            (
                "masters that work, beside workers",
                vec![vec!["worker"], vec!["master", "worker"]],
                vec![Role::Worker, Role::Master],
            ),
            ("compact", vec![vec!["master", "control-plane", "worker"]; 3], vec![Role::Master]),
            ("a single node", vec![vec!["master", "worker"]], vec![Role::Master]),
            (
                "infra and custom roles",
                vec![vec!["worker", "infra"], vec!["worker", "gpu"], vec!["master"]],
                vec![Role::Worker],
            ),
            ("an arbiter", vec![vec!["arbiter"], vec!["master", "control-plane", "worker"]], vec![Role::Master]),
            ("hosted, without a control plane", vec![vec!["worker"]], vec![Role::Worker]),
            ("no roles at all", vec![vec![]], vec![Role::Worker]),
        ] {
            let labels = |roles: &Vec<&str>| {
                roles
                    .iter()
                    .map(|role| (format!("node-role.kubernetes.io/{role}"), String::new()))
                    .collect::<NodeLabels>()
            };
            let so = |question: &NodeQuestion| nodes.iter().any(|roles| (question.is_so)(&labels(roles)));
            let of_nodes = QUESTIONS.iter().filter(|question| so(question)).map(|question| question.name).collect();
            let inputs = Inputs::default().in_surroundings(Surroundings { of_nodes, ..Surroundings::default() });
            assert_eq!(roles(&inputs), expected, "{shape}");
        }
    }

    /// Fault R18: it is where it was found.
    #[test]
    fn r18_hyper_converged_is_where_it_was_found() {
        let at = |object| namespace(&Inputs::new([(hyper_converged(), object)])).unwrap();
        assert_eq!(at(None), "openshift-cnv");
        assert_eq!(at(Some(json!({"metadata": {"namespace": "kubevirt-hyperconverged"}}))), "kubevirt-hyperconverged");
    }

    /// Fault R21: what an annotation of HyperConverged overrides is said.
    #[test]
    fn r21_a_patch_of_kubevirt_itself_is_said() {
        let note = |patch: Value| {
            let object = json!({"metadata": {"annotations": {"kubevirt.kubevirt.io/jsonpatch": patch}}});
            patched(&Inputs::new([(hyper_converged(), Some(object))]), &["memoryOvercommit"]).unwrap()
        };
        let patch =
            json!([{"op": "add", "path": "/spec/configuration/developerConfiguration/memoryOvercommit", "value": 140}]);
        let told = note(json!(patch.to_string())).unwrap();
        assert!(told.contains("sets memoryOvercommit of KubeVirt itself"), "{told}");
        for other in [json!("[{\"op\": \"add\", \"path\": \"/spec/x\"}]"), json!(null), json!(5)] {
            assert_eq!(note(other), None);
        }
    }
}
