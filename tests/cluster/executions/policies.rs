//! Node disruption policies: what a plan says of them, and what machines do under them.

use advisor_core::api::{Phase, Severity};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::executions::outcomes::Machines;
use crate::fixture::{Fixture, Setup};

const BASELINE: &str = "virt-platform-baseline";
const KUBELET: &str = "/etc/kubernetes/kubelet.conf";

fn kubelets(choice: &str) -> serde_json::Value {
    json!({"features": {"kubeletPerformance": choice, "swap": "Disabled"}})
}

impl Fixture {
    /// Approves what is shown.
    async fn approve_shown(&self) {
        let hash = self.config().await.status.unwrap().plan_hash;
        self.patch(json!({"action": "Apply", "approvedPlanHash": hash})).await;
    }

    /// Gives the cluster these policies, and waits until they are in force.
    async fn policies(&self, policies: serde_json::Value) {
        mco_simulator::set_policies(&self.admin, policies).await.unwrap();
        let configuration = json!({"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration",
            "metadata": {"name": "cluster"}});
        loop {
            let found = self.get(&configuration).await.unwrap();
            if found["metadata"]["generation"] == found["status"]["observedGeneration"] {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

/// Machines are drained one by one and none reboots; the plan says so, and the history what came of
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_are_drained_and_do_not_reboot_where_a_policy_says_so() {
    let setup = Setup { profile: BASELINE, speed: 5.0, workers: 2, ..Setup::default() };
    let fixture = Fixture::start(setup).await;
    let restart = json!({"type": "Restart", "restart": {"serviceName": "kubelet.service"}});
    let drained = json!({"files": [
        {"path": KUBELET, "actions": [{"type": "Drain"}, restart]},
        {"path": "/etc/node-sizing-enabled.env", "actions": [{"type": "None"}]},
    ]});
    fixture.policies(drained).await;
    fixture.configure_baseline(kubelets("Enabled")).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    let summary = plan.summary.clone().unwrap();
    assert_eq!(summary.machines_to_reboot, 0);
    assert!(
        summary.text.contains("no machine reboots; the machines of pool worker are drained without a reboot."),
        "{}",
        summary.text
    );
    let item = plan.items.iter().find(|item| item.target_ref.kind == "KubeletConfig").unwrap();
    assert!(
        item.message.contains("Drains the 2 machines of pool worker, one by one, and reboots none."),
        "{}",
        item.message
    );
    assert_eq!((item.impact_severity, item.pools.len()), (Severity::High, 0), "{item:#?}");

    let machines = Machines::watch(fixture.admin.clone());
    fixture.approve_shown().await;
    let done = fixture.wait_for(Phase::Completed).await;
    {
        let log = machines.log.lock().unwrap();
        assert!(log.reboots.is_empty(), "{log:?}");
        assert_eq!((log.drained.len(), log.drained_at_once), (2, 1), "{log:?}");
        assert!(log.behind.is_empty(), "completed before {:?}", log.behind);
    }
    assert_eq!((done.history[0].machines, done.history[0].machines_updated), (0, Some(2)));

    // Without the policy it reboots: what was reviewed under it is not carried out.
    fixture.configure_baseline(kubelets("Disabled")).await;
    let back = fixture.wait("the way back", |status| {
        status.phase == Some(Phase::ReviewRequired) && status.plan_hash != plan.plan_hash
    });
    let back = back.await;
    assert_eq!(back.summary.clone().unwrap().machines_to_reboot, 0);
    fixture.policies(json!({"files": []})).await;
    fixture.approve_shown().await;
    let anew = fixture.wait("another plan", |status| {
        status.plan_hash != back.plan_hash
            && status.summary.as_ref().is_some_and(|summary| summary.machines_to_reboot == 2)
    });
    let anew = anew.await;
    assert_eq!(anew.phase, Some(Phase::ReviewRequired), "{anew:#?}");
    assert!(anew.approval.is_none());
    fixture.finish().await;
}

/// What no policy covers reboots, whatever they say of the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_reboot_for_a_file_that_no_policy_names() {
    let setup = Setup { profile: BASELINE, workers: 2, ..Setup::default() };
    let fixture = Fixture::start(setup).await;
    fixture.policies(json!({"files": [{"path": KUBELET, "actions": [{"type": "None"}]}]})).await;
    fixture.configure_baseline(kubelets("Enabled")).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    assert_eq!(plan.summary.unwrap().machines_to_reboot, 2, "the reserve is in a file of its own");
    let config = fixture.configs();
    let ignored = Patch::Merge(json!({"spec": {"action": "Ignore"}}));
    config.patch(BASELINE, &PatchParams::default(), &ignored).await.unwrap();
    fixture.wait_for(Phase::Ignored).await;
    fixture.finish().await;
}
