//! The flags of `kubevirt-operator run`, each with the environment variable of the documentation.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command};
use operator_kit::flags::{Difference, ElectionFlags, EndpointFlags, LogFlags, differ, duration};

use crate::controller::DiskDeletion;

const DIFFERENCES: &[Difference] = &[
    Difference { flag: "leader-elect", variable: Some("LEADER_ELECTION"), default: "true" },
    Difference { flag: "leader-election-id", variable: None, default: crate::LEASE_NAME },
    Difference { flag: "leader-election-namespace", variable: Some("NAMESPACE"), default: "" },
    Difference { flag: "metrics-bind-address", variable: Some("METRICS_BIND_ADDRESS"), default: ":8080" },
    Difference { flag: "metrics-secure", variable: None, default: "false" },
    Difference { flag: "health-probe-bind-address", variable: Some("HEALTH_PROBE_BIND_ADDRESS"), default: ":8081" },
];

/// The command line of `run` with this program's defaults.
pub(super) fn with_defaults(run: Command) -> Command {
    differ(run, DIFFERENCES)
}

/// Switches are written as in Go: `--flag`, `--flag=true` or `--flag=false`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(super) struct RunFlags {
    /// Kubeconfig of the cluster. If unset: KUBECONFIG, then ~/.kube/config, then the Pod's service
    /// account.
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// How many Machines are worked on at once.
    #[arg(long, value_name = "NUMBER", env = "MAX_CONCURRENT_RECONCILES", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(super) max_concurrent_reconciles: u16,

    /// The longest pause between two tries of a Machine that something stands in the way of.
    /// Machines at rest are not looked at: everything is watched.
    #[arg(long, value_name = "DURATION", env = "RECONCILE_INTERVAL", default_value = "30s", value_parser = duration)]
    pub(super) reconcile_interval: Duration,

    /// What becomes of claims when a Machine is deleted: Delete those that are provably its own and
    /// not marked to be kept, or Never delete any.
    #[arg(long, value_name = "POLICY", env = "DISK_DELETION", default_value = "Delete")]
    pub(super) disk_deletion: DiskDeletion,

    #[command(flatten)]
    pub(super) logs: LogFlags,

    #[command(flatten)]
    pub(super) election: ElectionFlags,

    #[command(flatten)]
    pub(super) endpoints: EndpointFlags,
}
