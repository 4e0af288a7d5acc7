//! Resident memory, as the kernel counts it.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::bench::{Bench, machine_kind, tell};
use crate::table::{Bound, Figure, Table};

const MACHINE_CONFIGS: usize = 500;
const BYTES: usize = 200_000;
/// How long after a change memory is read.
const REST: Duration = Duration::from_secs(5);

/// Sizes in KiB.
pub struct Memory {
    pub resident: u32,
    anonymous: u32,
    pub highest: u32,
}

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    let memory = read(bench)?;
    table.row("resident memory at rest", &Figure::kibibytes(memory.resident), Bound::Under(12.0), "50 MiB");
    table.row("  of it not backed by a file", &Figure::kibibytes(memory.anonymous), Bound::None, "");
    table.row("  highest so far", &Figure::kibibytes(memory.highest), Bound::None, "");

    tell(&format!("{MACHINE_CONFIGS} MachineConfigs of {} KB", BYTES / 1000));
    fill(bench).await?;
    tokio::time::sleep(REST).await;
    rows(&format!("with {MACHINE_CONFIGS} MachineConfigs of 200 KB made meanwhile"), &read(bench)?, table);

    bench.restart().await?;
    tokio::time::sleep(REST).await;
    rows("the same after a restart", &read(bench)?, table);
    Ok(())
}

fn rows(figure: &str, memory: &Memory, table: &mut Table) {
    table.row(format!("{figure}: resident"), &Figure::kibibytes(memory.resident), Bound::Under(16.0), "200 MiB");
    table.row("  of it not backed by a file", &Figure::kibibytes(memory.anonymous), Bound::None, "");
    table.row("  highest", &Figure::kibibytes(memory.highest), Bound::Under(16.0), "");
}

/// What the operator has in memory.
pub fn read(bench: &Bench) -> Result<Memory> {
    let operator = bench.stage.operator().context("the operator is not started")?;
    let file = format!("/proc/{}/status", operator.pid());
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("{file} can't be read: memory is measured on Linux only, while the operator runs"))?;
    let size = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kibibytes = line.split_whitespace().find_map(|word| word.parse().ok());
        kibibytes.with_context(|| format!("{file} does not tell {name}"))
    };
    Ok(Memory { resident: size("VmRSS:")?, anonymous: size("RssAnon:")?, highest: size("VmHWM:")? })
}

/// What process `pid` has used of processors, in the kernel's ticks of 10 ms.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("CPU time is measured on Linux only")?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).context("a number of ticks");
    Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
}

/// Makes MachineConfigs that no pool selects, as large as rendered ones.
async fn fill(bench: &Bench) -> Result<()> {
    let configs = machine_kind(&bench.admin, "MachineConfig");
    let content = "x".repeat(BYTES);
    let create = |number: usize| {
        let (configs, content) = (configs.clone(), &content);
        async move {
            let config = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {"name": format!("rendered-filler-{number:03}")},
                "spec": {"config": {
                    "ignition": {"version": "3.4.0"},
                    "storage": {"files": [{"path": "/etc/filler", "contents": {"source": format!("data:,{content}")}}]},
                }},
            });
            let config: DynamicObject = serde_json::from_value(config)?;
            configs.create(&PostParams::default(), &config).await.context("a MachineConfig can't be made")?;
            Ok::<_, anyhow::Error>(())
        }
    };
    stream::iter((0..MACHINE_CONFIGS).map(create)).buffer_unordered(4).try_collect().await
}
