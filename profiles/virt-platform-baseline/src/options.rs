//! The options of the profile, `spec.options.platformBaseline`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::feature::Feature;
use crate::features::metrics_exporter::SETTINGS;

/// Options of the profile virt-platform-baseline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlatformBaseline {
    /// Features that are switched on or off. Of one that is left out, its maturity, the cluster, and the annotations of HyperConverged
    /// decide.
    #[serde(default)]
    pub(crate) features: Features,
    /// USB devices that virtual machines may have, for the feature usbPassthrough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resourceName"]))]
    pub(crate) usb_devices: Vec<UsbDevice>,
    /// PCI devices that are kept from the drivers of the machines, as vendor:device in hexadecimal, for the feature vfio. Whatever the
    /// machines themselves use of them stops working there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^[0-9a-f]{4}:[0-9a-f]{4}$")), extend("x-kubernetes-list-type" = "set", "example" = ["10de:1eb8"]))]
    pub(crate) vfio_devices: Vec<String>,
    /// The storage class that machines share, for the feature storageBasedRemediation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub(crate) shared_storage_class: Option<String>,
    /// For the feature logging.
    #[serde(default)]
    pub(crate) logging: Logging,
    /// For the feature metricsExporter.
    #[serde(default)]
    pub(crate) metrics_exporter: MetricsExporter,
}

/// Where logs are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Logging {
    /// The storage class of its volumes; logging is not planned without.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub(crate) storage_class_name: Option<String>,
    /// The size of the store, as the operator of Loki names it.
    #[schemars(length(min = 1, max = 63))]
    pub(crate) size: String,
    /// The kind of the object storage that the Secret logging-loki-storage gives access to: s3, azure, gcs, swift.
    #[schemars(length(min = 1, max = 63))]
    pub(crate) storage_type: String,
}

impl Default for Logging {
    fn default() -> Self {
        Self { storage_class_name: None, size: "1x.extra-small".to_owned(), storage_type: "s3".to_owned() }
    }
}

/// The exporter of metrics of virtual machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MetricsExporter {
    /// Its image; it is not planned without.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 500))]
    pub(crate) image: Option<String>,
    /// Settings of the exporter by name, as ENABLE_EBPF: \"false\".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
}

impl MetricsExporter {
    /// The alerts take what was not read for some minutes for a fault: it must be read that often.
    fn problem(&self) -> Option<String> {
        let known: Vec<_> = SETTINGS.iter().map(|(name, _)| *name).collect();
        if let Some(name) = self.env.keys().find(|name| !known.contains(&name.as_str())) {
            return Some(format!(
                "metricsExporter.env has {name}, which is no setting of it: there are {}",
                known.join(", ")
            ));
        }
        for (name, limit) in [
            ("QMP_POLL_INTERVAL", 150),
            ("QGA_POLL_INTERVAL", 150),
            ("KVM_POLL_INTERVAL", 90),
            ("CGROUP_POLL_INTERVAL", 90),
        ] {
            let Some(value) = self.env.get(name) else { continue };
            let seconds = match (value.strip_suffix('s'), value.strip_suffix('m')) {
                (Some(seconds), _) => seconds.parse().ok(),
                (None, Some(minutes)) => minutes.parse::<u32>().ok().and_then(|minutes| minutes.checked_mul(60)),
                (None, None) => None,
            };
            if !seconds.is_some_and(|seconds: u32| (1..=limit).contains(&seconds)) {
                return Some(format!(
                    "metricsExporter.env has {name} {value:?}: it must be seconds or minutes, as 30s, and at most {limit}s, or alerts fire"
                ));
            }
        }
        None
    }
}

