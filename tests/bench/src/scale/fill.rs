//! Objects of a large cluster that no plan touches.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use crate::bench::{Bench, machine_kind};

/// How many objects there are.
#[derive(Clone, Copy)]
pub struct Size {
    pub nodes: u32,
    pub machine_configs: u32,
    pub pools: u32,
}

pub const WHOLE: Size = Size { nodes: 3000, machine_configs: 500, pools: 50 };
pub const TENTH: Size = Size { nodes: 300, machine_configs: 50, pools: 5 };

const NODE_BYTES: usize = 10_000;
const CONFIG_BYTES: usize = 200_000;
const AT_A_TIME: usize = 8;

/// The name of an object that was made.
pub fn name(number: u32) -> String {
    format!("bench-{number}")
}

pub async fn fill(bench: &Bench, size: Size) -> Result<()> {
    let node = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node"));
    let nodes: Api<DynamicObject> = Api::all_with(bench.admin.clone(), &node);
    let filler = "x".repeat(NODE_BYTES);
    make(&nodes, size.nodes, |name| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"bench": filler}}})).await?;
    let contents = format!("data:,{}", "x".repeat(CONFIG_BYTES));
    let config = |name: String| {
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name},
            "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [{"path": "/etc/bench", "contents": {"source": contents}}]}}},
        })
    };
    make(&machine_kind(&bench.admin, "MachineConfig"), size.machine_configs, config).await?;
    let pool = |name: String| {
        let nothing = json!({"matchLabels": {"bench": "none"}});
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": name},
            "spec": {"machineConfigSelector": nothing, "nodeSelector": nothing, "paused": true},
        })
    };
    make(&machine_kind(&bench.admin, "MachineConfigPool"), size.pools, pool).await
}

async fn make(api: &Api<DynamicObject>, count: u32, object: impl Fn(String) -> Value) -> Result<()> {
    let params = PostParams::default();
    let objects = (0..count).map(|number| serde_json::from_value(object(name(number))));
    let created = stream::iter(objects).map(|object| {
        let params = &params;
        async move { api.create(params, &object?).await.map(drop).context("filling the cluster") }
    });
    created.buffered(AT_A_TIME).try_collect::<Vec<_>>().await.map(drop)
}
