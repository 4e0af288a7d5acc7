//! Puts KubeVirt's kinds and admission into an API server.

use std::path::PathBuf;
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::admission;
use crate::play::watches::Kind;
use crate::play::write::of_kind;

/// KubeVirt's kinds, and those of CDI and Multus, as their projects publish them.
const CRDS: [&str; 5] = [
    "kubevirt/kubevirt.io_virtualmachines-v1.9.0.yaml",
    "kubevirt/kubevirt.io_virtualmachineinstances-v1.9.0.yaml",
    "kubevirt/cdi.kubevirt.io_datavolumes-v1.66.0.yaml",
    "kubevirt/cdi.kubevirt.io_storageprofiles-v1.66.0.yaml",
    "kubevirt/k8s.cni.cncf.io_network-attachment-definitions-v1.7.7.yaml",
];
/// The KubeVirt kind with the fields that the simulator reads, and any others.
const KUBEVIRTS: &str = include_str!("kubevirts.yaml");
/// The kinds without their schemas.
const REDUCED: &str = include_str!("reduced.yaml");
const MANAGER: &str = "virt-operator";
const EFFECTIVE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// Why KubeVirt is not installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kinds are not served.
    #[error("the kinds of KubeVirt are not served")]
    Kinds(#[source] Box<controlplane::Error>),
    /// The API server has refused something.
    #[error("the API server refuses {0}")]
    Api(String, #[source] kube::Error),
    /// Machines are not completed or refused as they should be.
    #[error("the policies have no effect: {0}")]
    NoEffect(String),
}

/// The files of the CRDs; `None` means that the test cannot run, which has been reported.
///
/// # Panics
/// Where they are missing under CI.
#[must_use]
pub fn crds() -> Option<Vec<PathBuf>> {
    controlplane::real_crds(CRDS)
}

/// Creates the kinds and the policies, and waits until they are effective. Without the published
/// CRDs the kinds have no schema, which is enough for a demonstration: tests ask [`crds`] first.
///
/// # Errors
/// If the API server refuses something.
pub async fn install(client: &Client) -> Result<(), Error> {
    let kinds = |error| Error::Kinds(Box::new(error));
    match crds() {
        Some(paths) => controlplane::install_crds(client, &paths).await.map_err(kinds)?,
        None => controlplane::apply_yaml(client, REDUCED, MANAGER).await.map_err(kinds)?,
    }
    controlplane::apply_yaml(client, KUBEVIRTS, MANAGER).await.map_err(kinds)?;
    for object in admission::admission() {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", &kind);
        let object: DynamicObject =
            serde_json::from_value(object).map_err(|error| refused(&kind, kube::Error::SerdeError(error)))?;
        let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await.map_err(|error| refused(&kind, error))?;
    }
    let deadline = Instant::now() + EFFECTIVE;
    loop {
        match is_effective(client).await {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() > deadline => return Err(Error::NoEffect(why)),
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

fn refused(kind: &GroupVersionKind, error: kube::Error) -> Error {
    Error::Api(kind.kind.clone(), error)
}

/// Tries one machine that is completed, and one that is refused.
async fn is_effective(client: &Client) -> Result<(), String> {
    let completed = attempt(client, json!({"runStrategy": "Halted"})).await.map_err(|error| error.to_string())?;
    let firmware = &completed.data["spec"]["template"]["spec"]["domain"]["firmware"];
    if firmware["uuid"].is_null() {
        return Err("a machine gets no identity".to_owned());
    }
    match attempt(client, json!({})).await {
        Err(kube::Error::Api(status)) if status.message.contains("RunStrategy must be specified") => Ok(()),
        other => Err(format!("a machine without a run strategy is not refused: {other:?}")),
    }
}

async fn attempt(client: &Client, mut spec: Value) -> Result<DynamicObject, kube::Error> {
    spec["template"] = json!({"spec": {"domain": {"devices": {}}}});
    let machine = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"generateName": "is-effective-"}, "spec": spec});
    let machine = serde_json::from_value(machine).map_err(kube::Error::SerdeError)?;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    of_kind(client, Kind::Machine, "default").create(&params, &machine).await
}
