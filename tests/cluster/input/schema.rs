//! The CRD on the real server: every rule with an object that it accepts and one that it refuses,
//! and what is said then.

use advisor_core::api::{
    Action, Applied, Approval, ApprovedBy, Conflict, FailurePolicy, HistoryEntry, Input, InputBefore, Item, ItemState,
    LeftOut, Operation, Phase, PlannedSpec, PoolTerms, Replaced, Severity, Summary, SupersededPlan, TargetRef,
    Truncated, VirtPlatformConfig, VirtPlatformConfigStatus,
};
use controlplane::{install_crds, lease};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::fixture::{PROFILE, our_crd, root};
use crate::stage::Stage;
use crate::stage::profile::{NAME, PROFILES, item};

const DENSITY: &str = "virt-higher-density";

fn api(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn config(name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

/// The refusal's text, or nothing if it would be accepted.
async fn refusal(client: &Client, object: &DynamicObject) -> Option<String> {
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api(client).create(&params, object).await {
        Ok(_) => None,
        Err(Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_accept_and_refuse_and_say_what_to_do() {
    let plane = lease().await;
    let client = plane.admin();
    install_crds(&client, &[our_crd()]).await.unwrap();
    let load = |options: Value| json!({"profile": PROFILE, "options": {"loadAware": options}});
    let dense = |options: Value| json!({"profile": DENSITY, "options": {"virtHigherDensity": options}});
    let accepted = [
        json!({"profile": PROFILE}),
        json!({"profile": PROFILE, "action": "Apply", "failurePolicy": "Continue", "waitTimeout": "1h30m", "bypassOptimisticLock": true}),
        json!({"profile": PROFILE, "approvedPlanHash": format!("v1:{}", "a".repeat(64)), "approvalPolicy": "Automatic"}),
        json!({"profile": PROFILE, "approvedPlanHash": ""}),
        load(json!({})),
        load(json!({"deschedulingIntervalSeconds": 60, "mode": "Predictive", "enablePSIMetrics": false})),
        load(json!({"deschedulingIntervalSeconds": 86400, "devDeviationThresholds": "AsymmetricHigh"})),
        load(json!({"evictionLimitTotal": 1000, "evictionLimitNode": 100})),
        json!({"profile": DENSITY}),
        dense(json!({})),
        dense(json!({"memoryToRequestRatio": 100})),
        dense(json!({"memoryToRequestRatio": 300})),
        // Defect D72: swap is switched off without another word.
        dense(json!({"enableSwap": false})),
        dense(json!({"enableSwap": false, "memoryToRequestRatio": 120})),
        dense(json!({"ksmConfiguration": {}})),
        dense(json!({"ksmConfiguration": {"nodeLabelSelector": {}}})),
        dense(
            json!({"ksmConfiguration": {"enabled": true, "nodeLabelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}),
        ),
    ];
    for spec in accepted {
        let name = spec["profile"].as_str().unwrap();
        assert_eq!(refusal(&client, &config(name, spec.clone())).await, None, "{spec}");
    }
    let refused = [
        (
            "unknown profile",
            PROFILE,
            json!({"profile": "fast"}),
            vec!["spec.profile: Unsupported value: \"fast\"", PROFILE],
        ),
        (
            "name that does not match",
            "other",
            json!({"profile": PROFILE}),
            vec!["metadata.name must equal spec.profile", "rename the object"],
        ),
        (
            "empty options",
            PROFILE,
            json!({"profile": PROFILE, "options": {}}),
            vec!["spec.options", "only options.loadAware may be set"],
        ),
        (
            "options of another profile",
            PROFILE,
            json!({"profile": PROFILE, "options": {"virtHigherDensity": {"enableSwap": true}}}),
            vec![
                "only options.loadAware may be set",
                "options.virtHigherDensity belongs to profile virt-higher-density",
            ],
        ),
        (
            "options of two profiles",
            DENSITY,
            json!({"profile": DENSITY, "options": {"virtHigherDensity": {}, "loadAware": {}}}),
            vec!["only options.virtHigherDensity may be set"],
        ),
        (
            "a ratio that needs swap",
            DENSITY,
            dense(json!({"enableSwap": false, "memoryToRequestRatio": 150})),
            vec!["memoryToRequestRatio > 120 requires enableSwap=true"],
        ),
        (
            "a ratio below the range",
            DENSITY,
            dense(json!({"memoryToRequestRatio": 50})),
            vec!["greater than or equal to 100"],
        ),
        ("a ratio of zero", DENSITY, dense(json!({"memoryToRequestRatio": 0})), vec!["greater than or equal to 100"]),
        (
            "a ratio above the range",
            DENSITY,
            dense(json!({"memoryToRequestRatio": 301})),
            vec!["less than or equal to 300"],
        ),
        ("a ratio as text", DENSITY, dense(json!({"memoryToRequestRatio": "150"})), vec!["must be of type integer"]),
        (
            "an operator that no selector has",
            DENSITY,
            dense(
                json!({"ksmConfiguration": {"nodeLabelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}),
            ),
            vec!["Unsupported value: \"Near\"", "DoesNotExist"],
        ),
        (
            "an expression without a key",
            DENSITY,
            dense(json!({"ksmConfiguration": {"nodeLabelSelector": {"matchExpressions": [{"operator": "Exists"}]}}})),
            vec!["key: Required value"],
        ),
        (
            "interval below the range",
            PROFILE,
            load(json!({"deschedulingIntervalSeconds": 30})),
            vec!["deschedulingIntervalSeconds", "greater than or equal to 60"],
        ),
        (
            "negative interval",
            PROFILE,
            load(json!({"deschedulingIntervalSeconds": -1})),
            vec!["deschedulingIntervalSeconds", "greater than or equal to 60"],
        ),
        (
            "interval above the range",
            PROFILE,
            load(json!({"deschedulingIntervalSeconds": 999_999})),
            vec!["less than or equal to 86400"],
        ),
        (
            "wrong type",
            PROFILE,
            load(json!({"deschedulingIntervalSeconds": "60"})),
            vec!["deschedulingIntervalSeconds", "must be of type integer"],
        ),
        (
            "unknown thresholds",
            PROFILE,
            load(json!({"devDeviationThresholds": "Extreme"})),
            vec!["Unsupported value: \"Extreme\"", "AsymmetricLow"],
        ),
        (
            "unknown mode",
            PROFILE,
            load(json!({"mode": "Sometimes"})),
            vec!["spec.options.loadAware.mode", "Predictive"],
        ),
        ("limit of zero", PROFILE, load(json!({"evictionLimitTotal": 0})), vec!["evictionLimitTotal"]),
        ("limit above the range", PROFILE, load(json!({"evictionLimitNode": 101})), vec!["evictionLimitNode"]),
        ("unknown action", PROFILE, json!({"profile": PROFILE, "action": "Now"}), vec!["spec.action", "DryRun"]),
        ("duration in words", PROFILE, json!({"profile": PROFILE, "waitTimeout": "2 hours"}), vec!["spec.waitTimeout"]),
        ("negative duration", PROFILE, json!({"profile": PROFILE, "waitTimeout": "-1h"}), vec!["spec.waitTimeout"]),
        (
            "malformed hash",
            PROFILE,
            json!({"profile": PROFILE, "approvedPlanHash": "abc"}),
            vec!["spec.approvedPlanHash"],
        ),
        ("no profile", PROFILE, json!({"action": "DryRun"}), vec!["spec.profile: Required value"]),
    ];
    for (name, object_name, spec, wanted) in refused {
        let text = refusal(&client, &config(object_name, spec)).await.unwrap_or_else(|| panic!("{name} was accepted"));
        for part in wanted {
            assert!(text.contains(part), "{name}: {part:?} is not in {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_are_those_of_the_go_program_and_the_profile_is_fixed() {
    let plane = lease().await;
    let client = plane.admin();
    install_crds(&client, &[our_crd()]).await.unwrap();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let bare = api(&client).create(&params, &config(PROFILE, json!({"profile": PROFILE}))).await.unwrap();
    assert_eq!(
        bare.data["spec"],
        json!({"profile": PROFILE, "action": "DryRun", "failurePolicy": "Abort", "bypassOptimisticLock": false, "approvalPolicy": "Review"})
    );
    let with_options =
        config(PROFILE, json!({"profile": PROFILE, "options": {"loadAware": {"evictionLimitTotal": null}}}));
    let with_options = api(&client).create(&params, &with_options).await.unwrap();
    assert_eq!(
        with_options.data["spec"]["options"]["loadAware"],
        json!({"deschedulingIntervalSeconds": 60, "mode": "Automatic", "enablePSIMetrics": true, "devDeviationThresholds": "AsymmetricLow"})
    );
    api(&client).create(&PostParams::default(), &config(PROFILE, json!({"profile": PROFILE}))).await.unwrap();
    let other = Patch::Merge(json!({"spec": {"profile": "virt-higher-density"}}));
    let error = api(&client).patch(PROFILE, &PatchParams::default(), &other).await.unwrap_err().to_string();
    assert!(error.contains("spec.profile"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_is_accepted() {
    let plane = lease().await;
    let client = plane.admin();
    install_crds(&client, &[our_crd()]).await.unwrap();
    let mut samples = 0;
    for entry in std::fs::read_dir(root().join("samples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") || path.ends_with("kustomization.yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        controlplane::apply_yaml(&client, &text, "test")
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        samples += 1;
    }
    assert!(samples >= 3, "{samples} samples");
}

/// K3: a status with every field comes back from the server as it was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_every_field_of_a_status_is_stored() {
    let plane = lease().await;
    let client = plane.admin();
    install_crds(&client, &[our_crd()]).await.unwrap();
    let configs: Api<VirtPlatformConfig> = Api::all(client);
    let spec = serde_json::from_value(json!({"profile": PROFILE})).unwrap();
    let mut config = configs.create(&PostParams::default(), &VirtPlatformConfig::new(PROFILE, spec)).await.unwrap();
    let full = full_status();
    config.status = Some(full.clone());
    let stored = configs.replace_status(PROFILE, &PostParams::default(), &config).await.unwrap();
    assert_eq!(stored.status, Some(full));
}

/// A status without a single absent member: a new field does not compile before it is here.
fn full_status() -> VirtPlatformConfigStatus {
    let time = Time("2026-01-02T03:04:05Z".parse().unwrap());
    let some = |time: &Time| Some(time.clone());
    let target =
        TargetRef { api_version: "g/v1".into(), kind: "K".into(), name: "n".into(), namespace: Some("s".into()) };
    let applied =
        Applied { uid: "u".into(), paths: vec!["/f:spec".into()], paths_hash: Some("p".into()), hash: "h".into() };
    let condition = Condition {
        type_: "Ready".into(),
        status: "True".into(),
        reason: "R".into(),
        message: "m".into(),
        observed_generation: Some(1),
        last_transition_time: time.clone(),
    };
    let replaced = Replaced { item: "item".into(), path: "/a".into(), was: "1".into() };
    VirtPlatformConfigStatus {
        phase: Some(Phase::InProgress),
        impact_severity: Some(Severity::High),
        observed_generation: Some(1),
        plan_hash: Some("v1:1".into()),
        source_snapshot_hash: Some("1".into()),
        planned_at: some(&time),
        planned_generation: Some(1),
        planned_action: Some(Action::DryRun),
        planned_spec: Some(PlannedSpec {
            hash: "h".into(),
            approved_plan_hash: Some("v1:0".into()),
            replan: Some("r".into()),
            revised_at: some(&time),
            used_plan_hash: Some("v1:0".into()),
            terms: advisor_core::api::Terms {
                failure_policy: FailurePolicy::Continue,
                wait_timeout: Some("1000".into()),
                pools: [(
                    "worker".to_owned(),
                    PoolTerms {
                        max_unavailable: Some("10%".into()),
                        machines_at_least: Some(10),
                        layered: true,
                        degraded: true,
                    },
                )]
                .into(),
            },
        }),
        operator_version: Some("v1".into()),
        applied_options: Some(json!({"loadAware": {"mode": "Predictive"}})),
        approval: Some(Approval {
            plan_hash: "v1:1".into(),
            how: ApprovedBy::Bypass,
            by: "somebody".into(),
            at: time.clone(),
            generation: 1,
            text: "t".into(),
            machines: 3,
            replaced: vec![replaced.clone()],
        }),
        summary: Some(Summary {
            plan: "1".into(),
            create: 1,
            update: 2,
            remove: 3,
            no_change: 4,
            blocked: 5,
            deferred: 6,
            skipped: 8,
            pools: vec!["worker".into()],
            machines_to_reboot: 7,
            text: "t".into(),
            changed: "c".into(),
        }),
        left_out: vec![LeftOut { feature: "swap".into(), reason: "r".into() }],
        items: vec![Item {
            name: "item".into(),
            target_ref: target.clone(),
            operation: Operation::Deferred,
            wave: 1,
            impact_severity: Severity::Medium,
            diff: "+a".into(),
            truncated: Some(Truncated { shown: 1, total: 2, added: 1, removed: 1 }),
            desired_state: Some(json!({"spec": {"deep": [{"a": 1}]}})),
            conflicts: vec![Conflict {
                path: "/a".into(),
                manager: "m".into(),
                live: Some(json!(1)),
                desired: Some(json!({"a": []})),
                controller: true,
            }],
            pools: vec!["worker".into()],
            managed_fields: vec!["spec.a".into()],
            overridden: vec!["worker: /etc/a".into()],
            overrides: vec!["o".into()],
            prune: true,
            state: ItemState::Failed,
            message: "m".into(),
            last_transition_time: some(&time),
            wait_started_at: some(&time),
            paused_since: some(&time),
            item_hash: "h".into(),
            applied: Some(applied.clone()),
            applied_before: Some(applied),
        }],
        inputs: vec![Input {
            target,
            path: "/a".into(),
            value: Some(json!({"b": [1]})),
            changed_from: Some(InputBefore { value: Some(json!(1)) }),
        }],
        history: vec![HistoryEntry {
            plan_hash: "v1:0".into(),
            at: time.clone(),
            outcome: "Completed".into(),
            approved_by: Some("somebody".into()),
            how: Some(ApprovedBy::Action),
            approved_at: Some(time.clone()),
            generation: Some(1),
            operator_version: Some("v1".into()),
            text: "t".into(),
            machines: 3,
            machines_updated: Some(u32::MAX),
            replaced: vec![replaced],
        }],
        superseded: vec![SupersededPlan { plan_hash: "v1:0".into(), at: time }],
        conditions: vec![condition],
    }
}

/// K3: on a cluster whose CRD is older than the operator, what is left out of the status causes no
/// write after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_a_crd_that_is_too_old_causes_no_loop() {
    let stage = Stage::set().await;
    let mut crd = serde_json::to_value(advisor_core::api::crd(PROFILES)).unwrap();
    let properties = crd
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/items/items/properties")
        .unwrap();
    for field in ["managedFields", "lastTransitionTime", "appliedBefore"] {
        properties.as_object_mut().unwrap().remove(field).unwrap();
    }
    controlplane::apply_yaml(&stage.admin, &crd.to_string(), "test").await.unwrap();
    let running = Stage::run(stage.client());
    stage.configure(NAME, "DryRun", &[item("x", 0, json!({"size": 1}))]).await;
    let plan = stage.wait_for(NAME, "a plan", Phase::ReviewRequired).await;
    assert!(plan.items[0].managed_fields.is_empty(), "the CRD is the old one");
    stage.rest().await;
    stage.patch(NAME, json!({"action": "Apply"})).await;
    stage.wait_for(NAME, "the end", Phase::Completed).await;
    stage.edit("x", json!({"spec": {"size": 2}})).await;
    stage.wait_for(NAME, "drift", Phase::Drifted).await;
    stage.finish(running).await;
}
