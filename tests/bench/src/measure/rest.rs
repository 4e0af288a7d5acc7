//! What is asked while nothing happens, and while a pool's status changes without concerning the
//! plan.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::bench::{Bench, machine_kind, tell};
use crate::counts;
use crate::table::{Bound, Figure, Table};

/// A condition that neither the pool's controllers nor the operator know.
const FOREIGN: &str = "BenchmarkNoise";

pub async fn measure(bench: &mut Bench, seconds: u64, table: &mut Table) -> Result<()> {
    tell(&format!("{seconds} s of rest"));
    let mark = bench.stage.plane().audit().mark();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let quiet = counts::now(&bench.stage, &mark);
    let figure = format!("requests in {seconds} s at rest");
    table.row(figure, &Figure::count(quiet.requests()), Bound::AtMost(0.0), "");

    tell(&format!("{seconds} s with a pool's status changing every second"));
    let mark = bench.stage.plane().audit().mark();
    let (began, mut changes) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        change_pool(bench, changes).await?;
        changes += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let noisy = counts::now(&bench.stage, &mark);
    let figure = format!("requests in {seconds} s with a pool's status changing every second");
    table.row(figure, &Figure::count(noisy.requests()), Bound::AtMost(0.0), "240 a minute");
    table.note(format!("At rest: {}. With {changes} changes of a pool's status: {}.", quiet.told(), noisy.told()));
    Ok(())
}

async fn change_pool(bench: &Bench, number: u32) -> Result<()> {
    let pools = machine_kind(&bench.admin, "MachineConfigPool");
    let pool = pools.get("worker").await.context("there is no pool of workers")?;
    let mut conditions = pool.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != FOREIGN);
    conditions.push(json!({
        "type": FOREIGN, "status": "True", "reason": FOREIGN, "message": format!("change {number}"),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }));
    let body = Patch::Merge(json!({"status": {"conditions": conditions}}));
    pools.patch_status("worker", &PatchParams::default(), &body).await.context("the pool can't be changed")?;
    Ok(())
}
