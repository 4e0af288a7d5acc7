//! The stage for Machines: a control plane with KubeVirt's kinds and a played KubeVirt, and the
//! operator as a process with exactly the generated rights.

use std::path::{Path, PathBuf};

use anyhow::Result;
use controlplane::{ControlPlane, apply_yaml};
use demo::Operator;
use kubevirt_operator::cli::rbac_yaml;
use kubevirt_simulator::{Binding, Settings, Simulator, storage_class};
use serde_json::json;

/// The user that the operator runs as.
pub const USER: &str = "kubevirt-operator";
/// The file with the operator's log, in the folder of the plane.
const LOG: &str = "operator.log";
/// Field manager of everything that is put there beforehand.
const MANAGER: &str = "demo";

/// A cluster with KubeVirt. Dropping it leaves nothing behind.
pub struct Stage {
    // In the order of their end: nobody may write any more when the plane goes.
    operator: Option<Operator>,
    simulator: Simulator,
    plane: ControlPlane,
}

impl Stage {
    /// Sets everything up but the operator: the kinds, three storage classes, and the rights.
    ///
    /// # Errors
    /// If the API server refuses something.
    pub async fn set(plane: ControlPlane, settings: Settings) -> Result<Self> {
        let admin = plane.admin();
        kubevirt_simulator::install(&admin).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubevirt-operator-manager-rolebinding"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubevirt-operator"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt-operator-system"}});
        let [machines, networks] = [machines_api::crd::machines(), machines_api::crd::network_configurations()];
        for object in [namespace, machines, networks] {
            apply_yaml(&admin, &object.to_string(), MANAGER).await?;
        }
        apply_yaml(&admin, &rbac_yaml(), MANAGER).await?;
        apply_yaml(&admin, &binding.to_string(), MANAGER).await?;
        for object in machines_api::policy::objects() {
            apply_yaml(&admin, &object.to_string(), MANAGER).await?;
        }
        for (name, expandable, default) in [("standard", true, true), ("fast", true, false), ("fixed", false, false)] {
            storage_class(&admin, name, Binding::Immediate, expandable, default).await?;
        }
        let simulator = Simulator::start(admin, settings);
        let stage = Self { operator: None, simulator, plane };
        stage.plane.write_kubeconfig(USER, &[], &stage.kubeconfig())?;
        Ok(stage)
    }

    /// Starts the operator's program.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn start_operator(&mut self, program: &Path) -> Result<()> {
        let more = ["--leader-elect=false"];
        self.operator = Some(Operator::start(&self.plane, program, &self.kubeconfig(), LOG, &more)?);
        Ok(())
    }

    /// The running operator.
    #[must_use]
    pub fn operator(&self) -> Option<&Operator> {
        self.operator.as_ref()
    }

    /// The played KubeVirt.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// The control plane.
    #[must_use]
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The operator's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.plane.kubeconfig().with_file_name(LOG)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.plane.kubeconfig().with_file_name("operator.kubeconfig")
    }
}
