//! Setting the stage: kinds, objects, machines, rights, and the operator as a user of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use controlplane::{ControlPlane, apply_yaml, install_crds};
use kube::Client;
use mco_simulator::{Cluster, Settings, Simulator, seed};
use serde_json::json;

use crate::Operator;

/// The profile that is played, and so the name of its configuration.
pub const PROFILE: &str = "load-aware-rebalancing";
/// The file with the operator's log, in the folder of the plane.
const LOG: &str = "operator.log";
/// The user that the operator runs as, with exactly the generated rights.
pub const USER: &str = "virt-advisor";
/// Where the descheduler is configured.
pub const DESCHEDULER_NAMESPACE: &str = "openshift-kube-descheduler-operator";
/// Field manager of everything that is put there beforehand.
const MANAGER: &str = "demo";

/// A control plane with everything that load-aware rebalancing meets. Dropping it leaves nothing
/// behind.
pub struct Stage {
    // In the order of their end: nobody may write any more when the plane goes.
    operator: Option<Operator>,
    _simulator: Simulator,
    plane: ControlPlane,
}

/// The file of our CRD.
#[must_use]
pub fn our_crd() -> PathBuf {
    root().join("crds/advisor.kubevirt.io_virtplatformconfigs.yaml")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Stage {
    /// Sets everything up but the operator: three workers and a master, a HyperConverged, no
    /// descheduler yet. Machines update `speed` times as fast as real ones.
    ///
    /// # Errors
    /// If the API server refuses something.
    pub async fn set(plane: ControlPlane, speed: f64) -> Result<Self> {
        let admin = plane.admin();
        install_crds(&admin, &[our_crd(), root().join("crds/third-party")]).await?;
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let hyper_converged = json!({
            "apiVersion": "hco.kubevirt.io/v1beta1", "kind": "HyperConverged",
            "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"}, "spec": {},
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "virt-advisor-operator-manager-rolebinding"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "virt-advisor-operator-manager-role",
            },
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        let namespaces = ["openshift-cnv", DESCHEDULER_NAMESPACE, "virt-advisor-operator"].map(namespace);
        for object in namespaces.into_iter().chain([hyper_converged, binding]) {
            apply_yaml(&admin, &object.to_string(), MANAGER).await?;
        }
        let role = root().join("config/rbac/role.yaml");
        let role = std::fs::read_to_string(&role).with_context(|| format!("{} can't be read", role.display()))?;
        apply_yaml(&admin, &role, MANAGER).await?;
        let settings = Settings { speed, rendered_padding: 0, ..Settings::default() };
        seed(&admin, &Cluster { workers: 3, masters: 1 }, &settings).await?;
        let simulator = Simulator::start(admin, settings);
        let stage = Self { operator: None, _simulator: simulator, plane };
        stage.plane.write_kubeconfig(USER, &[], &stage.operator_kubeconfig())?;
        Ok(stage)
    }

    /// Starts the operator's program, after ending the one that runs.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start_operator(&mut self, program: &Path) -> Result<()> {
        self.start_operator_with(program, &[])
    }

    /// The same, with these flags too.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start_operator_with(&mut self, program: &Path, flags: &[&str]) -> Result<()> {
        self.operator = None;
        self.operator = Some(Operator::start(&self.plane, program, &self.operator_kubeconfig(), LOG, flags)?);
        Ok(())
    }

    /// Lets the operator reach the server by another address from its next start on.
    ///
    /// # Errors
    /// If its kubeconfig can't be changed.
    pub fn reach_server_by(&self, server: &str, address: &str) -> Result<()> {
        let file = self.operator_kubeconfig();
        let text = std::fs::read_to_string(&file).context("the operator's kubeconfig can't be read")?;
        std::fs::write(&file, text.replace(server, address)).context("the operator's kubeconfig can't be changed")
    }

    fn operator_kubeconfig(&self) -> PathBuf {
        self.folder().join("operator-kubeconfig")
    }

    /// Ends the operator as a crash does.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    /// The operator, while it is started.
    #[must_use]
    pub fn operator(&self) -> Option<&Operator> {
        self.operator.as_ref()
    }

    /// The file with the operator's log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder().join(LOG)
    }

    /// The folder of the plane, which goes with it.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let kubeconfig = self.plane.kubeconfig();
        kubeconfig.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The control plane.
    #[must_use]
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// A client that may do everything.
    #[must_use]
    pub fn admin(&self) -> Client {
        self.plane.admin()
    }
}
