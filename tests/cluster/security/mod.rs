//! The model of SECURITY.md, by real users on the real server: what viewers, editors and approvers
//! can cause and read, and what not.

mod others;

use advisor_core::api::{Phase, VirtPlatformConfig, VirtPlatformConfigStatus};
use controlplane::Mark;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};
use kube::Error;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::approvals::separation::{HASH, apply, lift, user};
use crate::fixture::{self, PATIENCE};
use crate::stage::profile::{NAME, item, object};
use crate::stage::{Running, Stage};

const POLICY: &str = "virt-advisor-operator-approval";

/// What the operator has written to objects of others since `mark`.
pub fn writes(stage: &Stage, mark: &Mark) -> Vec<String> {
    let own = ["advisor.kubevirt.io", "events.k8s.io", "coordination.k8s.io"];
    let requests = stage.requests(mark).into_iter();
    let targets = requests.filter(|request| request.is_write() && !own.contains(&request.group.as_str()));
    targets.map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
}

fn widget() -> kube::core::ApiResource {
    kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("example.dev", "v1", "Widget"))
}

fn object_of(spec: Value) -> VirtPlatformConfig {
    let mut object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": NAME}, "spec": spec});
    object["spec"]["profile"] = json!(NAME);
    serde_json::from_value(object).unwrap()
}

fn wants(size: u32) -> Value {
    json!({NAME: {"items": [item("x", 0, json!({"size": size})), item("y", 0, json!({"size": size}))]}})
}

