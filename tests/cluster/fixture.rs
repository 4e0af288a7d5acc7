//! A leased API server with everything that load-aware rebalancing meets, and the operator running
//! on it as its own user with exactly the generated rights.

use std::path::{Path, PathBuf};
use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use controlplane::{Lease, Mark, Request, install_crds, lease};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use mco_simulator::release::Release;
use mco_simulator::{Cluster, Settings, Simulator, seed};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use virt_advisor::controller::{Health, WatchState};
use virt_advisor::telemetry::Traces;

pub const PROFILE: &str = "load-aware-rebalancing";
pub const VERSION: &str = "v0.0.1-test";
/// The user that the operator runs as.
pub const USER: &str = "virt-advisor";
/// The namespace that the manifests install into.
pub const OWN_NAMESPACE: &str = "virt-advisor-operator";
/// The longest time that anything may take; a fast machine needs a fraction.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long an unchanged world is watched for writes.
const REST: Duration = Duration::from_millis(1500);
/// So long without a request is the end of what was going on. A process that shares its core with
/// others may pause for half of it.
const CALM: Duration = Duration::from_secs(1);

/// What is there before the operator starts.
pub struct Setup {
    pub our_crd: bool,
    pub descheduler_crd: Option<PathBuf>,
    pub hyper_converged_crd: Option<PathBuf>,
    pub hyper_converged: Option<Value>,
    pub descheduler: Option<Value>,
    pub workers: usize,
    pub masters: usize,
    pub pools: bool,
    /// The folder with the CRDs of MachineConfigs and their pools.
    pub pool_crds: PathBuf,
    pub descheduler_namespace: bool,
    pub rights: bool,
    /// How much faster than the real controllers machines are updated.
    pub speed: f64,
    /// Which release of the machine-config controllers is simulated.
    pub release: Release,
    /// The profile that the test is about.
    pub profile: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            our_crd: true,
            descheduler_crd: Some(third_party("kubedeschedulers")),
            hyper_converged_crd: Some(third_party("hyperconvergeds")),
            hyper_converged: Some(hyper_converged("v1beta1", json!({}))),
            descheduler: None,
            workers: 3,
            masters: 1,
            pools: true,
            pool_crds: root().join("crds/third-party"),
            descheduler_namespace: true,
            rights: true,
            speed: 25.0,
            release: Release::default(),
            profile: PROFILE,
        }
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn our_crd() -> PathBuf {
    root().join("crds/advisor.kubevirt.io_virtplatformconfigs.yaml")
}

pub fn third_party(plural: &str) -> PathBuf {
    root().join("crds/third-party").join(format!("{plural}.yaml"))
}

pub fn hyper_converged(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("hco.kubevirt.io/{version}"), "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"}, "spec": spec,
    })
}

pub fn descheduler(spec: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"}, "spec": spec,
    })
}

/// The running operator; dropping it is a crash.
pub struct Operator {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Fixture {
    // Dropped first: nothing may write any more when the plane goes back.
    operator: Option<Operator>,
    simulator: Option<Simulator>,
    pub admin: Client,
    pub plane: Lease,
    /// As in [`Settings`].
    pub patience: Duration,
    /// As in [`Settings`]: owners that are played answer at once, and most are not.
    pub settling: SignedDuration,
    /// The profile that the test is about.
    pub profile: &'static str,
    /// Where the operator sends its traces.
    pub traces: Traces,
    began: Mark,
    health: Health,
}

impl Fixture {
    /// Sets everything up and starts the operator.
    pub async fn start(setup: Setup) -> Self {
        let mut fixture = Self::without_operator(setup).await;
        fixture.start_operator();
        fixture
    }

