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
    /// Features to enable or disable. A feature that is not listed is on or off depending on its
    /// maturity, the other options, the cluster and the annotations of HyperConverged.
    #[serde(default)]
    pub(crate) features: Features,
    /// USB devices that virtual machines may use. Listing one enables the feature usbPassthrough,
    /// unless that is Disabled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["resourceName"]))]
    pub(crate) usb_devices: Vec<UsbDevice>,
    /// PCI devices to reserve for virtual machines, as vendor:device in lower-case hexadecimal. The
    /// machines themselves can no longer use these devices. Listing one enables the feature vfio,
    /// unless that is Disabled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(regex(pattern = "^[0-9a-f]{4}:[0-9a-f]{4}$")), extend("x-kubernetes-list-type" = "set", "example" = ["10de:1eb8"]))]
    pub(crate) vfio_devices: Vec<String>,
    /// The storage class of the storage that all machines share. Setting it enables the feature
    /// storageBasedRemediation, unless that is Disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub(crate) shared_storage_class: Option<String>,
    /// Options of the feature logging.
    #[serde(default)]
    pub(crate) logging: Logging,
    /// Options of the feature metricsExporter.
    #[serde(default)]
    pub(crate) metrics_exporter: MetricsExporter,
}

/// The store in which logs are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Logging {
    /// The storage class for the volumes of the log store. The feature logging requires it; setting
    /// it enables the feature, unless that is Disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub(crate) storage_class_name: Option<String>,
    /// The size of the log store, one of the sizes of the Loki Operator, for example 1x.small.
    #[schemars(length(min = 1, max = 63))]
    pub(crate) size: String,
    /// The type of the object storage to which the Secret logging-loki-storage gives access, for
    /// example s3, azure, gcs or swift.
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
                "vfioDevices has {id:?}, which is not vendor:device in lower-case hexadecimal, for example 10de:1eb8"
            ));
        }
        if let Some(problem) = self.metrics_exporter.problem() {
            return Some(problem);
        }
        let numbers = self.usb_devices.iter().flat_map(|device| [&device.vendor, &device.product]);
        let wrong = numbers.into_iter().find(|number| !is_number(number));
        wrong.map(|number| {
            format!("usbDevices has {number:?}: a vendor or product must be four hexadecimal digits, for example 46f4")
        })
    }
}

/// A USB device that virtual machines may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("example" = {"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}))]
pub(crate) struct UsbDevice {
    /// The name by which virtual machines request the device, for example kubevirt.io/storage.
    #[schemars(length(min = 1, max = 253))]
    pub(crate) resource_name: String,
    /// The vendor ID: four hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{4}$"))]
    pub(crate) vendor: String,
    /// The product ID: four hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]{4}$"))]
    pub(crate) product: String,
}
