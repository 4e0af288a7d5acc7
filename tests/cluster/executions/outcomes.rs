//! What a plan forecasts beside what came of it, for every profile there and back, on every release
//! of the machine-config controllers: how many machines reboot, of which pools, how many at a time,
//! and that nothing is Completed before the last of them.
//!
//! The figures are printed as a table: `cargo test --test cluster -- outcomes --nocapture`.

#![expect(clippy::print_stdout, reason = "the table of what came of each story is for whoever runs it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use advisor_core::api::{Item, Operation, Phase, VirtPlatformConfigStatus};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use mco_simulator::release::{MAIN, Release, V4_14_EARLY, V4_17, V4_20, V4_22};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fixture::{Fixture, PATIENCE, Setup};

const WORKERS: usize = 2;
/// Pools wait for five seconds before they render, at this speed for one: all of a wave must be
/// written by then, as it is on a real cluster. Two objects take a quarter of that on a machine
/// that is busy with other tests.
const SPEED: f64 = 5.0;

/// What machines went through.
#[derive(Debug, Default)]
pub struct Log {
    /// Machines that are away now: rebooting, so not ready.
    away: BTreeSet<String>,
    /// How often each has rebooted.
    pub reboots: BTreeMap<String, u32>,
    /// The most that were away at once.
    at_once: usize,
    /// Those that do not have what they are to have.
    pub behind: BTreeSet<String>,
    /// Those that were cordoned at some time, those that are now, and the most at once.
    pub drained: BTreeSet<String>,
    cordoned: BTreeSet<String>,
    pub drained_at_once: usize,
    /// When the last one was done.
    done: Option<Instant>,
}

impl Log {
    fn see(&mut self, node: &Node) {
        let name = node.name_any();
        let is_ready = |node: &Node| {
            let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.filter(|found| found.type_ == "Ready").all(|found| found.status == "True")
        };
        if is_ready(node) {
            self.away.remove(&name);
        } else if self.away.insert(name.clone()) {
            *self.reboots.entry(name.clone()).or_default() += 1;
            self.at_once = self.at_once.max(self.away.len());
        }
        if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
            self.drained.insert(name.clone());
            self.cordoned.insert(name.clone());
            self.drained_at_once = self.drained_at_once.max(self.cordoned.len());
        } else {
            self.cordoned.remove(&name);
        }
        let annotation = |key: &str| node.annotations().get(&format!("machineconfiguration.openshift.io/{key}"));
        let is_behind = annotation("currentConfig") != annotation("desiredConfig")
            || annotation("state").is_some_and(|state| state != "Done");
        if is_behind {
            self.behind.insert(name);
        } else if self.behind.remove(&name) {
            self.done = Some(Instant::now());
        }
    }
}

