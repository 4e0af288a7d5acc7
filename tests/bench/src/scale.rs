//! `make bench-scale`: a large cluster, and one of a tenth of it in the same table, so that growth
//! is seen.

mod cuts;
mod fill;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::bench::{Bench, machine_kind, tell};
use crate::counts;
use crate::measure::drift::Series;
use crate::measure::{apply, memory};
use crate::table::{Bound, Figure, Table};
use fill::Size;

/// Unrelated changes within a minute.
const CHANGES: u32 = 1000;
const MINUTE: Duration = Duration::from_secs(60);
/// Edits of a target.
const EDITS: usize = 100;

/// Measures both clusters; `rest` are seconds without any change.
pub async fn measure(operator: &std::path::Path, rest: u64, table: &mut Table) -> Result<()> {
    for (size, word) in [(fill::TENTH, "a tenth"), (fill::WHOLE, "all")] {
        let mut bench = Bench::start(operator).await?;
        let measured = one(&mut bench, size, word, rest, table).await;
        measured.map_err(|error| match bench.stage.operator() {
            Some(operator) => error.context(format!("the end of the operator's log:\n{}\n", operator.log_tail())),
            None => error,
        })?;
    }
    Ok(())
}

async fn one(bench: &mut Bench, size: Size, word: &str, rest: u64, table: &mut Table) -> Result<()> {
    let Size { nodes, machine_configs, pools } = size;
    tell(&format!("{word}: {nodes} Nodes, {machine_configs} MachineConfigs of 200 KB, {pools} pools"));
    fill::fill(bench, size).await?;
    bench.restart().await?;
    applied(bench).await?;

    tell("a start");
    let mark = bench.stage.plane().audit().mark();
    #[expect(clippy::disallowed_methods, reason = "compared with the times in the server's log")]
    let began = std::time::SystemTime::now();
    bench.restart().await?;
    let last = counts::now(&bench.stage, &mark).last().context("a started operator asks something")?;
    let ready = std::time::SystemTime::from(last).duration_since(began).unwrap_or_default();
    table.row(
        format!("{word}: start until nothing is asked any more"),
        &Figure::times(&[ready]),
        Bound::Under(2000.0),
        "",
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let resident = memory::read(bench)?;
    table.row("  resident memory", &Figure::kibibytes(resident.resident), Bound::Under(16.0), "200 MiB");
    table.row("  highest", &Figure::kibibytes(resident.highest), Bound::Under(16.0), "");

    tell(&format!("{rest} s of rest"));
    let mark = bench.stage.plane().audit().mark();
    tokio::time::sleep(Duration::from_secs(rest)).await;
    let quiet = counts::now(&bench.stage, &mark);
    table.row(format!("  requests in {rest} s of rest"), &Figure::count(quiet.requests()), Bound::AtMost(0.0), "");
    churn(bench, table).await?;
    drift(bench, table).await?;
    cuts::measure(bench, table).await?;
    let resident = memory::read(bench)?;
    table.row("  resident memory at the end", &Figure::kibibytes(resident.resident), Bound::Under(16.0), "200 MiB");
    table.row("  highest", &Figure::kibibytes(resident.highest), Bound::Under(16.0), "");
    Ok(())
}

/// Everything that the profile wants is there.
async fn applied(bench: &Bench) -> Result<()> {
    let mut observer = bench.observe();
    let (_, generation) = bench.patch(apply::all()).await?;
    observer.wait("Completed", generation).await?;
    Ok(())
}

/// Changes of objects that no plan touches, on watched kinds.
async fn churn(bench: &Bench, table: &mut Table) -> Result<()> {
    tell("a minute of unrelated changes");
    let pid = bench.stage.operator().context("the operator is not started")?.pid();
    let configs = machine_kind(&bench.admin, "MachineConfig");
    let mark = bench.stage.plane().audit().mark();
    let (before, began) = (memory::processor_time(pid)?, Instant::now());
    for number in 0..CHANGES {
        let body = Patch::Merge(json!({"metadata": {"annotations": {"bench": number.to_string()}}}));
        configs
            .patch(&fill::name(number % 10), &PatchParams::default(), &body)
            .await
            .context("a change was refused")?;
        let due = MINUTE * (number + 1) / CHANGES;
        tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
    }
    let took = began.elapsed();
    let used = memory::processor_time(pid)? - before;
    let asked = counts::now(&bench.stage, &mark);
    let figure = format!("  {CHANGES} unrelated changes in {} s: CPU time", took.as_secs());
    table.row(figure, &Figure::times(&[used]), Bound::Under(took.as_secs_f64() * 10.0), "");
    table.row("    requests", &Figure::count(asked.requests()), Bound::AtMost(0.0), "");
    Ok(())
}

async fn drift(bench: &Bench, table: &mut Table) -> Result<()> {
    tell("drift");
    let mut observer = bench.observe();
    let (mut there, mut back) = (Series::default(), Series::default());
    for _ in 0..EDITS {
        there.add(bench, &mut observer, json!({"deschedulingIntervalSeconds": 3600}), "Drifted").await?;
        back.add(bench, &mut observer, json!({"deschedulingIntervalSeconds": 60}), "Completed").await?;
    }
    for (series, figure) in [(&there, "a target's edit -> Drifted"), (&back, "the edit taken back -> Completed")] {
        table.row(format!("  {figure}, {EDITS} times"), &Figure::times(&series.times), Bound::Under(30.0), "46 ms");
        table.row("    99th percentile", &Figure::times(&[series.percentile(99)]), Bound::None, "");
        table.row("    requests", &series.figure(counts::Counts::requests), Bound::AtMost(4.0), "12");
        table.row("    status writes", &series.figure(counts::Counts::status_writes), Bound::AtMost(1.0), "2");
    }
    Ok(())
}
