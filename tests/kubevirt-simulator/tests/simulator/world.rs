//! Owns the world of one test: a control plane with KubeVirt's kinds, and the running simulator.

use std::time::Duration;

use controlplane::Lease;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kubevirt_simulator::{Settings, Simulator};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const NAMESPACE: &str = "default";

pub(super) struct World {
    pub(super) client: Client,
    pub(super) simulator: Simulator,
    _lease: Lease,
}

impl World {
    /// `None` where the CRDs are missing, which has been reported.
    pub(super) async fn new(settings: Settings) -> Option<World> {
        kubevirt_simulator::crds()?;
        let lease = controlplane::lease().await;
        let client = lease.admin();
        kubevirt_simulator::install(&client).await.expect("KubeVirt can be installed");
        let simulator = Simulator::start(client.clone(), settings);
        Some(World { client, simulator, _lease: lease })
    }

    /// Must be the end of a test: the next one expects nothing to come.
    pub(super) async fn end(self) {
        self.simulator.stop().await;
    }

    pub(super) fn machines(&self) -> Api<DynamicObject> {
        self.api("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
    }

    pub(super) fn instances(&self) -> Api<DynamicObject> {
        self.api("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
    }

    pub(super) fn claims(&self) -> Api<DynamicObject> {
        self.api("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    }

    pub(super) fn volumes(&self) -> Api<DynamicObject> {
        self.api("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes")
    }

    fn api(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    pub(super) async fn create(&self, api: &Api<DynamicObject>, object: &Value) -> Result<Value, kube::Error> {
        let object = serde_json::from_value(object.clone()).expect("an object");
        api.create(&PostParams::default(), &object).await.map(read)
    }

    /// Creates a machine that must be accepted.
    pub(super) async fn has(&self, machine: &Value) -> Value {
        self.create(&self.machines(), machine).await.expect("the machine is accepted")
    }

    /// Creates a claim of this class, for ReadWriteOnce unless it says otherwise.
    pub(super) async fn has_claim(&self, name: &str, class: &str, mode: &str) {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"storageClassName": class, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
        });
        self.create(&self.claims(), &claim).await.expect("the claim is accepted");
    }

    /// Merges something into an object.
    pub(super) async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the patch is accepted");
    }

    pub(super) async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        let _ = api.delete(name, &DeleteParams::default()).await.expect("it can be deleted");
    }

    /// The object, `Null` if there is none.
    pub(super) async fn get(&self, api: &Api<DynamicObject>, name: &str) -> Value {
        api.get_opt(name).await.expect("the API server answers").map_or(Value::Null, read)
    }

    /// Waits until the machine's printable status is this.
    pub(super) async fn until(&self, name: &str, printable: &str) -> Value {
        self.until_fits(&self.machines(), name, printable, |vm| vm["status"]["printableStatus"] == printable).await
    }

    /// Waits until an object, `Null` if it is gone, fits; `what` says what is waited for.
    pub(super) async fn until_fits(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let wait = async {
            loop {
                let object = self.get(api, name).await;
                if fits(&object) {
                    return object;
                }
                tokio::time::sleep(Duration::from_millis(15)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(object) => object,
            Err(_) => panic!("{name} does not come to {what:?}: {:#}", self.get(api, name).await),
        }
    }

    /// Waits for a condition of a machine; `status` is empty where it is absent.
    pub(super) async fn until_condition(&self, name: &str, condition: &str, status: &str) -> Value {
        let fits = |vm: &Value| self::condition(vm, condition)["status"].as_str().unwrap_or_default() == status;
        self.until_fits(&self.machines(), name, condition, fits).await
    }

    /// Records the distinct values of a field of an object, until one of them is `last`.
    pub(super) fn record(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        field: &'static str,
        last: &'static str,
    ) -> tokio::task::JoinHandle<Vec<String>> {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watcher(api.clone(), config).default_backoff().applied_objects();
        tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            let mut values: Vec<String> = Vec::new();
            while let Ok(Some(event)) = tokio::time::timeout(PATIENCE, events.next()).await {
                let Ok(object) = event.map(read) else { continue };
                let value = object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned();
                if values.last() != Some(&value) {
                    values.push(value);
                }
                if values.last().is_some_and(|value| value == last) {
                    break;
                }
            }
            values
        })
    }
}

fn read(object: DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object is JSON")
}

pub(super) fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == name)).unwrap_or(&Value::Null)
}

/// A machine without disks that starts at once, on the pod network.
pub(super) fn machine(name: &str) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name},
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": {"vitistack.io/machine": name}},
                "spec": {
                    "domain": {
                        "cpu": {"cores": 1, "sockets": 1, "threads": 1}, "memory": {"guest": "2Gi"},
                        "devices": {"disks": [], "interfaces": [{"name": "default", "masquerade": {}}]},
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "volumes": [],
                },
            },
        },
    })
}

/// The same with a disk on this claim.
pub(super) fn with_disk(mut machine: Value, claim: &str) -> Value {
    let spec = &mut machine["spec"]["template"]["spec"];
    let disks = spec["domain"]["devices"]["disks"].as_array_mut().expect("a list");
    disks.push(json!({"name": claim, "disk": {"bus": "virtio"}}));
    let volumes = spec["volumes"].as_array_mut().expect("a list");
    volumes.push(json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
    machine
}
