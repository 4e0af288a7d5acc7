//! The policy of config/approval-by-hash: nothing is carried out but the plan that a hash names.

use advisor_core::api::{ApprovedBy, Phase, VirtPlatformConfig};
use controlplane::{install_crds, lease};
use kube::Error;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::approvals::separation::{HASH, apply, config, lift, number};
use crate::fixture::{OWN_NAMESPACE, PATIENCE, PROFILE, create_namespace, our_crd};
use crate::security::writes;
use crate::stage::Stage;
use crate::stage::profile::{NAME, item};

const POLICY: &str = "virt-advisor-operator-approval-by-hash";
const FILE: &str = "config/approval-by-hash/policy.yaml";
const OTHER: &str = "v1:1111111111111111111111111111111111111111111111111111111111111111";

/// Whether the answer is one, or a refusal by the policy.
fn allowed<T>(answer: Result<T, Error>) -> bool {
    match answer {
        Ok(_) => true,
        Err(Error::Api(status)) if status.message.contains("only a hash approves here") => false,
        Err(error) => panic!("{error}"),
    }
}

async fn patches(configs: &Api<VirtPlatformConfig>, name: &str, patch: &Value, dry_run: bool) -> bool {
    let params = PatchParams { dry_run, ..PatchParams::default() };
    allowed(configs.patch(name, &params, &Patch::Merge(patch)).await)
}

