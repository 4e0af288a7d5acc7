//! The effect of a planned KubeletConfig, and what each release writes into its status.

use super::*;
use crate::plan::items::one_by_one;
use crate::plan::remedy::Remedy;

fn config(kubelet: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "k"},
        "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": "worker"}}, "kubeletConfig": kubelet},
    })
}

fn pools(sources: &[&str]) -> BTreeMap<String, Pool> {
    let sources: Vec<_> = sources.iter().map(|name| json!({"name": name})).collect();
    let pool = |name: &str| {
        Pool::read(&json!({
            "metadata": {"name": name, "labels": {"pool": name}},
            "spec": {
                "configuration": {"name": "r", "source": sources},
                "machineConfigSelector": {"matchLabels": {ROLE: name}},
            },
            "status": {"machineCount": 3},
        }))
    };
    [("worker".to_owned(), pool("worker")), ("master".to_owned(), pool("master"))].into()
}

fn forecast_of(sources: &[&str], live: Option<&Value>, result: Option<&Value>) -> Result<Effect, Remedy> {
    match forecast(
        &pools(sources),
        &makers(sources, Some("theirs")),
        Some(&Policies::of(&[])),
        PlannedChange { live, result, takes_back: false, leaving: &[] },
    ) {
        Forecast::Known(known) => known,
        asked => panic!("{asked:?}"),
    }
}

/// What was read of `sources`: that `maker` made them, or that they are gone.
fn makers(sources: &[&str], maker: Option<&str>) -> Facts {
    let made =
        maker.map(|name| json!({"metadata": {"ownerReferences": [{"kind": KUBELET_CONFIG.kind, "name": name}]}}));
    let mut facts = Facts::default();
    for source in sources {
        record_maker(&mut facts, &pools(sources), source, made.as_ref());
    }
    facts
}

#[test]
fn the_machines_of_the_selected_pools_reboot() {
    let (one, two) = (config(json!({"maxPods": 300})), config(json!({"maxPods": 400})));
    let effect = forecast_of(&[], None, Some(&one)).unwrap();
    assert_eq!(effect.pools, one_by_one(&[("worker", 3)]));
    assert!(effect.notes[0].contains("kubelet"), "{effect:?}");
    assert_eq!(forecast_of(&[], Some(&one), Some(&two)).unwrap().machines(), 3);
    assert_eq!(forecast_of(&[], Some(&one), Some(&one)).unwrap(), Effect::default());
    assert_eq!(forecast_of(&[], Some(&one), None).unwrap().machines(), 3);
}

