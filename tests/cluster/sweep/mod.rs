//! A whole story, with one fault at each of its requests in turn: the end is always the same.

mod profile;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controlplane::faults::{Fault, Script, scripted};
use controlplane::{Lease, install_crds, lease};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use virt_advisor::api::{Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use virt_advisor::controller::Settings;

use crate::fixture::{VERSION, root};
use profile::{NAME, PROFILES, WIDGETS};

const USER: &str = "virt-advisor";
const PATIENCE: Duration = Duration::from_secs(60);

/// Every fault that is swept.
const FAULTS: [Fault; 12] = [
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::Cut,
    Fault::LoseAnswer,
    Fault::Truncate,
    Fault::Delay,
    Fault::Answer(409, "Conflict"),
    Fault::Answer(410, "Expired"),
    Fault::Answer(429, "TooManyRequests"),
    Fault::Answer(500, "InternalError"),
    Fault::Answer(503, "ServiceUnavailable"),
    Fault::Answer(504, "Timeout"),
];

/// A server with the kinds of the story.
struct Stage {
    plane: Lease,
    admin: Client,
}

/// What a story came to.
#[derive(Debug, PartialEq)]
struct End {
    phase: Option<Phase>,
    outcomes: Vec<String>,
    sizes: Vec<Value>,
    /// How often each object was changed: its generation.
    changes: Vec<i64>,
}

struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Stage {
    async fn set() -> Self {
        let plane = lease().await;
        let admin = plane.admin();
        install_crds(&admin, &[root().join("tests/cluster/plans/widget.yaml")]).await.unwrap();
        let crd = virt_advisor::api::crd_yaml(PROFILES).unwrap();
        controlplane::apply_yaml(&admin, &crd, "test").await.unwrap();
        let role = std::fs::read_to_string(root().join("config/rbac/role.yaml")).unwrap();
        controlplane::apply_yaml(&admin, &role, "test").await.unwrap();
        let widgets = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "widgets"},
            "rules": [{"apiGroups": ["example.dev"], "resources": ["widgets"], "verbs": ["get", "list", "watch", "create", "patch"]}],
        });
        controlplane::apply_yaml(&admin, &widgets.to_string(), "test").await.unwrap();
        for role in ["widgets", "virt-advisor-operator-manager-role"] {
            let binding = json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
            });
            controlplane::apply_yaml(&admin, &binding.to_string(), "test").await.unwrap();
        }
        Self { plane, admin }
    }

    fn client(&self) -> Client {
        virt_advisor::cluster::client(self.plane.client_config(USER, &[]).unwrap()).unwrap()
    }

    fn run(client: Client) -> Running {
        let settings = Settings { profiles: PROFILES, ..Settings::new(VERSION) };
        Running(tokio::spawn(virt_advisor::controller::run(client, settings, CancellationToken::new())))
    }

    fn configs(&self) -> Api<VirtPlatformConfig> {
        Api::all(self.admin.clone())
    }

    fn widgets(&self) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.dev", "v1", "Widget"));
        Api::namespaced_with(self.admin.clone(), "default", &kind)
    }

    async fn patch(&self, spec: Value) {
        let params = PatchParams { field_manager: Some("kubectl-patch".into()), ..PatchParams::default() };
        self.configs().patch(NAME, &params, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }

    async fn wait_for(&self, what: &str, phase: Phase) -> VirtPlatformConfigStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            let config = self.configs().get(NAME).await.unwrap();
            if let Some(status) = &config.status
                && status.phase == Some(phase)
                && status.observed_generation == config.metadata.generation
            {
                return status.clone();
            }
            assert!(Instant::now() < until, "{what}: {phase:?} did not come: {config:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// DryRun, a plan, Apply, Completed: told with `script`, which may end the process once.
    async fn tell(&self, what: &str, script: &Arc<Script>) -> End {
        self.clear().await;
        let spec = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": NAME}, "spec": {"profile": NAME, "action": "DryRun"}});
        let config = serde_json::from_value(spec).unwrap();
        self.configs().create(&PostParams::default(), &config).await.unwrap();
        let mut running = Some(Self::run(scripted(self.client(), script.clone())));
        let story = async {
            let plan = self.wait_for(what, Phase::ReviewRequired).await;
            self.patch(json!({"action": "Apply"})).await;
            let done = self.wait_for(what, Phase::Completed).await;
            assert_eq!(done.history.first().map(|entry| &entry.plan_hash), plan.plan_hash.as_ref(), "{what}");
            done
        };
        let mut story = std::pin::pin!(story);
        let done = tokio::select! {
            done = &mut story => done,
            () = script.killed() => {
                running.take();
                running = Some(Self::run(self.client()));
                story.await
            }
        };
        // Nothing follows: what would be done twice would be done now.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(running);
        let list = self.widgets().list(&ListParams::default()).await.unwrap().items;
        let events = self.events().await;
        assert!(events.values().all(|count| *count <= 1), "{what}: {events:?}");
        End {
            phase: done.phase,
            outcomes: done.history.iter().map(|entry| entry.outcome.clone()).collect(),
            sizes: list.iter().map(|widget| widget.data["spec"]["size"].clone()).collect(),
            changes: list.iter().map(|widget| widget.metadata.generation.unwrap()).collect(),
        }
    }

    /// How often each thing was told of this configuration.
    async fn events(&self) -> BTreeMap<String, usize> {
        let uid = self.configs().get(NAME).await.unwrap().uid();
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

    async fn clear(&self) {
        self.configs().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        self.widgets().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        let events: Api<Event> = Api::namespaced(self.admin.clone(), "default");
        events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    }
}

/// Printed also where the test passes, whose output is not shown otherwise.
fn tell(text: &str) {
    use std::io::Write as _;
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// The sweep, `part` of `parts`: of every fault at every request each one that falls into it.
async fn sweep(part: usize, parts: usize) -> String {
    let stage = Stage::set().await;
    let calm = Script::new(Fault::Delay, usize::MAX);
    let end = stage.tell("calm", &calm).await;
    assert_eq!((end.outcomes.len(), end.sizes.len()), (1, WIDGETS.len()), "{end:?}");
    assert!(end.changes.iter().all(|changes| *changes == 1), "{end:?}");
    let told = stage.events().await;
    assert_eq!(told.len(), 6, "{told:?}");
    let requests = calm.count();
    let began = std::time::Instant::now();
    let mut runs = 0;
    // Every how many of all is told: all, or so many that it takes a minute.
    let stride = if std::env::var("ADVISOR_TEST_FAULTS").is_ok_and(|which| which == "all") { 1 } else { 13 };
    let all = (0..requests).flat_map(|at| FAULTS.map(|fault| (at, fault))).enumerate();
    let chosen = all.filter(|(number, _)| number % stride == 0 && (number / stride) % parts == part);
    for (_, (at, fault)) in chosen {
        let what = format!("{fault:?} at request {at}");
        let found = stage.tell(&what, &Script::new(fault, at)).await;
        assert_eq!(found, end, "{what}");
        runs += 1;
    }
    format!(
        "faults: {runs} stories of {requests} requests each, part {} of {parts}, every {stride}th of all: the same end, {:.0?}",
        part + 1,
        began.elapsed()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_one_request_the_end_is_the_same_first_half() {
    tell(&sweep(0, 2).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_happens_to_one_request_the_end_is_the_same_second_half() {
    tell(&sweep(1, 2).await);
}

/// Two operators at once, without an election: both may act, and nothing is written that was not approved, or twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_at_once_write_nothing_twice() {
    let stage = Stage::set().await;
    for round in 0..5 {
        let rival = Stage::run(stage.client());
        let end = stage.tell(&format!("two operators, round {round}"), &Script::new(Fault::Delay, usize::MAX)).await;
        drop(rival);
        assert_eq!(end.outcomes, ["Completed"]);
        assert_eq!(end.changes, [1; 3], "{end:?}");
    }
}