    pub async fn without_operator(setup: Setup) -> Self {
        let plane = lease().await;
        let admin = plane.admin();
        let mut crds: Vec<_> = setup.descheduler_crd.into_iter().chain(setup.hyper_converged_crd).collect();
        if setup.our_crd {
            crds.push(our_crd());
        }
        if setup.pools {
            let plurals = ["machineconfigs", "machineconfigpools", "kubeletconfigs", "machineconfigurations"];
            crds.extend(plurals.map(|plural| setup.pool_crds.join(format!("{plural}.yaml"))));
        }
        install_crds(&admin, &crds).await.expect("CRDs are installed");
        create_namespace(&admin, "openshift-cnv").await;
        if setup.descheduler_namespace {
            create_namespace(&admin, "openshift-kube-descheduler-operator").await;
        }
        let mut simulator = None;
        if setup.pools {
            let settings = Settings { speed: setup.speed, rendered_padding: 0, release: setup.release };
            seed(&admin, &Cluster { workers: setup.workers, masters: setup.masters }, &settings)
                .await
                .expect("a settled cluster");
            simulator = Some(Simulator::start(admin.clone(), settings));
        }
        let began = plane.audit().mark();
        let fixture = Self {
            operator: None,
            simulator,
            admin,
            plane,
            patience: Duration::from_secs(600),
            settling: SignedDuration::from_secs(1),
            profile: setup.profile,
            began,
            traces: Traces::default(),
            health: Health::default(),
        };
        for object in setup.hyper_converged.into_iter().chain(setup.descheduler) {
            fixture.create(&object, "kubectl-create").await;
        }
        if setup.rights {
            fixture.grant_rights().await;
        }
        fixture
    }

    /// The generated role, for the operator's user.
    pub async fn grant_rights(&self) {
        create_namespace(&self.admin, OWN_NAMESPACE).await;
        let role = std::fs::read_to_string(root().join("config/rbac/role.yaml")).expect("a generated role");
        controlplane::apply_yaml(&self.admin, &role, "test").await.expect("the role is applied");
        let role = std::fs::read_to_string(root().join("config/rbac-namespaces/role.yaml")).expect("a generated role");
        controlplane::apply_yaml(&self.admin, &role, "test").await.expect("the role is applied");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "virt-advisor"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "virt-advisor-operator-manager-role"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        controlplane::apply_yaml(&self.admin, &binding.to_string(), "test").await.expect("the role is bound");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "virt-advisor", "namespace": "openshift-cnv"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "virt-advisor-operator-manager-role"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        controlplane::apply_yaml(&self.admin, &binding.to_string(), "test").await.expect("the role is bound");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "virt-advisor-leader", "namespace": OWN_NAMESPACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "virt-advisor-operator-leader-election-role"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        controlplane::apply_yaml(&self.admin, &binding.to_string(), "test").await.expect("the role is bound");
    }

    /// Gives `subject` a ClusterRole.
    pub async fn bind(&self, role: &str, subject: Value) {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("test-{role}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}, "subjects": [subject],
        });
        controlplane::apply_yaml(&self.admin, &binding.to_string(), "test").await.expect("the role is bound");
    }

