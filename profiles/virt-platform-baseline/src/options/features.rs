//! The options by which features are switched on and off: one field for each feature.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a feature is wanted. Enabled plans it, also where the machines do not look as if they could use it; Disabled does not, and has
/// what it has brought taken back by a reviewed plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Choice {
    // Without comments that are documents: they would make a schema that no CRD may have.
    Enabled,
    Disabled,
}

/// The features.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Features {
    /// Settings of HyperConverged that keep virtual machines from being lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) hyper_converged: Option<Choice>,
    /// Swap for virtual machines, on the partition labelled OCPSWAP or the file /var/tmp/ocpswap.file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) swap: Option<Choice>,
    /// Kubelets that carry more pods, and reserve memory for the system by the size of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) kubelet_performance: Option<Choice>,
    /// CPUs of their own for virtual machines that ask for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) cpu_manager: Option<Choice>,
    /// CPUs and devices from one NUMA node, where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) numa: Option<Choice>,
    /// PCI devices for virtual machines: the kernel maps their memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) pci_passthrough: Option<Choice>,
    /// The driver through which virtual machines get PCI devices, bound to those of vfioDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) vfio: Option<Choice>,
    /// USB devices for virtual machines: those of usbDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) usb_passthrough: Option<Choice>,
    /// Quotas that count what virtual machines see, and not what their pods need besides (application-aware quota).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) application_aware_quota: Option<Choice>,
    /// Machines that fail are fenced, and their virtual machines start elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) node_health_check: Option<Choice>,
    /// The migration toolkit for virtualization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) migration_toolkit: Option<Choice>,
    /// MetalLB, for services of type LoadBalancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) metal_lb: Option<Choice>,
    /// The kernel keeps one copy of all pages of zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) ksm_zero_pages: Option<Choice>,
    /// Huge pages for programs that ask for them, collected faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) transparent_huge_pages: Option<Choice>,
    /// A machine that shuts down asks its virtual machines to shut down first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) drain_shutdown_inhibitor: Option<Choice>,
    /// Rules by which operations under way are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) in_flight_operations: Option<Choice>,
    /// A dashboard and alerts for the platform beneath virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) observability: Option<Choice>,
    /// Alerts that belong together are shown as incidents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) incident_detection: Option<Choice>,
    /// The console shows what an alert has to do with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) troubleshooting_panel: Option<Choice>,
    /// Machines that have lost the storage they share are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) storage_based_remediation: Option<Choice>,
    /// Logs are kept for a week and shown in the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) logging: Option<Choice>,
    /// What people do to the API is kept among the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) audit_logging: Option<Choice>,
    /// An exporter on each worker tells of the storage latencies of virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) metrics_exporter: Option<Choice>,
    /// The monitoring of the cluster tells what the kernel merges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) ksm_metrics: Option<Choice>,
}
