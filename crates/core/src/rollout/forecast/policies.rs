//! The effect of planned MachineConfigs under node disruption policies.

use serde_json::json;

use super::tests::{World, files, kargs, machine_config};
use super::*;
use crate::plan::items::one_by_one;

/// The effect of a change under `policies` of MachineConfiguration cluster.
fn under_policies(policies: Value, live: Option<Value>, result: Value) -> Effect {
    let mut world = World::new(json!({}), &[]);
    let of_cluster = json!({"metadata": {"name": "cluster", "generation": 1}, "status": {
        "observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": policies}}});
    world.policies = Policies::of(&[of_cluster]);
    let object = |spec: Value| machine_config("90-ours", "worker", spec);
    let (live, result) = (live.map(object), object(result));
    world.effect(live.as_ref(), Some(&result)).0.unwrap()
}

/// Observed rules of machine-config-operator's daemon: node disruption policies decide whether
/// machines reboot for files and units.
#[test]
fn machines_do_not_reboot_where_a_node_disruption_policy_says_so() {
    let policies = |action: &str| json!({"files": [{"path": "/etc/ours", "actions": [{"type": action}]}]});
    let ours = || files(&[("/etc/ours/a.conf", "data:,1")]);
    let three = one_by_one(&[("worker", 3)]);
    let told = |action: &str| {
        let effect = under_policies(policies(action), None, ours());
        assert_eq!(effect.machines(), 0, "{action}");
        (effect.drained.clone(), effect.notes.join(" "))
    };
    let later = "Services may be reloaded or restarted instead; what needs a reboot takes effect with the next one.";
    assert_eq!(
        told("None"),
        (BTreeMap::new(), format!("Neither drains nor reboots the machines of pool worker. {later}"))
    );
    let drains = format!("Drains the 3 machines of pool worker, one by one, and reboots none. {later}");
    assert_eq!(told("Drain"), (three.clone(), drains));
    let may_drain = format!("May drain the 3 machines of pool worker, one by one, and reboots none. {later}");
    assert_eq!(told("Special"), (three.clone(), may_drain));
    // Files without a policy reboot machines, and so does everything that can't have one.
    let both = files(&[("/etc/ours/a.conf", "data:,1"), ("/etc/other", "data:,1")]);
    let mut with_argument = ours();
    with_argument["kernelArguments"] = json!(["psi=1"]);
    for rebooting in [both, with_argument, kargs(&["psi=1"])] {
        let effect = under_policies(policies("None"), None, rebooting.clone());
        assert_eq!((effect.pools, effect.drained), (three.clone(), BTreeMap::new()), "{rebooting}");
    }
}

#[test]
fn policies_are_asked_for_where_they_count_and_nowhere_else() {
    let world = World::new(json!({}), &[]);
    let forecast_of = |spec: Value| {
        let object = machine_config("90-ours", "worker", spec);
        let planned = PlannedChange { live: None, result: Some(&object), takes_back: false, leaving: &[] };
        let mut facts = Facts::default();
        let needed = Needed::Rendered("rendered".to_owned());
        record(&mut facts, &world.pools, planned, &needed, world.objects.get("rendered"));
        forecast(&world.pools, &facts, None, planned)
    };
    assert_eq!(forecast_of(files(&[("/etc/a", "data:,1")])), Forecast::Unlisted(MACHINE_CONFIGURATION));
    assert!(
        matches!(forecast_of(kargs(&["psi=1"])), Forecast::Known(Ok(_))),
        "no policy keeps machines from rebooting for it"
    );
}

#[test]
fn ssh_keys_reboot_nothing_unless_a_policy_says_so() {
    let keys = |key: &str| json!({"config": {"ignition": {"version": "3.2.0"}, "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [key]}]}}});
    let effect = |policies: Value| under_policies(policies, Some(keys("a")), keys("b"));
    let quiet = effect(json!({}));
    assert!(quiet.pools.is_empty() && quiet.drained.is_empty(), "{quiet:?}");
    assert!(quiet.notes[0].starts_with("Neither drains nor reboots"), "{quiet:?}");
    assert_eq!(effect(json!({"sshkey": {"actions": [{"type": "Reboot"}]}})).pools, one_by_one(&[("worker", 3)]));
}
