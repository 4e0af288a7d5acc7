//! A leased API server, and the engine on it, without the operator: drafts in, a plan out.

use std::path::PathBuf;

use advisor_cluster::{ApplyMode, Cluster, ClusterError, Precondition};
use advisor_core::api::{FIELD_MANAGER, Item};
use advisor_core::plan::items::PlanItem;
use advisor_core::plan::overrides::Choices;
use advisor_core::plan::status::Written;
use advisor_core::plan::{Basis, Plan};
use advisor_core::rollout::{MachineConfigPools, Rollouts};
use advisor_engine::engine::{Engine, EngineError, Task, write};
use controlplane::{Lease, apply_yaml, install_crds, lease};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use mco_simulator::{Settings, seed};
use profile_sdk::{Body, Draft};
use serde_json::{Value, json};

use crate::fixture::third_party;

/// The profile of the drafts; nothing has that name.
pub const PROFILE: &str = "tested";

pub struct World {
    pub cluster: Cluster,
    pub pools: MachineConfigPools,
    pub admin: Client,
    pub plane: Lease,
}

pub fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": spec})
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})
}

pub fn draft(name: &str, object: &Value) -> Draft {
    Draft::new(name, Body::Ensure(object.clone()), "is wanted by a test")
}

impl World {
    /// With the kind Widget, and `crds`.
    pub async fn start(crds: &[PathBuf]) -> Self {
        let plane = lease().await;
        let admin = plane.admin();
        let widget = crate::fixture::root().join("tests/cluster/plans/widget.yaml");
        let crds: Vec<_> = crds.iter().cloned().chain([widget]).collect();
        install_crds(&admin, &crds).await.expect("CRDs are installed");
        Self { cluster: Cluster::new(admin.clone(), FIELD_MANAGER), pools: MachineConfigPools::default(), admin, plane }
    }

    /// With pools of machines, three workers and one master, all settled.
    pub async fn with_machines() -> Self {
        let world = Self::start(&["machineconfigs", "machineconfigpools", "kubeletconfigs"].map(third_party)).await;
        let settings = Settings { speed: 100.0, rendered_padding: 0, ..Settings::default() };
        let machines = mco_simulator::Cluster { workers: 3, masters: 1 };
        seed(&world.admin, &machines, &settings).await.expect("a settled cluster");
        world.see_pools().await;
        world
    }

    /// As another process, which knows nothing.
    pub fn start_anew(&mut self) {
        self.cluster = Cluster::new(self.admin.clone(), FIELD_MANAGER);
    }

    /// Lets the engine see the pools as they are now.
    pub async fn see_pools(&self) {
        let kind = self.cluster.resolve(&self.pools.watched_kind()).await.unwrap().expect("pools are served");
        self.pools.pools_listed(&self.cluster.list(&kind).await.unwrap());
    }

