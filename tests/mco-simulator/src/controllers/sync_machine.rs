//! The writes of the daemons and of the drain controller.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac,
//! pkg/controller/drain/drain_controller.go: `syncNode` (observed); pkg/daemon/writer.go:
//! `SetDone`, `SetDegraded`, and pkg/daemon/drain.go: `performDrain` (read).

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::api::{
    APPLIED_DRAIN, CONTROLLER, CURRENT_CONFIG, DAEMON, DESIRED_CONFIG, DESIRED_DRAIN, POST_CONFIG_ACTION, REASON,
    STATE, STATE_DEGRADED, STATE_DONE, STATE_WORKING,
};
use crate::controllers::clock;
use crate::controllers::{Controllers, Part, SyncError};
use crate::rules::daemon::{self, DRAIN, Drain, REBOOTING, Step, UNCORDON};

impl Controllers {
    pub(crate) async fn sync_drain(&self, name: String) -> Result<(), SyncError> {
        let Some(node) = self.nodes.get(&name) else {
            return Ok(());
        };
        let Some((drain, request)) = daemon::open_request(node) else {
            return Ok(());
        };
        let cordon = json!({"spec": {"unschedulable": (drain == Drain::Cordon).then_some(true)}});
        self.patch::<Node>(&name, Part::Object, CONTROLLER, cordon).await?;
        let applied = json!({"metadata": {"annotations": {APPLIED_DRAIN: request}}});
        Ok(self.patch::<Node>(&name, Part::Object, CONTROLLER, applied).await?)
    }

    pub(crate) async fn sync_daemon(&self, name: String) -> Result<(), SyncError> {
        let Some(node) = self.nodes.get(&name) else {
            return Ok(());
        };
        match self.next_step(node) {
            None => Ok(()),
            Some(Step::Join(config)) => {
                let done = format!("{UNCORDON}{config}");
                self.annotate(
                    &name,
                    json!({CURRENT_CONFIG: config, DESIRED_CONFIG: config, STATE: STATE_DONE, REASON: "",
                    DESIRED_DRAIN: done, APPLIED_DRAIN: done}),
                )
                .await
            }
            Some(Step::Start(config)) => {
                let drain = format!("{DRAIN}{config}");
                self.annotate(&name, json!({STATE: STATE_WORKING, REASON: "", DESIRED_DRAIN: drain})).await
            }
            Some(Step::StartInPlace(config)) => {
                let uncordon = format!("{UNCORDON}{config}");
                self.annotate(&name, json!({STATE: STATE_WORKING, REASON: "", DESIRED_DRAIN: uncordon})).await
            }
            Some(Step::StayUp(config)) => {
                let uncordon = format!("{UNCORDON}{config}");
                self.annotate(&name, json!({DESIRED_DRAIN: uncordon})).await
            }
            Some(Step::Fail(reason)) => self.annotate(&name, json!({STATE: STATE_DEGRADED, REASON: reason})).await,
            Some(Step::Resume) => self.annotate(&name, json!({STATE: STATE_WORKING, REASON: ""})).await,
            Some(Step::Reboot) => {
                self.annotate(&name, json!({POST_CONFIG_ACTION: REBOOTING})).await?;
                self.report_ready(&name, "False").await
            }
            Some(Step::ComeBack(config)) => {
                self.report_ready(&name, "True").await?;
                let uncordon = format!("{UNCORDON}{config}");
                self.annotate(&name, json!({POST_CONFIG_ACTION: null, DESIRED_DRAIN: uncordon})).await
            }
            Some(Step::Finish(config)) => {
                self.annotate(&name, json!({CURRENT_CONFIG: config, STATE: STATE_DONE, REASON: ""})).await
            }
        }
    }

    async fn annotate(&self, node: &str, annotations: Value) -> Result<(), SyncError> {
        let body = json!({"metadata": {"annotations": annotations}});
        Ok(self.patch::<Node>(node, Part::Object, DAEMON, body).await?)
    }

    /// The kubelet's report before and after a reboot.
    async fn report_ready(&self, node: &str, status: &str) -> Result<(), SyncError> {
        let reason = if status == "True" { "KubeletReady" } else { "KubeletNotReady" };
        let condition = json!({"type": "Ready", "status": status, "reason": reason,
            "lastTransitionTime": clock::timestamp()});
        let body = json!({"status": {"conditions": [condition]}});
        Ok(self.patch::<Node>(node, Part::Conditions, "kubelet", body).await?)
    }
}
