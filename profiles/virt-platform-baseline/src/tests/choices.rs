//! The features that the options, and earlier choices of the administrator, ask for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cluster::{Cluster, draft_named, object};
use crate::PROFILE;
use crate::feature::{AskedBy, Condition};
use crate::features::FEATURES;

/// A feature that administrators have asked for by an annotation is kept where the options say
/// nothing, and the option wins.
#[test]
fn earlier_choices_are_kept_where_the_options_say_nothing() {
    for &feature in FEATURES {
        let mut hyper_converged = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {}});
        let needed = feature.conditions.iter().filter_map(|condition| match condition {
            Condition::Planned(needed) => Some(*needed),
            Condition::NodeHas(..)
            | Condition::HyperConvergedLacks { .. }
            | Condition::Served(_)
            | Condition::KubeletsReadDropIns => None,
        });
        for asked in needed.chain([feature]) {
            match &asked.asked_by {
                AskedBy::Nothing => {}
                AskedBy::Annotation(name) => {
                    hyper_converged["metadata"]["annotations"][format!("platform.kubevirt.io/{name}")] = json!("true");
                }
            }
        }
        if matches!(feature.asked_by, AskedBy::Nothing) {
            continue;
        }
        let nodes = &["PCI devices", "workers that are no control plane"];
        let cluster = Cluster { hyper_converged, nodes, not_served: BTreeSet::new(), ..Cluster::default() };
        let mut options = json!({"logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1"}});
        let planned = cluster.drafts(options.clone());
        let is_planned = planned.iter().any(|draft| draft.feature.as_deref() == Some(feature.name));
        let is_told_elsewhere = ["kubeletPerformance", "cpuManager", "incidentDetection"].contains(&feature.name);
        assert!(is_planned || is_told_elsewhere, "{} is asked for and not planned", feature.name);
        options["features"] = json!({feature.name: "Disabled"});
        let without = cluster.drafts(options);
        assert_ne!(planned, without, "{}", feature.name);
        assert!(without.iter().all(|draft| draft.feature.as_deref() != Some(feature.name)), "{}", feature.name);
    }
}

/// W-28: an annotation that is neither true nor false is reported, and asks for nothing.
#[test]
fn w_28_annotations_that_ask_for_nothing_are_said() {
    let reason = |text: &str| {
        let hyper_converged = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
            "metadata": {"annotations": {"platform.kubevirt.io/enable-metallb": text}}});
        Cluster { hyper_converged, ..Cluster::default() }.reason_left_out("metalLb", json!({}))
    };
    for unclear in ["True", "1", "yes", "true "] {
        assert!(reason(unclear).contains(&format!("has the value {unclear:?}, but only")), "{}", reason(unclear));
    }
    for clear in ["", "false"] {
        assert!(reason(clear).contains("off by default"), "{}", reason(clear));
    }
}

/// Naming devices asks for their feature. A feature that needs devices is left out without them.
#[test]
fn naming_devices_asks_for_what_they_are_for() {
    let cluster = Cluster::default();
    assert_eq!(
        cluster.item_names(json!({"vfioDevices": ["10de:1eb8"]})),
        ["hyper-converged", "swap-worker", "vfio-worker"]
    );
    let notes = |options: Value| draft_named(&cluster.drafts(options), "vfio-worker").notes.join("; ");
    let alone = notes(json!({"vfioDevices": ["10de:1eb8"]}));
    assert!(alone.contains("no effect without the feature pciPassthrough"), "{alone}");
    let both = notes(json!({"vfioDevices": ["10de:1eb8"], "features": {"pciPassthrough": "Enabled"}}));
    assert!(!both.contains("no effect"), "{both}");
    let device = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"}]);
    let drafts = cluster.drafts(json!({"usbDevices": device}));
    let entry = object(&drafts[0]).pointer("/spec/virtualization/permittedHostDevices/usbHostDevices/0/resourceName");
    assert_eq!(entry, Some(&json!("kubevirt.io/storage")));
    let why = cluster.reason_left_out("usbPassthrough", json!({"features": {"usbPassthrough": "Enabled"}}));
    assert!(why.starts_with("it requires spec.options.platformBaseline.usbDevices, which is not set"), "{why}");
    let disabled = json!({"usbDevices": device, "features": {"usbPassthrough": "Disabled"}});
    assert!(cluster.reason_left_out("usbPassthrough", disabled).ends_with("is Disabled"));
}

/// Fault R21: CPUManager is a gate of KubeVirt, and HyperConverged has none of that name: a gate
/// that somebody wrote there asks for nothing.
#[test]
fn r21_a_gate_of_kubevirt_asks_hyper_converged_for_nothing() {
    let gates = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {"featureGates": [{"name": "CPUManager"}, {"name": "cpumanager"}]}});
    let cluster = Cluster { hyper_converged: gates, ..Cluster::default() };
    assert!(!cluster.item_names(json!({})).contains(&"kubelet-worker".to_owned()));
    assert!(
        cluster
            .reason_left_out("cpuManager", json!({}))
            .contains("set spec.options.platformBaseline.features.cpuManager to Enabled")
    );
}

#[test]
fn devices_that_are_none_are_refused_with_the_reason() {
    for id in ["10de", "10DE:1eb8", "10de:1eb8,0000:0000", "10de:1eb8 rd.break", "::", ""] {
        let error = PROFILE.configure(Some(&json!({"vfioDevices": [id]}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("vendor:device"), "{id}: {error}");
    }
    for number in ["46f", "46f45", "xyz0", ""] {
        let device = json!([{"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": number}]);
        let error = PROFILE.configure(Some(&json!({"usbDevices": device}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("four hexadecimal digits"), "{number}: {error}");
    }
    assert!(PROFILE.configure(Some(&json!({"features": {"swap": "On"}}))).is_err());
}

/// Who follows the sentence gets the feature: what it builds on is named too.
#[test]
fn a_feature_that_is_off_says_everything_that_enables_it() {
    for (feature, says, options) in [
        (
            "cpuManager",
            "set spec.options.platformBaseline.features.cpuManager to Enabled",
            json!({"features": {"cpuManager": "Enabled"}}),
        ),
        (
            "numa",
            "set spec.options.platformBaseline.features.numa to Enabled, and enable cpuManager too",
            json!({"features": {"numa": "Enabled", "cpuManager": "Enabled"}}),
        ),
        (
            "logging",
            "set spec.options.platformBaseline.logging.storageClassName",
            json!({"logging": {"storageClassName": "fast"}}),
        ),
        (
            "auditLogging",
            "set spec.options.platformBaseline.features.auditLogging to Enabled, and enable logging too",
            json!({"features": {"auditLogging": "Enabled"}, "logging": {"storageClassName": "fast"}}),
        ),
    ] {
        let reason = Cluster::default().reason_left_out(feature, json!({}));
        assert!(reason.ends_with(&format!("off by default: to use it, {says}")), "{feature}: {reason}");
        let left_out = Cluster::default().left_out(options);
        assert!(!left_out.iter().any(|left| left.feature == feature), "{feature}: {left_out:?}");
    }
}
