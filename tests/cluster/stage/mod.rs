//! A server with plain kinds and profiles that want what a test tells them to: for what no real
//! profile shows yet, or only with much around it.

pub mod profile;

use std::collections::BTreeMap;
use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use controlplane::{Lease, Mark, Request, lease};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use virt_advisor::controller::Settings;

use crate::fixture::{self, PATIENCE, USER, VERSION, brief, root};
use profile::PROFILES;

/// The running operator; dropping it is a crash.
pub struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub struct Stage {
    pub plane: Lease,
    pub admin: Client,
    began: Mark,
}

impl Stage {
    /// A server with the kind Widget, our CRD, and the operator's rights.
    pub async fn set() -> Self {
        let plane = lease().await;
        let admin = plane.admin();
        let began = plane.audit().mark();
        let mut stage = Self { plane, admin, began };
        stage.install("Widget").await;
        let crd = advisor_core::api::crd_yaml(PROFILES).unwrap();
        controlplane::apply_yaml(&stage.admin, &crd, "test").await.unwrap();
        fixture::create_namespace(&stage.admin, "openshift-cnv").await;
        fixture::create_namespace(&stage.admin, fixture::OWN_NAMESPACE).await;
        let role = std::fs::read_to_string(root().join("config/rbac/role.yaml")).unwrap();
        controlplane::apply_yaml(&stage.admin, &role, "test").await.unwrap();
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        let objects = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "example"},
            "rules": [
                {"apiGroups": ["example.dev"], "resources": ["widgets", "gadgets"], "verbs": verbs},
                {"apiGroups": ["example.org"], "resources": ["gizmos"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["namespaces"], "verbs": verbs},
            ],
        });
        controlplane::apply_yaml(&stage.admin, &objects.to_string(), "test").await.unwrap();
        for role in ["example", "virt-advisor-operator-manager-role"] {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
            });
            controlplane::apply_yaml(&stage.admin, &binding.to_string(), "test").await.unwrap();
        }
        // A server takes a moment to know of rights.
        let configs: Api<VirtPlatformConfig> = Api::all(stage.client());
        let until = Instant::now() + PATIENCE;
        while configs.list(&ListParams::default()).await.is_err() {
            assert!(Instant::now() < until, "the operator's user has no rights");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stage.began = stage.mark();
        stage
    }

    /// Installs the CRD of that kind, which is like that of Widget.
    pub async fn install(&self, kind: &str) {
        let widget = std::fs::read_to_string(root().join("tests/cluster/plans/widget.yaml")).unwrap();
        let crd = widget.replace("Widget", kind).replace("widget", &kind.to_lowercase());
        controlplane::apply_yaml(&self.admin, &crd, "test").await.unwrap();
        let objects = self.objects(kind);
        let until = Instant::now() + PATIENCE;
        while objects.list(&ListParams::default()).await.is_err() {
            assert!(Instant::now() < until, "{kind} is not served");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn client(&self) -> Client {
        advisor_cluster::client(self.plane.client_config(USER, &[]).unwrap()).unwrap()
    }

    pub fn run(client: Client) -> Running {
        let settling = jiff::SignedDuration::from_secs(1);
        Self::run_with(client, Settings { settling, ..Settings::new(VERSION) })
    }

    pub fn run_with(client: Client, settings: Settings) -> Running {
        let settings = Settings { profiles: PROFILES, ..settings };
        Running(tokio::spawn(virt_advisor::controller::run(client, settings, CancellationToken::new())))
    }

    pub fn configs(&self) -> Api<VirtPlatformConfig> {
        Api::all(self.admin.clone())
    }

    pub fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.dev", "v1", kind));
        Api::namespaced_with(self.admin.clone(), "default", &kind)
    }

    pub fn widgets(&self) -> Api<DynamicObject> {
        self.objects("Widget")
    }

    /// Creates the configuration `name` that wants `items`.
    pub async fn configure(&self, name: &str, action: &str, items: &[Value]) {
        self.configure_with(name, json!({"action": action, "options": {name: {"items": items}}})).await;
    }

    pub async fn configure_with(&self, name: &str, spec: Value) {
        let mut object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": name}, "spec": spec});
        object["spec"]["profile"] = json!(name);
        let config = serde_json::from_value(object).unwrap();
        self.configs().create(&PostParams::default(), &config).await.unwrap();
    }

    /// An edit of spec, as `kubectl patch --type=merge` makes it.
    pub async fn patch(&self, name: &str, spec: Value) {
        let params = PatchParams { field_manager: Some("kubectl-patch".into()), ..PatchParams::default() };
        self.configs().patch(name, &params, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }

    /// Creates an object as somebody else.
    pub async fn create(&self, object: &Value) {
        let kind = object["kind"].as_str().unwrap();
        let object = serde_json::from_value(object.clone()).unwrap();
        let params = PostParams { field_manager: Some("somebody".into()), ..PostParams::default() };
        self.objects(kind).create(&params, &object).await.unwrap();
    }

    /// An edit of a Widget by somebody else.
    pub async fn edit(&self, name: &str, patch: Value) {
        let params = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
        self.widgets().patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn status(&self, name: &str) -> VirtPlatformConfigStatus {
        self.configs().get(name).await.unwrap().status.unwrap_or_default()
    }

    /// The status as soon as it is of this spec and fits.
    pub async fn wait(
        &self,
        name: &str,
        what: &str,
        fits: impl Fn(&VirtPlatformConfigStatus) -> bool,
    ) -> VirtPlatformConfigStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            let config = self.configs().get(name).await.unwrap();
            if let Some(status) = &config.status
                && status.observed_generation == config.metadata.generation
                && fits(status)
            {
                return status.clone();
            }
            assert!(Instant::now() < until, "{config:#?}\n{what} did not come: {}", brief(config.status.as_ref()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn wait_for(&self, name: &str, what: &str, phase: Phase) -> VirtPlatformConfigStatus {
        self.wait(name, &format!("{what}: {phase:?}"), |status| status.phase == Some(phase)).await
    }

    /// The condition that tells that something can't be read, as soon as it is `wanted`.
    pub async fn reading_failed(&self, name: &str, wanted: &str) -> Condition {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status(name).await;
            let found = status.conditions.iter().find(|condition| condition.type_ == "ReadingFailed");
            if let Some(found) = found.filter(|found| found.status == wanted) {
                return found.clone();
            }
            assert!(Instant::now() < until, "ReadingFailed={wanted} does not come: {status:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How often each thing was told of this configuration.
    pub async fn events(&self, name: &str) -> BTreeMap<String, usize> {
        let uid = self.configs().get(name).await.unwrap().uid();
        let events: Api<Event> = Api::namespaced(self.admin.clone(), "default");
        let mut told = BTreeMap::new();
        for event in events.list(&ListParams::default()).await.unwrap().items {
            if event.regarding.as_ref().and_then(|regarding| regarding.uid.clone()) == uid {
                let note = event.note.unwrap_or_default();
                let about = note.split(':').next().unwrap_or_default().to_owned();
                *told.entry(format!("{} {about}", event.reason.unwrap_or_default())).or_default() += 1;
            }
        }
        told
    }

    pub async fn clear(&self) {
        self.configs().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        self.widgets().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        let events: Api<Event> = Api::namespaced(self.admin.clone(), "default");
        events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    }

    pub fn mark(&self) -> Mark {
        self.plane.audit().mark()
    }

    /// What the operator asked of the server since `mark`.
    pub fn requests(&self, mark: &Mark) -> Vec<Request> {
        fixture::requests(&self.plane, mark)
    }

    /// Waits until the operator has come to rest, and sees that it stays so: nothing is asked and
    /// nothing is written.
    pub async fn rest(&self) {
        fixture::comes_to_rest(&self.plane).await;
        fixture::stays_at_rest(&self.plane).await;
    }

    /// Every test ends with this.
    pub async fn finish(self, running: Running) {
        self.rest().await;
        let refused: Vec<_> = self.requests(&self.began).into_iter().filter(|request| request.forbidden).collect();
        assert!(refused.is_empty(), "a right is missing: {refused:#?}");
        drop(running);
    }
}
