//! Executions that can't go on: what is done, what is left, and how it is left.

use std::time::Duration;

use advisor_core::api::{ItemState, Operation, Phase};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::stage::profile::{NAME, item, object};

const ADMISSION: &str = "admissionregistration.k8s.io";

impl Stage {
    async fn install_admission(&self, objects: &[Value]) {
        for object in objects {
            controlplane::apply_yaml(&self.admin, &object.to_string(), "test").await.unwrap();
        }
    }

    async fn lift_admission(&self, kinds: &[(&str, &str)]) {
        for (kind, name) in kinds {
            let resource = match *kind {
                "ValidatingAdmissionPolicy" => ApiResource::from_gvk_with_plural(
                    &GroupVersionKind::gvk(ADMISSION, "v1", kind),
                    "validatingadmissionpolicies",
                ),
                kind => ApiResource::from_gvk(&GroupVersionKind::gvk(ADMISSION, "v1", kind)),
            };
            let api: Api<DynamicObject> = Api::all_with(self.admin.clone(), &resource);
            api.delete(name, &DeleteParams::default()).await.unwrap();
        }
    }

    /// Waits until a Widget that no plan wants can, or can't, be created for real. One of a plan
    /// would be drift while it exists.
    async fn until_created(&self, can: bool) {
        let name = "probe";
        let probe = serde_json::from_value(object("Widget", name, json!({"size": 1}))).unwrap();
        for _ in 0..300 {
            let created = self.widgets().create(&PostParams::default(), &probe).await;
            if created.is_ok() {
                self.widgets().delete(name, &DeleteParams::default()).await.unwrap();
            }
            if created.is_ok() == can {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("admission does not take effect");
    }
}

/// P11: a server that takes a dry run and refuses the real write. What is done is done, what failed
/// says why, what is left is not touched; and the next plan is about what is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_what_a_real_write_is_refused_for_leaves_the_rest_as_it_is() {
    let stage = Stage::set().await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-three"},
        "spec": {"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": ["example.dev"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}]},
            "validations": [{"expression": "request.dryRun || !(object.metadata.name in ['three', 'probe'])", "message": "three is one too many"}]},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-three"},
        "spec": {"policyName": "no-three", "validationActions": ["Deny"]},
    });
    stage.install_admission(&[policy, binding]).await;
    stage.until_created(false).await;
    let running = Stage::run(stage.client());
    let wave = [("one", 0), ("two", 0), ("three", 1), ("four", 2)];
    let items: Vec<_> = wave.iter().map(|(name, wave)| item(name, *wave, json!({"size": 1}))).collect();
    stage.configure(NAME, "DryRun", &items).await;
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    stage.patch(NAME, json!({"action": "Apply"})).await;
    let failed = stage.wait_for(NAME, "the refusal", Phase::Failed).await;
    let states: Vec<_> = failed.items.iter().map(|item| item.state).collect();
    assert_eq!(states, [ItemState::Completed, ItemState::Completed, ItemState::Failed, ItemState::Pending]);
    assert!(failed.items[2].message.contains("three is one too many"), "{}", failed.items[2].message);
    stage.rest().await;

    let admission = [("ValidatingAdmissionPolicyBinding", "no-three"), ("ValidatingAdmissionPolicy", "no-three")];
    stage.lift_admission(&admission).await;
    stage.until_created(true).await;
    stage.rest().await;
    assert_eq!(stage.status(NAME).await, failed, "nobody has asked for another try");
    let again = json!({"metadata": {"annotations": {"advisor.kubevirt.io/replan": "1"}}});
    stage.configs().patch(NAME, &PatchParams::default(), &Patch::Merge(again)).await.unwrap();
    let plan = stage.wait(NAME, "what is left", |status| status.phase == Some(Phase::ReviewRequired)).await;
    let operations: Vec<_> = plan.items.iter().map(|item| item.operation).collect();
    assert_eq!(operations, [Operation::NoChange, Operation::NoChange, Operation::Create, Operation::Create]);
    stage.patch(NAME, json!({"approvedPlanHash": plan.plan_hash})).await;
    stage.wait_for(NAME, "the rest", Phase::Completed).await;
    stage.finish(running).await;
}

/// N4: a webhook that is down in the middle of an execution is said, waited for, and no failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n4_a_webhook_that_is_down_during_an_execution_is_waited_for() {
    let stage = Stage::set().await;
    let running = Stage::run(stage.client());
    stage.create(&object("Widget", "one", json!({"size": 1}))).await;
    let ready = |is: &str| json!({"status": {"conditions": [{"type": "Ready", "status": is}]}});
    let merge = PatchParams::default();
    stage.widgets().patch_status("one", &merge, &Patch::Merge(ready("False"))).await.unwrap();
    stage.configure(NAME, "DryRun", &[item("one", 0, json!({"text": "a"})), item("two", 1, json!({"size": 2}))]).await;
    stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    stage.patch(NAME, json!({"action": "Apply"})).await;
    stage.wait(NAME, "the first wave", |status| status.items[0].applied.is_some()).await;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "down"},
        "webhooks": [{"name": "down.example.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
            "clientConfig": {"url": "https://127.0.0.1:1/validate"},
            "rules": [{"apiGroups": ["example.dev"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}]}],
    });
    stage.install_admission(&[webhook]).await;
    stage.until_created(false).await;
    stage.widgets().patch_status("one", &merge, &Patch::Merge(ready("True"))).await.unwrap();
    let waiting =
        stage.wait(NAME, "the webhook's name", |status| status.items[1].message.contains("down.example.dev")).await;
    assert_eq!((waiting.phase, waiting.items[1].state), (Some(Phase::InProgress), ItemState::InProgress));
    assert!(waiting.summary.unwrap().text.contains("down.example.dev"), "the summary says what it waits for");
    stage.lift_admission(&[("ValidatingWebhookConfiguration", "down")]).await;
    stage.wait_for(NAME, "the end", Phase::Completed).await;
    stage.finish(running).await;
}
