//! Higher density, from the first plan to the way back, alone and beside load-aware rebalancing.

use std::collections::BTreeSet;
use std::time::Duration;

use advisor_core::api::{Operation, Phase, VirtPlatformConfigStatus};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PATIENCE, PROFILE, Setup, hyper_converged};

const DENSITY: &str = "virt-higher-density";
const RATIO: &str = "/spec/higherWorkloadDensity/memoryOvercommitPercentage";
const KSM: &str = "/spec/ksmConfiguration";

fn setup() -> Setup {
    Setup { profile: DENSITY, ..Setup::default() }
}

fn swap() -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "90-worker-kubelet-swap"}})
}

fn worker_pool() -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}})
}

fn item<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> &'a advisor_core::api::Item {
    status.items.iter().find(|item| item.name == name).unwrap_or_else(|| panic!("{name} is not in {status:#?}"))
}

impl Fixture {
    async fn density(&self) -> Value {
        self.get(&hyper_converged("v1beta1", json!({}))).await.unwrap()
    }

    async fn rendered(&self) -> String {
        let pool = self.get(&worker_pool()).await.unwrap();
        pool.pointer("/spec/configuration/name").and_then(Value::as_str).unwrap().to_owned()
    }

    /// Follows what the workers are told to have until the configurations named are completed.
    async fn renderings_until_completed(&self, names: &[&str]) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            seen.insert(self.rendered().await);
            let mut done = true;
            for name in names {
                let status = self.configs().get(name).await.unwrap().status.unwrap_or_default();
                done &= status.phase == Some(Phase::Completed);
            }
            if done {
                return seen;
            }
            assert!(tokio::time::Instant::now() < until, "not completed after {seen:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn patch_of(&self, name: &str, spec: Value) {
        let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
        self.configs().patch(name, &params, &Patch::Merge(json!({"spec": spec}))).await.unwrap();
    }
}

