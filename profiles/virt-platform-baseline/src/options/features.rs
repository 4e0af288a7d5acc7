//! The options by which features are switched on and off: one field for each feature.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a feature is used. Enabled plans it, even if the machines do not seem to support it.
/// Disabled does not plan it; a plan, which is reviewed, then removes what the feature had applied.
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
    /// Settings of HyperConverged that prevent the loss of virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) hyper_converged: Option<Choice>,
    /// Swap for virtual machines, on the partition labeled OCPSWAP or in the file
    /// /var/tmp/ocpswap.file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) swap: Option<Choice>,
    /// Kubelets that run more pods and reserve memory for the system according to the size of the
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) kubelet_performance: Option<Choice>,
    /// Dedicated CPUs for virtual machines that request them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) cpu_manager: Option<Choice>,
    /// CPUs and devices of a virtual machine from one NUMA node where possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) numa: Option<Choice>,
    /// PCI devices for virtual machines: enables the IOMMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) pci_passthrough: Option<Choice>,
    /// The VFIO driver, which gives virtual machines access to PCI devices and is bound to those in
    /// vfioDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) vfio: Option<Choice>,
    /// USB devices for virtual machines: those in usbDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) usb_passthrough: Option<Choice>,
    /// Quotas that count the resources that virtual machines see, without the overhead of their
    /// pods (application-aware quota).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) application_aware_quota: Option<Choice>,
    /// Fencing of failed machines, so that their virtual machines restart elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) node_health_check: Option<Choice>,
    /// The Migration Toolkit for Virtualization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) migration_toolkit: Option<Choice>,
    /// MetalLB for Services of type LoadBalancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) metal_lb: Option<Choice>,
    /// Merging of zero-filled memory pages by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) ksm_zero_pages: Option<Choice>,
    /// Transparent huge pages for processes that request them, and faster collection of huge pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) transparent_huge_pages: Option<Choice>,
    /// Shutdown of a machine's virtual machines before the machine itself shuts down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) drain_shutdown_inhibitor: Option<Choice>,
    /// Rules that detect operations in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) in_flight_operations: Option<Choice>,
    /// A dashboard and alerts for the platform that virtual machines run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) observability: Option<Choice>,
    /// Related alerts grouped into incidents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) incident_detection: Option<Choice>,
    /// A console panel with the objects, logs and events related to an alert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) troubleshooting_panel: Option<Choice>,
    /// Detection of machines that have lost access to shared storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) storage_based_remediation: Option<Choice>,
    /// Logs, kept for a week and shown in the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) logging: Option<Choice>,
    /// API audit logs of user activity, kept with the other logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) audit_logging: Option<Choice>,
    /// An exporter on each worker machine that reports storage latencies of virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) metrics_exporter: Option<Choice>,
    /// Metrics of kernel samepage merging (KSM) in the monitoring of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pub(crate) ksm_metrics: Option<Choice>,
}