/// The machines, watched from now on.
pub struct Machines {
    pub log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Machines {
    pub fn watch(client: Client) -> Self {
        let log = Arc::new(Mutex::new(Log::default()));
        let seen = Arc::clone(&log);
        let task = tokio::spawn(async move {
            let events = watcher(Api::<Node>::all(client), watcher::Config::default()).applied_objects();
            events
                .for_each(|node| {
                    if let Ok(node) = node {
                        seen.lock().unwrap().see(&node);
                    }
                    std::future::ready(())
                })
                .await;
        });
        Self { log, task }
    }
}

/// One way of a story: what was forecast and what came.
async fn way(fixture: &Fixture, release: Release, profile: &str, way: &str, options: Value) {
    let api = fixture.configs();
    let edit = |spec: Value| {
        let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
        let api = api.clone();
        async move { api.patch(profile, &params, &Patch::Merge(json!({"spec": spec}))).await.unwrap() }
    };
    let wait = async |what: &str, fits: &dyn Fn(&VirtPlatformConfigStatus) -> bool| -> VirtPlatformConfigStatus {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let config = api.get(profile).await.unwrap();
            let generation = config.metadata.generation;
            let status = config.status.unwrap_or_default();
            if status.observed_generation == generation && fits(&status) {
                return status;
            }
            assert!(tokio::time::Instant::now() < until, "{} {profile} {way}: {what}: {status:#?}", release.name);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    edit(json!({"action": "DryRun", "options": options})).await;
    let plan = wait("a plan", &|status| status.phase == Some(Phase::ReviewRequired)).await;
    let forecast = plan.summary.clone().unwrap();
    let machines = Machines::watch(fixture.admin.clone());
    let writes = plan.items.iter().filter(|item| item.operation != Operation::NoChange).count();
    edit(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
    let done = wait("its end", &|status| status.phase == Some(Phase::Completed)).await;
    let completed = Instant::now();
    let log = machines.log.lock().unwrap();
    let rebooted: u32 = log.reboots.values().sum();
    let after = log.done.map(|done| completed.duration_since(done).as_secs_f64());
    println!(
        "| {} | {profile} {way} | {writes} | {} of {} | {rebooted} | {} | {} |",
        release.name,
        forecast.machines_to_reboot,
        forecast.pools.join(", "),
        log.at_once,
        after.map_or("—".to_owned(), |seconds| format!("{seconds:.2} s")),
    );
    assert!(log.behind.is_empty() && log.away.is_empty(), "completed before {:?} {:?}", log.behind, log.away);
    assert_eq!(rebooted, forecast.machines_to_reboot, "{} {profile} {way}: {log:?}", release.name);
    assert!(log.reboots.values().all(|times| *times == 1), "each once: {log:?}");
    let expected = if forecast.machines_to_reboot > 0 { 1 } else { 0 };
    assert_eq!(log.at_once, expected, "one by one, as the plan says");
    let of_workers = log.reboots.keys().all(|name| name.starts_with("worker-"));
    assert_eq!(forecast.pools, if expected > 0 { vec!["worker"] } else { vec![] });
    assert!(of_workers, "{log:?}");
    let outcome = done.history.first().map(|entry| (entry.machines, entry.machines_updated));
    let is_for_machines = |item: &&Item| ["MachineConfig", "KubeletConfig"].contains(&item.target_ref.kind.as_str());
    let updated = plan.items.iter().filter(is_for_machines).any(|item| item.operation.writes()).then_some(rebooted);
    assert_eq!(outcome, Some((forecast.machines_to_reboot, updated)), "forecast and outcome are in the history");
}

/// Every profile, there and back.
async fn stories(release: Release) {
    let setup = Setup { release, speed: SPEED, workers: WORKERS, ..Setup::default() };
    let fixture = Fixture::start(setup).await;
    for profile in ["load-aware-rebalancing", "virt-higher-density", "virt-platform-baseline"] {
        let until = tokio::time::Instant::now() + PATIENCE;
        while fixture.configs().get_opt(profile).await.unwrap().is_none() {
            assert!(tokio::time::Instant::now() < until, "{profile} is not advertised");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    println!("| release | story | items | forecast | rebooted | at once | Completed after the last machine |");
    let features = |choice: &str| {
        let names = ["swap", "kubeletPerformance"];
        let all: BTreeMap<_, _> = names.iter().map(|name| (*name, choice)).collect();
        json!({"platformBaseline": {"features": all}})
    };
    for (profile, there, back) in [
        ("load-aware-rebalancing", json!(null), json!({"loadAware": {"enablePSIMetrics": false}})),
        (
            "virt-higher-density",
            // Kubelets of older releases read no settings for swap.
            if [V4_22, MAIN].contains(&release) {
                json!(null)
            } else {
                json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": 120}})
            },
            json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": 100, "ksmConfiguration": {"enabled": false}}}),
        ),
        ("virt-platform-baseline", features("Enabled"), features("Disabled")),
    ] {
        way(&fixture, release, profile, "there", there).await;
        way(&fixture, release, profile, "back", back).await;
    }
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_as_forecast_on_4_14_before_march_2025() {
    stories(V4_14_EARLY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_as_forecast_on_4_17() {
    stories(V4_17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_as_forecast_on_4_20() {
    stories(V4_20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_as_forecast_on_4_22() {
    stories(V4_22).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_are_as_forecast_on_main() {
    stories(MAIN).await;
}
