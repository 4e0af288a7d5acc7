//! Owns the world of one test: a control plane with KubeVirt's kinds, the simulator, the operator.

use std::time::Duration;

use controlplane::{Lease, Mark, Request};
use futures::StreamExt;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::runtime::{WatchStreamExt, watcher};
use kubevirt_operator::controller::{self, Settings};
use kubevirt_simulator::{Binding, Simulator, storage_class};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const NAMESPACE: &str = "default";

pub(super) struct World {
    pub(super) client: Client,
    pub(super) simulator: Simulator,
    pub(super) lease: Lease,
    operator: Mutex<Option<(CancellationToken, tokio::task::JoinHandle<()>)>>,
}

impl World {
    /// A cluster with KubeVirt and the classes standard (default, claims grow), fast and fixed
    /// (claims do not grow). `None` where the CRDs are missing, which has been reported.
    pub(super) async fn new() -> Option<World> {
        let world = Self::without_operator().await?;
        world.start(Settings::default());
        Some(world)
    }

    pub(super) async fn without_operator() -> Option<World> {
        kubevirt_simulator::crds()?;
        let lease = controlplane::lease().await;
        let client = lease.admin();
        kubevirt_simulator::install(&client).await.unwrap();
        let definitions = [machines_api::crd::machines(), machines_api::crd::network_configurations()];
        let text = definitions.map(|crd| object::diff::yaml(&crd)).join("---\n");
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = text
            .split("---\n")
            .enumerate()
            .map(|(number, document)| {
                let path = folder.path().join(format!("{number}.yaml"));
                std::fs::write(&path, document).unwrap();
                path
            })
            .collect();
        controlplane::install_crds(&client, &paths).await.unwrap();
        storage_class(&client, "standard", Binding::Immediate, true, true).await.unwrap();
        storage_class(&client, "fast", Binding::Immediate, true, false).await.unwrap();
        storage_class(&client, "fast-ssd", Binding::Immediate, true, false).await.unwrap();
        storage_class(&client, "fixed", Binding::Immediate, false, false).await.unwrap();
        storage_class(&client, "local", Binding::WaitForFirstConsumer, true, false).await.unwrap();
        let simulator = Simulator::start(client.clone(), kubevirt_simulator::Settings::default());
        Some(World { client, simulator, lease, operator: Mutex::default() })
    }

    pub(super) fn start(&self, settings: Settings) {
        self.start_as(self.client.clone(), settings);
    }

    pub(super) fn start_as(&self, client: Client, settings: Settings) {
        let stop = CancellationToken::new();
        let (operator, _) = controller::run(client, settings, stop.clone());
        *self.operator.lock() = Some((stop, tokio::spawn(operator)));
    }

    /// Another replica beside the one that runs.
    pub(super) fn second(&self, settings: Settings) -> tokio::task::JoinHandle<()> {
        let (operator, _) = controller::run(self.client.clone(), settings, CancellationToken::new());
        tokio::spawn(operator)
    }

    /// Ends the operator in the middle of whatever it does.
    pub(super) fn kill(&self) {
        if let Some((_, operator)) = self.operator.lock().take() {
            operator.abort();
        }
    }

    pub(super) async fn stop_operator(&self) {
        let running = self.operator.lock().take();
        if let Some((stop, operator)) = running {
            stop.cancel();
            operator.await.unwrap();
        }
    }

    /// Must be the end of a test: the next one expects nothing to come.
    pub(super) async fn end(self) {
        self.stop_operator().await;
        // Finalizers would keep the next test's cluster from being empty.
        for machine in self.machines().list(&ListParams::default()).await.unwrap() {
            let none = json!({"metadata": {"finalizers": null}});
            let _ = self
                .machines()
                .patch(machine.metadata.name.as_deref().unwrap(), &PatchParams::default(), &Patch::Merge(none))
                .await;
        }
        self.simulator.stop().await;
    }

    pub(super) fn api(&self, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    pub(super) fn machines(&self) -> Api<DynamicObject> {
        self.api("vitistack.io", "v1alpha1", "Machine", "machines")
    }

    pub(super) fn vms(&self) -> Api<DynamicObject> {
        self.api("kubevirt.io", "v1", "VirtualMachine", "virtualmachines")
    }

    pub(super) fn vmis(&self) -> Api<DynamicObject> {
        self.api("kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances")
    }

    pub(super) fn claims(&self) -> Api<DynamicObject> {
        self.api("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
    }

    /// Creates a Machine with this spec; it must be accepted without a warning.
    pub(super) async fn has(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        self.create(&self.machines(), &object).await.unwrap();
    }

    pub(super) async fn create(&self, api: &Api<DynamicObject>, object: &Value) -> Result<Value, kube::Error> {
        let object = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &object).await.map(|object| serde_json::to_value(object).unwrap())
    }

    pub(super) async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) -> Value {
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        serde_json::to_value(patched).unwrap()
    }

    pub(super) async fn get(&self, api: &Api<DynamicObject>, name: &str) -> Option<Value> {
        api.get_opt(name).await.unwrap().map(|object| serde_json::to_value(object).unwrap())
    }

    pub(super) async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until an object is as it should be, and returns it.
    pub(super) async fn until(&self, api: &Api<DynamicObject>, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut objects = std::pin::pin!(watcher(api.clone(), config).applied_objects());
        let mut last = Value::Null;
        let found = tokio::time::timeout(PATIENCE, async {
            while let Some(object) = objects.next().await {
                last = serde_json::to_value(object.unwrap()).unwrap();
                if is(&last) {
                    return;
                }
            }
        });
        if found.await.is_err() {
            panic!("{name} is still {last:#}");
        }
        last
    }

    pub(super) async fn until_gone(&self, api: &Api<DynamicObject>, name: &str) {
        let gone = async {
            while self.get(api, name).await.is_some() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, gone).await.is_err() {
            panic!("{name} is still there: {:#}", self.get(api, name).await.unwrap());
        }
    }

    /// Waits until the status of a Machine tells about its present spec and has this phase.
    pub(super) async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(&self.machines(), name, |machine| {
            machine["status"]["phase"] == phase
                && machine["status"]["observedGeneration"] == machine["metadata"]["generation"]
        })
        .await
    }

    pub(super) fn mark(&self) -> Mark {
        self.lease.audit().mark()
    }

    /// The requests of everybody but the API server itself since `mark`.
    pub(super) fn requests(&self, mark: &Mark) -> Vec<Request> {
        let all = self.lease.audit().since(mark);
        all.into_iter().filter(|request| !request.is_watch() && request.user != "system:apiserver").collect()
    }
}

/// A condition of a Machine.
pub(super) fn condition<'a>(machine: &'a Value, kind: &str) -> &'a Value {
    let all = machine["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
