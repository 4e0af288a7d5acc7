//! The features, a folder each.

mod application_aware_quota;
mod cpu_manager;
mod drain_shutdown_inhibitor;
mod hyper_converged;
mod in_flight_operations;
mod ksm_zero_pages;
mod kubelet_performance;
mod metal_lb;
mod migration_toolkit;
mod node_health_check;
mod numa;
mod pci_passthrough;
mod swap;
mod transparent_huge_pages;
mod usb_passthrough;
mod vfio;

use crate::feature::Feature;

/// All of them, in the order in which they are told.
pub(crate) static FEATURES: [&Feature; 16] = [
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
    &migration_toolkit::FEATURE,
    &metal_lb::FEATURE,
    &ksm_zero_pages::FEATURE,
    &transparent_huge_pages::FEATURE,
    &drain_shutdown_inhibitor::FEATURE,
    &in_flight_operations::FEATURE,
];
