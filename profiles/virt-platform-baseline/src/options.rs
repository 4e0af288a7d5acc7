//! The options of the profile, `spec.options.platformBaseline`.

mod features;
mod metrics_exporter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use features::{Choice, Features};
pub(crate) use metrics_exporter::{EXPORTER_SETTINGS, MetricsExporter};

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

impl PlatformBaseline {
    /// Why the options are refused, if they are. This covers rules that a schema can't express, and
    /// those of the schema too: it is not consulted for files, and an older one may be installed.
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
