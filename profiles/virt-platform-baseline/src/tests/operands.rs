//! The objects of other operators that features bring.

use std::collections::BTreeSet;

use profile_sdk::Draft;
use serde_json::{Value, json};

use super::cluster::{Cluster, OBSERVED, all_features, draft_named, object};
use crate::PROFILE;
use crate::kinds::FENCE_AGENTS_REMEDIATION_TEMPLATE;

/// W-42, N1: a health check is left out where its template can't exist, and fields that contradict
/// it are reported.
#[test]
fn w_42_machines_are_fenced_by_something_that_is_there() {
    let asked = json!({"apiVersion": "hco.kubevirt.io/v1", "spec": {},
        "metadata": {"annotations": {"platform.kubevirt.io/enable-node-remediation": "true"}}});
    let without = Cluster {
        hyper_converged: asked.clone(),
        not_served: [FENCE_AGENTS_REMEDIATION_TEMPLATE].into_iter().chain(OBSERVED).collect(),
        ..Cluster::default()
    };
    let why = without.reason_left_out("nodeHealthCheck", json!({}));
    assert!(why.contains("does not serve kind FenceAgentsRemediationTemplate"), "{why}");
    let enabled = without.drafts(json!({"features": {"nodeHealthCheck": "Enabled"}}));
    assert!(
        draft_named(&enabled, "node-health-check").notes[0].contains("does not serve kind FenceAgents"),
        "{enabled:?}"
    );
    let selector = |masters_schedulable, nodes| {
        let cluster = Cluster { hyper_converged: asked.clone(), masters_schedulable, nodes, ..Cluster::default() };
        let planned = cluster.drafts(json!({}));
        let check = draft_named(&planned, "node-health-check");
        assert_eq!(check.unwanted, ["/spec/maxUnhealthy"]);
        assert!(check.notes[0].contains("you must create") && check.notes[1].contains("pauseRequests"), "{check:?}");
        (object(check)["spec"]["selector"]["matchExpressions"].as_array().unwrap().len(), check.notes.len())
    };
    let workers: &[_] = &["workers that are no control plane"];
    assert_eq!(selector(false, workers), (1, 2));
    assert_eq!(selector(true, workers), (3, 2), "one check for both would count them together");
    assert_eq!(selector(true, &[]), (1, 3), "who is fenced is said");
}

/// W-36: every data source that a dashboard asks is in its own namespace.
#[test]
fn w_36_dashboards_ask_sources_that_are_shipped() {
    let cluster = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    let planned = cluster.drafts(all_features("Enabled"));
    let of_kind = |kind: &str| planned.iter().map(object).filter(|object| object["kind"] == kind).collect::<Vec<_>>();
    let sources: BTreeSet<_> = of_kind("PersesDatasource")
        .iter()
        .map(|source| (source["metadata"]["namespace"].to_string(), source["metadata"]["name"].to_string()))
        .collect();
    let dashboards = of_kind("PersesDashboard");
    assert_eq!(dashboards.len(), 3);
    for dashboard in dashboards {
        let text = dashboard["spec"].to_string();
        let asked: BTreeSet<_> = text
            .split("\"datasource\":{")
            .skip(1)
            .map(|rest| rest.split('}').next().unwrap().split("\"name\":").nth(1).unwrap().to_owned())
            .collect();
        assert!(!asked.is_empty(), "{}", dashboard["metadata"]);
        for name in asked {
            let name = name.split(',').next().unwrap().to_owned();
            let place = dashboard["metadata"]["namespace"].to_string();
            assert!(sources.contains(&(place, name.clone())), "{} asks {name}", dashboard["metadata"]);
        }
    }
}

/// Some features are fields in the objects of other features.
#[test]
fn features_meet_in_objects() {
    let cluster = Cluster { not_served: BTreeSet::new(), ..Cluster::default() };
    let planned = cluster.drafts(all_features("Enabled"));
    assert_eq!(
        object(draft_named(&planned, "monitoring-plugin"))["spec"]["monitoring"]["clusterHealthAnalyzer"]["enabled"],
        true
    );
    let unhealthy =
        object(draft_named(&planned, "node-health-check"))["spec"]["unhealthyConditions"].as_array().unwrap().len();
    assert_eq!(unhealthy, 3);
    let pipelines = |planned: &[Draft]| {
        let pipelines =
            object(draft_named(planned, "logging-forwarder"))["spec"]["pipelines"].as_array().unwrap().clone();
        pipelines.iter().map(|pipeline| pipeline["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(pipelines(&planned), ["infra-logs", "app-logs", "audit-logs"]);
    let mut options = all_features("Enabled");
    options["features"]["auditLogging"] = json!("Disabled");
    options["features"]["storageBasedRemediation"] = json!("Disabled");
    let planned = cluster.drafts(options);
    assert_eq!(pipelines(&planned), ["infra-logs", "app-logs"]);
    assert!(planned.iter().all(|draft| draft.name != "logging-of-audit"), "W-42: a binding without a collector");
    assert_eq!(
        object(draft_named(&planned, "node-health-check"))["spec"]["unhealthyConditions"].as_array().unwrap().len(),
        2
    );
}

/// W-35: a setting that is switched off stays off, and a setting that the exporter does not have is
/// refused.
#[test]
fn w_35_settings_of_the_exporter_are_texts() {
    let drafts = Cluster::default().drafts(all_features("Enabled"));
    let container =
        &object(draft_named(&drafts, "metrics-exporter-daemon"))["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "exporter:1");
    let env = container["env"].as_array().unwrap();
    let value = |name: &str| env.iter().find(|entry| entry["name"] == name).map(|entry| entry["value"].clone());
    assert_eq!((value("ENABLE_EBPF"), value("ENABLE_KVM")), (Some(json!("false")), Some(json!("true"))));
    let alerts = |options: Value| {
        object(draft_named(&Cluster::default().drafts(options), "metrics-exporter-alerts")).to_string()
    };
    assert!(!alerts(all_features("Enabled")).contains("KMEeBPFSubsystemDown"), "what is switched off is not down");
    assert!(alerts(json!({"metricsExporter": {"image": "exporter:1"}})).contains("KMEeBPFSubsystemDown"));
    for (env, problem) in [
        (json!({"ENABLE_ALL": "true"}), "not a setting of the exporter"),
        (json!({"QMP_POLL_INTERVAL": "5m"}), "at most 150s"),
        (json!({"KVM_POLL_INTERVAL": "2m"}), "at most 90s"),
        (json!({"QGA_POLL_INTERVAL": "0s"}), "seconds or minutes"),
        (json!({"CGROUP_POLL_INTERVAL": "99999999999m"}), "seconds or minutes"),
        (json!({"ENABLE_EBPF": false}), "string"),
    ] {
        let error = PROFILE.configure(Some(&json!({"metricsExporter": {"env": env}}))).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(problem), "{env}: {error}");
    }
}
