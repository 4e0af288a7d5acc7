//! What the KubeVirt object configures.

use serde_json::Value;

use crate::{RolloutStrategy, Settings, UpdateMethod};

/// The configuration that holds now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) rollout: RolloutStrategy,
    pub(crate) methods: Vec<UpdateMethod>,
    /// How far a machine can grow while it runs, as a multiple of its size at boot.
    pub(crate) ratio: u64,
    pub(crate) max_sockets: u64,
    pub(crate) max_guest: Option<u64>,
    pub(crate) machine_type: String,
}

impl Config {
    /// Reads it from the KubeVirt object. pkg/virt-config/virt-config.go: `GetMaxHotplugRatio`,
    /// `GetMaximumCpuSockets`, `GetMaximumGuestMemory`, `IsVMRolloutStrategyLiveUpdate`.
    pub(crate) fn new(kubevirt: Option<&Value>, settings: &Settings) -> Config {
        let spec = kubevirt.map_or(&Value::Null, |kubevirt| &kubevirt["spec"]);
        let configuration = &spec["configuration"];
        let live = &configuration["liveUpdateConfiguration"];
        let rollout = match configuration["vmRolloutStrategy"].as_str() {
            Some("LiveUpdate") => RolloutStrategy::LiveUpdate,
            Some("Stage") => RolloutStrategy::Stage,
            _ => settings.rollout,
        };
        let methods = match spec["workloadUpdateStrategy"]["workloadUpdateMethods"].as_array() {
            Some(methods) => methods
                .iter()
                .filter_map(|method| match method.as_str()? {
                    "LiveMigrate" => Some(UpdateMethod::LiveMigrate),
                    "Evict" => Some(UpdateMethod::Evict),
                    _ => None,
                })
                .collect(),
            None => settings.methods.clone(),
        };
        Config {
            rollout,
            methods,
            ratio: live["maxHotplugRatio"].as_u64().filter(|ratio| *ratio > 0).unwrap_or(4),
            max_sockets: live["maxCpuSockets"].as_u64().unwrap_or(0),
            max_guest: live["maxGuest"].as_str().and_then(super::quantity::value),
            machine_type: configuration["architectureConfiguration"]["amd64"]["machineType"]
                .as_str()
                .unwrap_or("q35")
                .to_owned(),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.rollout == RolloutStrategy::LiveUpdate
    }
}