/// Waits until the policy is in force: `refused` is a patch that it refuses.
async fn in_force(configs: &Api<VirtPlatformConfig>, name: &str, refused: &Value) {
    let until = tokio::time::Instant::now() + PATIENCE;
    while patches(configs, name, refused, true).await {
        assert!(tokio::time::Instant::now() < until, "the policy is not in force");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_only_hashes_approve_an_edit_under_apply_names_its_plan() {
    let plane = lease().await;
    let admin = plane.admin();
    install_crds(&admin, &[our_crd()]).await.unwrap();
    create_namespace(&admin, OWN_NAMESPACE).await;
    let configs: Api<VirtPlatformConfig> = Api::all(admin.clone());
    let spec = |fields: Value| json!({"spec": fields});
    let interval = json!({"loadAware": {"deschedulingIntervalSeconds": 120}});
    let exact =
        json!({"action": "Apply", "approvedPlanHash": HASH, "overrides": number(json!(9_007_199_254_740_993_i64))});

    // What was there before the policy.
    let before = json!({"action": "Apply", "approvalPolicy": "Automatic", "bypassOptimisticLock": true});
    configs.create(&PostParams::default(), &config(&before)).await.unwrap();
    apply(&admin, FILE).await;
    in_force(&configs, PROFILE, &spec(json!({"options": interval}))).await;
    for (patch, free) in [
        (json!({"metadata": {"labels": {"a": "b"}}}), true),
        (spec(json!({"action": "DryRun"})), true),
        (spec(json!({"action": "Ignore"})), true),
        (spec(json!({"action": "DryRun", "approvalPolicy": "Review", "bypassOptimisticLock": false})), true),
        (spec(json!({"approvedPlanHash": HASH, "approvalPolicy": "Review", "bypassOptimisticLock": false})), true),
        (spec(json!({"approvedPlanHash": HASH})), false),
        (spec(json!({"approvedPlanHash": HASH, "approvalPolicy": "Review"})), false),
        (spec(json!({"approvedPlanHash": HASH, "bypassOptimisticLock": false})), false),
    ] {
        assert_eq!(patches(&configs, PROFILE, &patch, true).await, free, "{before}: {patch}");
    }
    configs.delete(PROFILE, &Default::default()).await.unwrap();

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for (created, free) in [
        (json!({}), true),
        (json!({"action": "Ignore"}), true),
        (json!({"action": "DryRun", "approvedPlanHash": HASH}), true),
        (json!({"action": "Apply", "approvedPlanHash": HASH}), true),
        (json!({"action": "Apply"}), false),
        (json!({"action": "Apply", "approvedPlanHash": ""}), false),
        (json!({"action": "Apply", "approvedPlanHash": HASH, "approvalPolicy": "Automatic"}), false),
        (json!({"action": "Apply", "approvedPlanHash": HASH, "bypassOptimisticLock": true}), false),
        (json!({"action": "DryRun", "approvalPolicy": "Automatic"}), false),
        (json!({"action": "Ignore", "bypassOptimisticLock": true}), false),
    ] {
        assert_eq!(allowed(configs.create(&dry, &config(&created)).await), free, "{created}");
    }
    let under = |action: &str| json!({"action": action, "approvedPlanHash": HASH});
    for (before, patch, free) in [
        (json!({"action": "DryRun"}), json!({"action": "Apply"}), false),
        (json!({"action": "Ignore"}), json!({"action": "Apply"}), false),
        (json!({"action": "DryRun"}), json!({"action": "Apply", "approvedPlanHash": HASH}), true),
        (json!({"action": "DryRun"}), json!({"approvedPlanHash": HASH}), true),
        // A hash from before names what somebody else has read, or what was carried out already.
        (under("DryRun"), json!({"action": "Apply"}), false),
        (under("Ignore"), json!({"action": "Apply"}), false),
        (under("DryRun"), json!({"action": "Apply", "approvedPlanHash": OTHER}), true),
        (under("DryRun"), json!({"approvedPlanHash": null}), true),
        (under("DryRun"), json!({"options": interval}), true),
        (under("Apply"), json!({"approvedPlanHash": OTHER}), true),
        (under("Apply"), json!({"action": "DryRun"}), true),
        (under("Apply"), json!({"action": "Ignore", "approvedPlanHash": null}), true),
        (under("Apply"), json!({"options": interval, "approvedPlanHash": OTHER}), true),
        (under("Apply"), json!({"options": interval}), false),
        // To CEL both are equal, and the server stores another one.
        (exact, json!({"overrides": number(json!(9_007_199_254_740_992.0))}), false),
        (under("Apply"), json!({"failurePolicy": "Continue"}), false),
        (under("Apply"), json!({"waitTimeout": "1s"}), false),
        (under("Apply"), json!({"items": [{"name": "x", "mode": "Skip"}]}), false),
        (under("Apply"), json!({"overrides": [{"target": {"kind": "X", "name": "x"}, "mode": "Unmanaged"}]}), false),
        // An empty hash under Apply would leave the plan to the other rules.
        (under("Apply"), json!({"approvedPlanHash": null}), false),
        (under("Apply"), json!({"approvedPlanHash": ""}), false),
        (under("Apply"), json!({"approvalPolicy": "Automatic", "approvedPlanHash": OTHER}), false),
        (under("Apply"), json!({"bypassOptimisticLock": true, "approvedPlanHash": OTHER}), false),
        (under("DryRun"), json!({"approvalPolicy": "Automatic"}), false),
        (under("DryRun"), json!({"bypassOptimisticLock": true}), false),
    ] {
        configs.create(&PostParams::default(), &config(&before)).await.unwrap();
        assert_eq!(patches(&configs, PROFILE, &spec(patch.clone()), true).await, free, "{before}: {patch}");
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert!(patches(&configs, PROFILE, &label, true).await, "{before}: a label");
        configs.delete(PROFILE, &Default::default()).await.unwrap();
    }
    lift(&admin, POLICY).await;
}

/// The same with the operator: neither the action, nor a hash that is taken away again, nor one
/// from before carries anything out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_only_hashes_approve_nothing_else_is_carried_out() {
    let stage = Stage::set().await;
    apply(&stage.admin, FILE).await;
    let running = Stage::run(stage.client());
    let configs = stage.configs();
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await.plan_hash;
    let mark = stage.mark();
    let edit = async |spec: Value| patches(&configs, NAME, &json!({"spec": spec}), false).await;
    in_force(&configs, NAME, &json!({"spec": {"action": "Apply"}})).await;
    assert!(!edit(json!({"action": "Apply"})).await);
    assert!(
        edit(json!({"action": "Apply", "approvedPlanHash": OTHER})).await,
        "a hash of another plan is no fault of form"
    );
    assert!(!edit(json!({"approvedPlanHash": null})).await, "without it the action would approve");
    let refused = stage.wait_for(NAME, "another hash", Phase::ReviewRequired).await;
    assert!(refused.summary.unwrap().text.contains("spec.approvedPlanHash names plan"));
    stage.rest().await;
    assert_eq!(writes(&stage, &mark), [""; 0]);

    assert!(edit(json!({"approvedPlanHash": plan})).await);
    let done = stage.wait_for(NAME, "the named plan", Phase::Completed).await;
    assert_eq!((done.history[0].how, Some(&done.history[0].plan_hash)), (Some(ApprovedBy::Hash), plan.as_ref()));

    // It drifts, and the hash that was carried out approves nothing again.
    stage.edit("x", json!({"spec": {"size": 9}})).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    let mark = stage.mark();
    assert!(edit(json!({"action": "DryRun"})).await);
    let plan = stage.wait_for(NAME, "the correction", Phase::ReviewRequired).await.plan_hash;
    assert!(!edit(json!({"action": "Apply"})).await);
    stage.rest().await;
    assert_eq!(writes(&stage, &mark), [""; 0]);
    assert!(edit(json!({"action": "Apply", "approvedPlanHash": plan})).await);
    stage.wait_for(NAME, "corrected", Phase::Completed).await;
    assert_eq!(stage.widgets().get("x").await.unwrap().data["spec"]["size"], 1);
    lift(&stage.admin, POLICY).await;
    stage.finish(running).await;
}
