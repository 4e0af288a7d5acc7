//! Kinds of third parties that several profiles, or a profile and the core, have in common.
//!
//! Each is written down here once, with the versions that are understood: a version that its
//! operator adds is added in one place. A kind that only one profile touches stays with that
//! profile.

use crate::{Kind, Read};

/// Files, units and kernel arguments for machines, of the Machine Config Operator.
pub const MACHINE_CONFIG: Kind = Kind {
    group: "machineconfiguration.openshift.io",
    versions: &["v1"],
    kind: "MachineConfig",
    plural: "machineconfigs",
};

/// Settings of kubelets. The Machine Config Operator makes a MachineConfig of each.
pub const KUBELET_CONFIG: Kind = Kind { kind: "KubeletConfig", plural: "kubeletconfigs", ..MACHINE_CONFIG };

/// The descheduler of OpenShift. The profile load-aware-rebalancing writes its only object.
pub const KUBE_DESCHEDULER: Kind =
    Kind { group: "operator.openshift.io", versions: &["v1"], kind: "KubeDescheduler", plural: "kubedeschedulers" };

/// The only name that the descheduler's operator reconciles.
pub const KUBE_DESCHEDULER_NAME: &str = "cluster";

/// The namespace of the descheduler's operator.
pub const KUBE_DESCHEDULER_NAMESPACE: &str = "openshift-kube-descheduler-operator";

/// The object that configures KubeVirt and everything that comes with it. v1 groups the fields of
/// v1beta1 differently.
pub const HYPER_CONVERGED: Kind =
    Kind { group: "hco.kubevirt.io", versions: &["v1", "v1beta1"], kind: "HyperConverged", plural: "hyperconvergeds" };

/// The only name that the operator of HyperConverged accepts
/// (kubevirt/hyperconverged-cluster-operator, `HyperConvergedName`).
pub const HYPER_CONVERGED_NAME: &str = "kubevirt-hyperconverged";

/// The namespace in which OpenShift Virtualization has HyperConverged. Upstream and OKD have it in
/// `kubevirt-hyperconverged`, or wherever its operator runs.
const HYPER_CONVERGED_NAMESPACE: &str = "openshift-cnv";

/// The HyperConverged object of the cluster, in whichever namespace it is.
#[must_use]
pub fn hyper_converged() -> Read {
    Read {
        kind: HYPER_CONVERGED,
        namespace: Some(HYPER_CONVERGED_NAMESPACE.to_owned()),
        name: HYPER_CONVERGED_NAME.to_owned(),
        elsewhere: true,
    }
}
