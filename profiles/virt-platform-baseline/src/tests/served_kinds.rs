//! Features whose kinds are not served, or not all of them.

use std::collections::BTreeSet;

use profile_sdk::kinds::{KUBE_DESCHEDULER, MACHINE_CONFIG};
use serde_json::{Value, json};

use super::cluster::{Cluster, OBSERVED};
use crate::kinds::NODE_HEALTH_CHECK;

/// W-18: a feature that this cluster can't have is left out with a reason, and is reported as
/// missing only if the options enable it.
#[test]
fn w_18_kinds_that_are_not_served_are_missed_by_nobody_who_did_not_ask() {
    let cluster = Cluster {
        not_served: [MACHINE_CONFIG, NODE_HEALTH_CHECK].into_iter().chain(OBSERVED).collect(),
        ..Cluster::default()
    };
    assert_eq!(cluster.item_names(json!({})), ["hyper-converged"]);
    assert_eq!(
        cluster.reason_left_out("swap", json!({})),
        "this cluster does not serve kind MachineConfig, which comes with OpenShift"
    );
    let asked = cluster.item_names(json!({"features": {"nodeHealthCheck": "Enabled"}}));
    assert!(asked.contains(&"node-health-check".to_owned()), "the engine says what is missing: {asked:?}");
}

/// Alerts are useful where nothing shows dashboards, and the kinds that the rest lacks are named.
#[test]
fn what_is_served_of_several_kinds_is_planned_and_the_rest_is_named() {
    let names_of = |cluster: &Cluster, options: Value| cluster.item_names(options)[2..].to_vec();
    let names = |cluster: &Cluster| names_of(cluster, json!({}));
    let all = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    assert_eq!(
        names(&all),
        ["monitoring-plugin", "platform-datasource", "platform-dashboard", "platform-alerts", "descheduler-dashboard",]
    );
    let without_descheduler = Cluster { not_served: [KUBE_DESCHEDULER].into(), ..Cluster::default() };
    assert_eq!(names(&without_descheduler).len(), 4);
    let alerts = Cluster { not_served: OBSERVED[..3].iter().copied().collect(), ..Cluster::default() };
    assert_eq!(names(&alerts), ["platform-alerts"]);
    let why = alerts.reason_left_out("observability", json!({}));
    assert_eq!(
        why,
        "only part of it is planned, because this cluster does not serve UIPlugin, PersesDatasource, PersesDashboard: \
         install the operators that provide these kinds"
    );
    let why = Cluster::default().reason_left_out("observability", json!({}));
    assert!(why.starts_with("this cluster serves none of these kinds: UIPlugin, "), "{why}");
    let enabled = json!({"features": {"observability": "Enabled"}});
    assert_eq!(alerts.item_names(enabled).len(), 7, "the engine says what is missing");
    let enabled = json!({"features": {"incidentDetection": "Enabled"}});
    assert_eq!(names_of(&alerts, enabled), ["monitoring-plugin", "platform-alerts"]);
}
