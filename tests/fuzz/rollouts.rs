//! MachineConfigPools, and what takes effect through them, as nobody expects them.

use advisor_core::api::TargetRef;
use advisor_core::rollout::{
    ChangeKind, Forecast, Forecasting, MachineConfigPools, PlannedChange, Progress, Rollouts, Tracked, Tracking,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::harness::run;
use crate::values::mutated;

const API: &str = "machineconfiguration.openshift.io/v1";
const MADE: &str = "99-worker-generated-kubelet";
/// After so many objects that were read, everything is known.
const READ: usize = 40;

fn pool(name: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "MachineConfigPool", "metadata": {"name": name, "generation": 3, "labels": {"pool": name}},
        "spec": {
            "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}}, "nodeSelector": {"matchLabels": {name: ""}},
            "paused": false, "maxUnavailable": 1,
            "configuration": {"name": format!("rendered-{name}"), "source": [{"name": "base"}, {"name": "psi"}, {"name": MADE}]},
        },
        "status": {
            "observedGeneration": 3, "configuration": {"name": format!("rendered-{name}")}, "machineCount": u32::MAX, "updatedMachineCount": 3,
            "readyMachineCount": 3, "degradedMachineCount": 0, "unavailableMachineCount": 1,
            "conditions": [{"type": "Updated", "status": "True"}, {"type": "Degraded", "status": "True", "message": "é"}],
        },
    })
}

fn machine_config(name: &str) -> Value {
    json!({
        "apiVersion": API, "kind": "MachineConfig",
        "metadata": {"name": name, "generation": 1, "labels": {"machineconfiguration.openshift.io/role": "worker"}, "ownerReferences": [{"kind": "KubeletConfig", "name": "limits"}]},
        "spec": {
            "kernelArguments": ["psi=1", "a"], "extensions": ["x"], "fips": false, "kernelType": "default",
            "config": {
                "ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/a", "contents": {"source": "data:,a"}}]},
                "systemd": {"units": [{"name": "a.service", "enabled": true}]},
            },
        },
    })
}

fn kubelet_config() -> Value {
    json!({
        "apiVersion": API, "kind": "KubeletConfig", "metadata": {"name": "limits", "uid": "u", "generation": 2, "annotations": {"machineconfiguration.openshift.io/mc-name-suffix": "1"}},
        "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}, "kubeletConfig": {"maxPods": 500}, "logLevel": 3},
        "status": {"observedGeneration": 2, "conditions": [{"type": "Accepted", "status": "True"}]},
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => mutated(machine_config("psi")),
        2 => mutated(kubelet_config()),
        1 => mutated(json!({"metadata": {"name": "psi"}})),
    ]
}

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"worker": ""}, "annotations": {"machineconfiguration.openshift.io/state": "Done"}}})
}

#[test]
fn whatever_pools_look_like_everything_is_known_in_the_end() {
    let pools = prop::collection::vec(
        select(vec!["worker", "master", "infra"]).prop_flat_map(|name| mutated(pool(name))),
        0..4,
    );
    let read = prop::collection::vec(mutated(machine_config("base")), 1..4);
    let found = prop::collection::vec(prop_oneof![mutated(node("n")), mutated(kubelet_config())], 0..3);
    let change = select(vec![Some(ChangeKind::New), Some(ChangeKind::Edited), None]);
    run(
        "rollouts",
        (pools, object(), object(), read, found, change, 0_u8..8),
        |(pools, live, result, read, found, change, shape)| {
            let rollouts = MachineConfigPools::default();
            rollouts.pools_listed(&pools);
            pools.iter().for_each(|pool| rollouts.pool_seen(pool));
            // In one round all that is asked for is gone, or looks the same.
            let answer = |rest: usize| read.get((READ - rest) % (read.len() + 1));
            let planned = PlannedChange {
                live: Some(&live).filter(|_| shape & 1 == 0),
                result: Some(&result).filter(|_| shape & 2 == 0),
                takes_back: shape & 4 == 0,
                leaving: &[],
            };
            let mut rest = READ;
            let forecast = loop {
                match rollouts.forecast(planned) {
                    Forecast::Known(known) => break known,
                    Forecast::Unlisted(kind) => {
                        prop_assert!(rest > 0, "{kind:?} again and again");
                        rollouts.kind_listed(kind, &found);
                        rest -= 1;
                    }
                    Forecast::Unread(unread) => {
                        prop_assert!(!unread.is_empty() && rest > 0, "{unread:?} again and again");
                        unread.iter().for_each(|needed| rollouts.record_for_forecast(planned, needed, answer(rest)));
                        rest -= 1;
                    }
                }
            };
            if let Ok(effect) = forecast {
                prop_assert!(
                    effect.machines() >= effect.pools.values().map(|pool| pool.machines).max().unwrap_or_default()
                );
            }
            let snapshot = || rollouts.snapshot(&live).unwrap_or_else(|| Tracked::Object(live.clone()));
            let pools_of_it = || vec!["worker".to_owned(), "master".to_owned(), "gone".to_owned()];
            let (tracked, change) = match change {
                Some(change) => (snapshot(), change),
                None => (Tracked::Removed { target: TargetRef::of(&live), pools: pools_of_it() }, ChangeKind::New),
            };
            let mut rest = READ;
            loop {
                match rollouts.progress(&tracked, change) {
                    Progress::Known(_) => break,
                    Progress::Unread(unread) => {
                        prop_assert!(!unread.is_empty() && rest > 0, "{unread:?} again and again");
                        unread.iter().for_each(|needed| rollouts.record_for_progress(&tracked, needed, answer(rest)));
                        rest -= 1;
                    }
                }
            }
            for question in rollouts.questions(&tracked) {
                let _ = rollouts.holdup(&tracked, &question, &found);
            }
            let outline = rollouts.outline(&tracked);
            prop_assert_eq!(&outline, &rollouts.outline(&outline));
            prop_assert_eq!(rollouts.progress_fingerprint(&outline), rollouts.progress_fingerprint(&tracked));
            pools.iter().filter_map(|pool| pool["metadata"]["name"].as_str()).for_each(|name| rollouts.pool_gone(name));
            Ok(())
        },
    );
}