    /// Waits until nothing is asked but leases.
    pub async fn rest_but_renewals(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mark = self.mark();
            tokio::time::sleep(Duration::from_millis(700)).await;
            let asked = self.requests(&mark);
            if asked.iter().all(|request| request.is_watch() || request.resource == "leases") {
                return;
            }
            assert!(Instant::now() < until, "the operator does not come to rest: {asked:#?}");
        }
    }

    pub fn start_operator(&mut self) {
        self.start_version(VERSION);
    }

    pub fn start_version(&mut self, version: &'static str) {
        self.start_with(self.client(), version);
    }

    /// A client as the operator has it.
    pub fn client(&self) -> Client {
        let config = self.plane.client_config(USER, &[]).expect("a client configuration");
        advisor_cluster::client(config).expect("a client")
    }

    pub fn start_with(&mut self, client: Client, version: &'static str) {
        let stop = CancellationToken::new();
        let settings = virt_advisor::controller::Settings::new(version);
        self.health = settings.health.clone();
        let (patience, settling, traces) = (self.patience, self.settling, self.traces.clone());
        let settings = virt_advisor::controller::Settings { patience, settling, traces, ..settings };
        let task = tokio::spawn(virt_advisor::controller::run(client, settings, stop.clone()));
        self.operator = Some(Operator { stop, task });
    }

    /// Ends the operator as a crash does.
    pub fn kill_operator(&mut self) {
        self.operator = None;
    }

    /// Ends the operator as SIGTERM does.
    pub async fn stop_operator(&mut self) {
        if let Some(mut operator) = self.operator.take() {
            operator.stop.cancel();
            tokio::time::timeout(Duration::from_secs(10), &mut operator.task)
                .await
                .expect("a stop within ten seconds")
                .expect("no panic");
        }
    }

    pub async fn stop_simulator(&mut self) {
        if let Some(simulator) = self.simulator.take() {
            simulator.stop().await;
        }
    }

    /// The machine fails its next update.
    pub fn fail_machine(&self, node: &str, reason: &str) {
        self.simulator.as_ref().expect("a running simulator").fail_machine(node, reason);
    }

    pub fn repair_machine(&self, node: &str) {
        self.simulator.as_ref().expect("a running simulator").repair_machine(node);
    }

    pub fn configs(&self) -> Api<VirtPlatformConfig> {
        Api::all(self.admin.clone())
    }

    pub fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").rsplit_once('/').unwrap_or(("", text("/apiVersion")));
        let kind = text("/kind");
        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk(group, version, kind),
            &format!("{}s", kind.to_lowercase()),
        );
        match text("/metadata/namespace") {
            "" => Api::all_with(self.admin.clone(), &resource),
            namespace => Api::namespaced_with(self.admin.clone(), namespace, &resource),
        }
    }

    pub async fn create(&self, object: &Value, manager: &str) {
        let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let object_typed: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        self.api(object).create(&params, &object_typed).await.expect("the object is created");
    }

    pub async fn get(&self, object: &Value) -> Option<Value> {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let found = self.api(object).get_opt(name).await.expect("an answer");
        found.map(|found| serde_json::to_value(found).expect("JSON"))
    }

    /// An edit by somebody else.
    pub async fn edit(&self, object: &Value, patch: Value, manager: &str) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api(object).patch(name, &params, &Patch::Merge(patch)).await.expect("the edit is accepted");
    }

    /// An edit of the configuration's spec, as `kubectl patch --type=merge` makes it.
    pub async fn patch(&self, spec: Value) {
        let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
        self.configs()
            .patch(self.profile, &params, &Patch::Merge(json!({"spec": spec})))
            .await
            .expect("the edit is accepted");
    }

    pub async fn config(&self) -> VirtPlatformConfig {
        self.configs().get(self.profile).await.expect("the configuration exists")
    }

    /// The status as soon as it fits; panics with the last one if it does not come.
    pub async fn wait(&self, what: &str, fits: impl Fn(&VirtPlatformConfigStatus) -> bool) -> VirtPlatformConfigStatus {
        let until = Instant::now() + PATIENCE;
        let mut last = None;
        while Instant::now() < until {
            last = self.configs().get_opt(self.profile).await.ok().flatten();
            let generation = last.as_ref().and_then(|config| config.metadata.generation);
            if let Some(status) = last.as_ref().and_then(|config| config.status.as_ref())
                && status.observed_generation == generation
                && fits(status)
            {
                return status.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let brief = brief(last.as_ref().and_then(|config| config.status.as_ref()));
        panic!("{last:#?}\n{what} did not come: {brief}");
    }

    pub async fn wait_for(&self, phase: Phase) -> VirtPlatformConfigStatus {
        self.wait(&format!("phase {phase:?}"), |status| status.phase == Some(phase)).await
    }

    pub fn mark(&self) -> Mark {
        self.plane.audit().mark()
    }

    /// What the operator asked of the server since `mark`.
    pub fn requests(&self, mark: &Mark) -> Vec<Request> {
        requests(&self.plane, mark)
    }

    /// Writes of the operator since `mark` to anything but its own status and events.
    pub fn target_writes(&self, mark: &Mark) -> Vec<String> {
        let requests = self.requests(mark).into_iter();
        let targets = requests.filter(|request| {
            request.is_write()
                && !["advisor.kubevirt.io", "events.k8s.io", "coordination.k8s.io"].contains(&request.group.as_str())
        });
        targets.map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
    }

    /// Every fixture ends with this: nothing happens, so nothing is asked and nothing is written;
    /// and no right was missing.
    pub async fn finish(mut self) {
        self.stop_simulator().await;
        self.rest().await;
        let refused: Vec<_> = self.requests(&self.began).into_iter().filter(|request| request.forbidden).collect();
        assert!(refused.is_empty(), "the generated role lacks a right: {refused:#?}");
        self.stop_operator().await;
    }

    /// Waits until every watch has been open for a second: one that resumes from a version which is
    /// too old for a server that has just started is opened, told so at once, and lists again after
    /// a pause.
    pub async fn until_watching(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let before = self.health.watches();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let watches = self.health.watches();
            let open = !watches.is_empty() && watches.iter().all(|watch| watch.state == WatchState::Open);
            if open && watches == before {
                return;
            }
            assert!(Instant::now() < until, "{watches:#?}");
        }
    }

    /// Ends without asking whether a right was missing: a server that has just started refuses
    /// everybody for a moment.
    pub async fn finish_after_outage(mut self) {
        self.stop_simulator().await;
        self.rest().await;
        self.stop_operator().await;
    }

    pub async fn rest(&self) {
        comes_to_rest(&self.plane).await;
        let before = self.versions().await;
        stays_at_rest(&self.plane).await;
        assert_eq!(before, self.versions().await);
    }

    async fn versions(&self) -> Vec<(String, Option<String>)> {
        let list = self.configs().list_metadata(&Default::default()).await.expect("an answer");
        list.items.iter().map(|config| (config.name_any(), config.resource_version())).collect()
    }
}