/// Something that somebody tries with a configuration.
#[derive(Debug)]
enum Deed {
    Patch(Value),
    /// An edit of spec.
    Spec(Value),
    /// A server-side apply by force, as that field manager.
    ApplyAs(&'static str, Value),
    /// An update that replaces managedFields.
    Forge(fn(Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry>),
    /// A patch and an update of the status.
    Status(Value),
    Delete,
    Create(Value),
}

use Deed::{ApplyAs, Create, Delete, Forge, Spec, Status};

/// Whether the server takes it; else it refuses it for want of a right.
async fn does(who: &Api<VirtPlatformConfig>, deed: &Deed) -> bool {
    let params = PatchParams::default();
    let answer = match deed {
        Deed::Patch(patch) => who.patch(NAME, &params, &Patch::Merge(patch)).await.map(drop),
        Spec(spec) => who.patch(NAME, &params, &Patch::Merge(json!({"spec": spec}))).await.map(drop),
        ApplyAs(manager, spec) => {
            let params = PatchParams::apply(manager).force();
            who.patch(NAME, &params, &Patch::Apply(object_of(spec.clone()))).await.map(drop)
        }
        Forge(forge) => {
            let mut config = who.get(NAME).await.unwrap();
            config.metadata.managed_fields = config.metadata.managed_fields.map(forge);
            who.replace(NAME, &PostParams::default(), &config).await.map(drop)
        }
        Status(status) => {
            let patched = who.patch_status(NAME, &params, &Patch::Merge(json!({"status": status}))).await.map(drop);
            assert!(patched.is_err(), "a status is patched");
            let mut config = who.get(NAME).await.unwrap();
            config.status = serde_json::from_value(status.clone()).unwrap();
            who.replace_status(NAME, &PostParams::default(), &config).await.map(drop)
        }
        Delete => who.delete(NAME, &DeleteParams::default()).await.map(drop),
        Create(spec) => who.create(&PostParams::default(), &object_of(spec.clone())).await.map(drop),
    };
    match answer {
        Ok(()) => true,
        Err(Error::Api(status)) if status.code == 403 => false,
        Err(error) => panic!("{deed:?}: {error}"),
    }
}

/// A stage with the people of config/rbac, and config/approval in force.
struct Cast {
    stage: Stage,
    running: Running,
    viewer: Api<VirtPlatformConfig>,
    editor: Api<VirtPlatformConfig>,
    approver: Api<VirtPlatformConfig>,
}

impl Cast {
    async fn set() -> Self {
        let stage = Stage::set().await;
        let (viewer, editor, approver) = (
            user(&stage.plane, "viewer").await,
            user(&stage.plane, "editor").await,
            user(&stage.plane, "approver").await,
        );
        apply(&stage.admin, "config/approval/policy.yaml").await;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let until = tokio::time::Instant::now() + PATIENCE;
        while editor.create(&dry, &object_of(json!({"action": "Apply"}))).await.is_ok() {
            assert!(tokio::time::Instant::now() < until, "the policy is not in force");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let running = Stage::run(stage.client());
        Self { stage, running, viewer, editor, approver }
    }

    /// A plan that waits for a review.
    async fn reviewed(&self) -> String {
        self.stage.clear().await;
        assert!(does(&self.editor, &Create(json!({"options": wants(1)}))).await);
        self.stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await.plan_hash.unwrap()
    }

    /// A plan that was approved and carried out, and a target that has drifted since.
    async fn drifted(&self) {
        let plan = self.reviewed().await;
        assert!(does(&self.approver, &Spec(json!({"action": "Apply", "approvedPlanHash": plan}))).await);
        self.stage.wait_for(NAME, "applied", Phase::Completed).await;
        self.stage.edit("x", json!({"spec": {"size": 9}})).await;
        self.stage.wait_for(NAME, "drift", Phase::Drifted).await;
    }

    /// Nothing has been written since `mark`, now that everything has been seen.
    async fn nothing_is_written(&self, mark: &Mark, after: &str) {
        fixture::comes_to_rest(&self.stage.plane).await;
        assert_eq!(writes(&self.stage, mark), [""; 0], "after {after}");
    }

    async fn finish(self) {
        lift(&self.stage.admin, POLICY).await;
        self.stage.finish(self.running).await;
    }
}

fn ahead(entries: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
    let later = |entry: ManagedFieldsEntry| ManagedFieldsEntry {
        manager: Some("approver".into()),
        time: entry.time.map(|time| Time(time.0 + jiff::SignedDuration::from_mins(10))),
        ..entry
    };
    entries.into_iter().map(later).collect()
}

fn emptied(_: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
    vec![ManagedFieldsEntry::default()]
}

/// What an editor may try where a plan waits, and whether the server takes it.
fn before_an_approval(plan: &str) -> Vec<Vec<(Deed, bool)>> {
    let approved = json!({"phase": "InProgress", "planHash": plan, "approval": {"planHash": plan, "how": "Action",
        "by": "approver", "at": "2026-01-01T00:00:00Z", "generation": 1}});
    let with_status = json!({"status": approved, "metadata": {"annotations": {"a": "b"}}});
    let other_action = |action: &str| Spec(json!({"action": action}));
    vec![
        vec![(other_action("Apply"), false)],
        vec![(Spec(json!({"approvedPlanHash": plan})), false)],
        vec![(Spec(json!({"action": "Apply", "approvedPlanHash": plan})), false)],
        vec![(Spec(json!({"approvalPolicy": "Automatic"})), false)],
        vec![(Spec(json!({"bypassOptimisticLock": true})), false)],
        vec![(other_action("Ignore"), true), (other_action("Apply"), false)],
        vec![
            (other_action("Ignore"), true),
            (Spec(json!({"options": wants(2)})), true),
            (other_action("Apply"), false),
        ],
        vec![(ApplyAs("approver", json!({"action": "Apply"})), false)],
        vec![(ApplyAs("virt-advisor-operator", json!({"action": "Apply"})), false)],
        vec![(ApplyAs("virt-advisor-operator", json!({"action": "DryRun", "options": wants(3)})), true)],
        vec![(Delete, true), (Create(json!({"action": "Apply", "options": wants(1)})), false)],
        vec![(Delete, true), (Create(json!({"action": "Apply", "approvedPlanHash": plan})), false)],
        vec![(Delete, true), (Create(json!({"options": wants(2)})), true), (other_action("Apply"), false)],
        vec![(Forge(ahead), true), (other_action("Apply"), false)],
        vec![(Status(approved), false), (Deed::Patch(with_status), true)],
    ]
}

/// The same under action Apply, where a correction waits.
fn under_apply() -> Vec<Vec<(Deed, bool)>> {
    let annotation = json!({"metadata": {"annotations": {"advisor.kubevirt.io/replan": "now"}}});
    let x = json!({"kind": "Widget", "namespace": "default", "name": "x"});
    vec![
        vec![(Spec(json!({"options": wants(2)})), false)],
        vec![(Spec(json!({"overrides": [{"target": x, "ignoreFields": ["/spec/size"]}]})), false)],
        vec![(Spec(json!({"items": [{"name": "x", "mode": "Skip"}]})), false)],
        vec![(Spec(json!({"failurePolicy": "Continue"})), false), (Spec(json!({"waitTimeout": "1s"})), false)],
        vec![(Spec(json!({"approvedPlanHash": null})), false), (Spec(json!({"approvedPlanHash": HASH})), false)],
        vec![
            (Spec(json!({"approvalPolicy": "Automatic"})), false),
            (Spec(json!({"bypassOptimisticLock": true})), false),
        ],
        vec![(Spec(json!({"action": "DryRun", "options": wants(2)})), true), (Spec(json!({"action": "Apply"})), false)],
        vec![(Forge(ahead), true), (Deed::Patch(annotation.clone()), true)],
        vec![(Forge(emptied), true), (Deed::Patch(annotation), true)],
        vec![(Spec(json!({"action": "DryRun"})), true), (Spec(json!({"action": "Apply"})), false)],
        vec![(ApplyAs("approver", json!({"action": "Apply", "options": wants(2)})), false)],
        vec![(Delete, true), (Create(json!({"action": "Apply", "options": wants(1)})), false)],
    ]
}

/// Whatever an editor writes where config/approval is in force, the operator writes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_causes_no_write_whatever_is_edited() {
    let cast = Cast::set().await;
    let tries = before_an_approval(HASH).len();
    for number in 0..tries {
        let plan = cast.reviewed().await;
        let mark = cast.stage.mark();
        let deeds = before_an_approval(&plan).swap_remove(number);
        for (deed, taken) in &deeds {
            assert_eq!(does(&cast.editor, deed).await, *taken, "{deed:?} of {deeds:?}");
        }
        cast.nothing_is_written(&mark, &format!("{deeds:?}")).await;
    }
    for deeds in under_apply() {
        cast.drifted().await;
        let mark = cast.stage.mark();
        for (deed, taken) in &deeds {
            assert_eq!(does(&cast.editor, deed).await, *taken, "{deed:?} of {deeds:?}");
        }
        cast.nothing_is_written(&mark, &format!("{deeds:?}")).await;
    }
    cast.finish().await;
}

/// An approver names the plan that was read; an editor has edited something meanwhile, seen by the
/// operator or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_between_reading_and_approving_is_not_approved_with_it() {
    let cast = Cast::set().await;
    let x = json!({"kind": "Widget", "namespace": "default", "name": "x"});
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 7}]);
    let edits = || {
        [
            vec![Spec(json!({"options": wants(2)}))],
            vec![Spec(json!({"overrides": [{"target": x, "patch": patch}]}))],
            vec![Spec(json!({"items": [{"name": "x", "mode": "Skip"}]}))],
            vec![Spec(json!({"failurePolicy": "Continue"}))],
            vec![Spec(json!({"waitTimeout": "1s"}))],
            vec![Spec(json!({"action": "Ignore"})), Spec(json!({"action": "DryRun", "options": wants(2)}))],
            vec![Delete, Create(json!({"options": wants(2)}))],
        ]
    };
    for (edited, by_hash, seen) in edits()
        .into_iter()
        .flat_map(|edited| {
            [(true, false), (true, true), (false, false), (false, true)]
                .map(|(hash, seen)| (format!("{edited:?}"), hash, seen))
        })
        .collect::<Vec<_>>()
    {
        let deeds = edits().into_iter().find(|deeds| format!("{deeds:?}") == edited).unwrap();
        // The first plan of a new object is nobody's change of another one: the action approves it,
        // and only a hash tells it apart.
        if matches!(deeds.first(), Some(Delete)) && !by_hash {
            continue;
        }
        let plan = cast.reviewed().await;
        let mark = cast.stage.mark();
        for deed in &deeds {
            assert!(does(&cast.editor, deed).await, "{deed:?}");
        }
        if seen {
            let another =
                |status: &VirtPlatformConfigStatus| status.plan_hash.as_ref().is_some_and(|hash| *hash != plan);
            cast.stage.wait(NAME, &edited, another).await;
        }
        let mut approval = json!({"action": "Apply"});
        if by_hash {
            approval["approvedPlanHash"] = json!(plan);
        }
        assert!(does(&cast.approver, &Spec(approval)).await);
        cast.nothing_is_written(&mark, &format!("{edited}, approved by hash: {by_hash}, shown: {seen}")).await;
        let told = cast.stage.wait_for(NAME, &edited, Phase::ReviewRequired).await.summary.unwrap().text;
        assert!(told.contains("spec.approvedPlanHash"), "{told}");
    }
    cast.finish().await;
}

