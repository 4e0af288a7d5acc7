//! Conditions on the hardware that the labels of nodes report.

use profile_sdk::NodeQuestion;
use serde_json::{Value, json};

use super::cluster::{Cluster, draft_named};
use crate::node_questions::{IOMMU, NUMA, PCI_DEVICES, QUESTIONS, USB_DEVICES};

/// The reason names the hardware that no node has. The option overrules labels, and the plan says
/// so.
#[test]
fn hardware_decides_unless_the_option_does() {
    let asked = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
        "metadata": {"annotations": {"platform.kubevirt.io/enable-pci-passthrough": "true"}}});
    let mut cluster = Cluster { hyper_converged: asked, ..Cluster::default() };
    let why = cluster.reason_left_out("pciPassthrough", json!({}));
    assert!(
        why.starts_with("no node is labeled as having PCI devices for virtual machines: if that is wrong"),
        "{why}"
    );
    let enabled = cluster.drafts(json!({"features": {"pciPassthrough": "Enabled"}}));
    assert!(
        draft_named(&enabled, "pci-passthrough-worker").notes[0].contains("because the options ask for it"),
        "{enabled:?}"
    );
    cluster.nodes = &["PCI devices", "workers that are no control plane"];
    let planned = cluster.drafts(json!({}));
    assert_eq!(draft_named(&planned, "pci-passthrough-worker").notes, Vec::<String>::new());
}

#[test]
fn labels_of_nodes_are_understood() {
    let has = |question: &NodeQuestion, labels: Value| (question.is_so)(&serde_json::from_value(labels).unwrap());
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-10de.present": "true"})));
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-present": "true"})));
    assert!(has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-0302_10de.present": "true"})));
    // W-30: devices that every machine has are not for virtual machines.
    for display in ["pci-0300_1a03.present", "pci-102b.present", "pci-1af4.present", "pci-0300_1234.sriov.capable"] {
        assert!(!has(&PCI_DEVICES, json!({format!("feature.node.kubernetes.io/{display}"): "true"})), "{display}");
    }
    assert!(has(&PCI_DEVICES, json!({"nvidia.com/gpu.present": "true"})));
    assert!(!has(&PCI_DEVICES, json!({"feature.node.kubernetes.io/pci-10de.present": "false"})));
    assert!(has(&USB_DEVICES, json!({"feature.node.kubernetes.io/usb-ff_1a6e_089a.present": "true"})));
    assert!(has(&IOMMU, json!({"feature.node.kubernetes.io/iommu-enabled": "true"})));
    assert!(has(&NUMA, json!({"feature.node.kubernetes.io/memory-numa": "true"})));
    // W-30: neither devices of KubeVirt nor hyper-threading are such hardware.
    for question in &QUESTIONS {
        assert!(!has(question, json!({"feature.node.kubernetes.io/cpu-hardware_multithreading": "true", "a": "b"})));
    }
}
