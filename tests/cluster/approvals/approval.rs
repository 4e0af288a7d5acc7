//! Who may start what: each way to approve a plan, and what is no approval.

use advisor_core::api::{ApprovedBy, Operation, Phase, Severity};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::fixture::{Fixture, PROFILE, Setup, descheduler};

/// Load-aware rebalancing without PSI: one item, no rollout.
fn quick(action: &str) -> serde_json::Value {
    json!({"action": action, "options": {"loadAware": {"enablePSIMetrics": false}}})
}

fn reason(status: &advisor_core::api::VirtPlatformConfigStatus) -> String {
    let condition = status.conditions.iter().find(|condition| condition.type_ == "ReviewRequired").unwrap();
    condition.reason.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_for_apply_before_there_is_a_plan_is_approval_in_advance() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(quick("Apply")).await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.target_writes(&mark), ["patch kubedeschedulers cluster"]);
    assert_eq!(done.history.len(), 1);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_in_advance_takes_nothing_from_others() {
    let theirs = descheduler(json!({"managementState": "Managed", "deschedulingIntervalSeconds": 3600,
        "mode": "Predictive", "profiles": ["AffinityAndTaints", "EvictPodsWithPVC"]}));
    let fixture = Fixture::start(Setup { descheduler: Some(theirs), ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    fixture.patch(quick("Apply")).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let item = &plan.items[0];
    let conflicts: Vec<_> = item.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!(conflicts, ["/spec/deschedulingIntervalSeconds", "/spec/mode", "/spec/profiles"], "{item:#?}");
    assert!(item.conflicts.iter().all(|conflict| conflict.manager == "kubectl-create"), "{item:#?}");
    assert!(item.message.contains("EvictPodsWithPVC"), "the entry that would be lost is named: {}", item.message);
    assert!(plan.summary.unwrap().text.contains("spec.approvedPlanHash"));
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());

    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(done.history[0].plan_hash, plan.plan_hash.unwrap());
    let live = fixture.get(&descheduler(json!({}))).await.unwrap();
    assert_eq!(live["spec"]["profiles"], json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"]));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_the_options_under_apply_is_no_approval() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("Apply")).await;
    fixture.wait_for(Phase::Completed).await;

    let mark = fixture.mark();
    fixture.patch(json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(reason(&plan), "OptionsChanged");
    assert!(plan.items[0].diff.contains("+  deschedulingIntervalSeconds: 600"), "{}", plan.items[0].diff);
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());

    // T2: the action alone, at once, does not tell which of the two plans was read. The hash does.
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply"})).await;
    let waits = fixture.wait_for(Phase::ReviewRequired).await;
    let text = waits.summary.unwrap().text;
    assert!(text.contains("replaced another one within a minute"), "{text}");
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.patch(json!({"approvedPlanHash": waits.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    assert_eq!(fixture.target_writes(&mark), ["patch kubedeschedulers cluster"]);
    fixture.finish().await;
}

/// P5: the edit that approves moves the generation, and a label at the same time is nobody's
/// business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p5_the_edit_that_approves_does_not_change_the_plan() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let reviewed = fixture.wait_for(Phase::ReviewRequired).await;
    let edit = json!({"metadata": {"labels": {"team": "virt"}}, "spec": {"action": "Apply"}});
    let params = PatchParams { field_manager: Some("kubectl-patch".into()), ..PatchParams::default() };
    let edited = fixture.configs().patch(PROFILE, &params, &Patch::Merge(edit)).await.unwrap();
    assert!(edited.metadata.generation > reviewed.planned_generation);
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(Some(&done.history[0].plan_hash), reviewed.plan_hash.as_ref());
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_and_apply_in_one_edit_run_neither_the_old_nor_the_new_plan() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let reviewed = fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply", "options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_ne!(plan.plan_hash, reviewed.plan_hash);
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_moves_after_the_review_makes_the_approval_stale() {
    let theirs = descheduler(json!({"deschedulingIntervalSeconds": 3600, "profiles": []}));
    let fixture = Fixture::start(Setup { descheduler: Some(theirs.clone()), ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let reviewed = fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    // The operator is away while the target moves and the approval is given: it finds both at once.
    let mut fixture = fixture;
    fixture.stop_operator().await;
    fixture.edit(&theirs, json!({"spec": {"deschedulingIntervalSeconds": 1800}}), "somebody").await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.start_operator();
    let stale = fixture.wait("a new plan", |status| status.plan_hash != reviewed.plan_hash).await;
    assert_eq!((stale.phase, reason(&stale).as_str()), (Some(Phase::ReviewRequired), "PlanStale"));
    let text = stale.summary.as_ref().unwrap().text.clone();
    assert!(
        text.contains("/spec/deschedulingIntervalSeconds is 1800, last written by field manager somebody at "),
        "{text}"
    );
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());

    // An operator that was there knows what it was before, too.
    fixture.edit(&theirs, json!({"spec": {"deschedulingIntervalSeconds": 900}}), "somebody").await;
    let stale = fixture.wait("another plan", |status| status.plan_hash != stale.plan_hash).await;
    let text = stale.summary.as_ref().unwrap().text.clone();
    assert!(
        text.contains("/spec/deschedulingIntervalSeconds from 1800 to 900, changed by field manager somebody at "),
        "{text}"
    );

    // An unrelated edit of the same object invalidates nothing.
    fixture.edit(&theirs, json!({"metadata": {"labels": {"team": "a"}}}), "somebody").await;
    fixture.patch(json!({"approvedPlanHash": stale.plan_hash})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hash_that_stays_in_git_approves_nothing_again() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!(done.history[0].plan_hash, plan.plan_hash.clone().unwrap());

    // The object goes; the same plan, with the same digest, comes back.
    let mark = fixture.mark();
    let target = descheduler(json!({}));
    fixture.api(&target).delete("cluster", &Default::default()).await.unwrap();
    let drifted = fixture.wait_for(Phase::Drifted).await;
    assert_eq!(drifted.plan_hash, plan.plan_hash, "equal worlds give equal digests");
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    assert!(drifted.summary.unwrap().text.contains("was deleted"));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automatic_policy_approves_what_an_edit_of_spec_plans() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let mut spec = quick("Apply");
    spec["approvalPolicy"] = json!("Automatic");
    fixture.patch(spec).await;
    fixture.wait_for(Phase::Completed).await;
    let mark = fixture.mark();
    fixture.patch(json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    let done =
        fixture.wait("the new interval", |status| status.phase == Some(Phase::Completed) && status.history.len() == 2);
    done.await;
    assert_eq!(fixture.target_writes(&mark), ["patch kubedeschedulers cluster"]);

    // What others do is approved by nobody.
    let target = descheduler(json!({}));
    fixture.edit(&target, json!({"spec": {"deschedulingIntervalSeconds": 3600}}), "somebody").await;
    fixture.wait_for(Phase::Drifted).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_back_to_dry_run_stops_the_execution_and_says_what_was_done() {
    // The machines never get it: withdrawal does not wait for them.
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.stop_simulator().await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun"})).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    fixture.patch(json!({"action": "Apply"})).await;
    let under_way =
        fixture.wait("the first write", |status| status.items.first().is_some_and(|item| item.applied.is_some()));
    assert_eq!(under_way.await.approval.map(|approval| approval.how), Some(ApprovedBy::Action));
    fixture.patch(json!({"action": "DryRun"})).await;
    let withdrawn = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(reason(&withdrawn), "Withdrawn");
    assert!(withdrawn.summary.unwrap().text.contains("enable-psi-metrics"));
    assert_eq!(withdrawn.history[0].outcome, "Withdrawn");
    assert_eq!(fixture.target_writes(&mark), ["patch machineconfigs 99-worker-psi-karg"]);

    // Ignore stands aside at once.
    fixture.patch(json!({"action": "Ignore"})).await;
    let ignored = fixture.wait_for(Phase::Ignored).await;
    assert!(ignored.summary.unwrap().text.contains("What was applied earlier stays in place"));
    assert_eq!(fixture.config().await.metadata.name.as_deref(), Some(PROFILE));
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d22_an_option_that_is_switched_off_takes_its_object_back_machine_by_machine() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.wait_for(Phase::Completed).await;
    fixture.patch(json!({"options": {"loadAware": {"enablePSIMetrics": false}}})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(reason(&plan), "OptionsChanged");
    let removal = plan.items.iter().find(|item| item.prune).expect("a removal");
    assert_eq!((removal.operation, removal.impact_severity), (Operation::Remove, Severity::High));
    assert!(removal.message.contains("Reboots the 3 machines of pool worker"), "{}", removal.message);
    // Which machines reboot is followed while the plan waits.
    mco_simulator::add_pool(&fixture.admin, "infra").await.unwrap();
    mco_simulator::set_role(&fixture.admin, "worker-0", "infra", true).await.unwrap();
    let of_removal = |status: &advisor_core::api::VirtPlatformConfigStatus| {
        status.items.iter().find(|item| item.prune).map(|item| item.pools.clone()).unwrap_or_default()
    };
    fixture.wait("the other pool", |status| of_removal(status) == ["infra", "worker"]).await;
    fixture.rest().await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let mark = fixture.mark();
    fixture.patch(json!({"approvedPlanHash": plan.plan_hash})).await;
    let done = fixture.wait_for(Phase::Completed).await;
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"}});
    let pool = fixture.get(&pool).await.unwrap();
    assert_eq!(pool["status"]["configuration"]["name"], pool["spec"]["configuration"]["name"], "the machines have it");
    assert!(!pool["spec"]["configuration"]["source"].to_string().contains("99-worker-psi-karg"), "{pool}");
    assert_eq!(fixture.target_writes(&mark), ["delete machineconfigs 99-worker-psi-karg"]);
    let gone = done.items.iter().find(|item| item.prune).unwrap();
    assert!(gone.message.contains("the object is already deleted"), "{}", gone.message);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_of_somebody_else_stays_and_causes_no_loop() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    fixture.wait_for(Phase::ReviewRequired).await;
    let foreign = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "status": {"conditions": [{"type": "Audited", "status": "True", "reason": "Read", "message": "by a person",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let params = kube::api::PatchParams::apply("auditor");
    fixture.configs().patch_status(PROFILE, &params, &kube::api::Patch::Apply(&foreign)).await.unwrap();
    fixture.rest().await;
    fixture.patch(json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}})).await;
    let plan = fixture.wait("the new plan", |status| status.items[0].diff.contains("600")).await;
    assert!(plan.conditions.iter().any(|condition| condition.type_ == "Audited"), "{plan:#?}");
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_another_program_wrote_is_taken_over() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.stop_operator().await;
    let foreign = json!({"status": {"phase": "Completed", "appliedOptions": {"loadAware": {"enablePSIMetrics": true}},
        "items": [{"name": "enable-psi-metrics", "operation": "NoChange", "wave": 0, "impactSeverity": "Low",
            "targetRef": {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": "99-worker-psi-karg"}}]}});
    let params = kube::api::PatchParams { field_manager: Some("virt-advisor-operator".into()), ..Default::default() };
    fixture.configs().patch_status(PROFILE, &params, &kube::api::Patch::Merge(&foreign)).await.unwrap();
    fixture.start_operator();
    fixture.patch(quick("DryRun")).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(plan.items.len(), 1, "{:#?}", plan.items);
    fixture.finish().await;
}

/// T1 and T3: between reading and approving somebody edits what is done, or how. The hash of what
/// was read carries nothing else out, comes it with Apply or without, and not after the
/// configuration was made anew either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_t3_the_hash_of_what_was_read_carries_out_nothing_else() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(quick("DryRun")).await;
    let read = fixture.wait_for(Phase::ReviewRequired).await.plan_hash;
    let mark = fixture.mark();
    let interval = json!({"options": {"loadAware": {"deschedulingIntervalSeconds": 600}}});
    let otherwise = json!({"failurePolicy": "Continue", "waitTimeout": "1s"});
    for (edit, back) in [
        (interval, json!({"options": {"loadAware": {"deschedulingIntervalSeconds": null}}})),
        (otherwise, json!({"failurePolicy": "Abort", "waitTimeout": null})),
    ] {
        fixture.patch(edit.clone()).await;
        let shown = fixture.wait("another plan", |status| status.plan_hash != read).await;
        fixture.patch(json!({"action": "Apply", "approvedPlanHash": read})).await;
        let refused = fixture
            .wait("a refusal", |status| {
                status.summary.as_ref().is_some_and(|summary| summary.text.contains("names plan"))
            })
            .await;
        let text = refused.summary.unwrap().text;
        for hash in [&read, &shown.plan_hash] {
            assert!(text.contains(&hash.as_ref().unwrap()[3..15]), "{text}");
        }
        fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null})).await;
        fixture.patch(back).await;
        fixture.wait("the plan that was read", |status| status.plan_hash == read).await;
    }
    // Made anew by an editor, with Apply and the hash that an approver has set before.
    fixture.configs().delete(PROFILE, &Default::default()).await.unwrap();
    let mut spec = quick("Apply");
    spec["profile"] = json!(PROFILE);
    spec["approvedPlanHash"] = json!(read);
    spec["options"]["loadAware"]["deschedulingIntervalSeconds"] = json!(600);
    // The operator advertises the profile again at once: whoever is second edits.
    let anew = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": PROFILE}, "spec": spec});
    fixture.configs().patch(PROFILE, &PatchParams::apply("an-editor").force(), &Patch::Apply(&anew)).await.unwrap();
    fixture
        .wait("a refusal", |status| status.summary.as_ref().is_some_and(|summary| summary.text.contains("names plan")))
        .await;
    fixture.rest().await;
    assert!(fixture.target_writes(&mark).is_empty());
    fixture.finish().await;
}
