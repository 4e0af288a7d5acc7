//! A client that watches the configuration and knows when it saw what.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use demo::PROFILE;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

/// The longest time that anything may take; a fast machine needs a fraction.
const PATIENCE: Duration = Duration::from_secs(90);

/// The configurations.
pub fn configs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// One state of the configuration.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When the client had it.
    pub at: Instant,
    pub generation: i64,
    pub spec: Value,
    pub status: Value,
}

impl Seen {
    fn new(at: Instant, object: &DynamicObject) -> Self {
        Self {
            at,
            generation: object.metadata.generation.unwrap_or_default(),
            spec: object.data["spec"].clone(),
            status: object.data["status"].clone(),
        }
    }

    /// Whether the status is about the present spec, and says this phase.
    pub fn is(&self, phase: &str) -> bool {
        self.status["observedGeneration"] == self.generation && self.status["phase"] == phase
    }
}

/// The watch; it ends when this is dropped.
pub struct Observer {
    seen: UnboundedReceiver<Seen>,
    task: JoinHandle<()>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Observer {
    /// Begins to watch; what is there already is seen first.
    pub fn start(client: &Client) -> Self {
        Self::of(client, PROFILE)
    }

    /// The same of the configuration of another profile.
    pub fn of(client: &Client, profile: &'static str) -> Self {
        let (sender, seen) = unbounded_channel();
        let configs = configs(client);
        let task = tokio::spawn(async move {
            let only = watcher::Config::default().fields(&format!("metadata.name={profile}"));
            let mut events = pin!(watcher(configs, only));
            while let Some(event) = events.next().await {
                let at = Instant::now();
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event
                    && sender.send(Seen::new(at, &object)).is_err()
                {
                    return;
                }
            }
        });
        Self { seen, task }
    }

    /// The next state.
    pub async fn next(&mut self) -> Result<Seen> {
        self.seen.recv().await.context("the watch has ended")
    }

    /// Forgets what was seen so far.
    pub fn forget(&mut self) {
        while self.seen.try_recv().is_ok() {}
    }

    /// The first state with this phase, of this or a later generation.
    pub async fn wait(&mut self, phase: &str, generation: i64) -> Result<Seen> {
        let mut last = None;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let seen = self.next().await?;
                if seen.generation >= generation && seen.is(phase) {
                    return Ok(seen);
                }
                last = Some(seen);
            }
        });
        match found.await {
            Ok(found) => found,
            Err(_) => {
                let status = last.map(|seen| seen.status["summary"]["text"].to_string()).unwrap_or_default();
                anyhow::bail!("phase {phase} did not come within {} s; the last was: {status}", PATIENCE.as_secs())
            }
        }
    }
}
