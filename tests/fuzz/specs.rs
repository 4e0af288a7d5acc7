//! `spec` as anybody may write it.

use advisor_core::api::spec_problem;
use advisor_core::api::{VirtPlatformConfig, VirtPlatformConfigSpec};
use advisor_core::plan::decision::observed::Wanted;
use object::limits::{OBJECT_DEPTH, SPEC_SIZE, depth, size};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::run;
use crate::values::{mutated, nested, text};

pub fn spec() -> Value {
    json!({
        "profile": "p", "action": "Apply", "failurePolicy": "Continue", "options": {"p": {"a": 1}}, "bypassOptimisticLock": true,
        "waitTimeout": "1h30m", "approvedPlanHash": "v1:00", "approvalPolicy": "Automatic",
        "overrides": [{
            "target": {"kind": "Widget", "name": "w", "namespace": "n", "group": "example.dev"},
            "patch": [{"op": "add", "path": "/spec/a", "value": {"b": [1]}}, {"op": "copy", "path": "/spec/a", "from": "/spec/b"}],
            "ignoreFields": ["/spec/c"], "mode": "Unmanaged",
        }],
        "items": [{"name": "a", "mode": "Skip", "reason": "r", "until": "2026-01-01T00:00:00Z"}],
    })
}

fn changed() -> impl Strategy<Value = Value> {
    let large =
        prop_oneof![9 => Just(Value::Null), 1 => (0_usize..700_000).prop_map(|length| json!("o".repeat(length)))];
    let levels = prop_oneof![4 => Just(0), 1 => 0_usize..110];
    let timeout = prop_oneof![4 => Just("90m".to_owned()), 1 => "[0-9]{1,29}(h|m|s|ns)", 1 => text()];
    (mutated(spec()), large, levels, timeout).prop_map(|(mut spec, large, levels, timeout)| {
        if let Some(spec) = spec.as_object_mut() {
            if !large.is_null() || levels > 0 {
                spec.insert("options".to_owned(), nested(levels, "o", json!({"o": large})));
            }
            spec.insert("waitTimeout".to_owned(), json!(timeout));
        }
        spec
    })
}

#[test]
fn a_spec_is_within_its_bounds_or_its_problem_is_said() {
    run("specs", changed(), |value| {
        let Ok(spec) = serde_json::from_value::<VirtPlatformConfigSpec>(value) else { return Ok(()) };
        let written = serde_json::to_value(&spec).unwrap();
        prop_assert_eq!(&serde_json::from_value::<VirtPlatformConfigSpec>(written.clone()).unwrap(), &spec);
        match spec_problem(&spec) {
            Some(problem) => prop_assert!(problem.len() < 1024, "{problem}"),
            None => prop_assert!(depth(&written) < OBJECT_DEPTH && size(&written) <= SPEC_SIZE),
        }
        let mut config = VirtPlatformConfig::new("p", spec);
        config.metadata.generation = Some(i64::MAX);
        let wanted = Wanted::of(&config);
        prop_assert!(wanted.terms().wait_timeout.is_none_or(|limit| limit.len() <= 32));
        config.spec.approved_plan_hash = None;
        config.spec.action = advisor_core::api::Action::DryRun;
        prop_assert_eq!(Wanted::of(&config).spec_hash, wanted.spec_hash);
        Ok(())
    });
}
