//! What people and other programs do to machines: virtctl, kubemacpool, and the administrator.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::Binding;
use crate::play::watches::{Kind, read};
use crate::play::write::of_kind;
use crate::rules::instance::append;
use crate::rules::status::run_strategy;

/// Who writes for `virtctl`.
const API: &str = "virt-api";
const MAC_POOL: &str = "kubemacpool";
const ADMINISTRATOR: &str = "kubectl";
const ATTEMPTS: usize = 20;

/// Stops a machine: Always and Once become Halted, others are asked to stop.
/// pkg/virt-api/rest/lifecycle.go: `StopVMRequestHandler`.
///
/// # Errors
/// If there is no such machine, or none that runs.
pub async fn virtctl_stop(client: &Client, namespace: &str, name: &str) -> Result<(), Error> {
    let machine = machine(client, namespace, name).await?;
    match run_strategy(&machine) {
        "Always" | "Once" | "Halted" => set_running(client, &machine, false).await,
        _ => {
            let instance = of_kind(client, Kind::Instance, namespace).get(name).await?;
            ask(client, namespace, name, json!([{"action": "Stop", "uid": instance.metadata.uid}])).await
        }
    }
}

/// Starts a machine: Halted becomes Always, others are asked to start.
/// pkg/virt-api/rest/lifecycle.go: `StartVMRequestHandler`.
///
/// # Errors
/// If there is no such machine.
pub async fn virtctl_start(client: &Client, namespace: &str, name: &str) -> Result<(), Error> {
    let machine = machine(client, namespace, name).await?;
    match run_strategy(&machine) {
        "Halted" => set_running(client, &machine, true).await,
        _ => ask(client, namespace, name, json!([{"action": "Start"}])).await,
    }
}

/// Restarts a machine. pkg/virt-api/rest/lifecycle.go: `RestartVMRequestHandler`.
///
/// # Errors
/// If there is no such machine, or none that runs.
pub async fn virtctl_restart(client: &Client, namespace: &str, name: &str) -> Result<(), Error> {
    let instance = of_kind(client, Kind::Instance, namespace).get(name).await?;
    ask(client, namespace, name, json!([{"action": "Stop", "uid": instance.metadata.uid}, {"action": "Start"}])).await
}

/// Adds a disk with this claim to a machine while it runs, as `virtctl addvolume --persist` does.
///
/// # Errors
/// If there is no such machine, or it has a disk of this name.
pub async fn add_volume(client: &Client, namespace: &str, name: &str, claim: &str) -> Result<(), Error> {
    edit(client, namespace, name, API, |machine| {
        let spec = &mut machine["spec"]["template"]["spec"];
        let disk = json!({"name": claim, "serial": claim, "disk": {"bus": "scsi"}});
        append(&mut spec["domain"]["devices"]["disks"], disk);
        let source = json!({"claimName": claim, "hotpluggable": true});
        append(&mut spec["volumes"], json!({"name": claim, "persistentVolumeClaim": source}));
    })
    .await
}

/// Removes such a disk, as `virtctl removevolume --persist` does.
///
/// # Errors
/// If there is no such machine.
pub async fn remove_volume(client: &Client, namespace: &str, name: &str, claim: &str) -> Result<(), Error> {
    edit(client, namespace, name, API, |machine| {
        let spec = &mut machine["spec"]["template"]["spec"];
        for list in ["/volumes", "/domain/devices/disks"] {
            if let Some(entries) = spec.pointer_mut(list).and_then(Value::as_array_mut) {
                entries.retain(|entry| entry["name"] != claim);
            }
        }
    })
    .await
}

/// Gives an interface a MAC address, as kubemacpool does.
///
/// # Errors
/// If there is no such machine.
pub async fn set_mac(client: &Client, namespace: &str, name: &str, interface: &str, mac: &str) -> Result<(), Error> {
    edit(client, namespace, name, MAC_POOL, |machine| {
        let interfaces = machine.pointer_mut("/spec/template/spec/domain/devices/interfaces");
        for one in interfaces.and_then(Value::as_array_mut).into_iter().flatten() {
            if one["name"] == interface {
                one["macAddress"] = mac.into();
            }
        }
    })
    .await
}

