//! What an execution costs, from the patch to Completed.

use anyhow::Result;
use serde_json::json;

use crate::bench::{Bench, tell};
use crate::counts;
use crate::table::{Bound, Figure, Table};

/// What is asked for.
pub fn all() -> serde_json::Value {
    json!({"action": "Apply"})
}

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("an execution");
    let mut observer = bench.observe();
    let mark = bench.stage.plane().audit().mark();
    let (_, generation) = bench.patch(all()).await?;
    observer.wait("Completed", generation).await?;
    let counts = counts::settled(&bench.stage, &mark).await?;
    let figure = "Apply patch -> Completed: requests, events included";
    table.row(figure, &Figure::count(counts.requests()), Bound::AtMost(30.0), "113");
    table.row("  status writes", &Figure::count(counts.status_writes()), Bound::AtMost(6.0), "19");
    table.row("  target writes", &Figure::count(counts.target_writes()), Bound::AtMost(2.0), "10");
    table.note(format!("Apply patch -> Completed: {}.", counts.told()));
    Ok(())
}