impl PlatformBaseline {
    /// What the schema can't say: it is not consulted for files, and not where an older one is installed.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_number = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_id = |id: &str| {
            let both = id.split_once(':').is_some_and(|(vendor, device)| is_number(vendor) && is_number(device));
            both && !id.contains(|letter: char| letter.is_ascii_uppercase())
        };
        if let Some(id) = self.vfio_devices.iter().find(|id| !is_id(id)) {
            return Some(format!(
                "vfioDevices has {id:?}, which is no vendor:device in lower-case hexadecimal, as 10de:1eb8"
            ));
        }
        if let Some(problem) = self.metrics_exporter.problem() {
            return Some(problem);
        }
        let numbers = self.usb_devices.iter().flat_map(|device| [&device.vendor, &device.product]);
        let wrong = numbers.into_iter().find(|number| !is_number(number));
        wrong.map(|number| {
            format!("usbDevices has {number:?}, which is no vendor or product of four hexadecimal digits, as 46f4")
        })
    }
}

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
    hyper_converged: Option<Choice>,
    /// Swap for virtual machines, on the partition labelled OCPSWAP or the file /var/tmp/ocpswap.file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    swap: Option<Choice>,
    /// Kubelets that carry more pods, and reserve memory for the system by the size of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    kubelet_performance: Option<Choice>,
    /// CPUs of their own for virtual machines that ask for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    cpu_manager: Option<Choice>,
    /// CPUs and devices from one NUMA node, where it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    numa: Option<Choice>,
    /// PCI devices for virtual machines: the kernel maps their memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    pci_passthrough: Option<Choice>,
    /// The driver through which virtual machines get PCI devices, bound to those of vfioDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    vfio: Option<Choice>,
    /// USB devices for virtual machines: those of usbDevices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    usb_passthrough: Option<Choice>,
    /// Quotas that count what virtual machines see, and not what their pods need besides (application-aware quota).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    application_aware_quota: Option<Choice>,
    /// Machines that fail are fenced, and their virtual machines start elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    node_health_check: Option<Choice>,
    /// The migration toolkit for virtualization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    migration_toolkit: Option<Choice>,
    /// MetalLB, for services of type LoadBalancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    metal_lb: Option<Choice>,
    /// The kernel keeps one copy of all pages of zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    ksm_zero_pages: Option<Choice>,
    /// Huge pages for programs that ask for them, collected faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    transparent_huge_pages: Option<Choice>,
    /// A machine that shuts down asks its virtual machines to shut down first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    drain_shutdown_inhibitor: Option<Choice>,
    /// Rules by which operations under way are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    in_flight_operations: Option<Choice>,
    /// A dashboard and alerts for the platform beneath virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    observability: Option<Choice>,
    /// Alerts that belong together are shown as incidents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    incident_detection: Option<Choice>,
    /// The console shows what an alert has to do with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    troubleshooting_panel: Option<Choice>,
    /// Machines that have lost the storage they share are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    storage_based_remediation: Option<Choice>,
    /// Logs are kept for a week and shown in the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    logging: Option<Choice>,
    /// What people do to the API is kept among the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    audit_logging: Option<Choice>,
    /// An exporter on each worker tells of the storage latencies of virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    metrics_exporter: Option<Choice>,
    /// The monitoring of the cluster tells what the kernel merges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Choice")]
    ksm_metrics: Option<Choice>,
}

impl Features {
    /// What is said of `feature`.
    pub(crate) fn choice(&self, feature: &Feature) -> Option<Choice> {
        match feature.name {
            "hyperConverged" => self.hyper_converged,
            "swap" => self.swap,
            "kubeletPerformance" => self.kubelet_performance,
            "cpuManager" => self.cpu_manager,
            "numa" => self.numa,
            "pciPassthrough" => self.pci_passthrough,
            "vfio" => self.vfio,
            "usbPassthrough" => self.usb_passthrough,
            "applicationAwareQuota" => self.application_aware_quota,
            "nodeHealthCheck" => self.node_health_check,
            "migrationToolkit" => self.migration_toolkit,
            "metalLb" => self.metal_lb,
            "ksmZeroPages" => self.ksm_zero_pages,
            "transparentHugePages" => self.transparent_huge_pages,
            "drainShutdownInhibitor" => self.drain_shutdown_inhibitor,
            "inFlightOperations" => self.in_flight_operations,
            "observability" => self.observability,
            "incidentDetection" => self.incident_detection,
            "troubleshootingPanel" => self.troubleshooting_panel,
            "storageBasedRemediation" => self.storage_based_remediation,
            "logging" => self.logging,
            "auditLogging" => self.audit_logging,
            "metricsExporter" => self.metrics_exporter,
            "ksmMetrics" => self.ksm_metrics,
            _ => None,
        }
    }
}

/// A USB device that virtual machines may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("example" = {"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}))]
pub(crate) struct UsbDevice {
    /// The name by which virtual machines ask for it, as kubevirt.io/storage.
    #[schemars(length(min = 1, max = 253))]
    pub(crate) resource_name: String,
    /// The vendor, four hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{4}$"))]
    pub(crate) vendor: String,
    /// The product, four hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{4}$"))]
    pub(crate) product: String,
}
