//! The differences between releases of the machine-config controllers: a row for each release, a
//! column for each rule. Pure.
//!
//! Source: the branches release-4.14, 4.17, 4.20, 4.22 and 5.0 of
//! openshift/machine-config-operator, as they were in July 2026.
//!
//! | column | source |
//! | --- | --- |
//! | `accepted` | pkg/controller/kubelet-config/helpers.go `wrapErrorWithCondition`: Accepted from release-4.23 on (#5854), before that Success or Failure alone |
//! | `failure` | the same: the status of Failure is False up to release-4.21 and True from 4.22 on |
//! | `observes` | kubelet_config_controller.go `syncStatusOnly`: z-streams before #4900 and #4950 (March 2025) leave observedGeneration behind |
//! | `settles_compression` | pkg/controller/common/helpers.go `ignitionMergeSetFilesDefaultCompression`, `…Unset…`: release-4.20 and later (OCPBUGS-55327) |
//! | `repeats_failures` | pkg/controller/node/status.go `calculateStatus`: the reason once of the MachineConfigNode, where the gate MachineConfigNodes is on by default (release-4.20 and later), and once of the machine |
//! | `policies` | node disruption policies: generally available from release-4.17 on (feature gate NodeDisruptionPolicy before that); a list of files up to 4.16 |
//! | `reads_settings` | templates/worker/01-worker-kubelet: kubelet.service with `--config-dir=/etc/openshift/kubelet.conf.d` from release-4.21 on; masters from 5.0 |
//!
//! The same in all of them, so without a column: delays and queues, the order of merging, what is
//! merged by name, `compression: ""` in generated files, maxUnavailable and the order of machines,
//! and that a KubeletConfig that has not succeeded keeps its pools from being rendered.

/// A release of the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// For example `4.20`.
    pub name: &'static str,
    /// Whether KubeletConfigs have the condition Accepted, followed by Success or Failure for older
    /// readers.
    pub(crate) accepted: bool,
    /// The status of the condition Failure.
    pub(crate) failure: &'static str,
    /// Whether `observedGeneration` of KubeletConfigs is written.
    pub(crate) observes: bool,
    /// Whether an empty compression of a file replaces an earlier one and is removed at the end.
    /// Otherwise the earlier one stays if a later file has none.
    pub(crate) settles_compression: bool,
    /// Whether the reason of a failing machine is reported twice.
    pub(crate) repeats_failures: bool,
    /// Whether node disruption policies decide for which files and units machines reboot.
    pub(crate) policies: bool,
    /// Whether the kubelets of workers read settings from a folder.
    pub(crate) reads_settings: bool,
}

/// 4.14 as it was before March 2025.
pub const V4_14_EARLY: Release = Release { name: "4.14 before 2025-03", observes: false, ..V4_14 };
/// 4.14.
pub const V4_14: Release = Release {
    name: "4.14",
    accepted: false,
    failure: "False",
    observes: true,
    settles_compression: false,
    repeats_failures: false,
    policies: false,
    reads_settings: false,
};
/// 4.17.
pub const V4_17: Release = Release { name: "4.17", policies: true, ..V4_14 };
/// 4.20.
pub const V4_20: Release = Release { name: "4.20", settles_compression: true, repeats_failures: true, ..V4_17 };
/// 4.22.
pub const V4_22: Release = Release { name: "4.22", failure: "True", reads_settings: true, ..V4_20 };
/// 4.23, 5.0 and main.
pub const MAIN: Release = Release { name: "main", accepted: true, ..V4_22 };

/// All releases, oldest first.
pub const RELEASES: [Release; 6] = [V4_14_EARLY, V4_14, V4_17, V4_20, V4_22, MAIN];

impl Default for Release {
    fn default() -> Self {
        MAIN
    }
}
