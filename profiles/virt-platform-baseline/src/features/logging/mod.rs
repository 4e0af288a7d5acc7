//! Logs of the platform and of applications: a store, a forwarder and a page of the console.

mod audit_logging;

use profile_sdk::{DraftError, Impact};
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Condition, Feature, Maturity, NamedBy, Part};
use crate::kinds::{CLUSTER_LOG_FORWARDER, CLUSTER_ROLE_BINDING, LOKI_STACK, SERVICE_ACCOUNT, UI_PLUGIN};
use crate::situation::Situation;

/// The storage class must be named: the schema of LokiStack demands one, and none is right on every
/// cluster.
pub(crate) static FEATURE: Feature = Feature {
    name: "logging",
    choice: |features| features.logging,
    does: "stores platform and application logs for a week, and shows them in the console",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-logging"),
    named_by: Some(NamedBy {
        option: "logging.storageClassName",
        is_set: |options| options.logging.storage_class_name.is_some(),
        needed: true,
    }),
    conditions: &[],
    needs: &[],
    brings: Brings::Objects {
        required_kinds: &[LOKI_STACK, CLUSTER_LOG_FORWARDER],
        optional_kinds: &[UI_PLUGIN, SERVICE_ACCOUNT, CLUSTER_ROLE_BINDING],
        objects,
    },
};

/// Audit logs go through the forwarder of `logging`: the host alone knows both.
pub(crate) static AUDIT_LOGGING: Feature =
    Feature { conditions: &[Condition::Planned(&FEATURE)], ..audit_logging::FEATURE };

const NAMESPACE: &str = "openshift-logging";

fn objects(situation: &Situation<'_>) -> Result<Vec<Part>, DraftError> {
    let options = &situation.options.logging;
    let mut stack = Part::parse("logging-store", include_str!("lokistack.yaml"))?.in_namespace(NAMESPACE);
    stack.object["spec"]["size"] = json!(options.size);
    stack.object["spec"]["storage"]["secret"]["type"] = json!(options.storage_type);
    stack.object["spec"]["storageClassName"] = json!(options.storage_class_name);
    stack.notes.push("it requires the Secret logging-loki-storage with the credentials for the object storage: create it in namespace openshift-logging".to_owned());
    let mut forwarder =
        Part::parse("logging-forwarder", include_str!("clusterlogforwarder.yaml"))?.in_namespace(NAMESPACE);
    if AUDIT_LOGGING.is_on(situation)? {
        let (filters, pipeline) = audit_logging::filters_and_pipeline();
        append(&mut forwarder.object["spec"]["filters"], filters);
        append(&mut forwarder.object["spec"]["pipelines"], vec![pipeline]);
    }
    let low = |part: Part| Part { impact: Impact::Low, ..part };
    Ok(vec![
        stack,
        low(Part::parse("logging-account", include_str!("serviceaccount.yaml"))?.in_namespace(NAMESPACE)),
        low(Part::parse("logging-of-applications", include_str!("clusterrolebinding-application.yaml"))?),
        low(Part::parse("logging-of-infrastructure", include_str!("clusterrolebinding-infrastructure.yaml"))?),
        low(Part::parse("logging-writer", include_str!("clusterrolebinding-logs-writer.yaml"))?),
        forwarder,
        low(Part::parse("logging-plugin", include_str!("ui-plugin-logging.yaml"))?),
    ])
}

fn append(list: &mut Value, more: Vec<Value>) {
    if let Value::Array(list) = list {
        list.extend(more);
    }
}