/// R1: what each release writes into the status of a KubeletConfig, and when that does not concern
/// its last edit.
#[test]
fn r1_every_release_says_what_it_has_accepted() {
    let condition = |kind: &str, status: &str, second: u8| {
        json!({
            "type": kind, "status": status, "message": format!("{kind} {status}"), "lastTransitionTime": format!("2026-01-01T00:00:{second:02}Z"),
        })
    };
    let said = |observed: Option<i64>, conditions: &[Value]| {
        let edit =
            json!({"manager": "m", "time": "2026-01-01T00:00:10Z", "fieldsV1": {"f:spec": {"f:kubeletConfig": {}}}});
        let status = json!({"manager": "c", "time": "2026-01-01T00:00:50Z", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let mut object = config(json!({}));
        object["metadata"]["generation"] = json!(2);
        object["metadata"]["managedFields"] = json!([edit, status]);
        object["status"] = json!({"observedGeneration": observed, "conditions": conditions});
        assert_eq!(verdict(&object), verdict(&followed(&object)), "what is followed is judged alike");
        verdict(&object)
    };
    let refused = |text: &str| Acceptance::Refused(text.to_owned());
    let (success, accepted) = (condition("Success", "True", 20), condition("Accepted", "True", 20));
    for (release, observed, conditions, expected) in [
        ("4.14 to 4.22", Some(2), vec![success.clone()], Acceptance::Accepted),
        ("4.14 to 4.21", Some(2), vec![success.clone(), condition("Failure", "False", 20)], refused("Failure False")),
        ("4.22", Some(2), vec![success.clone(), condition("Failure", "True", 20)], refused("Failure True")),
        ("4.14 to 4.22, mended", Some(2), vec![condition("Failure", "True", 5), success.clone()], Acceptance::Accepted),
        ("4.23", Some(2), vec![accepted.clone(), success.clone()], Acceptance::Accepted),
        (
            "4.23",
            Some(2),
            vec![accepted.clone(), condition("Accepted", "False", 20), condition("Failure", "True", 20)],
            refused("Failure True"),
        ),
        ("main without what is old", Some(2), vec![condition("Accepted", "False", 20)], refused("Accepted False")),
        ("an edit that is not seen", Some(1), vec![condition("Success", "True", 9)], Acceptance::Unseen),
        ("observedGeneration is left behind", Some(1), vec![success.clone()], Acceptance::Accepted),
        ("observedGeneration is not written", None, vec![condition("Success", "True", 10)], Acceptance::Accepted),
        ("observedGeneration is not written", None, vec![condition("Failure", "False", 10)], refused("Failure False")),
        ("observedGeneration is not written", None, vec![condition("Success", "True", 9)], Acceptance::Unseen),
        ("nothing yet", Some(2), vec![], Acceptance::Unseen),
        ("something else", Some(2), vec![condition("Other", "True", 20)], Acceptance::Unseen),
    ] {
        assert_eq!(said(observed, &conditions), expected, "{release}: {conditions:?}");
    }
}

#[test]
fn what_the_controllers_would_refuse_is_no_plan() {
    for (kubelet, says) in [
        (json!({"cgroupDriver": "x"}), "cgroupDriver"),
        (json!({"memorySwap": {"swapBehavior": "LimitedSwap"}}), "swapBehavior"),
        (json!({"failSwapOn": false}), "failSwapOn"),
    ] {
        assert!(forecast_of(&[], None, Some(&config(kubelet))).unwrap_err().contains(says), "{says}");
    }
    let mut both = config(json!({"systemReserved": {"cpu": "1"}}));
    both["spec"]["autoSizingReserved"] = json!(true);
    assert!(forecast_of(&[], None, Some(&both)).unwrap_err().contains("autoSizingReserved"));
    let mut loud = config(json!({}));
    loud["spec"]["logLevel"] = json!(11);
    assert!(forecast_of(&[], None, Some(&loud)).unwrap_err().contains("logLevel 11"));
    let mut nobody = config(json!({}));
    nobody["spec"]["machineConfigPoolSelector"] = json!({"matchLabels": {"pool": "none"}});
    assert!(forecast_of(&[], None, Some(&nobody)).unwrap_err().contains("selects no MachineConfigPool"));
}

/// Case M8: a custom pool includes what is generated for workers, and reboots with it.
#[test]
fn m8_pools_that_take_in_what_workers_get_reboot_too() {
    let role = |names: &[&str]| json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": names}]});
    let pools_with = |machines: i64, sources: &[&str]| -> BTreeMap<String, Pool> {
        let sources: Vec<_> = sources.iter().map(|name| json!({"name": name})).collect();
        let mut fast = json!({
            "metadata": {"name": "fast"}, "spec": {"machineConfigSelector": role(&["worker", "fast"])},
            "status": {"machineCount": 2},
        });
        fast["spec"]["configuration"] = json!({"name": "r", "source": sources});
        let worker = json!({
            "metadata": {"name": "worker", "labels": {"pool": "worker"}},
            "spec": {"machineConfigSelector": role(&["worker"])}, "status": {"machineCount": machines},
        });
        [fast, worker].iter().map(Pool::read).map(|pool| (pool.name.clone(), pool)).collect()
    };
    let wanted = config(json!({"maxPods": 300}));
    let makers = makers(&["99-fast-generated-kubelet"], Some("theirs"));
    let known_of = |pools: &BTreeMap<String, Pool>| match forecast(
        pools,
        &makers,
        Some(&Policies::of(&[])),
        PlannedChange { live: None, result: Some(&wanted), takes_back: false, leaving: &[] },
    ) {
        Forecast::Known(known) => known,
        asked => panic!("{asked:?}"),
    };
    let forecast_of = |pools: &BTreeMap<String, Pool>| known_of(pools).unwrap();
    assert_eq!(forecast_of(&pools_with(3, &[])).pools, one_by_one(&[("fast", 2), ("worker", 3)]));
    // All machines of workers may be in custom pools.
    assert_eq!(forecast_of(&pools_with(0, &[])).machines(), 2);
    let overridden = forecast_of(&pools_with(3, &["99-fast-generated-kubelet"]));
    assert_eq!(overridden.pools, one_by_one(&[("worker", 3)]));
    assert!(
        overridden.notes[0].contains("a KubeletConfig of its own (rendered as 99-fast-generated-kubelet)"),
        "{overridden:?}"
    );
    // M9: the only machines that exist would not get it.
    let nobody = known_of(&pools_with(0, &["99-fast-generated-kubelet"])).unwrap_err();
    assert!(nobody.contains("it would reach no machine: MachineConfigPool fast"), "{nobody}");
}

/// Case M9.
#[test]
fn m9_what_would_reach_no_machine_is_no_plan() {
    let mut empty = pools(&[]);
    let worker =
        json!({"metadata": {"name": "worker", "labels": {"pool": "worker"}}, "spec": {"machineConfigSelector": {}}});
    empty.insert("worker".to_owned(), Pool::read(&worker));
    let wanted = config(json!({}));
    let planned = |takes_back| PlannedChange { live: None, result: Some(&wanted), takes_back, leaving: &[] };
    let none = Facts::default();
    let Forecast::Known(Err(problem)) = forecast(&empty, &none, Some(&Policies::of(&[])), planned(false)) else {
        panic!("a plan")
    };
    assert!(problem.contains("has no machines"), "{problem}");
    assert!(matches!(forecast(&empty, &none, Some(&Policies::of(&[])), planned(true)), Forecast::Known(Ok(_))));
}

/// Fault R5: a setting in a file of its own reboots machines even if another KubeletConfig
/// overrides the rest.
#[test]
fn r5_files_beside_the_configuration_reach_pools_that_override_it() {
    let sources = ["99-infra-generated-kubelet"];
    let mut all = pools(&[]);
    let infra = json!({
        "metadata": {"name": "infra", "labels": {"pool": "infra"}}, "status": {"machineCount": 2},
        "spec": {
            "configuration": {"name": "r", "source": [{"name": sources[0]}]},
            "machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]},
        },
    });
    all.insert("infra".to_owned(), Pool::read(&infra));
    let known = makers(&sources, Some("theirs"));
    let plain = config(json!({"maxPods": 300}));
    for (more, reboot) in [
        (json!({"kubeletConfig": {"maxPods": 400}}), vec!["worker"]),
        (json!({"autoSizingReserved": true}), vec!["infra", "worker"]),
        (json!({"logLevel": 4}), vec!["infra", "worker"]),
        (json!({"kubeletConfig": {"systemReserved": {"memory": "2Gi"}}}), vec!["infra", "worker"]),
    ] {
        let mut result = plain.clone();
        result["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for live in [None, Some(&plain)] {
            let planned = PlannedChange { live, result: Some(&result), takes_back: false, leaving: &[] };
            let Forecast::Known(Ok(effect)) = forecast(&all, &known, Some(&Policies::of(&[])), planned) else {
                panic!("{more}")
            };
            assert_eq!(effect.pools.into_keys().collect::<Vec<_>>(), reboot, "{more}");
        }
    }
}

/// Case M11: with two for one pool, the settings of one are lost.
#[test]
fn m11_a_second_one_for_a_pool_is_no_plan() {
    let refused = forecast_of(&["99-worker-generated-kubelet"], None, Some(&config(json!({})))).unwrap_err();
    assert!(
        refused.contains("already has KubeletConfig theirs (rendered as 99-worker-generated-kubelet)"),
        "{refused}"
    );
    let with_number = |number: &str| {
        let mut object = config(json!({"maxPods": 300}));
        object["metadata"]["annotations"] = json!({SUFFIX: number});
        object
    };
    let both = ["99-worker-generated-kubelet", "99-worker-generated-kubelet-1"];
    let other = config(json!({"maxPods": 400}));
    let earlier = forecast_of(&both, Some(&with_number("")), Some(&other)).unwrap_err();
    assert!(earlier.contains("rendered as 99-worker-generated-kubelet-1"), "{earlier}");
    let later = forecast_of(&both, Some(&with_number("1")), Some(&other)).unwrap();
    assert!(later.notes[0].contains("which this one overrides"), "{later:?}");
    assert!(forecast_of(&both[..1], Some(&with_number("")), Some(&other)).unwrap().notes.len() == 1);
    // A source that a pool still lists may be generated from our own object, or from one that no
    // longer exists.
    let first = |makers: &Facts| {
        let planned = PlannedChange { live: None, result: Some(&other), takes_back: false, leaving: &[] };
        forecast(&pools(&both[..1]), makers, Some(&Policies::of(&[])), planned)
    };
    assert_eq!(first(&Facts::default()), Forecast::Unread(vec![Needed::Maker(both[0].to_owned())]));
    for maker in [None, Some("k")] {
        assert!(matches!(first(&makers(&both[..1], maker)), Forecast::Known(Ok(_))), "{maker:?}");
    }
    let owned = json!({"metadata": {"ownerReferences": [{"kind": "KubeletConfig", "name": "theirs"}]}});
    assert_eq!((maker(&owned), maker(&json!({}))), (Some("theirs".to_owned()), None));
}

/// Node disruption policies name each file that is generated from a KubeletConfig separately.
#[test]
fn a_kubelet_config_is_under_the_policies_of_its_files() {
    let policies = |paths: &[&str]| {
        let files: Vec<_> = paths.iter().map(|path| json!({"path": path, "actions": [{"type": "None"}]})).collect();
        Policies::of(&[json!({"metadata": {"name": "cluster", "generation": 1}, "status": {
            "observedGeneration": 1, "nodeDisruptionPolicyStatus": {"clusterPolicies": {"files": files}}}})])
    };
    let with_level = |level: i64| {
        let mut object = config(json!({"maxPods": 300}));
        object["spec"]["logLevel"] = json!(level);
        object
    };
    let (plain, two, three) = (config(json!({"maxPods": 300})), with_level(2), with_level(3));
    let reboots = |paths: &[&str], live: Option<&Value>, result: &Value| {
        let planned = PlannedChange { live, result: Some(result), takes_back: false, leaving: &[] };
        match forecast(&pools(&[]), &Facts::default(), Some(&policies(paths)), planned) {
            Forecast::Known(Ok(effect)) => effect.machines() > 0,
            asked => panic!("{asked:?}"),
        }
    };
    let logging = "/etc/systemd/system/kubelet.service.d";
    assert!(reboots(&[], None, &plain));
    assert!(!reboots(&[FILE], None, &plain));
    assert!(!reboots(&["/etc/kubernetes"], None, &plain));
    assert!(reboots(&[FILE], None, &two), "the log level is in a file of its own");
    assert!(!reboots(&[FILE, logging], None, &two));
    assert!(reboots(&[FILE], Some(&two), &three));
    assert!(!reboots(&[logging], Some(&two), &three), "the other file stays as it is");
    let unknown = forecast(
        &pools(&[]),
        &Facts::default(),
        None,
        PlannedChange { live: None, result: Some(&plain), takes_back: false, leaving: &[] },
    );
    assert_eq!(unknown, Forecast::Unlisted(MACHINE_CONFIGURATION));
}
