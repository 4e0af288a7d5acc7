//! Every metric with its name, kind, labels and meaning: what is registered, and what docs/METRICS.md is made of.

use std::fmt::Write;

use prometheus_client::registry::{Metric, Registry};

/// One metric.
#[derive(Debug)]
pub struct Definition {
    /// Its name as it is queried.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The labels that it has.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

impl Definition {
    /// The name without what the encoder adds to it.
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
        /// All of them.
        pub const ALL: &[Definition] = &[$($constant),*];
    };
}

metrics! {
    BUILD = "gauge" "kubevirt_advisor_build_info" ["version"], "Always 1, with the version of the program.";
    LEADER = "gauge" "kubevirt_advisor_leader" [], "Whether this replica leads (1): it plans and writes, the others keep their watches open (0).";
    READY = "gauge" "kubevirt_advisor_ready" [], "Whether the configurations are listed and watched (1), as /readyz says.";
    LONGEST_STALL = "gauge" "kubevirt_advisor_longest_stall_seconds" [], "The longest time since the start for which something held the working thread, short by half a second at most. After 60 s /healthz fails.";
    PHASE = "gauge" "kubevirt_advisor_config_phase" ["name", "phase"], "Always 1, with the phase of each configuration.";
    PHASE_SINCE = "gauge" "kubevirt_advisor_config_phase_since_timestamp_seconds" ["name"], "Since when the configuration has been in its phase, in seconds of Unix time.";
    ITEMS = "gauge" "kubevirt_advisor_config_items" ["name", "state"], "Items of the plan by their state: Pending, InProgress, Completed, Failed.";
    BLOCKED = "gauge" "kubevirt_advisor_config_blocked_items" ["name"], "Items of the plan that can not be written as things are.";
    READING_FAILED = "gauge" "kubevirt_advisor_config_reading_failed" ["name"], "Whether the configuration's targets could not be read (1): its phase may be out of date.";
    PLANS = "counter" "kubevirt_advisor_plans_total" ["profile", "outcome"], "Plans made, by the phase that they led to.";
    PLAN_SECONDS = "histogram" "kubevirt_advisor_plan_duration_seconds" ["profile"], "How long it took to make a plan and show it.";
    EXECUTIONS = "counter" "kubevirt_advisor_executions_total" ["profile", "outcome"], "Executions that ended, by the phase in which they did.";
    EXECUTION_SECONDS = "histogram" "kubevirt_advisor_execution_duration_seconds" ["profile"], "How long executions took from their approval to their end, with the reboots of machines.";
    DRIFTS = "counter" "kubevirt_advisor_drifts_total" ["profile"], "How often somebody else changed what was applied.";
    WATCH_OPEN = "gauge" "kubevirt_advisor_watch_open" ["group", "kind"], "Whether changes of the kind are seen (1) or its watch is being opened again (0).";
    WATCH_OPENED = "counter" "kubevirt_advisor_watch_opened_total" ["group", "kind"], "How often the watch of the kind was opened; once in several minutes is normal.";
    WATCH_FAILURES = "counter" "kubevirt_advisor_watch_failures_total" ["group", "kind"], "Requests of the watch of the kind that failed, and watches that ended before they told anything.";
    API_REQUESTS = "counter" "kubevirt_advisor_api_requests_total" ["verb", "code"], "Requests to the API server by HTTP verb (or WATCH) and status code; code none was not answered.";
    LOOKS = "counter" "controller_runtime_reconcile_total" ["controller", "result"], "Reconciles by their result: success or error.";
    LOOK_ERRORS = "counter" "controller_runtime_reconcile_errors_total" ["controller"], "Reconciles that failed and are made again.";
    LOOK_SECONDS = "histogram" "controller_runtime_reconcile_time_seconds" ["controller"], "How long reconciles took.";
    ACTIVE_WORKERS = "gauge" "controller_runtime_active_workers" ["controller"], "Reconciles that are under way.";
    MAX_WORKERS = "gauge" "controller_runtime_max_concurrent_reconciles" ["controller"], "Reconciles that may be under way at the same time.";
    QUEUE_ADDS = "counter" "workqueue_adds_total" ["controller", "name"], "Configurations that were looked at.";
    QUEUE_RETRIES = "counter" "workqueue_retries_total" ["controller", "name"], "Configurations that are looked at again after an error.";
    QUEUE_WORK_SECONDS = "histogram" "workqueue_work_duration_seconds" ["controller", "name"], "How long looking at a configuration took.";
    QUEUE_UNFINISHED = "gauge" "workqueue_unfinished_work_seconds" ["controller", "name"], "Seconds of all looks that are under way. Growing for minutes, it tells of one that hangs.";
    QUEUE_LONGEST = "gauge" "workqueue_longest_running_processor_seconds" ["controller", "name"], "Seconds of the longest look that is under way.";
}

/// The page docs/METRICS.md.
#[must_use]
pub fn page() -> String {
    let mut page = "# Metrics\n\nGenerated by `make generate` from src/telemetry/definitions.rs. Do not edit.\n\n\
        Served at `/metrics` by every replica where `--metrics-bind-address` is set, see [OPERATIONS.md](OPERATIONS.md). \
        What is true of configurations is told by every replica from what it watches; what was done, by the one that did it. \
        The families `controller_runtime_*` and `workqueue_*` have the names that dashboards of Go operators read; their \
        other families have no counterpart here.\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n"
        .to_owned();
    for Definition { name, kind, labels, help } in ALL {
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        // Writing to a String can't fail.
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} |");
    }
    page
}
