//! Latencies and states of virtual machines that only their hosts see, as metrics.

use profile_sdk::{DraftError, Impact};
use serde_json::json;

use crate::feature::{AskedBy, Brings, Feature, Maturity, NamedBy, Part};
use crate::kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, DAEMON_SET, NAMESPACE, PERSES_DASHBOARD, PERSES_DATASOURCE, POD_MONITOR,
    PROMETHEUS_RULE, ROLE, ROLE_BINDING, SECURITY_CONTEXT_CONSTRAINTS, SERVICE_ACCOUNT,
};
use crate::options::EXPORTER_SETTINGS;
use crate::situation::Situation;

/// The administrator chooses the image of the exporter.
pub(crate) static FEATURE: Feature = Feature {
    name: "metricsExporter",
    choice: |features| features.metrics_exporter,
    does: "runs an exporter on each worker machine that reports storage latencies of virtual machines, with a dashboard and alerts",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-kubevirt-metrics-exporter"),
    named_by: Some(NamedBy {
        option: "metricsExporter.image",
        is_set: |options| options.metrics_exporter.image.is_some(),
        needed: true,
    }),
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[SECURITY_CONTEXT_CONSTRAINTS, POD_MONITOR],
        optional_kinds: &[
            NAMESPACE,
            SERVICE_ACCOUNT,
            CLUSTER_ROLE,
            CLUSTER_ROLE_BINDING,
            ROLE,
            ROLE_BINDING,
            DAEMON_SET,
            PROMETHEUS_RULE,
            PERSES_DATASOURCE,
            PERSES_DASHBOARD,
        ],
        objects,
    },
};

fn objects(situation: &Situation<'_>) -> Result<Vec<Part>, DraftError> {
    let options = &situation.options.metrics_exporter;
    let part = |item: &str, text: &'static str| Part::parse(&format!("metrics-exporter-{item}"), text);
    let inside = |item: &str, text: &'static str| Ok(part(item, text)?.in_namespace("kubevirt-metrics-exporter"));
    let mut exporter = inside("daemon", include_str!("daemonset.yaml"))?;
    let container = &mut exporter.object["spec"]["template"]["spec"]["containers"][0];
    container["image"] = json!(options.image);
    let mut env = vec![json!({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})];
    env.extend(EXPORTER_SETTINGS.iter().map(|(name, default)| {
        let value = options.env.get(*name).map_or(*default, String::as_str);
        json!({"name": name, "value": value})
    }));
    container["env"] = json!(env);
    let mut alerts = inside("alerts", include_str!("alerts.yaml"))?;
    let is_off = |setting: &str| options.env.get(setting).is_some_and(|value| value == "false");
    if is_off("ENABLE_EBPF") || is_off("ENABLE_EBPF_BLOCK") {
        // A subsystem that is switched off must not be reported as down.
        let groups = alerts.object["spec"]["groups"].as_array_mut().into_iter().flatten();
        groups.filter_map(|group| group["rules"].as_array_mut()).for_each(|rules| {
            rules.retain(|rule| rule["alert"] != "KMEeBPFSubsystemDown");
        });
    }
    let parts = vec![
        part("namespace", include_str!("namespace.yaml"))?,
        inside("account", include_str!("serviceaccount.yaml"))?,
        part("role", include_str!("clusterrole.yaml"))?,
        part("binding", include_str!("clusterrolebinding.yaml"))?,
        part("constraints", include_str!("scc.yaml"))?,
        part("constraints-role", include_str!("scc-clusterrole.yaml"))?,
        part("constraints-binding", include_str!("scc-clusterrolebinding.yaml"))?,
        inside("prometheus-role", include_str!("prometheus-role.yaml"))?,
        inside("prometheus-binding", include_str!("prometheus-rolebinding.yaml"))?,
        inside("monitor", include_str!("podmonitor.yaml"))?,
        alerts,
        // A dashboard can use only the data sources of its own namespace.
        inside("datasource", include_str!("../observability/datasource.yaml"))?,
        inside("dashboard", include_str!("dashboard.yaml"))?,
    ];
    let parts = parts.into_iter().map(|part| Part { impact: Impact::Low, ..part });
    Ok(parts.chain([exporter]).collect())
}