/// Creates or replaces a storage class.
///
/// # Errors
/// If the API server refuses it.
pub async fn storage_class(
    client: &Client,
    name: &str,
    binding: Binding,
    expandable: bool,
    default: bool,
) -> Result<(), Error> {
    let mode = match binding {
        Binding::Immediate => "Immediate",
        Binding::WaitForFirstConsumer => "WaitForFirstConsumer",
    };
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": default.to_string()}},
        "provisioner": "simulated.kubevirt.io", "volumeBindingMode": mode, "allowVolumeExpansion": expandable,
    });
    let api: Api<StorageClass> = Api::all(client.clone());
    api.patch(name, &PatchParams::apply(ADMINISTRATOR).force(), &Patch::Apply(class)).await.map(drop)
}

/// Creates or replaces the KubeVirt object, in the namespace `kubevirt`, with this spec:
/// for instance `{"configuration": {"vmRolloutStrategy": "Stage"}}`.
///
/// # Errors
/// If the API server refuses it.
pub async fn configure(client: &Client, spec: &Value) -> Result<(), Error> {
    let params = PatchParams::apply(ADMINISTRATOR).force();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubevirt"}});
    Api::<Namespace>::all(client.clone()).patch("kubevirt", &params, &Patch::Apply(namespace)).await?;
    let api = of_kind(client, Kind::KubeVirt, "kubevirt");
    let kubevirt =
        json!({"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": spec});
    api.patch("kubevirt", &params, &Patch::Apply(&kubevirt)).await?;
    let status = json!({"phase": "Deployed", "observedKubeVirtVersion": "v1.9.0", "targetKubeVirtVersion": "v1.9.0"});
    api.patch_status("kubevirt", &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.map(drop)
}

async fn machine(client: &Client, namespace: &str, name: &str) -> Result<Value, Error> {
    of_kind(client, Kind::Machine, namespace).get(name).await.map(|object| read(Kind::Machine, object))
}

/// `getRunningPatch`.
async fn set_running(client: &Client, machine: &Value, runs: bool) -> Result<(), Error> {
    let text = |key: &str| machine["metadata"][key].as_str().unwrap_or_default();
    let strategy = if runs { "Always" } else { "Halted" };
    edit(client, text("namespace"), text("name"), API, |machine| {
        if machine["spec"]["running"].is_boolean() {
            machine["spec"]["running"] = runs.into();
        } else {
            machine["spec"]["runStrategy"] = strategy.into();
        }
    })
    .await
}

/// `getChangeRequestJson`.
async fn ask(client: &Client, namespace: &str, name: &str, requests: Value) -> Result<(), Error> {
    let params = PatchParams { field_manager: Some(API.to_owned()), ..PatchParams::default() };
    let body = json!({"status": {"stateChangeRequests": requests}});
    let api = of_kind(client, Kind::Machine, namespace);
    api.patch_status(name, &params, &Patch::Merge(body)).await.map(drop)
}

/// Changes a machine as somebody who reads and writes it, not as one who applies it.
async fn edit(
    client: &Client,
    namespace: &str,
    name: &str,
    manager: &str,
    change: impl Fn(&mut Value),
) -> Result<(), Error> {
    let api = of_kind(client, Kind::Machine, namespace);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let mut attempt = 1;
    loop {
        let mut machine = read(Kind::Machine, api.get(name).await?);
        change(&mut machine);
        let machine = serde_json::from_value(machine).map_err(Error::SerdeError)?;
        match api.replace(name, &params, &machine).await {
            Err(Error::Api(status)) if status.is_conflict() && attempt < ATTEMPTS => attempt += 1,
            written => return written.map(drop),
        }
    }
}
