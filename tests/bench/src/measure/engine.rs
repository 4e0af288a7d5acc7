//! Plans of 1, 10 and 100 items by the engine alone, beside the same requests sent by a plain
//! client; and what it costs to make an item of an object of a mebibyte.

use advisor_core::api::FIELD_MANAGER;
use std::sync::Arc;
use std::time::{Duration, Instant};

use advisor_cluster::{Cluster, client};
use advisor_core::plan::Basis;
use advisor_core::plan::items::from_preview::compose;
use advisor_core::plan::items::{Effect, Preview};
use advisor_core::plan::overrides::Choices;
use advisor_core::rollout::MachineConfigPools;
use advisor_engine::engine::{CONCURRENCY, Engine, Task};
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use profile_sdk::{Body, Draft};
use serde_json::{Value, json};

use crate::bench::{Bench, tell};
use crate::measure::memory::processor_time;
use crate::table::{Bound, Figure, Table};

const TIMES: usize = 15;
const SIZES: [usize; 3] = [1, 10, 100];
/// The users that engine and plain client ask as, so that their requests are told apart.
const ENGINE: &str = "bench-engine";
const PLAIN: &str = "bench-plain";

pub async fn measure(bench: &Bench, table: &mut Table) -> Result<()> {
    tell("plans by the engine alone");
    let admin = bench.admin.clone();
    fill(&admin).await?;
    for size in SIZES {
        let objects: Vec<_> = (0..size).map(|index| config_map(index, "ours")).collect();
        let plane = bench.stage.plane();
        let connect = |user: &str| -> Result<Client> { Ok(client(plane.client_config(user, &["system:masters"])?)?) };
        let (cluster, plain) = (Cluster::new(connect(ENGINE)?, FIELD_MANAGER), connect(PLAIN)?);
        let drafts: Vec<_> = objects
            .iter()
            .enumerate()
            .map(|(index, object)| Draft::new(format!("item-{index}"), Body::Ensure(object.clone()), "is measured"))
            .collect();
        // The first round, which is not counted, opens the connections.
        planned(&cluster, &drafts).await?;
        bare(&plain, &objects).await?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mark = plane.audit().mark();
        // By turns, so that what else the machine does hits both.
        for _ in 0..TIMES {
            ours.push(planned(&cluster, &drafts).await?);
            theirs.push(bare(&plain, &objects).await?);
        }
        let requests = plane.audit().since(&mark);
        let count = |user: &str| requests.iter().filter(|request| request.user == user).count();
        let (asked, sent) = (count(ENGINE), count(PLAIN));
        let limit = f64::from(u32::try_from(3 * size + 3)?);
        let items = if size == 1 { "item" } else { "items" };
        table.row(format!("plan of {size} {items}: requests"), &Figure::count(asked / TIMES), Bound::AtMost(limit), "");
        table.row("  of a plain client", &Figure::count(sent / TIMES), Bound::None, "");
        let bound = median(&theirs).as_secs_f64() * 1000.0 * 1.3;
        table.row("  time; bound: 1.3 of a plain client", &Figure::times(&ours), Bound::Under(bound), "");
        table.row("  of a plain client", &Figure::times(&theirs), Bound::None, "");
    }
    tell("an object of a mebibyte");
    large(table)
}

/// Objects that somebody else has made, with another value where the plan wants one.
async fn fill(admin: &Client) -> Result<()> {
    let api: Api<ConfigMap> = Api::default_namespaced(admin.clone());
    let largest = SIZES.into_iter().max().unwrap_or_default();
    let params = PostParams::default();
    stream::iter(0..largest)
        .map(|index| {
            let api = api.clone();
            let params = params.clone();
            async move {
                let object: ConfigMap = serde_json::from_value(config_map(index, "theirs"))?;
                api.create(&params, &object).await.context("filling the cluster")
            }
        })
        .buffered(CONCURRENCY)
        .try_for_each(|_| async { Ok(()) })
        .await
}

fn config_map(index: usize, owner: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("bench-{index}"), "namespace": "default"}, "data": {owner: "value"}})
}

async fn planned(cluster: &Cluster, drafts: &[Draft]) -> Result<Duration> {
    let pools = MachineConfigPools::default();
    let unheard = |_, _| {};
    let began = Instant::now();
    let task = Task {
        profile: "measured",
        kinds: &[],
        drafts,
        remembered: &[],
        claims: &[],
        choices: &Choices::default(),
        unwatched: &std::collections::BTreeMap::new(),
        rivals: &[],
        exact: true,
    };
    let plan = Engine::new(cluster, &pools, &unheard).plan(Basis::default(), task).await?;
    let took = began.elapsed();
    anyhow::ensure!(plan.blocked().next().is_none() && plan.items.len() == drafts.len(), "a plan of all items");
    Ok(took)
}

/// A GET and a dry run for each object, as many at a time as the engine sends.
async fn bare(client: &Client, objects: &[Value]) -> Result<Duration> {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let params = PatchParams::apply("bare").dry_run().validation_strict();
    let began = Instant::now();
    stream::iter(objects)
        .map(|object| {
            let (api, params) = (api.clone(), params.clone());
            async move {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).context("a name")?;
                api.get_opt(name).await?;
                api.patch(name, &params, &Patch::Apply(object)).await?;
                anyhow::Ok(())
            }
        })
        .buffered(CONCURRENCY)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(began.elapsed())
}

/// One line of every ten changes in a text of a mebibyte.
fn large(table: &mut Table) -> Result<()> {
    let text = |word: &str| {
        let line = |index: usize| match index % 10 {
            0 => format!("line {index:06} has a {word} value, and some more text\n"),
            _ => format!("line {index:06} is as it was before, with enough text\n"),
        };
        (0..21_000).map(line).collect::<String>()
    };
    let object = |word: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large", "uid": "u", "resourceVersion": "1"}, "data": {"text": text(word)}});
    let (live, result) = (Arc::new(object("former")), object("recent"));
    let draft = Draft::new("large", Body::Ensure(result.clone()), "is measured");
    let before = memory("VmRSS:")?;
    // The highest is counted from here.
    std::fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs: memory is measured on Linux only")?;
    let mut times = Vec::new();
    let began = processor_time(std::process::id())?;
    for _ in 0..TIMES {
        let preview = Preview::Known {
            adjusted: result.clone().into(),
            live: Some(Arc::clone(&live)),
            result: result.clone(),
            conflicts: Vec::new(),
        };
        let start = Instant::now();
        let item = compose(&draft, None, "measured", preview, Effect::default(), None);
        times.push(start.elapsed());
        anyhow::ensure!(
            item.review.diff.matches("\n+line").count() + item.review.diff.matches("\n+    line").count() == 2100,
            "a true diff"
        );
    }
    let used = (processor_time(std::process::id())? - began) / u32::try_from(TIMES)?;
    table.row("item of an object of 1 MiB: time", &Figure::times(&times), Bound::None, "");
    table.row("  CPU time, preparation included", &Figure::times(&[used]), Bound::None, "");
    let highest = memory("VmHWM:")?.saturating_sub(before);
    table.row("  memory at the highest, beyond what it began with", &Figure::kibibytes(highest), Bound::None, "");
    Ok(())
}

/// A size of this process, in KiB.
fn memory(name: &str) -> Result<u32> {
    let text = std::fs::read_to_string("/proc/self/status").context("memory is measured on Linux only")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace()
        .find_map(|word| word.parse().ok())
        .with_context(|| format!("the kernel does not tell {name}"))
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}