/// Who reads configurations reads what diffs quote of targets, changes nothing, and nobody of all
/// of them writes a status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_reads_what_plans_quote_and_changes_nothing() {
    let cast = Cast::set().await;
    cast.stage.create(&object("Widget", "x", json!({"text": "a word of the target"}))).await;
    let patched = json!({NAME: {"items": [item("x", 0, json!({"text": "another word"}))]}});
    assert!(does(&cast.editor, &Create(json!({"options": patched}))).await);
    cast.stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    let mark = cast.stage.mark();
    let client = cast.stage.plane.client("viewer", &[]).unwrap();
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &widget());
    assert!(widgets.get("x").await.is_err(), "a viewer may not read the target itself");
    let read = cast.viewer.get(NAME).await.unwrap().status.unwrap();
    assert!(read.items[0].diff.contains("a word of the target"), "{}", read.items[0].diff);
    let plan = read.plan_hash.clone().unwrap();
    for deeds in before_an_approval(&plan).into_iter().chain(under_apply()) {
        for (deed, _) in deeds {
            assert!(!does(&cast.viewer, &deed).await, "{deed:?}");
        }
    }
    assert!(cast.viewer.delete_collection(&DeleteParams::default(), &ListParams::default()).await.is_err());
    for who in [&cast.viewer, &cast.editor, &cast.approver] {
        assert!(!does(who, &Status(json!({"planHash": plan}))).await, "a status is written");
    }
    cast.nothing_is_written(&mark, "everything that a viewer can try").await;
    cast.finish().await;
}
