//! The sync of the node controller: taints, desired configurations, and the pool's status in one
//! write.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/node/node_controller.go: `syncMachineConfigPool`, `setDesiredAnnotations`;
//! pkg/controller/node/status.go: `syncStatusOnly`.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use serde_json::json;

use crate::api::{CONTROLLER, DESIRED_CONFIG, MachineConfigPool, UPDATE_TAINT};
use crate::controllers::clock;
use crate::controllers::{Controllers, Part, SyncError};
use crate::rules::node;
use crate::rules::select;
use crate::rules::status;

impl Controllers {
    pub(crate) async fn sync_node(&self, name: String) -> Result<(), SyncError> {
        let Some(pool) = self.pools.get(&name).cloned() else {
            return Ok(());
        };
        if pool.spec.configuration.name.is_empty() || select::is_empty(pool.spec.node_selector.as_ref()) {
            return Ok(());
        }
        let is_ours = |node: &&Node| {
            node::pools_of(node, self.pools.all()).first().is_some_and(|primary| primary.name_any() == name)
        };
        let nodes: Vec<&Node> = self.nodes.all().filter(is_ours).collect();
        if !pool.spec.paused && pool.metadata.deletion_timestamp.is_none() {
            for node in &nodes {
                self.set_update_taint(node, !node::is_told(node, &pool)).await?;
            }
            for node in node::candidates(&pool, &nodes) {
                let body = json!({"metadata": {"annotations": {DESIRED_CONFIG: pool.spec.configuration.name}}});
                self.patch::<Node>(&node.name_any(), Part::Object, CONTROLLER, body).await?;
            }
        }
        // From the copies from before the writes above, so that `unavailable` is one sync late.
        let after = status::calculate(&pool, &nodes, &clock::timestamp(), self.release);
        if pool.status.as_ref() == Some(&after) {
            return Ok(());
        }
        let body = json!({"metadata": {"resourceVersion": pool.metadata.resource_version}, "status": after});
        Ok(self.patch::<MachineConfigPool>(&name, Part::Status, CONTROLLER, body).await?)
    }

    async fn set_update_taint(&self, node: &Node, wanted: bool) -> Result<(), kube::Error> {
        if node::has_update_taint(node) == wanted {
            return Ok(());
        }
        let mut taints: Vec<Taint> = node.spec.iter().filter_map(|spec| spec.taints.clone()).flatten().collect();
        taints.retain(|taint| taint.key != UPDATE_TAINT);
        if wanted {
            let (key, effect) = (UPDATE_TAINT.to_owned(), "PreferNoSchedule".to_owned());
            taints.push(Taint { key, effect, ..Taint::default() });
        }
        let body = json!({"spec": {"taints": taints}});
        self.patch::<Node>(&node.name_any(), Part::Object, CONTROLLER, body).await
    }
}
