//! The options of the feature metricsExporter, and the settings that its exporter knows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of the exporter, with their defaults.
pub(crate) const EXPORTER_SETTINGS: [(&str, &str); 14] = [
    ("ENABLE_QMP", "true"),
    ("QMP_POLL_INTERVAL", "1m"),
    ("ENABLE_QGA", "true"),
    ("QGA_POLL_INTERVAL", "1m"),
    ("ENABLE_EBPF", "true"),
    ("ENABLE_EBPF_BLOCK", "true"),
    ("ENABLE_EBPF_NFS", "true"),
    ("ENABLE_EBPF_NFS_KPROBE", "false"),
    ("EBPF_SCAN_INTERVAL", "30"),
    ("ENABLE_KVM", "true"),
    ("KVM_POLL_INTERVAL", "30s"),
    ("ENABLE_CGROUP", "true"),
    ("CGROUP_POLL_INTERVAL", "30s"),
    ("LOG_LEVEL", "info"),
];

/// The exporter of virtual machine metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MetricsExporter {
    /// The image of the exporter. The feature metricsExporter requires it; setting it enables the
    /// feature, unless that is Disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 500))]
    pub(crate) image: Option<String>,
    /// Settings of the exporter by name, for example ENABLE_EBPF: "false".
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
}

impl MetricsExporter {
    /// Why the settings are refused, if they are. Intervals have a limit because the alerts take
    /// values that were not read for some minutes for a fault.
    pub(super) fn problem(&self) -> Option<String> {
        let known: Vec<_> = EXPORTER_SETTINGS.iter().map(|(name, _)| *name).collect();
        if let Some(name) = self.env.keys().find(|name| !known.contains(&name.as_str())) {
            return Some(format!(
                "metricsExporter.env has {name}, which is not a setting of the exporter: the settings are {}",
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
                    "metricsExporter.env sets {name} to {value:?}: it must be in seconds or minutes, for example 30s, and at most {limit}s, because \
                     alerts fire if it is longer"
                ));
            }
        }
        None
    }
}
