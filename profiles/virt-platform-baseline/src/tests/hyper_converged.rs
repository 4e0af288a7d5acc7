//! Features that depend on the fields and the version of HyperConverged.

use serde_json::json;

use super::cluster::{Cluster, object};

#[test]
fn ksm_for_zero_pages_keeps_out_of_the_way_of_kubevirts_own() {
    let wants = json!({"features": {"ksmZeroPages": "Enabled"}});
    for (version, spec) in [
        ("v1", json!({"virtualization": {"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}}}})),
        ("v1beta1", json!({"ksmConfiguration": {"nodeLabelSelector": {}}})),
    ] {
        let hyper_converged = json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": spec});
        let why = Cluster { hyper_converged, ..Cluster::default() }.reason_left_out("ksmZeroPages", wants.clone());
        assert!(why.contains("remove that field first"), "{why}");
    }
    let empty = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {"virtualization": {"ksmConfiguration": {}}}});
    let names = Cluster { hyper_converged: empty, ..Cluster::default() }.item_names(wants);
    assert!(names.contains(&"ksm-zero-pages-worker".to_owned()), "{names:?}");
}

#[test]
fn the_quota_is_switched_on_where_the_release_has_the_switch() {
    let wants = json!({"features": {"applicationAwareQuota": "Enabled"}});
    for (version, spec, path) in [
        ("v1", json!({}), "/spec/deployment/applicationAwareConfig/enable"),
        ("v1beta1", json!({"enableApplicationAwareQuota": false}), "/spec/enableApplicationAwareQuota"),
        (
            "v1beta1",
            json!({"featureGates": {"enableApplicationAwareQuota": false}}),
            "/spec/featureGates/enableApplicationAwareQuota",
        ),
    ] {
        let hyper_converged = json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": spec});
        let drafts = Cluster { hyper_converged, ..Cluster::default() }.drafts(wants.clone());
        assert_eq!(object(&drafts[0]).pointer(path), Some(&json!(true)), "{:?}", drafts[0]);
    }
}
