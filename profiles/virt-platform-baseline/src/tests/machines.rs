//! The objects for machines: which machines get them, when, and where none do.

use std::collections::BTreeSet;

use profile_sdk::Draft;
use serde_json::{Value, json};

use super::cluster::{Cluster, all_features, draft_named, object};
use crate::feature::WAVE_OF_MACHINES;

/// Machines reboot once: everything that they get is in one wave, and a pool has one KubeletConfig
/// (W-33).
#[test]
fn w_33_all_that_machines_get_is_in_one_wave_with_one_kubelet_config_for_a_pool() {
    let drafts = Cluster { masters_schedulable: true, ..Cluster::default() }.drafts(all_features("Enabled"));
    let kind = |draft: &Draft| object(draft)["kind"].as_str().unwrap_or_default().to_owned();
    let of_machines = drafts.iter().filter(|draft| matches!(kind(draft).as_str(), "MachineConfig" | "KubeletConfig"));
    let waves: BTreeSet<_> = of_machines.map(|draft| draft.wave).collect();
    assert_eq!(waves, BTreeSet::from([WAVE_OF_MACHINES]));
    let kubelets: Vec<_> = drafts.iter().filter(|draft| kind(draft) == "KubeletConfig").collect();
    assert_eq!(kubelets.len(), 2);
    // W-8: autoSizingReserved is a field of spec.
    assert_eq!(object(kubelets[0])["spec"]["autoSizingReserved"], true);
    assert_eq!(object(kubelets[0])["spec"]["kubeletConfig"]["topologyManagerPolicy"], "best-effort");
    assert!(object(kubelets[0])["spec"]["kubeletConfig"].get("autoSizingReserved").is_none());
}

/// Masters that carry virtual machines get what workers get; a compact cluster has no others
/// (W-34).
#[test]
fn w_34_masters_and_compact_clusters_are_covered() {
    let both = Cluster { masters_schedulable: true, ..Cluster::default() };
    let tuned = json!({"features": {"transparentHugePages": "Enabled"}});
    let names = ["hyper-converged", "swap-worker", "transparent-huge-pages-worker", "transparent-huge-pages-master"];
    assert_eq!(both.item_names(tuned.clone()), names);
    let compact = Cluster { masters_schedulable: true, nodes: &[], ..Cluster::default() };
    assert_eq!(compact.item_names(tuned), ["hyper-converged", "transparent-huge-pages-master"]);
    let names: Vec<_> = both
        .drafts(all_features("Enabled"))
        .iter()
        .map(|draft| {
            let object = object(draft);
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{} {} {}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        })
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

/// M14: machines of the control plane swap only where the options say so, and then a note names the
/// risk.
#[test]
fn m14_the_control_plane_swaps_only_where_the_options_say_so() {
    for nodes in [&[][..], &["workers that are no control plane"]] {
        let cluster = Cluster { masters_schedulable: true, nodes, ..Cluster::default() };
        let names = cluster.item_names(json!({}));
        assert!(!names.contains(&"swap-master".to_owned()), "{names:?}");
        let why = cluster.reason_left_out("swap", json!({}));
        assert!(why.contains("share a disk") && why.ends_with("features.swap to Enabled"), "{why}");
        let planned = cluster.drafts(json!({"features": {"swap": "Enabled"}}));
        assert!(draft_named(&planned, "swap-master").notes[0].contains("fast enough for etcd"), "{planned:?}");
        assert!(planned.iter().filter(|draft| draft.name == "swap-worker").all(|draft| draft.notes.is_empty()));
    }
}

/// N3: fencing of absent machines is not started before the reboots of the plan.
#[test]
fn n3_machines_are_fenced_only_after_the_reboots_of_the_plan() {
    let planned = Cluster::default().drafts(all_features("Enabled"));
    assert!(draft_named(&planned, "node-health-check").wave > WAVE_OF_MACHINES);
    let before = planned.iter().filter(|draft| draft.name != "node-health-check");
    assert!(before.clone().all(|draft| draft.wave <= WAVE_OF_MACHINES), "{:?}", before.map(|draft| draft.wave).max());
}

/// Where kubelets do not read the settings for swap, swap is left out: machines would reboot for
/// nothing.
#[test]
fn swap_is_left_out_where_kubelets_read_no_settings() {
    let started = |arguments: &str| {
        let unit = json!({"name": "kubelet.service", "contents": format!("ExecStart=/usr/bin/kubelet {arguments}")});
        let kubelet =
            json!({"metadata": {"name": "01-worker-kubelet"}, "spec": {"config": {"systemd": {"units": [unit]}}}});
        let kubelet = Some(kubelet);
        Cluster { kubelet, ..Cluster::default() }
    };
    let planned = |cluster: &Cluster, options| cluster.item_names(options).contains(&"swap-worker".to_owned());
    let enabled = json!({"features": {"swap": "Enabled"}});
    assert!(planned(&started("--config-dir=/etc/openshift/kubelet.conf.d"), json!({})));
    assert!(planned(&Cluster::default(), json!({})), "where it can't be told");
    let old = started("--v=2");
    assert!(!planned(&old, json!({})));
    assert!(
        old.reason_left_out("swap", json!({})).contains("update to OpenShift 4.21"),
        "{}",
        old.reason_left_out("swap", json!({}))
    );
    assert!(planned(&old, enabled.clone()));
    let drafts = old.drafts(enabled);
    assert!(
        draft_named(&drafts, "swap-worker").notes.iter().any(|note| note.contains("has no effect until you update"))
    );
}

/// Machines of a cluster with a hosted control plane are set up elsewhere. The kinds are served
/// there and have no effect.
#[test]
fn nothing_for_machines_is_planned_where_no_machine_config_reaches_them() {
    let hosted = Cluster { kubelet: None, ..Cluster::default() };
    assert_eq!(hosted.item_names(json!({})), ["hyper-converged"]);
    let why = hosted.reason_left_out("swap", json!({}));
    assert!(why.contains("set it up in the NodePools of the hosting cluster"), "{why}");
    // If the options enable it, the preview on the server reports the missing kind.
    let enabled = json!({"features": {"swap": "Enabled"}});
    assert!(hosted.item_names(enabled).contains(&"swap-worker".to_owned()));
    assert!(Cluster::default().item_names(json!({})).contains(&"swap-worker".to_owned()));
}
