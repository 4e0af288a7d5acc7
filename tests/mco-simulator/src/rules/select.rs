//! Label selection as in the controllers: an empty or missing selector selects nothing.
//!
//! Source: openshift/machine-config-operator at commit 7ff337a4ffac (observed),
//! pkg/controller/render/render_controller.go: `getPoolsForMachineConfig`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// Whether the selector has no requirement at all.
pub(crate) fn is_empty(selector: Option<&LabelSelector>) -> bool {
    selector.is_none_or(|selector| {
        selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
    })
}

/// Whether the selector selects these labels.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector.filter(|_| !is_empty(selector)) else {
        return false;
    };
    let labels_match = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    labels_match && selector.match_expressions.iter().flatten().all(|requirement| fulfils(requirement, labels))
}

fn fulfils(requirement: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let value = labels.get(&requirement.key);
    let listed = || value.is_some_and(|value| requirement.values.iter().flatten().any(|wanted| wanted == value));
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(selector: serde_json::Value, labels: &[(&str, &str)]) -> bool {
        let selector: LabelSelector = serde_json::from_value(selector).expect("selectors of the tests parse");
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        selects(Some(&selector), &labels)
    }

    #[test]
    fn empty_selectors_select_nothing() {
        assert!(!selects(None, &Labels::new()));
        assert!(!check(json!({}), &[("a", "b")]));
        assert!(!check(json!({"matchLabels": {}, "matchExpressions": []}), &[("a", "b")]));
    }

    #[test]
    fn requirements_are_joined() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "role", "operator": operator, "values": values}]});
        for (name, selector, labels, want) in [
            ("label", json!({"matchLabels": {"role": "a"}}), vec![("role", "a")], true),
            ("other value", json!({"matchLabels": {"role": "a"}}), vec![("role", "b")], false),
            ("in", expression("In", &["a", "b"]), vec![("role", "b")], true),
            ("not listed", expression("In", &["a", "b"]), vec![("role", "c")], false),
            ("not in holds without the label", expression("NotIn", &["a"]), vec![], true),
            ("not in", expression("NotIn", &["a"]), vec![("role", "a")], false),
            ("exists", expression("Exists", &[]), vec![("role", "")], true),
            ("does not exist", expression("DoesNotExist", &[]), vec![("role", "")], false),
            ("unknown operator", expression("Near", &["a"]), vec![("role", "a")], false),
        ] {
            assert_eq!(check(selector, &labels), want, "{name}");
        }
    }
}
