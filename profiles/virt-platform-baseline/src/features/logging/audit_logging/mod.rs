//! Audit logs of the API, a part of the feature logging.

use profile_sdk::Impact;
use serde_json::{Value, json};

use crate::feature::{AskedBy, Brings, Feature, Maturity, Part};
use crate::kinds::CLUSTER_ROLE_BINDING;

/// All of the feature but its condition, which names the host. Its filters and its pipeline are in
/// the object that `logging` brings: neither feature has audit logs without the other.
pub(super) const FEATURE: Feature = Feature {
    name: "auditLogging",
    choice: |features| features.audit_logging,
    does: "stores API audit logs of user activity, without requests of system components",
    maturity: Maturity::DeveloperPreview,
    asked_by: AskedBy::Annotation("enable-audit-logging"),
    named_by: None,
    conditions: &[],
    needs: &["logging"],
    brings: Brings::Objects {
        required_kinds: &[],
        optional_kinds: &[CLUSTER_ROLE_BINDING],
        objects: |_| {
            let part = Part::parse("logging-of-audit", include_str!("clusterrolebinding.yaml"))?;
            Ok(vec![Part { impact: Impact::Low, ..part }])
        },
    },
};

/// The filters for the forwarder, and the pipeline that uses them. For a record that lacks the
/// field, `matches` is false and `notMatches` is true: the stages to drop are named, so that
/// records of other programs, which have none, are kept.
pub(super) fn filters_and_pipeline() -> (Vec<Value>, Value) {
    let drop = |name: &str, tests: &[Value]| {
        let tests: Vec<_> = tests.iter().map(|test| json!({"test": [test]})).collect();
        json!({"name": name, "type": "drop", "drop": tests})
    };
    let user = |matches: &str| json!({"field": ".user.username", "matches": matches});
    let filters = vec![
        drop(
            "audit-drop-non-complete",
            &[json!({"field": ".stage", "matches": "^(RequestReceived|ResponseStarted|Panic)$"})],
        ),
        drop(
            "audit-drop-system-users",
            &[
                user("^system:serviceaccount:"),
                user("^system:node:"),
                user("^system:(apiserver|kube-|anonymous|unauthenticated|openshift:|aggregator|monitoring|multus)"),
            ],
        ),
        drop("audit-drop-noisy-verbs", &[json!({"field": ".verb", "matches": "^(watch|deletecollection|proxy)$"})]),
    ];
    let names: Vec<_> = filters.iter().map(|filter| filter["name"].clone()).collect();
    let pipeline = json!({
        "name": "audit-logs", "inputRefs": ["audit"], "filterRefs": names, "outputRefs": ["default-lokistack"],
    });
    (filters, pipeline)
}