/// The way there, with one reboot, and the whole way back. Defects D13 and D22 among others: what
/// is switched off is taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn density_comes_with_one_reboot_and_goes_again() {
    let fixture = Fixture::start(setup()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let machines = item(&plan, "enable-kubelet-swap");
    assert_eq!((machines.operation, machines.pools.len()), (Operation::Create, 1));
    for line in ["/etc/find-swap-partition", "partition=/dev/disk/by-partlabel/CNV_SWAP", "swapBehavior: LimitedSwap"] {
        assert!(machines.diff.contains(line), "{line} is not in {}", machines.diff);
    }
    assert!(machines.message.contains("CNV_SWAP"), "{}", machines.message);
    let density = item(&plan, "configure-higher-density");
    assert!(density.diff.contains("memoryOvercommitPercentage: 150"), "{}", density.diff);
    let before = fixture.rendered().await;

    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait("the machines", |status| status.phase == Some(Phase::InProgress)).await;
    assert_eq!(
        fixture.density().await.pointer(RATIO),
        Some(&json!(100)),
        "nothing is overcommitted before there is swap"
    );
    let renderings = fixture.renderings_until_completed(&[DENSITY]).await;
    assert!(renderings.len() <= 2 && fixture.rendered().await != before, "{renderings:?}");
    let applied = fixture.density().await;
    assert_eq!(
        (applied.pointer(RATIO), applied.pointer(KSM)),
        (Some(&json!(150)), Some(&json!({"nodeLabelSelector": {}})))
    );
    fixture.rest().await;

    // Somebody changes what was applied.
    let hco = hyper_converged("v1beta1", json!({}));
    fixture
        .edit(&hco, json!({"spec": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 180}}}), "kubectl-edit")
        .await;
    let drifted = fixture.wait_for(Phase::Drifted).await;
    assert!(drifted.summary.unwrap().text.contains("is 180 instead of 150"));
    fixture
        .edit(&hco, json!({"spec": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}}}), "kubectl-edit")
        .await;
    fixture.wait_for(Phase::Completed).await;

    fixture
        .patch(json!({"options": {"virtHigherDensity": {"enableSwap": false, "ksmConfiguration": {"enabled": false}}}}))
        .await;
    let back = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(item(&back, "enable-kubelet-swap").operation, Operation::Remove);
    let density = item(&back, "configure-higher-density");
    for line in ["-    memoryOvercommitPercentage: 150", "+    memoryOvercommitPercentage: 100", "-  ksmConfiguration:"]
    {
        assert!(density.diff.contains(line), "{line} is not in {}", density.diff);
    }
    fixture.patch(json!({"approvedPlanHash": back.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert!(fixture.get(&swap()).await.is_none());
    let left = fixture.density().await;
    assert_eq!((left.pointer(RATIO), left.pointer(KSM)), (Some(&json!(100)), None));
    assert_eq!(fixture.rendered().await, before, "the machines are told to have what they had");
    fixture.finish().await;
}

/// KSM that somebody else has switched on is theirs: the plan says so, and leaves it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ksm_of_somebody_else_stays_and_is_named() {
    let theirs = json!({"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"theirs": "yes"}}}});
    let fixture =
        Fixture::start(Setup { hyper_converged: Some(hyper_converged("v1beta1", theirs.clone())), ..setup() }).await;
    fixture.wait_for(Phase::Ignored).await;
    // Ours would replace it: the plan lists whose it is.
    fixture.patch(json!({"action": "DryRun", "options": {"virtHigherDensity": {"enableSwap": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let conflicts = &item(&plan, "configure-higher-density").conflicts;
    assert!(
        conflicts.iter().any(|conflict| conflict.manager == "kubectl-create" && conflict.path.starts_with(KSM)),
        "{conflicts:?}"
    );

    fixture.patch(json!({"options": {"virtHigherDensity": {"ksmConfiguration": {"enabled": false}, "memoryToRequestRatio": 110}}})).await;
    let plan = fixture
        .wait("a plan without KSM", |status| {
            status.items.iter().all(|item| item.conflicts.iter().all(|conflict| !conflict.path.starts_with(KSM)))
        })
        .await;
    let message = &item(&plan, "configure-higher-density").message;
    assert!(message.contains("kubectl-create") && message.contains("nodeLabelSelector"), "{message}");
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash, "action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.density().await.pointer(KSM), theirs.get("ksmConfiguration"));
    fixture.finish().await;
}

/// M9, M14: there are no workers: no machine of the control plane is told to swap, and the rest can
/// be planned without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m14_the_control_plane_does_not_swap() {
    let fixture = Fixture::start(Setup { workers: 0, ..setup() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let blocked = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(item(&blocked, "enable-kubelet-swap").operation, Operation::Blocked);
    assert_eq!(item(&blocked, "configure-higher-density").operation, Operation::Update);
    fixture.patch(json!({"action": "DryRun", "options": {"virtHigherDensity": {"enableSwap": false}}})).await;
    fixture.wait("a plan without swap", |status| status.items.len() == 1).await;
    fixture.finish().await;
}

/// M14: without the Machine Config Operator, as with hosted control planes, swap must be left out,
/// and that is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m14_without_the_machine_config_operator_swap_must_be_left_out() {
    let fixture = Fixture::start(Setup { pools: false, ..setup() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await;
    let text = missing.summary.unwrap().text;
    assert!(text.contains("MachineConfig") && text.contains("enableSwap to false"), "{text}");
    fixture.patch(json!({"options": {"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": 120}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(plan.items.len(), 1);
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.density().await.pointer(RATIO), Some(&json!(120)));
    fixture.finish().await;
}

/// Fault R18: the HyperConverged that matters is that of OpenShift Virtualization, else the only
/// one that there is, as upstream and OKD have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r18_hyper_converged_is_found_wherever_it_is() {
    let at = |namespace: &str| {
        let mut object = hyper_converged("v1beta1", json!({}));
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    let (upstream, another, ours) = (at("kubevirt-hyperconverged"), at("default"), at("openshift-cnv"));
    let fixture = Fixture::start(Setup { hyper_converged: None, ..setup() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "options": {"virtHigherDensity": {"enableSwap": false}}})).await;
    let missing = fixture.wait_for(Phase::PrerequisiteFailed).await.summary.unwrap().text;
    assert!(missing.contains("HyperConverged kubevirt-hyperconverged does not exist in any namespace"), "{missing}");

    crate::fixture::create_namespace(&fixture.admin, "kubevirt-hyperconverged").await;
    fixture.create(&upstream, "kubectl-create").await;
    let place =
        |status: &VirtPlatformConfigStatus| status.items.first().and_then(|item| item.target_ref.namespace.clone());
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(place(&plan).as_deref(), Some("kubevirt-hyperconverged"));
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash, "action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    let found = fixture.get(&upstream).await.unwrap();
    assert!(found.pointer("/spec/ksmConfiguration").is_some(), "{found:#}");
    // It is followed where it is.
    fixture
        .edit(
            &upstream,
            json!({"spec": {"higherWorkloadDensity": {"memoryOvercommitPercentage": 180}}}),
            "kubectl-edit",
        )
        .await;
    fixture.wait_for(Phase::Drifted).await;

    // Of two in other namespaces only one can count, and nobody knows which.
    fixture.create(&another, "kubectl-create").await;
    fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "waitTimeout": "1h"})).await;
    let ambiguous = fixture.wait_for(Phase::PrerequisiteFailed).await.summary.unwrap().text;
    assert!(ambiguous.contains("exists in several namespaces (default, kubevirt-hyperconverged)"), "{ambiguous}");
    fixture.api(&another).delete("kubevirt-hyperconverged", &Default::default()).await.unwrap();
    fixture.wait("the plan", |status| status.phase != Some(Phase::PrerequisiteFailed)).await;

    // That of OpenShift Virtualization is taken before all others, which stay as they are.
    let before = fixture.get(&upstream).await;
    fixture.create(&ours, "kubectl-create").await;
    fixture.wait("the other one", |status| place(status).as_deref() == Some("openshift-cnv")).await;
    fixture.rest().await;
    fixture.create(&another, "kubectl-create").await;
    fixture.rest().await;
    assert_eq!(fixture.get(&upstream).await, before);
    fixture.finish().await;
}

/// P14: two configurations are approved within a moment: the machines are told once, and neither
/// disturbs the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p14_two_profiles_approved_together_cost_one_rollout() {
    let fixture = Fixture::start(Setup { speed: 1.0, workers: 1, ..setup() }).await;
    let both = [PROFILE, DENSITY];
    fixture.wait_for(Phase::Ignored).await;
    for name in both {
        fixture.patch_of(name, json!({"action": "DryRun"})).await;
    }
    for name in both {
        let until = tokio::time::Instant::now() + PATIENCE;
        while fixture.configs().get(name).await.unwrap().status.unwrap_or_default().phase != Some(Phase::ReviewRequired)
        {
            assert!(tokio::time::Instant::now() < until, "{name} has no plan");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for name in both {
        fixture.patch_of(name, json!({"action": "Apply"})).await;
    }
    let renderings = fixture.renderings_until_completed(&both).await;
    assert_eq!(renderings.len(), 2, "what they had, and what they have: {renderings:?}");
    fixture.finish().await;
}

/// An item that is set aside is not waited for, also if its object does not exist and its kind is
/// one whose roll-out is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_config_that_is_set_aside_before_it_exists_holds_up_nothing() {
    let fixture = Fixture::start(setup()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "items": [{"name": "enable-kubelet-swap", "mode": "Skip"}]})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(item(&plan, "enable-kubelet-swap").operation, Operation::Skipped);
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(item(&done, "enable-kubelet-swap").state, advisor_core::api::ItemState::Completed);
    assert!(fixture.get(&swap()).await.is_none());
    assert_ne!(fixture.density().await.pointer(RATIO), None);
    fixture.finish().await;
}

/// Fault R25: after an upgrade that serves another version too, an apply in that one is refused for
/// the sake of our fields in the other. What we have applied is read, planned and written in the
/// version in which it was, as long as that is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r25_what_was_applied_stays_in_its_version_as_long_as_that_is_served() {
    let fixture = Fixture::start(setup()).await;
    fixture.wait_for(Phase::Ignored).await;
    let options = |ratio: u32| json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": ratio}});
    fixture.patch(json!({"action": "DryRun", "options": options(110)})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let before = fixture.wait_for(Phase::Completed).await;

    let kind = kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds: kube::Api<kube::api::DynamicObject> =
        kube::Api::all_with(fixture.admin.clone(), &kube::api::ApiResource::from_gvk(&kind));
    let name = "hyperconvergeds.hco.kubevirt.io";
    let first = crds.get(name).await.unwrap().data["spec"]["versions"][0].clone();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let second =
        json!({"name": "v1", "served": true, "storage": false, "schema": schema, "subresources": {"status": {}}});
    let both = json!({"spec": {"versions": [first, second]}});
    crds.patch(name, &PatchParams::default(), &Patch::Merge(&both)).await.unwrap();
    // Discovery follows its CRDs with a lag, and is asked again for some seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    fixture.rest().await;
    let after = fixture.config().await.status.unwrap();
    let item = |status: &VirtPlatformConfigStatus| status.items[0].target_ref.api_version.clone();
    assert_eq!(
        (after.phase, &after.plan_hash, item(&after)),
        (Some(Phase::Completed), &before.plan_hash, item(&before))
    );
    assert_eq!(item(&after), "hco.kubevirt.io/v1beta1");
    let mark = fixture.mark();
    fixture.patch(json!({"options": options(115)})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.rest().await;
    let writes: Vec<_> = fixture
        .requests(&mark)
        .into_iter()
        .filter(|request| request.verb == "patch" && request.resource == "hyperconvergeds")
        .collect();
    assert!(!writes.is_empty() && writes.iter().all(|request| request.uri.contains("/v1beta1/")), "{writes:#?}");
    fixture.finish().await;
}
