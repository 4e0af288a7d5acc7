//! The rules of the feature inFlightOperations.

use std::collections::BTreeSet;

use serde_json::json;

use super::cluster::{Cluster, draft_named, object};

/// 38 objects. Each rule checks that a field is there before it reads it.
#[test]
fn rules_for_operations_guard_what_they_read() {
    let wants = json!({"features": {"inFlightOperations": "Enabled"}});
    let rule_sets = |cluster: &Cluster| {
        let drafts = cluster.drafts(wants.clone());
        drafts.into_iter().filter(|draft| object(draft)["kind"] == "OperationRuleSet").collect::<Vec<_>>()
    };
    let drafts = rule_sets(&Cluster::default());
    assert_eq!(drafts.len(), 38);
    let mut rules = 0;
    for draft in &drafts {
        let mut operations = BTreeSet::new();
        for rule in object(draft)["spec"]["rules"].as_array().unwrap() {
            rules += 1;
            let (operation, expression) = (rule["operation"].as_str().unwrap(), rule["expression"].as_str().unwrap());
            assert!(operations.insert(operation.to_owned()), "{}: {operation} is there twice", draft.name);
            assert!(expression.starts_with("has(object.") || expression.starts_with("(has(object."), "{expression}");
            // W-43: each field is read only after checks that it and all fields above it are there.
            let read: BTreeSet<_> = expression
                .split("object.")
                .skip(1)
                .map(|rest| rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.').next().unwrap())
                .map(|path| path.split(".exists").next().unwrap().split(".size").next().unwrap())
                .collect();
            for path in read {
                let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
                for part in ends.map(|end| &path[..end]) {
                    let asks = expression.contains(&format!("has(object.{part})"));
                    assert!(asks, "{}: {operation} reads {path} without {part}", draft.name);
                }
            }
        }
    }
    assert_eq!(rules, 156);
    let old = json!({"apiVersion": "hco.kubevirt.io/v1beta1", "spec": {}});
    for (cluster, version) in
        [(Cluster::default(), "v1"), (Cluster { hyper_converged: old, ..Cluster::default() }, "v1beta1")]
    {
        let drafts = rule_sets(&cluster);
        assert_eq!(object(draft_named(&drafts, "hco-rules"))["spec"]["target"]["version"], version);
    }
}
