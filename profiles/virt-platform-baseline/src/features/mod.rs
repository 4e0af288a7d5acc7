//! The table of features. Each feature is a folder of code and data; a part of another feature is a
//! folder within that one.

mod application_aware_quota;
mod cpu_manager;
mod drain_shutdown_inhibitor;
mod hyper_converged;
mod in_flight_operations;
pub(crate) mod ksm_metrics;
mod ksm_zero_pages;
mod kubelet_performance;
mod logging;
mod metal_lb;
mod metrics_exporter;
mod migration_toolkit;
mod node_health_check;
mod numa;
mod observability;
mod pci_passthrough;
mod storage_based_remediation;
mod swap;
mod transparent_huge_pages;
mod troubleshooting_panel;
mod usb_passthrough;
mod vfio;

use crate::feature::Feature;

/// All features, in the order in which plans and documents list them.
pub(crate) static FEATURES: &[&Feature] = &[
    &hyper_converged::FEATURE,
    &swap::FEATURE,
    &kubelet_performance::FEATURE,
    &cpu_manager::FEATURE,
    &numa::FEATURE,
    &pci_passthrough::FEATURE,
    &vfio::FEATURE,
    &usb_passthrough::FEATURE,
    &application_aware_quota::FEATURE,
    &node_health_check::FEATURE,
    &storage_based_remediation::FEATURE,
    &migration_toolkit::FEATURE,
    &metal_lb::FEATURE,
    &observability::FEATURE,
    &observability::INCIDENT_DETECTION,
    &troubleshooting_panel::FEATURE,
    &ksm_zero_pages::FEATURE,
    &ksm_metrics::FEATURE,
    &transparent_huge_pages::FEATURE,
    &drain_shutdown_inhibitor::FEATURE,
    &logging::FEATURE,
    &logging::AUDIT_LOGGING,
    &metrics_exporter::FEATURE,
    &in_flight_operations::FEATURE,
];
