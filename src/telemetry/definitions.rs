//! Every metric with its name, kind, labels and meaning: used for registration and for
//! docs/METRICS.md.

use std::fmt::Write;

use prometheus_client::registry::{Metric, Registry};

/// One metric.
#[derive(Debug)]
pub struct Definition {
    /// Its name in queries.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub help: &'static str,
}

impl Definition {
    /// The name without the suffix that the encoder adds.
    #[must_use]
    pub fn base(&self) -> &'static str {
        self.name.strip_suffix("_total").filter(|_| self.kind == "counter").unwrap_or(self.name)
    }

    /// The help without the full stop that the encoder adds.
    #[must_use]
    pub fn short_help(&self) -> &'static str {
        self.help.strip_suffix('.').unwrap_or(self.help)
    }

    pub(super) fn register(&self, registry: &mut Registry, metric: impl Metric) {
        registry.register(self.base(), self.short_help(), metric);
    }
}

macro_rules! metrics {
    ($($constant:ident = $kind:literal $name:literal $labels:expr, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Definition = Definition { name: $name, kind: $kind, labels: &$labels, help: $help };
        )*
        /// All metrics.
        pub const ALL: &[Definition] = &[$($constant),*];
    };
}

metrics! {
    BUILD = "gauge" "kubevirt_advisor_build_info" ["version"], "Always 1, with the version of the operator.";
    LEADER = "gauge" "kubevirt_advisor_leader" [], "Whether this replica is the leader (1), which plans and writes, or a standby, which only keeps its watches open (0).";
    READY = "gauge" "kubevirt_advisor_ready" [], "Whether this replica has listed the configurations and watches them (1), as /readyz reports.";
    LONGEST_STALL = "gauge" "kubevirt_advisor_longest_stall_seconds" [], "The longest time since the start for which the worker thread was blocked, at most half a second too short. After 60 s /healthz fails.";
    PHASE = "gauge" "kubevirt_advisor_config_phase" ["name", "phase"], "Always 1, with the phase of each configuration.";
    PHASE_SINCE = "gauge" "kubevirt_advisor_config_phase_since_timestamp_seconds" ["name"], "When the configuration entered its phase, in seconds of Unix time.";
    ITEMS = "gauge" "kubevirt_advisor_config_items" ["name", "state"], "Items of the plan by state: Pending, InProgress, Completed, Failed.";
    BLOCKED = "gauge" "kubevirt_advisor_config_blocked_items" ["name"], "Items of the plan that are blocked; their messages say what to do.";
    READING_FAILED = "gauge" "kubevirt_advisor_config_reading_failed" ["name"], "Whether objects that the configuration depends on could not be read (1); its phase may then be out of date.";
    PLANS = "counter" "kubevirt_advisor_plans_total" ["profile", "outcome"], "Plans made, by the phase to which they led.";
    PLAN_SECONDS = "histogram" "kubevirt_advisor_plan_duration_seconds" ["profile"], "How long it took to make and publish a plan.";
    EXECUTIONS = "counter" "kubevirt_advisor_executions_total" ["profile", "outcome"], "Executions that ended, by the phase in which they ended.";
    EXECUTION_SECONDS = "histogram" "kubevirt_advisor_execution_duration_seconds" ["profile"], "How long executions took from approval to end, including reboots of machines.";
    DRIFTS = "counter" "kubevirt_advisor_drifts_total" ["profile"], "How often somebody else changed applied fields.";
    WATCH_OPEN = "gauge" "kubevirt_advisor_watch_open" ["group", "kind"], "Whether the watch of the kind is open (1) or being reopened (0).";
    WATCH_OPENED = "counter" "kubevirt_advisor_watch_opened_total" ["group", "kind"], "How often the watch of the kind was opened; once every few minutes is normal.";
    WATCH_FAILURES = "counter" "kubevirt_advisor_watch_failures_total" ["group", "kind"], "Failed requests of the watch of the kind, and watches that ended before they delivered an event.";
    API_REQUESTS = "counter" "kubevirt_advisor_api_requests_total" ["verb", "code"], "Requests to the API server by HTTP verb (or WATCH) and status code; the code none means that there was no response.";
    LOOKS = "counter" "controller_runtime_reconcile_total" ["controller", "result"], "Reconciles by result: success or error.";
    LOOK_ERRORS = "counter" "controller_runtime_reconcile_errors_total" ["controller"], "Reconciles that failed and are retried.";
    LOOK_SECONDS = "histogram" "controller_runtime_reconcile_time_seconds" ["controller"], "How long reconciles took.";
    ACTIVE_WORKERS = "gauge" "controller_runtime_active_workers" ["controller"], "Reconciles in progress.";
    MAX_WORKERS = "gauge" "controller_runtime_max_concurrent_reconciles" ["controller"], "The maximum number of concurrent reconciles.";
    QUEUE_ADDS = "counter" "workqueue_adds_total" ["controller", "name"], "Reconciles of configurations.";
    QUEUE_RETRIES = "counter" "workqueue_retries_total" ["controller", "name"], "Retries of reconciles after an error.";
    QUEUE_WORK_SECONDS = "histogram" "workqueue_work_duration_seconds" ["controller", "name"], "How long a reconcile of a configuration took.";
    QUEUE_UNFINISHED = "gauge" "workqueue_unfinished_work_seconds" ["controller", "name"], "The total seconds of all reconciles in progress. If it grows for minutes, a reconcile hangs.";
    QUEUE_LONGEST = "gauge" "workqueue_longest_running_processor_seconds" ["controller", "name"], "The seconds of the longest reconcile in progress.";
}

/// The page docs/METRICS.md.
#[must_use]
pub fn page() -> String {
    let mut page = "# Metrics\n\nGenerated by `make generate` from src/telemetry/definitions.rs. Do not edit.\n\n\
        Served at `/metrics` by every replica where `--metrics-bind-address` is set, see [OPERATIONS.md](OPERATIONS.md). \
        Every replica exports gauges about configurations, from what it watches; counters and durations of actions come from the replica that acted. \
        The families `controller_runtime_*` and `workqueue_*` have the names that dashboards for Go operators expect; the \
        other metrics of these families have no counterpart here.\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for Definition { name, kind, labels, help } in ALL {
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        // Writing to a String can't fail.
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
    }
    page
}
