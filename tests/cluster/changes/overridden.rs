//! What others override after it was carried out is told, and Ready does not claim it.

use std::time::Duration;

use advisor_core::api::{Phase, VirtPlatformConfigStatus};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup};

const GROUP: &str = "machineconfiguration.openshift.io/v1";

/// Status and message of a condition.
fn condition<'a>(status: &'a VirtPlatformConfigStatus, name: &str) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|found| found.type_ == name)?;
    Some((found.status.as_str(), found.message.as_str()))
}

fn pool() -> Value {
    json!({"apiVersion": GROUP, "kind": "MachineConfigPool", "metadata": {"name": "worker"}})
}

/// The messages of all events of that reason.
async fn events(fixture: &Fixture, reason: &str) -> Vec<String> {
    let all = Api::<Event>::all(fixture.admin.clone()).list(&ListParams::default()).await.unwrap();
    all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.note).collect()
}

async fn forget_events(fixture: &Fixture) {
    let api = Api::<Event>::namespaced(fixture.admin.clone(), "default");
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
}

/// A MachineConfig of somebody else that brings `file` with other contents.
fn other(name: &str, file: &str) -> Value {
    json!({
        "apiVersion": GROUP, "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {
            "ignition": {"version": "3.2.0"},
            "storage": {"files": [{"path": file, "mode": 420, "overwrite": true, "contents": {"source": "data:,theirs"}}]},
        }},
    })
}

/// Fault R4: a later MachineConfig replaced our file on every machine, a later KubeletConfig all of
/// ours, and the configuration stayed Ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r4_what_others_override_afterwards_is_told_and_ready_does_not_claim_it() {
    let options = json!({"platformBaseline": {"features": {"swap": "Enabled", "kubeletPerformance": "Enabled"}}});
    let mut fixture = Fixture::start(Setup { profile: "virt-platform-baseline", ..Setup::default() }).await;
    fixture.wait_for(Phase::Ignored).await;
    fixture.patch(json!({"action": "DryRun", "options": options})).await;
    let plan = fixture.wait_for(Phase::ReviewRequired).await;
    fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let done = fixture.wait_for(Phase::Completed).await;
    assert_eq!((condition(&done, "Ready").map(|found| found.0), condition(&done, "Overridden")), (Some("True"), None));
    fixture.rest().await;

    // What others roll out beside ours is none of our business.
    fixture.create(&other("99-zz-beside", "/etc/theirs"), "somebody").await;
    let rendered = |list: &Value, name: &str| list["spec"]["configuration"]["source"].to_string().contains(name);
    while !rendered(&fixture.get(&pool()).await.unwrap(), "99-zz-beside") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fixture.rest().await;
    assert_eq!(condition(&fixture.config().await.status.unwrap(), "Overridden"), None);

    let file = "/etc/openshift/kubelet.conf.d/90-swap.conf";
    let kubelet = json!({
        "apiVersion": GROUP, "kind": "KubeletConfig", "metadata": {"name": "zz-theirs"},
        "spec": {
            "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
            "kubeletConfig": {"maxPods": 333},
        },
    });
    for (theirs, what, item) in [
        (other("99-zz-theirs", file), format!("worker: {file} (by 99-zz-theirs)"), "90-worker-swap-online"),
        (
            kubelet,
            "worker: /etc/kubernetes/kubelet.conf (by another KubeletConfig, rendered as 99-worker-generated-kubelet-1)".to_owned(),
            "virt-perf-settings",
        ),
    ] {
        let mark = fixture.mark();
        fixture.create(&theirs, "somebody").await;
        let told = fixture.wait("what is overridden", |status| {
            condition(status, "Overridden").is_some_and(|found| found.0 == "True")
        });
        let told = told.await;
        assert_eq!((told.phase, &told.plan_hash), (Some(Phase::Completed), &done.plan_hash));
        let (ready, why) = condition(&told, "Ready").unwrap();
        assert!(ready == "False" && why.contains(&what) && why.contains("change or delete what overrides it"), "{why}");
        let text = told.summary.as_ref().unwrap().text.clone();
        assert!(
            text.starts_with("All objects match the plan, but machines do not run with all of it.")
                && text.contains(&what),
            "{text}"
        );
        let of_item: Vec<_> = told.items.iter().filter(|item| item.message.starts_with("Overridden: ")).collect();
        assert!(
            of_item.len() == 1 && of_item[0].message.contains(&what) && of_item[0].target_ref.name == item,
            "{of_item:#?}"
        );
        assert_eq!(fixture.target_writes(&mark), [""; 0]);
        fixture.rest().await;
        assert_eq!(events(&fixture, "Overridden").await.len(), 1);

        // A process that knows nothing says the same.
        fixture.stop_operator().await;
        fixture.start_operator();
        fixture.rest().await;
        assert_eq!(fixture.config().await.status.unwrap(), told);

        fixture
            .api(&theirs)
            .delete(theirs["metadata"]["name"].as_str().unwrap(), &DeleteParams::default())
            .await
            .unwrap();
        let over =
            fixture.wait("its end", |status| condition(status, "Overridden").is_some_and(|found| found.0 == "False"));
        let over = over.await;
        let machines = fixture.get(&pool()).await.unwrap();
        assert_eq!(machines["status"]["configuration"]["name"], machines["spec"]["configuration"]["name"], "Ready before machines have it back");
        assert_eq!(condition(&over, "Ready").map(|found| found.0), Some("True"));
        assert!(over.items.iter().all(|item| !item.message.contains("Overridden")), "{over:#?}");
        forget_events(&fixture).await;
    }
    fixture.finish().await;
}