    /// The engine asks as this user from now on, with the rights of `rules` and no others.
    pub async fn as_user_with(&mut self, rules: Value) {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "planner"}, "rules": rules});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "planner"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "planner"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "planner"}],
        });
        for object in [role, binding] {
            apply_yaml(&self.admin, &object.to_string(), "test").await.unwrap();
        }
        self.cluster = Cluster::new(self.plane.client("planner", &[]).unwrap(), FIELD_MANAGER);
        // Rights are cached by the server for a moment.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }

    pub async fn try_plan(&self, drafts: &[Draft]) -> Result<Plan, EngineError> {
        self.plan_after(drafts, &[]).await
    }

    /// A plan that comes after one with these items.
    pub async fn plan_after(&self, drafts: &[Draft], remembered: &[Item]) -> Result<Plan, EngineError> {
        let unheard = |_, _| {};
        let task = Task {
            profile: PROFILE,
            kinds: &[],
            drafts,
            remembered,
            claims: &[],
            choices: &Choices::default(),
            unwatched: &std::collections::BTreeMap::new(),
            rivals: &[],
            exact: true,
        };
        Engine::new(&self.cluster, &self.pools, &unheard).plan(Basis::default(), task).await
    }

    pub async fn plan(&self, drafts: &[Draft]) -> Plan {
        self.try_plan(drafts).await.unwrap()
    }

    /// The item of the only draft.
    pub async fn item(&self, object: &Value) -> PlanItem {
        self.plan(&[draft("item", object)]).await.items.remove(0)
    }

    pub async fn item_of(&self, draft: Draft) -> PlanItem {
        self.plan(&[draft]).await.items.remove(0)
    }

    async fn api(&self, object: &Value) -> (Api<DynamicObject>, String) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = Cluster::new(self.admin.clone(), FIELD_MANAGER)
            .resolve_object(object)
            .await
            .unwrap()
            .expect("a served kind");
        let api = match text("/metadata/namespace").as_str() {
            "" => Api::all_with(self.admin.clone(), &kind.resource),
            namespace => Api::namespaced_with(self.admin.clone(), namespace, &kind.resource),
        };
        (api, text("/metadata/name"))
    }

    pub async fn get(&self, object: &Value) -> Option<Value> {
        let (api, name) = self.api(object).await;
        api.get_opt(&name).await.unwrap().map(|found| serde_json::to_value(found).unwrap())
    }

    pub async fn create(&self, object: &Value, manager: &str) {
        let params = PostParams { field_manager: Some(manager.into()), ..PostParams::default() };
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        self.api(object).await.0.create(&params, &typed).await.unwrap();
    }

    /// A merge patch by somebody else.
    pub async fn edit(&self, object: &Value, patch: Value, manager: &str) {
        let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
        let (api, name) = self.api(object).await;
        api.patch(&name, &params, &Patch::Merge(patch)).await.unwrap();
    }

    /// An apply by somebody, for real.
    pub async fn apply(&self, object: &Value, manager: &str) -> Value {
        let kind = Cluster::new(self.admin.clone(), FIELD_MANAGER)
            .resolve_object(object)
            .await
            .unwrap()
            .expect("a served kind");
        let cluster = Cluster::new(self.admin.clone(), FIELD_MANAGER);
        cluster.apply(&kind, object, manager, ApplyMode::Forced, &Precondition::None).await.unwrap()
    }

    /// Carries out `item`, and returns its object, if there is one afterwards.
    pub async fn try_execute(&self, item: &PlanItem) -> Result<(Written, Option<Value>), ClusterError> {
        let outcome = write(&self.cluster, PROFILE, item).await?;
        Ok((outcome.written, self.get(&item.target.empty()).await))
    }

    /// Carries out `item`, and returns its object.
    pub async fn execute(&self, item: &PlanItem) -> Value {
        let (written, object) = self.try_execute(item).await.unwrap();
        assert!(!matches!(written, Written::Refused(_) | Written::Differs(..)), "{written:?}");
        object.expect("the object exists")
    }

    pub async fn delete(&self, object: &Value) {
        let (api, name) = self.api(object).await;
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    }

    /// Plans `object` until its item fits: admission takes effect a moment after it is stored or
    /// deleted.
    pub async fn until(&self, object: &Value, what: &str, fits: impl Fn(&PlanItem) -> bool) -> PlanItem {
        let mut last = None;
        for _ in 0..200 {
            let item = self.item(object).await;
            if fits(&item) {
                return item;
            }
            last = Some(item);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        panic!("{what} did not come: {last:#?}");
    }

    /// Ends admission that a test has installed, by (apiVersion, kind, name): the next test gets
    /// the same server. `probe` is planned without it again when it is gone.
    pub async fn lift(&self, installed: &[(&str, &str, &str)], probe: &Value, fits: impl Fn(&PlanItem) -> bool) {
        for (api_version, kind, name) in installed {
            self.delete(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})).await;
        }
        self.until(probe, "the end of admission", fits).await;
    }

    /// Objects of whatever kinds, as YAML.
    pub async fn install(&self, yaml: &str) {
        apply_yaml(&self.admin, yaml, "test").await.unwrap();
    }
}
