//! What hostile inputs cost: memory at the highest, and the longest time for which they hold the
//! thread that does the work.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use controlplane::apply_yaml;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bench::{Bench, api_of, machine_kind, tell};
use crate::measure::memory;
use crate::observer::{Observer, configs};
use crate::table::{Bound, Figure, Table};

const EXAMPLE: &str = "example-profile";
const BASE: &str = "load-aware-rebalancing";
/// As many as one object of the API server holds, about.
const KEYS: usize = 5000;
const POINTERS: usize = 1000;
const FILES: usize = 9000;
const POOLS: usize = 5;
/// The kubelet waits so long for a probe, unless it is told otherwise.
const PROBE: Duration = Duration::from_secs(1);
/// The container's limit of memory in config/manager, in MiB.
const LIMIT: f64 = 128.0;
const METRIC: &str = "kubevirt_advisor_longest_stall_seconds ";

pub async fn measure(bench: &mut Bench, table: &mut Table) -> Result<()> {
    tell("hostile inputs");
    for (what, begin) in [
        (format!("{POINTERS} ignored fields of {KEYS}"), Input::Ignored),
        ("a patch of 100 copies".to_owned(), Input::Copies),
        (format!("a MachineConfig of {FILES} files, on {} pools", POOLS + 1), Input::Files),
    ] {
        bench.restart_with(&["--metrics-secure=false"]).await?;
        begin.happens(bench).await?;
        let stall = longest_stall(bench).await?;
        let bound = Bound::Under(PROBE.as_secs_f64() * 1000.0);
        table.row(format!("hostile: {what}: longest stall"), &Figure::times(&[stall]), bound, "");
        let memory = memory::read(bench)?;
        table.row("  memory at the highest", &Figure::kibibytes(memory.highest), Bound::Under(LIMIT), "");
    }
    Ok(())
}

enum Input {
    Ignored,
    Copies,
    Files,
}

impl Input {
    /// Returns when the operator has answered it.
    async fn happens(self, bench: &Bench) -> Result<()> {
        match self {
            Self::Ignored => {
                let data: serde_json::Map<_, _> = (0..KEYS).map(|key| (format!("key-{key}"), json!("x"))).collect();
                let pointers: Vec<_> = (0..POINTERS).map(|key| format!("/data/key-{key}")).collect();
                let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
                    "name": "example-config", "namespace": "openshift-cnv",
                    "annotations": {"platform.kubevirt.io/ignore-fields": pointers.join(",")},
                }});
                apply_yaml(&bench.admin, &object.to_string(), "somebody").await?;
                configure(bench, json!([]), "ReviewRequired").await
            }
            Self::Copies => {
                let seed = json!({"op": "add", "path": "/data/more", "value": {"k": "x".repeat(1000)}});
                let copy = |n: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/k{n}")});
                let patch: Vec<_> = std::iter::once(seed).chain((1..100).map(copy)).collect();
                let target = json!({"kind": "ConfigMap", "namespace": "openshift-cnv", "name": "example-config"});
                configure(bench, json!([{"target": target, "patch": patch}]), "ReviewRequired").await
            }
            Self::Files => files(bench).await,
        }
    }
}

/// Asks for a dry run of the example, with `overrides`.
async fn configure(bench: &Bench, overrides: Value, phase: &str) -> Result<()> {
    let mut observer = Observer::of(&bench.admin, EXAMPLE);
    let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": EXAMPLE}, "spec": {"profile": EXAMPLE, "action": "DryRun", "overrides": overrides}});
    apply_yaml(&bench.admin, &config.to_string(), "bench").await?;
    let generation = configs(&bench.admin).get(EXAMPLE).await?.metadata.generation.unwrap_or_default();
    observer.wait(phase, generation).await?;
    Ok(())
}

/// Whoever may write MachineConfigs gives ours thousands of files and takes our argument out, where
/// many pools render it.
async fn files(bench: &Bench) -> Result<()> {
    for pool in 0..POOLS {
        mco_simulator::add_pool(&bench.admin, &format!("pool-{pool}")).await?;
    }
    let name = "99-worker-psi-karg";
    let file = |n: usize| json!({"path": format!("/etc/many/{n}"), "mode": 420, "contents": {"source": "data:,x"}});
    let files: Vec<_> = (0..FILES).map(file).collect();
    let spec =
        json!({"kernelArguments": [], "config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}});
    let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}}, "spec": spec});
    let params = PatchParams::apply("somebody").force();
    api_of(&bench.admin, &object)
        .patch(name, &params, &Patch::Apply(&object))
        .await
        .context("the files were refused")?;
    // Every pool has rendered it.
    let pools = machine_kind(&bench.admin, "MachineConfigPool");
    for _ in 0..600 {
        let all = pools.list(&Default::default()).await?;
        let holds = |pool: &kube::api::DynamicObject| pool.data["spec"]["configuration"].to_string().contains(name);
        if all.items.iter().filter(|pool| holds(pool)).count() > POOLS {
            let generation = configs(&bench.admin).get(BASE).await?.metadata.generation.unwrap_or_default();
            Observer::of(&bench.admin, BASE).wait("Drifted", generation).await?;
            // The last events of the pools make it look once more.
            tokio::time::sleep(Duration::from_secs(5)).await;
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("the pools do not render {name}")
}

/// As the operator has measured it itself.
async fn longest_stall(bench: &Bench) -> Result<Duration> {
    let log = std::fs::read_to_string(bench.stage.log()).context("the operator's log")?;
    let line =
        log.lines().rev().find(|line| line.contains("Serving metrics server")).context("no metrics are served")?;
    let (_, address) = line.split_once("127.0.0.1:").context("an address")?;
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse()?)).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let value = answer.lines().find_map(|line| line.strip_prefix(METRIC)).context("the metric is not there")?;
    Ok(Duration::from_secs_f64(value.trim().parse()?))
}
