//! Who edits and who approves may be two people: the roles, and the policy of config/approval.

use advisor_core::api::VirtPlatformConfig;
use controlplane::{Lease, install_crds, lease};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::fixture::{OWN_NAMESPACE, PATIENCE, PROFILE, create_namespace, our_crd, root};

pub const HASH: &str = "v1:0000000000000000000000000000000000000000000000000000000000000000";

/// Applies a file of the repository.
pub async fn apply(client: &Client, file: &str) {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    controlplane::apply_yaml(client, &text, "test").await.unwrap();
}

/// A client of a user with that role.
pub async fn user(plane: &Lease, role: &str) -> Api<VirtPlatformConfig> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": format!("test-{role}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("virt-advisor-operator-{role}")},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}],
    });
    controlplane::apply_yaml(&plane.admin(), &binding.to_string(), "test").await.unwrap();
    let client = advisor_cluster::client(plane.client_config(role, &[]).unwrap()).unwrap();
    let configs: Api<VirtPlatformConfig> = Api::all(client);
    let until = tokio::time::Instant::now() + PATIENCE;
    while configs.list(&Default::default()).await.is_err() {
        assert!(tokio::time::Instant::now() < until, "{role} has no rights");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    configs
}

pub fn config(spec: &Value) -> VirtPlatformConfig {
    let mut object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": PROFILE}, "spec": spec});
    object["spec"]["profile"] = json!(PROFILE);
    serde_json::from_value(object).unwrap()
}

/// Whether the answer is one, or a refusal by the policy.
fn allowed<T>(answer: Result<T, Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(Error::Api(status)) if status.code == 403 => {
            assert!(status.message.contains("requires the verb approve"), "{}", status.message);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_does_everything_but_approve_and_an_approver_that_too() {
    let plane = lease().await;
    let admin = plane.admin();
    install_crds(&admin, &[our_crd()]).await.unwrap();
    create_namespace(&admin, "openshift-cnv").await;
    create_namespace(&admin, OWN_NAMESPACE).await;
    apply(&admin, "config/rbac/role.yaml").await;
    let configs: Api<VirtPlatformConfig> = Api::all(admin.clone());
    let (editor, approver, viewer) =
        (user(&plane, "editor").await, user(&plane, "approver").await, user(&plane, "viewer").await);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let create = async |who: &Api<VirtPlatformConfig>, spec: &Value| allowed(who.create(&dry, &config(spec)).await);
    assert!(create(&editor, &json!({"action": "Apply"})).await, "without the policy an editor approves");

    apply(&admin, "config/approval/policy.yaml").await;
    let until = tokio::time::Instant::now() + PATIENCE;
    while create(&editor, &json!({"action": "Apply"})).await {
        assert!(tokio::time::Instant::now() < until, "the policy is not in force");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for (spec, by_editor) in [
        (json!({}), true),
        (json!({"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}}), true),
        (json!({"action": "Ignore"}), true),
        (json!({"action": "Apply"}), false),
        (json!({"approvedPlanHash": HASH}), false),
        (json!({"approvalPolicy": "Automatic"}), false),
        (json!({"bypassOptimisticLock": true}), false),
    ] {
        assert_eq!(create(&editor, &spec).await, by_editor, "an editor creates {spec}");
        assert!(create(&approver, &spec).await, "an approver creates {spec}");
    }
    let interval = json!({"spec": {"options": {"loadAware": {"deschedulingIntervalSeconds": 120}}}});
    let action = |action: &str| json!({"spec": {"action": action}});
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let exact = json!({"action": "Apply", "overrides": number(json!(9_007_199_254_740_993_i64))});
    let automatic = json!({"action": "DryRun", "approvalPolicy": "Automatic"});
    let bypass = json!({"action": "DryRun", "bypassOptimisticLock": true});
    for (before, patch, by_editor) in [
        (json!({"action": "DryRun"}), &interval, true),
        (json!({"action": "DryRun"}), &action("Apply"), false),
        (json!({"action": "Ignore"}), &action("Apply"), false),
        (json!({"action": "DryRun"}), &json!({"spec": {"approvedPlanHash": HASH}}), false),
        (json!({"action": "DryRun"}), &json!({"spec": {"approvalPolicy": "Automatic"}}), false),
        (json!({"action": "DryRun"}), &json!({"spec": {"bypassOptimisticLock": true}}), false),
        (json!({"action": "Apply"}), &interval, false),
        (json!({"action": "Apply"}), &json!({"spec": {"failurePolicy": "Continue"}}), false),
        // To CEL both are equal, and the server stores another one.
        (exact, &json!({"spec": {"overrides": number(json!(9_007_199_254_740_992.0))}}), false),
        (json!({"action": "Apply"}), &label, true),
        (json!({"action": "Apply"}), &action("DryRun"), true),
        (json!({"action": "Apply"}), &action("Ignore"), true),
        (json!({"action": "Apply", "approvedPlanHash": HASH}), &action("DryRun"), true),
        (json!({"action": "DryRun", "approvedPlanHash": HASH}), &interval, true),
        (json!({"action": "DryRun", "approvedPlanHash": HASH}), &json!({"spec": {"approvedPlanHash": null}}), true),
        // Whatever is edited while plans approve themselves is approved by it.
        (automatic.clone(), &interval, false),
        (automatic.clone(), &action("Ignore"), true),
        (automatic.clone(), &json!({"spec": {"action": "Ignore", "options": interval["spec"]["options"]}}), false),
        (automatic, &json!({"spec": {"approvalPolicy": "Review"}}), true),
        (bypass.clone(), &interval, false),
        (bypass.clone(), &action("Ignore"), true),
        (bypass, &json!({"spec": {"bypassOptimisticLock": false}}), true),
        (json!({"action": "Apply", "approvalPolicy": "Automatic"}), &action("DryRun"), true),
    ] {
        configs.create(&PostParams::default(), &config(&before)).await.unwrap();
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        let by = async |who: &Api<VirtPlatformConfig>| allowed(who.patch(PROFILE, &params, &Patch::Merge(patch)).await);
        assert_eq!(by(&editor).await, by_editor, "an editor patches {before} with {patch}");
        assert!(by(&approver).await, "an approver patches {before} with {patch}");
        configs.delete(PROFILE, &DeleteParams::default()).await.unwrap();
    }

    // Who may write the status could forge a plan: nobody of these may.
    configs.create(&PostParams::default(), &config(&json!({}))).await.unwrap();
    let forged = Patch::Merge(json!({"status": {"planHash": HASH}}));
    for who in [&editor, &approver, &viewer] {
        let refused = who.patch_status(PROFILE, &PatchParams::default(), &forged).await.unwrap_err();
        assert!(refused.to_string().contains("cannot patch"), "{refused}");
    }
    let refused = viewer.patch(PROFILE, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap_err();
    assert!(refused.to_string().contains("cannot patch"), "{refused}");
    lift(&admin, "virt-advisor-operator-approval").await;
}

/// Takes a policy away, so that it does not meet the next test on this server.
pub async fn lift(admin: &Client, policy: &str) {
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let policies: Api<DynamicObject> = Api::all_with(admin.clone(), &ApiResource::from_gvk(&kind));
        policies.delete(policy, &DeleteParams::default()).await.unwrap();
    }
}

/// Overrides that set a field to `value`.
pub fn number(value: Value) -> Value {
    let patch = json!([{"op": "add", "path": "/spec/a", "value": value}]);
    json!([{"target": {"kind": "X", "name": "x"}, "patch": patch}])
}
