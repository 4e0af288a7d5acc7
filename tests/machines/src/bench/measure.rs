//! What is measured, and how.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use controlplane::ControlPlane;
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kubevirt_operator::cluster::kinds::{self, Kind};
use machines_stage::{Stage, USER};
use serde_json::json;

const NAMESPACE: &str = "default";
/// How long nothing may happen before the operator is taken to be at rest.
const QUIET: Duration = Duration::from_secs(5);
/// How long rest is measured.
const REST: Duration = Duration::from_secs(60);
/// How long all Machines may take to run.
const PATIENCE: Duration = Duration::from_secs(900);

struct Bench {
    stage: Stage,
}

/// Measures everything, and returns the table.
pub(super) async fn all(program: &Path, many: usize) -> Result<String> {
    let settings = kubevirt_simulator::Settings { speed: 4.0, ..kubevirt_simulator::Settings::default() };
    let stage = Stage::set(ControlPlane::start().await?, settings).await?;
    let mut bench = Bench { stage };
    bench.stage.start_operator(program)?;
    bench.rest().await?;
    let size = std::fs::metadata(program).context("the program has a size")?.len();
    let mut rows = vec![("size of the program".to_owned(), format!("{:.1} MiB", mebibytes(size)))];
    rows.push(("resident without Machines".to_owned(), bench.resident()?));

    let mark = bench.stage.plane().audit().mark();
    let began = Instant::now();
    bench.create("one").await?;
    let written = bench.until(kinds::VM, "one").await?.duration_since(began);
    bench.running(1).await?;
    bench.rest().await?;
    let (reads, writes) = bench.requests(&mark);
    rows.push(("one Machine: requests, of these writes".to_owned(), format!("{}, {writes}", reads + writes)));
    rows.push((
        "one Machine: created until its VM is written".to_owned(),
        format!("{:.0} ms", written.as_secs_f64() * 1000.0),
    ));

    let names: Vec<_> = (0..99).map(|number| format!("few-{number}")).collect();
    bench.create_all(&names).await?;
    bench.running(100).await?;
    bench.rest().await?;
    rows.push(("resident at rest with 100 Machines".to_owned(), bench.resident()?));
    let mark = bench.stage.plane().audit().mark();
    tokio::time::sleep(REST).await;
    let (reads, writes) = bench.requests(&mark);
    rows.push(("100 Machines at rest for 60 s: requests, writes".to_owned(), format!("{}, {writes}", reads + writes)));

    let names: Vec<_> = (0..many).map(|number| format!("many-{number}")).collect();
    let mark = bench.stage.plane().audit().mark();
    let began = Instant::now();
    bench.create_all(&names).await?;
    bench.running(100 + many).await?;
    rows.push((
        format!("{many} Machines created at once until all run"),
        format!("{:.1} s", began.elapsed().as_secs_f64()),
    ));
    rows.push(("highest resident meanwhile".to_owned(), bench.peak()?));
    bench.rest().await?;
    let (reads, writes) = bench.requests(&mark);
    let each = |count: usize| {
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / f64::from(u32::try_from(many).unwrap_or(1))
    };
    rows.push((
        "requests and writes for each of them".to_owned(),
        format!("{:.1}, {:.1}", each(reads + writes), each(writes)),
    ));
    rows.push((format!("resident at rest with {} Machines", 100 + many), bench.resident()?));
    let rows: Vec<_> = rows.iter().map(|(what, value)| format!("| {what} | {value} |")).collect();
    Ok(format!("| measured | value |\n| --- | --- |\n{}", rows.join("\n")))
}

fn mebibytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0
}

impl Bench {
    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let resource: ApiResource = kind.resource();
        Api::namespaced_with(self.stage.plane().admin(), NAMESPACE, &resource)
    }

    async fn create(&self, name: &str) -> Result<()> {
        let machine = json!({
            "apiVersion": "vitistack.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"template": "small"},
        });
        self.api(kinds::MACHINE).create(&PostParams::default(), &serde_json::from_value(machine)?).await?;
        Ok(())
    }

    async fn create_all(&self, names: &[String]) -> Result<()> {
        let mut created = stream::iter(names).map(|name| self.create(name)).buffer_unordered(16);
        while let Some(result) = created.next().await {
            result?;
        }
        Ok(())
    }

    async fn until(&self, kind: Kind, name: &str) -> Result<Instant> {
        let api = self.api(kind);
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline {
            if api.get_opt(name).await?.is_some() {
                return Ok(Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!("there is no {} {name}", kind.kind)
    }

    /// Waits until so many Machines run.
    async fn running(&self, count: usize) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let api = self.api(kinds::MACHINE);
        loop {
            let all = api.list(&ListParams::default()).await?;
            let running = all.iter().filter(|machine| machine.data["status"]["phase"] == "Running").count();
            if running >= count {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{running} of {count} Machines run");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until the operator asks for nothing.
    async fn rest(&self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mark = self.stage.plane().audit().mark();
            tokio::time::sleep(QUIET).await;
            let (reads, writes) = self.requests(&mark);
            if reads + writes == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the operator does not come to rest: {reads} reads and {writes} writes in the last seconds");
            }
        }
    }

    /// Reads and writes of the operator since `mark`; watches are neither.
    fn requests(&self, mark: &controlplane::Mark) -> (usize, usize) {
        let all = self.stage.plane().audit().since(mark);
        let own: Vec<_> = all.iter().filter(|request| request.user == USER && !request.is_watch()).collect();
        let writes = own.iter().filter(|request| request.is_write()).count();
        (own.len() - writes, writes)
    }

    fn memory(&self, field: &str) -> Result<String> {
        let pid = self.stage.operator().context("the operator runs")?.pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line =
            status.lines().find(|line| line.starts_with(field)).context("Linux tells the memory of processes")?;
        let kibibytes: u64 = line.split_whitespace().nth(1).context("the line has a number")?.parse()?;
        Ok(format!("{:.1} MiB", mebibytes(kibibytes << 10)))
    }

    fn resident(&self) -> Result<String> {
        self.memory("VmRSS:")
    }

    fn peak(&self) -> Result<String> {
        self.memory("VmHWM:")
    }
}
