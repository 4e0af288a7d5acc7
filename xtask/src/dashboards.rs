//! The dashboards of both operators, for Grafana and for Perses: the same panels.

use serde_json::{Value, json};

use crate::source::{Files, GENERATED, yaml};

/// A panel: its title, what it asks, how a line is called, and the unit of its values in Grafana's
/// and Perses' words.
struct Panel {
    title: &'static str,
    query: &'static str,
    legend: &'static str,
    unit: (&'static str, &'static str),
}

const SHORT: (&str, &str) = ("short", "decimal");
const SECONDS: (&str, &str) = ("s", "seconds");

const PANELS: [Panel; 10] = [
    Panel {
        title: "Phases",
        query: "max by (name, phase) (kubevirt_advisor_config_phase) == 1",
        legend: "{{name}}: {{phase}}",
        unit: SHORT,
    },
    Panel {
        title: "Time in the current phase",
        query: "time() - max by (name) (kubevirt_advisor_config_phase_since_timestamp_seconds)",
        legend: "{{name}}",
        unit: SECONDS,
    },
    Panel {
        title: "Items by state",
        query: "max by (name, state) (kubevirt_advisor_config_items)",
        legend: "{{name}}: {{state}}",
        unit: SHORT,
    },
    Panel {
        title: "Drifts in the last day",
        query: "sum by (profile) (increase(kubevirt_advisor_drifts_total[1d]))",
        legend: "{{profile}}",
        unit: SHORT,
    },
    Panel {
        title: "Executions in the last day",
        query: "sum by (profile, outcome) (increase(kubevirt_advisor_executions_total[1d]))",
        legend: "{{profile}}: {{outcome}}",
        unit: SHORT,
    },
    Panel {
        title: "Execution duration, 95th percentile",
        query: "histogram_quantile(0.95, sum by (profile, le) (rate(kubevirt_advisor_execution_duration_seconds_bucket[1d])))",
        legend: "{{profile}}",
        unit: SECONDS,
    },
    Panel {
        title: "Planning duration, 95th percentile",
        query: "histogram_quantile(0.95, sum by (profile, le) (rate(kubevirt_advisor_plan_duration_seconds_bucket[1h])))",
        legend: "{{profile}}",
        unit: SECONDS,
    },
    Panel {
        title: "Requests to the API server per second",
        query: "sum by (verb, code) (rate(kubevirt_advisor_api_requests_total[5m]))",
        legend: "{{verb}} {{code}}",
        unit: SHORT,
    },
    Panel {
        title: "Open watches",
        query: "max by (group, kind) (kubevirt_advisor_watch_open)",
        legend: "{{kind}}",
        unit: SHORT,
    },
    Panel { title: "Leader", query: "kubevirt_advisor_leader", legend: "{{pod}}", unit: SHORT },
];

const MACHINES: [Panel; 6] = [
    Panel {
        title: "Machines by phase",
        query: "sum by (phase) (kubevirt_operator_machines_total)",
        legend: "{{phase}}",
        unit: SHORT,
    },
    Panel {
        title: "Virtual machines by status",
        query: "sum by (status) (kubevirt_operator_virtual_machines_total)",
        legend: "{{status}}",
        unit: SHORT,
    },
    Panel {
        title: "Reconcile duration, 95th percentile",
        query: "histogram_quantile(0.95, sum by (le) (rate(kubevirt_operator_reconciliation_duration_seconds_bucket[5m])))",
        legend: "reconciles",
        unit: SECONDS,
    },
    Panel {
        title: "Failed reconciles per second",
        query: "sum by (error_type) (rate(kubevirt_operator_reconciliation_errors_total[5m]))",
        legend: "{{error_type}}",
        unit: SHORT,
    },
    Panel {
        title: "Time until a claim is bound, 95th percentile",
        query: "histogram_quantile(0.95, sum by (storage_class, le) (rate(kubevirt_operator_storage_provisioning_duration_seconds_bucket[1h])))",
        legend: "{{storage_class}}",
        unit: SECONDS,
    },
    Panel {
        title: "Networks that were not found, in the last hour",
        query: "sum by (network_name) (increase(kubevirt_operator_network_configuration_errors_total[1h]))",
        legend: "{{network_name}}",
        unit: SHORT,
    },
];

pub(crate) fn files() -> Result<Files, String> {
    let mut files = Files::new();
    let all: [(&str, &str, &[Panel]); 2] = [
        ("config/dashboards", "virt-advisor", &PANELS),
        ("config/machines/dashboards", "kubevirt-operator", &MACHINES),
    ];
    for (folder, name, panels) in all {
        let grafana = serde_json::to_string_pretty(&grafana(name, panels)).map_err(|error| error.to_string())?;
        files.insert(format!("{folder}/grafana.json").into(), grafana + "\n");
        files.insert(format!("{folder}/perses.yaml").into(), format!("{GENERATED}{}", yaml(&perses(name, panels))?));
    }
    Ok(files)
}

/// Two panels beside each other.
fn place(number: usize) -> (usize, usize) {
    ((number % 2) * 12, (number / 2) * 8)
}

fn grafana(name: &str, panels: &[Panel]) -> Value {
    let panels = panels.iter().enumerate().map(|(number, Panel { title, query, legend, unit })| {
        let (x, y) = place(number);
        json!({
            "id": number + 1, "title": title, "type": "timeseries",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "gridPos": {"h": 8, "w": 12, "x": x, "y": y},
            "fieldConfig": {"defaults": {"unit": unit.0}, "overrides": []},
            "targets": [{"refId": "A", "expr": query, "legendFormat": legend}],
        })
    });
    json!({
        "title": name, "uid": name, "schemaVersion": 39, "editable": true, "tags": ["kubevirt"],
        "time": {"from": "now-6h", "to": "now"}, "refresh": "1m",
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": panels.collect::<Vec<_>>(),
    })
}

fn perses(name: &str, panels: &[Panel]) -> Value {
    let count = panels.len();
    let panels = panels.iter().enumerate().map(|(number, Panel { title, query, legend, unit })| {
        let query = json!({"kind": "TimeSeriesQuery", "spec": {"plugin": {
            "kind": "PrometheusTimeSeriesQuery", "spec": {"query": query, "seriesNameFormat": legend},
        }}});
        let panel = json!({"kind": "Panel", "spec": {
            "display": {"name": title},
            "plugin": {"kind": "TimeSeriesChart", "spec": {"yAxis": {"format": {"unit": unit.1}}}},
            "queries": [query],
        }});
        (format!("panel{number}"), panel)
    });
    let items: Vec<_> = (0..count)
        .map(|number| {
            let (x, y) = place(number);
            json!({"x": x, "y": y, "width": 12, "height": 8, "content": {"$ref": format!("#/spec/panels/panel{number}")}})
        })
        .collect();
    json!({
        "kind": "Dashboard",
        "metadata": {"name": name, "project": "kubevirt"},
        "spec": {
            "display": {"name": name}, "duration": "6h", "refreshInterval": "1m",
            "panels": panels.collect::<serde_json::Map<_, _>>(),
            "layouts": [{"kind": "Grid", "spec": {"display": {"title": name}, "items": items}}],
        },
    })
}
