//! From the patch that asks for a plan to the published plan, beside the least that any program
//! would have to send.

use std::time::Duration;

use anyhow::{Context, Result};
use demo::{PROFILE, USER};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::bench::{Bench, descheduler, machine_kind, tell};
use crate::counts::{self, Counts};
use crate::observer::{Observer, Seen, configs};
use crate::table::{Bound, Figure, Table};

const TIMES: usize = 20;

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("plans");
    let mut observer = bench.observe();
    bench.restart().await?;
    let (first, plan, _) = one_plan(bench, &mut observer).await?;
    row_of_requests("first plan of a process", &Figure::count(first.requests_but_rendered()), table);
    let rendered = first.requests() - first.requests_but_rendered();
    table.row("  and reads of what a pool has rendered", &Figure::count(rendered), Bound::AtMost(1.0), "");
    let first_writes = Figure::count(first.status_writes());
    table.row("  its status writes", &first_writes, Bound::AtMost(1.0), "4");
    table.note(format!("First plan of a process: {}.", first.told()));

    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        stand_aside(bench, &mut observer).await?;
        let (count, _, time) = one_plan(bench, &mut observer).await?;
        times.push(time);
        counts.push(count);
    }
    row_of_requests(
        &format!("later plans, {TIMES} toggles"),
        &Figure::counts(counts.iter().map(Counts::requests)),
        table,
    );
    let writes = Figure::counts(counts.iter().map(Counts::status_writes));
    table.row("  their status writes", &writes, Bound::AtMost(1.0), "4");
    table.row("  DryRun patch -> published plan", &Figure::times(&times), Bound::Under(70.0), "70 ms");
    if let Some(last) = counts.last() {
        table.note(format!("A later plan: {}.", last.told()));
    }

    tell("the bare sequence");
    bench.stage.kill_operator();
    let times = bare(bench, &plan).await?;
    let figure = "  the same by a bare sequence: 2 GETs, 2 dry runs, 1 status write";
    table.row(figure, &Figure::times(&times), Bound::None, "37 ms");

    // For the next one: a plan that the operator has published.
    bench.restart().await?;
    stand_aside(bench, &mut observer).await?;
    one_plan(bench, &mut observer).await.map(drop)
}

fn row_of_requests(figure: &str, count: &Figure, table: &mut Table) {
    table.row(format!("{figure}: requests"), count, Bound::AtMost(12.0), "16");
}

/// Asks for a plan: what it cost, what it was, and how long it took.
async fn one_plan(bench: &Bench, observer: &mut Observer) -> Result<(Counts, Seen, Duration)> {
    let mark = bench.stage.plane().audit().mark();
    let (sent, generation) = bench.patch(json!({"action": "DryRun"})).await?;
    let plan = observer.wait("ReviewRequired", generation).await?;
    let counts = counts::settled(&bench.stage, &mark).await?;
    let time = plan.at - sent;
    Ok((counts, plan, time))
}

async fn stand_aside(bench: &Bench, observer: &mut Observer) -> Result<()> {
    let mark = bench.stage.plane().audit().mark();
    let (_, generation) = bench.patch(json!({"action": "Ignore"})).await?;
    observer.wait("Ignored", generation).await?;
    counts::settled(&bench.stage, &mark).await.map(drop)
}

/// In place of the operator: a watch, and for each edit the least that a plan needs, one after the
/// other.
async fn bare(bench: &Bench, plan: &Seen) -> Result<Vec<Duration>> {
    let client = bench.stage.plane().client(USER, &[])?;
    let mut trigger = Observer::start(&client);
    let status = plan.status.clone();
    let planner = tokio::spawn(async move {
        loop {
            let seen = trigger.next().await?;
            if seen.spec["action"] == "DryRun" && seen.status["observedGeneration"] != seen.generation {
                bare_plan(&client, seen.generation, &status).await?;
            }
        }
    });
    let mut observer = bench.observe();
    let mut times = Vec::new();
    let measured: Result<()> = async {
        // The first one, which is not counted, opens the connections.
        for _ in 0..=TIMES {
            bench.patch(json!({"action": "Ignore"})).await?;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let (sent, generation) = bench.patch(json!({"action": "DryRun"})).await?;
            let seen = observer.wait("ReviewRequired", generation).await?;
            times.push(seen.at - sent);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }
    .await;
    planner.abort();
    if let Ok(ended) = planner.await {
        let ended: Result<()> = ended;
        ended.context("the bare sequence has failed")?;
    }
    measured?;
    Ok(times.split_off(1))
}

async fn bare_plan(client: &Client, generation: i64, plan: &Value) -> Result<()> {
    let params = PatchParams::apply("bare").force().dry_run().validation_strict();
    for item in plan["items"].as_array().context("a plan has items")? {
        let desired = &item["desiredState"];
        let name = desired["metadata"]["name"].as_str().context("an object has a name")?;
        let api = match desired["kind"].as_str() {
            Some("KubeDescheduler") => descheduler(client),
            _ => machine_kind(client, "MachineConfig"),
        };
        let _: Option<DynamicObject> = api.get_opt(name).await?;
        let _: DynamicObject = api.patch(name, &params, &Patch::Apply(desired)).await?;
    }
    let mut status = plan.clone();
    status["observedGeneration"] = generation.into();
    let body = Patch::Merge(json!({"status": status}));
    configs(client).patch_status(PROFILE, &PatchParams::default(), &body).await?;
    Ok(())
}