/// Where `status` stands, in one line: the end of what a failure prints, which is all that some see
/// of it.
pub fn brief(status: Option<&VirtPlatformConfigStatus>) -> String {
    let Some(status) = status else { return "there is no status".to_owned() };
    let items: Vec<_> =
        status.items.iter().map(|item| format!("{} {:?} {:?}", item.name, item.operation, item.state)).collect();
    let summary = status.summary.as_ref().map(|summary| &summary.text);
    format!("{:?}, plan {:?}, items {items:?}, {summary:?}", status.phase, status.plan_hash)
}

/// What the operator asked of the server since `mark`.
pub fn requests(plane: &Lease, mark: &Mark) -> Vec<Request> {
    plane.audit().since(mark).into_iter().filter(|request| request.user == USER).collect()
}

/// Waits until the operator asks nothing any more: what was caused before may still be under way on
/// a busy machine.
pub async fn comes_to_rest(plane: &Lease) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mark = plane.audit().mark();
        tokio::time::sleep(CALM).await;
        let asked = requests(plane, &mark);
        if asked.iter().all(Request::is_watch) {
            return;
        }
        assert!(Instant::now() < until, "the operator does not come to rest: {asked:#?}");
    }
}

/// In a world that does not change nothing is asked and nothing is written.
pub async fn stays_at_rest(plane: &Lease) {
    let mark = plane.audit().mark();
    tokio::time::sleep(REST).await;
    let asked: Vec<_> = requests(plane, &mark).into_iter().filter(|request| !request.is_watch()).collect();
    assert!(asked.is_empty(), "an unchanged world is asked and written nothing: {asked:#?}");
}

pub async fn create_namespace(client: &Client, name: &str) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a namespace");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("the namespace is created");
}
