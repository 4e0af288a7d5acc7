//! Metrics of what the operator does, counted where it happens. The present state of the cluster is
//! read when somebody asks, see `controller::state`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tower::BoxError;

use super::definitions as define;

/// The controller's name in metrics, as in dashboards for the Go program.
const CONTROLLER: &str = "virtplatformconfig";
/// Buckets in seconds for reconciles: those of controller-runtime, as far as they matter here.
const LOOK_SECONDS: [f64; 13] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Buckets in seconds for executions: an instant without machines, hours with hundreds of them.
const EXECUTION_SECONDS: [f64; 10] = [0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 10800.0, 43200.0];

/// A label with its value; values come from closed sets.
pub type Label = (&'static str, String);

type Counters<const N: usize> = Family<[Label; N], Counter>;
type Histograms = Family<[Label; 1], Histogram, fn() -> Histogram>;

/// The counters and durations of one operator. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    requests: Counters<2>,
    looks: Counters<2>,
    errors: Counters<1>,
    look_seconds: Histograms,
    adds: Counters<2>,
    retries: Counters<2>,
    work_seconds: Family<[Label; 2], Histogram, fn() -> Histogram>,
    working: Mutex<BTreeMap<u64, Instant>>,
    next: AtomicU64,
    plans: Counters<2>,
    plan_seconds: Histograms,
    executions: Counters<2>,
    execution_seconds: Histograms,
    drifts: Counters<1>,
}

impl Default for Metrics {
    fn default() -> Self {
        let look: fn() -> Histogram = || Histogram::new(LOOK_SECONDS);
        let execution: fn() -> Histogram = || Histogram::new(EXECUTION_SECONDS);
        Self(Arc::new(Counted {
            requests: Family::default(),
            looks: Family::default(),
            errors: Family::default(),
            look_seconds: Family::new_with_constructor(look),
            adds: Family::default(),
            retries: Family::default(),
            work_seconds: Family::new_with_constructor(look),
            working: Mutex::default(),
            next: AtomicU64::default(),
            plans: Family::default(),
            plan_seconds: Family::new_with_constructor(look),
            executions: Family::default(),
            execution_seconds: Family::new_with_constructor(execution),
            drifts: Family::default(),
        }))
    }
}

fn controller() -> Label {
    ("controller", CONTROLLER.to_owned())
}

fn queue() -> [Label; 2] {
    [controller(), ("name", CONTROLLER.to_owned())]
}

fn profile(name: &str) -> Label {
    ("profile", name.to_owned())
}

impl Metrics {
    /// Registers them in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let Counted { requests, looks, errors, look_seconds, adds, retries, work_seconds, .. } = self.0.as_ref();
        let Counted { plans, plan_seconds, executions, execution_seconds, drifts, .. } = self.0.as_ref();
        define::API_REQUESTS.register(registry, requests.clone());
        define::LOOKS.register(registry, looks.clone());
        define::LOOK_ERRORS.register(registry, errors.clone());
        define::LOOK_SECONDS.register(registry, look_seconds.clone());
        define::QUEUE_ADDS.register(registry, adds.clone());
        define::QUEUE_RETRIES.register(registry, retries.clone());
        define::QUEUE_WORK_SECONDS.register(registry, work_seconds.clone());
        define::PLANS.register(registry, plans.clone());
        define::PLAN_SECONDS.register(registry, plan_seconds.clone());
        define::EXECUTIONS.register(registry, executions.clone());
        define::EXECUTION_SECONDS.register(registry, execution_seconds.clone());
        define::DRIFTS.register(registry, drifts.clone());
    }

    /// `client`, with its requests counted.
    #[must_use]
    pub fn count(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let metrics = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, metrics) = (client.clone(), metrics.clone());
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                let verb = if is_watch { "WATCH".to_owned() } else { request.method().to_string() };
                let answer = client.send(request).await;
                let code =
                    answer.as_ref().map_or_else(|_| "none".to_owned(), |answer| answer.status().as_u16().to_string());
                metrics.0.requests.get_or_create(&[("verb", verb), ("code", code)]).inc();
                Ok::<Response<Body>, BoxError>(answer?)
            }
        });
        Client::new(service, namespace)
    }

    /// Begins the measurement of a reconcile.
    pub(crate) fn begin_reconcile(&self) -> ReconcileTimer {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        self.working().insert(id, began);
        self.0.adds.get_or_create(&queue()).inc();
        ReconcileTimer { metrics: self.clone(), id, began }
    }

    /// How long the running reconciles have taken so far.
    #[must_use]
    pub fn under_way(&self) -> Vec<Duration> {
        self.working().values().map(Instant::elapsed).collect()
    }

    /// Counts a plan of `name` that was made in `took` and led to `outcome`.
    pub(crate) fn planned(&self, name: &str, outcome: &str, took: Duration) {
        self.0.plans.get_or_create(&[profile(name), ("outcome", outcome.to_owned())]).inc();
        self.0.plan_seconds.get_or_create(&[profile(name)]).observe(took.as_secs_f64());
    }

    /// Counts an execution of `name` that ended with `outcome`, `took` seconds after its approval.
    pub(crate) fn executed(&self, name: &str, outcome: &str, took: f64) {
        self.0.executions.get_or_create(&[profile(name), ("outcome", outcome.to_owned())]).inc();
        self.0.execution_seconds.get_or_create(&[profile(name)]).observe(took);
    }

    /// Counts that somebody changed what `name` had applied.
    pub(crate) fn drifted(&self, name: &str) {
        self.0.drifts.get_or_create(&[profile(name)]).inc();
    }

    fn working(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.0.working.lock()
    }
}

/// A running reconcile. It is counted when [`ReconcileTimer::end`] is called.
pub(crate) struct ReconcileTimer {
    metrics: Metrics,
    id: u64,
    began: Instant,
}

impl ReconcileTimer {
    /// Ends the measurement; `failed` means that the reconcile will be repeated.
    pub(crate) fn end(self, failed: bool) {
        let inner = &self.metrics.0;
        let result = if failed { "error" } else { "success" };
        inner.looks.get_or_create(&[controller(), ("result", result.to_owned())]).inc();
        if failed {
            inner.errors.get_or_create(&[controller()]).inc();
            inner.retries.get_or_create(&queue()).inc();
        }
        let took = self.began.elapsed().as_secs_f64();
        inner.look_seconds.get_or_create(&[controller()]).observe(took);
        inner.work_seconds.get_or_create(&queue()).observe(took);
    }
}

impl Drop for ReconcileTimer {
    fn drop(&mut self) {
        self.metrics.working().remove(&self.id);
    }
}
