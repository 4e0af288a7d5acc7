//! The CRD on the real server: every rule with an object that it accepts and one that it refuses, and what is said then.

use controlplane::{install_crds, lease};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::fixture::{PROFILE, our_crd, root};

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
    let accepted = [
        json!({"profile": PROFILE}),
        json!({"profile": PROFILE, "action": "Apply", "failurePolicy": "Continue", "waitTimeout": "1h30m", "bypassOptimisticLock": true}),
        json!({"profile": PROFILE, "approvedPlanHash": format!("v1:{}", "a".repeat(64)), "approvalPolicy": "Automatic"}),
        json!({"profile": PROFILE, "approvedPlanHash": ""}),
        load(json!({})),
        load(json!({"deschedulingIntervalSeconds": 60, "mode": "Predictive", "enablePSIMetrics": false})),
        load(json!({"deschedulingIntervalSeconds": 86400, "devDeviationThresholds": "AsymmetricHigh"})),
        load(json!({"evictionLimitTotal": 1000, "evictionLimitNode": 100})),
    ];
    for spec in accepted {
        assert_eq!(refusal(&client, &config(PROFILE, spec.clone())).await, None, "{spec}");
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
            vec!["singleton pattern", "rename the object"],
        ),
        (
            "empty options",
            PROFILE,
            json!({"profile": PROFILE, "options": {}}),
            vec!["spec.options", "only options.loadAware may be set"],
        ),
        (
            // Pruned as unknown today, it leaves the member missing; with more profiles the rule names both.
            "options of another profile",
            PROFILE,
            json!({"profile": PROFILE, "options": {"virtHigherDensity": {"enableSwap": true}}}),
            vec!["only options.loadAware may be set"],
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
