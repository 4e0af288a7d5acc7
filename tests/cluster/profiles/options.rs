//! What holds for the options of every registered profile, also those that are added, on a real
//! server.

use std::collections::{BTreeMap, BTreeSet};

use advisor_core::api::{Operation, Phase};
use advisor_engine::registry::PROFILES;
use serde_json::{Value, json};

use crate::fixture::{Fixture, Setup, hyper_converged};

/// apiVersion, kind, namespace and name.
type TargetKey = (String, String, String, String);

/// The values that are tried of an option: the least and the most that it allows, or each that it
/// lists.
fn values(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.clone();
    }
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => vec![json!(true), json!(false)],
        #[expect(clippy::cast_possible_truncation, reason = "bounds of options are small whole numbers")]
        "integer" => ["minimum", "maximum"].map(|bound| json!(schema[bound].as_f64().unwrap() as i64)).to_vec(),
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let inner =
                properties.flat_map(|(name, inner)| values(inner).into_iter().map(move |value| json!({name: value})));
            inner.collect()
        }
        _ => Vec::new(),
    }
}

/// An option that is given and taken away again leaves nothing behind: the plan that follows is
/// that of the defaults, and what the option had brought is in it as a change or a removal. Defects
/// D13 and D22, for whatever profile there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_option_has_brought_goes_with_it() {
    for profile in PROFILES {
        let about = profile.about();
        let schema = advisor_core::api::options_schema(*profile);
        let mut fixture = Fixture::without_operator(Setup {
            workers: 1,
            speed: 100.0,
            profile: about.name,
            hyper_converged: Some(hyper_converged("v1beta1", json!({}))),
            ..Setup::default()
        })
        .await;
        let config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": about.name}, "spec": {"profile": about.name, "action": "Ignore"}});
        controlplane::apply_yaml(&fixture.admin, &config.to_string(), "somebody").await.unwrap();
        fixture.start_operator();
        let mut targets = BTreeSet::new();
        fixture.carry_out(Value::Null, &mut targets).await;
        for (option, inner) in schema["properties"].as_object().into_iter().flatten() {
            // The last one is enough: it is the most, or switches something off.
            let wanted = values(&inner.clone()).into_iter().rev().map(|value| json!({option: value}));
            let fits = |options: &Value| profile.configure(Some(options)).is_ok();
            let Some(options) = wanted.into_iter().find(fits) else { continue };
            let what = format!("{} {options}", about.name);
            let before = fixture.contents(&targets).await;
            fixture.carry_out(json!({about.options_key: options}), &mut targets).await;
            let with = fixture.contents(&targets).await;
            let back = fixture.carry_out(Value::Null, &mut targets).await;
            assert_eq!(back == 0, with == before, "{what}: what was brought is in the plan that takes it back");
            assert_eq!(fixture.contents(&targets).await, before, "{what} leaves something behind");
        }
        fixture.finish().await;
    }
}

impl Fixture {
    /// Plans these options, approves, and waits for the end. Returns how many items change
    /// something; notes what they are about.
    async fn carry_out(&self, options: Value, targets: &mut BTreeSet<TargetKey>) -> usize {
        self.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": options})).await;
        let plan =
            self.wait("a plan", |status| matches!(status.phase, Some(Phase::ReviewRequired | Phase::Completed))).await;
        let changes = plan.items.iter().filter(|item| item.operation != Operation::NoChange).count();
        targets.extend(plan.items.into_iter().map(|item| {
            let target = item.target_ref;
            (target.api_version, target.kind, target.namespace.unwrap_or_default(), target.name)
        }));
        self.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
        self.wait_for(Phase::Completed).await;
        changes
    }

    /// What is on the cluster of these objects, without what changes at every write.
    async fn contents(&self, targets: &BTreeSet<TargetKey>) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        for (api_version, kind, namespace, name) in targets {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
            let Some(live) = self.get(&object).await else { continue };
            all.insert(format!("{kind} {name}"), json!({"spec": live["spec"], "data": live["data"]}));
        }
        all
    }
}
