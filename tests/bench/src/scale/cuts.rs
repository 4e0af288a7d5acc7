//! A connection that is cut every two seconds, sixty times: nothing is missed, and requests are
//! bounded.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::bench::{Bench, tell};
use crate::counts;
use crate::table::{Bound, Figure, Table};

const EVERY: Duration = Duration::from_secs(2);
const TIMES: u32 = 60;

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("sixty cut connections");
    let (cut, proxy) = proxied(bench).await?;
    let mut observer = bench.observe();
    let mark = bench.stage.plane().audit().mark();
    let mut missed = 0;
    for round in 0..TIMES {
        cut.send_replace(round);
        // An edit in the moment of the cut.
        let (value, phase) = if round % 2 == 0 { (3600, "Drifted") } else { (60, "Completed") };
        observer.forget();
        bench.edit_descheduler(json!({"deschedulingIntervalSeconds": value})).await?;
        missed += usize::from(observer.wait(phase, 0).await.is_err());
        // A watch that is cut within a second of its opening came to nothing, and is spaced by
        // pauses.
        tokio::time::sleep(EVERY).await;
    }
    let asked = counts::now(&bench.stage, &mark);
    table.row(
        format!("  {TIMES} cut connections with an edit each: edits missed"),
        &Figure::count(missed),
        Bound::AtMost(0.0),
        "",
    );
    table.row(
        "    requests without watches",
        &Figure::count(asked.requests()),
        Bound::AtMost(f64::from(TIMES * 16)),
        "",
    );
    table.row("    watches opened", &Figure::count(asked.watches()), Bound::AtMost(f64::from(TIMES * 8)), "");
    proxy.abort();
    Ok(())
}

/// Starts the operator anew behind a proxy whose connections end whenever something is sent.
async fn proxied(bench: &mut Bench) -> Result<(watch::Sender<u32>, tokio::task::JoinHandle<()>)> {
    let server = bench.stage.plane().url();
    let server = server.trim_start_matches("https://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for a proxy")?;
    let address = listener.local_addr()?;
    let (cut, cuts) = watch::channel(0);
    let target = server.clone();
    let proxy = tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (mut cuts, target) = (cuts.clone(), target.clone());
            cuts.mark_unchanged();
            tokio::spawn(async move {
                let Ok(mut far) = TcpStream::connect(&target).await else { return };
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    _ = cuts.changed() => {}
                }
            });
        }
    });
    bench.stage.reach_server_by(&server, &address.to_string())?;
    bench.restart().await?;
    Ok((cut, proxy))
}
