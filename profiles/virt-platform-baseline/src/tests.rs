//! The profile on data alone: what is planned in which situation. This file has the tests of all
//! features, its folder those of single ones.

mod choices;
mod cluster;
mod hyper_converged;
mod in_flight_operations;
mod machines;
mod nodes;
mod operands;
mod served_kinds;

use serde_json::{Value, json};

use crate::PROFILE;
use crate::feature::Maturity;
use crate::features::FEATURES;
use crate::options::{Choice, Features};
use cluster::{Cluster, all_features, object};

#[test]
fn the_default_is_what_is_generally_available() {
    let cluster = Cluster::default();
    assert_eq!(cluster.item_names(json!({})), ["hyper-converged", "swap-worker"]);
    for feature in FEATURES.iter().filter(|feature| feature.maturity != Maturity::GeneralAvailability) {
        assert!(!cluster.reason_left_out(feature.name, json!({})).is_empty(), "{}", feature.name);
    }
}

#[test]
fn every_feature_can_be_switched_on_and_off_and_is_one_of_the_options() {
    let cluster = Cluster { nodes: &[], ..Cluster::default() };
    assert!(PROFILE.configure(Some(&all_features("Disabled"))).is_ok());
    assert_eq!(cluster.item_names(all_features("Disabled")), Vec::<String>::new());
    for &feature in FEATURES {
        assert_eq!(
            cluster.reason_left_out(feature.name, all_features("Disabled")),
            format!("spec.options.platformBaseline.features.{} is Disabled", feature.name)
        );
    }
    let drafts = cluster.drafts(all_features("Enabled"));
    let inputs = cluster.inputs();
    let left_out = PROFILE.configure(Some(&all_features("Enabled"))).unwrap().left_out(&inputs).unwrap();
    assert_eq!(left_out.iter().map(|part| part.feature.as_str()).collect::<Vec<_>>(), ["loadAwareRebalancing"]);
    insta::assert_yaml_snapshot!(
        "every_feature",
        drafts
            .iter()
            .map(|draft| {
                // Long documents have files of their own: a copy in the snapshot tells nothing
                // more.
                let mut object = object(draft).clone();
                if object["kind"] == "PersesDashboard" || object["kind"] == "PrometheusRule" {
                    object["spec"] = json!("…");
                }
                (&draft.name, draft.wave, &draft.reason, &draft.notes, object)
            })
            .collect::<Vec<_>>()
    );
}

/// A feature that reads the field of another one would follow the wrong switch.
#[test]
fn each_switch_belongs_to_one_feature_of_its_name() {
    for &feature in FEATURES {
        let parse = |features: Value| serde_json::from_value::<Features>(features).unwrap();
        let own = parse(json!({feature.name: "Disabled"}));
        assert_eq!((feature.choice)(&own), Some(Choice::Disabled), "{}", feature.name);
        let others = FEATURES.iter().filter(|other| other.name != feature.name);
        let others: serde_json::Map<_, _> = others.map(|other| (other.name.to_owned(), json!("Disabled"))).collect();
        assert_eq!((feature.choice)(&parse(others.into())), None, "{}", feature.name);
    }
}
