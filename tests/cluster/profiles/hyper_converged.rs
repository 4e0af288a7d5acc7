//! HyperConverged with its operator and its conversion webhook, as hco-simulator plays them.

use advisor_core::api::{Item, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::decision::execution::SETTLING;
use controlplane::real_crd;
use hco_simulator::{Simulator, Truth, Webhook};
use serde_json::json;

use crate::fixture::{Fixture, Setup, hyper_converged};

const DENSITY: &str = "virt-higher-density";

fn item(status: &VirtPlatformConfigStatus) -> &Item {
    status.items.iter().find(|item| item.name == "configure-higher-density").expect("the item of HyperConverged")
}

/// Fault R17: what alice wrote through v1beta1 was blamed on who had created the object in v1, her
/// conflict was not listed, and the first approval of the plan that puts it back was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r17_a_conflict_through_another_version_is_listed_and_approved_at_once() {
    let Some(hyper_converged_crd) = real_crd("hco/hyperconvergeds-main.yaml") else {
        return;
    };
    let setup = Setup {
        profile: DENSITY,
        hyper_converged_crd: Some(hyper_converged_crd),
        hyper_converged: None,
        ..Setup::default()
    };
    let mut fixture = Fixture::without_operator(setup).await;
    let webhook = Webhook::start().await.unwrap();
    webhook.install(&fixture.admin).await.unwrap();
    let ratio = |percent: u32| json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": percent}});
    let created = hyper_converged("v1", json!({"virtualization": ratio(100)}));
    let until = tokio::time::Instant::now() + crate::fixture::PATIENCE;
    // The API server takes a moment to hear of the webhook.
    while controlplane::apply_yaml(&fixture.admin, &created.to_string(), "kubectl-create").await.is_err() {
        assert!(tokio::time::Instant::now() < until, "HyperConverged can't be created");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    fixture.settling = SETTLING;
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    let options = json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": 115}});
    fixture.patch(json!({"action": "DryRun", "options": options})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(item(&plan).target_ref.api_version, "hco.kubevirt.io/v1");
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.rest().await;

    fixture.edit(&hyper_converged("v1beta1", json!({})), json!({"spec": ratio(110)}), "alice").await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    let text = drifted.summary.clone().unwrap().text;
    assert!(text.contains("is 110 instead of 115, changed by field manager alice at "), "{text}");
    let managers: Vec<_> = item(&drifted).conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    assert!(managers.contains(&"alice"), "{:#?}", item(&drifted).conflicts);
    assert!(item(&drifted).message.contains("alice"), "{}", item(&drifted).message);

    let mark = fixture.mark();
    fixture.patch(json!({"approvedPlanHash": drifted.plan_hash})).await;
    let corrected = fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.target_writes(&mark), ["patch hyperconvergeds kubevirt-hyperconverged"]);
    assert_eq!(corrected.history[0].plan_hash, drifted.plan_hash.unwrap(), "the first approval is taken");
    assert_eq!(corrected.history[0].outcome, "Completed");
    fixture.finish().await;
}

/// What HyperConverged published first was believed, and what it could not carry out was in effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r11_what_hyper_converged_says_first_is_not_the_truth() {
    let fixture = Fixture::start(Setup { profile: DENSITY, ..Setup::default() }).await;
    let simulator = Simulator::start(fixture.admin.clone(), "v1beta1");
    fixture.wait_for(Phase::Ignored).await;
    let options = |percent: u32| json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": percent}});
    for (percent, truth, says) in [
        (
            110,
            Truth::Degraded("KubeVirt is degraded: virt-handler does not start".into()),
            "Degraded=True: KubeVirt is degraded: virt-handler does not start",
        ),
        (
            115,
            Truth::Refused("admission denied it".into()),
            "ReconcileComplete=False: Error while reconciling: admission denied it",
        ),
    ] {
        fixture.patch(json!({"action": "DryRun", "options": options(percent)})).await;
        let plan = fixture.wait_for(Phase::ReviewRequired).await;
        simulator.becomes(truth).await.unwrap();
        fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
        let told = fixture
            .wait("the truth", |status| {
                assert_ne!(status.phase, Some(Phase::Completed), "what it says first is believed");
                item(status).message.contains(says)
            })
            .await;
        assert_eq!(told.phase, Some(Phase::InProgress));
        simulator.becomes(Truth::Well).await.unwrap();
        let done = fixture.wait_for(Phase::Completed).await;
        assert!(item(&done).message.ends_with("In effect."), "{}", item(&done).message);
    }
    fixture.finish().await;
}
