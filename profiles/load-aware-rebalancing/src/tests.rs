//! The profile on data alone: what it drafts from which options and inputs.

use super::*;
use serde_json::json;

fn planner(options: Value) -> Box<dyn Planner> {
    PROFILE.configure(Some(&options)).expect("valid options")
}

fn crd(profiles: &[&str], limits: &[&str]) -> Value {
    let limits: serde_json::Map<_, _> =
        limits.iter().map(|name| ((*name).to_owned(), json!({"type": "integer"}))).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"versions": [{
        "name": "v1", "served": true,
        "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {
            "profiles": {"items": {"enum": profiles}},
            "evictionLimits": {"properties": limits},
        }}}}},
    }]}})
}

fn hco(version: &str, total: i64, node: i64) -> Value {
    let limits = json!({"parallelMigrationsPerCluster": total, "parallelOutboundMigrationsPerNode": node});
    let spec = match version {
        "v1beta1" => json!({"liveMigrationConfig": limits}),
        _ => json!({"virtualization": {"liveMigrationConfig": limits}}),
    };
    json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": spec})
}

fn inputs(crd: Value, live: Option<Value>, hco: Option<Value>) -> Inputs {
    Inputs::new([(descheduler_crd(), Some(crd)), (descheduler_object(), live), (hyper_converged(), hco)])
}

fn descheduler(drafts: &[Draft]) -> &Value {
    match &drafts.last().expect("a draft").body {
        Body::Ensure(object) => object,
        other @ (Body::Remove(_) | Body::Blocked { .. }) => panic!("{other:?}"),
    }
}

const GA: &[&str] = &["LongLifecycle", "DevKubeVirtRelieveAndMigrate", "KubeVirtRelieveAndMigrate"];

#[test]
fn psi_comes_one_wave_before_the_descheduler() {
    let drafts = planner(json!({})).draft(&inputs(crd(GA, &["total", "node"]), None, Some(hco("v1", 5, 2)))).unwrap();
    let waves: Vec<_> = drafts.iter().map(|draft| (draft.name.as_str(), draft.wave)).collect();
    assert_eq!(waves, [("enable-psi-metrics", 0), ("enable-load-aware-descheduling", 1)]);
    insta::assert_yaml_snapshot!(descheduler(&drafts));
}

#[test]
fn without_psi_there_is_no_machine_config_and_no_need_for_its_kind() {
    let planner = planner(json!({"enablePSIMetrics": false}));
    assert!(planner.prerequisites().iter().all(|needed| needed.kind.kind != "MachineConfig"));
    assert_eq!(planner.draft(&inputs(crd(GA, &[]), None, None)).unwrap().len(), 1);
}

#[test]
fn every_option_reaches_the_target() {
    let options = json!({"deschedulingIntervalSeconds": 600, "mode": "Predictive", "devDeviationThresholds": "High",
        "evictionLimitTotal": 7, "evictionLimitNode": 3});
    let planned = planner(options);
    let inputs = inputs(crd(GA, &["total", "node"]), None, Some(hco("v1", 50, 20)));
    let drafts = planned.draft(&inputs).unwrap();
    let spec = &descheduler(&drafts)["spec"];
    assert_eq!(spec["deschedulingIntervalSeconds"], 600);
    assert_eq!(spec["mode"], "Predictive");
    assert_eq!(spec["profileCustomizations"]["devDeviationThresholds"], "High");
    assert_eq!(spec["evictionLimits"], json!({"total": 7, "node": 3}), "options are not scaled");
    let used: Vec<_> = inputs.recorded().into_iter().map(|recorded| recorded.target.kind).collect();
    assert!(!used.contains(&"HyperConverged".to_owned()), "limits that were given do not depend on it: {used:?}");
}

#[test]
fn the_profile_follows_what_the_release_serves() {
    for (offered, want) in [
        (GA, "KubeVirtRelieveAndMigrate"),
        (&["LongLifecycle", "DevKubeVirtRelieveAndMigrate"][..], "DevKubeVirtRelieveAndMigrate"),
        (&["LongLifecycle"][..], "LongLifecycle"),
    ] {
        let drafts = planner(json!({})).draft(&inputs(crd(offered, &["total"]), None, Some(hco("v1", 5, 2)))).unwrap();
        let spec = &descheduler(&drafts)["spec"];
        assert_eq!(spec["profiles"], json!([want]));
        assert_eq!(spec.get("profileCustomizations").is_some(), want != "LongLifecycle", "{want}");
        assert_eq!(spec["evictionLimits"], json!({"total": 5}), "{want}: limits wherever they are served");
    }
}

#[test]
fn a_release_without_such_a_profile_blocks_the_item_and_names_the_release_needed() {
    let drafts = planner(json!({}))
        .draft(&inputs(crd(&["DevPreviewLongLifecycle"], &[]), None, Some(hco("v1beta1", 5, 2))))
        .unwrap();
    let Body::Blocked { remedy, .. } = &drafts[1].body else { panic!("not blocked") };
    assert!(remedy.contains("OpenShift 4.17 or later") && remedy.contains("DevPreviewLongLifecycle"), "{remedy}");
}

#[test]
fn compatible_profiles_of_the_administrator_stay_in_their_order() {
    let live = json!({"apiVersion": "operator.openshift.io/v1", "spec": {"profiles":
        ["SoftTopologyAndDuplicates", "EvictPodsWithPVC", "AffinityAndTaints", "LongLifecycle"]}});
    let drafts = planner(json!({})).draft(&inputs(crd(GA, &[]), Some(live), None)).unwrap();
    assert_eq!(
        descheduler(&drafts)["spec"]["profiles"],
        json!(["SoftTopologyAndDuplicates", "AffinityAndTaints", "KubeVirtRelieveAndMigrate"])
    );
}

#[test]
fn our_own_write_is_no_change_of_an_input() {
    let recorded = |profiles: Value| {
        let live = json!({"apiVersion": "operator.openshift.io/v1", "spec": {"profiles": profiles}});
        let inputs = inputs(crd(GA, &[]), Some(live), None);
        planner(json!({})).draft(&inputs).unwrap();
        inputs.recorded()
    };
    assert_eq!(
        recorded(json!(["AffinityAndTaints", "EvictPodsWithPVC"])),
        recorded(json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"]))
    );
}

#[test]
fn limits_follow_hyper_converged_in_both_shapes_each_on_its_own() {
    for version in ["v1beta1", "v1"] {
        let inputs = inputs(crd(GA, &["total", "node"]), None, Some(hco(version, 20, 4)));
        let drafts = planner(json!({"evictionLimitTotal": 3})).draft(&inputs).unwrap();
        assert_eq!(descheduler(&drafts)["spec"]["evictionLimits"], json!({"total": 3, "node": 4}), "{version}");
        let used: Vec<_> =
            inputs.recorded().into_iter().filter(|r| r.target.kind == "HyperConverged").map(|r| r.path).collect();
        assert_eq!(used.len(), 1, "{version}: {used:?}");
        assert!(used[0].ends_with("/parallelOutboundMigrationsPerNode"), "{version}: {used:?}");
    }
}

#[test]
fn a_limit_that_this_release_can_not_honour_is_said() {
    let drafts = planner(json!({"evictionLimitNode": 3})).draft(&inputs(crd(GA, &["total"]), None, None)).unwrap();
    assert!(drafts[1].notes[0].contains("evictionLimitNode"), "{:?}", drafts[1].notes);
    assert_eq!(descheduler(&drafts)["spec"]["evictionLimits"], json!({"total": 5}));
}

/// D1: what excludes each other is not asked for together, and what a release does not know is
/// said.
#[test]
fn d1_deviations_go_without_fixed_thresholds_and_only_where_they_are_known() {
    let options = json!({"devDeviationThresholds": "High"});
    let draft = |offered: &[&str], fixed: &str| {
        let live = json!({"spec": {"profileCustomizations": {"devLowNodeUtilizationThresholds": fixed}}});
        let inputs = inputs(crd(offered, &["total"]), Some(live), Some(hco("v1", 5, 2)));
        planner(options.clone()).draft(&inputs).unwrap().pop().unwrap()
    };
    let new = draft(GA, "");
    assert!(matches!(new.body, Body::Ensure(_)) && new.notes.len() == 1, "{new:?}");
    let contradictory = draft(GA, "Medium");
    let Body::Blocked { remedy, .. } = &contradictory.body else { panic!("not blocked") };
    assert!(remedy.contains("devLowNodeUtilizationThresholds is set"), "{remedy}");
    let old = draft(&["LongLifecycle"], "Medium");
    assert!(matches!(old.body, Body::Ensure(_)));
    assert!(old.notes[0].starts_with("option devDeviationThresholds has no effect"), "{:?}", old.notes);
}

/// D6: the same option moves other machines on another release.
#[test]
fn d6_which_machines_become_eligible_is_said() {
    for (offered, mark) in [
        (
            &["KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate"][..],
            "any virtual machine that can be live-migrated, in the namespaces",
        ),
        (&["DevKubeVirtRelieveAndMigrate"], "only virtual machines whose template has the annotation"),
        (&["LongLifecycle"], "only virtual machines whose template has the annotation"),
    ] {
        let drafts = planner(json!({})).draft(&inputs(crd(offered, &[]), None, Some(hco("v1", 5, 2)))).unwrap();
        let said = drafts.last().unwrap().notes.last().unwrap();
        assert!(said.contains(mark), "{offered:?}: {said}");
    }
}

#[test]
fn options_of_the_wrong_type_name_the_option() {
    let error = PROFILE.configure(Some(&json!({"mode": "Sometimes"}))).err().expect("refused").to_string();
    assert!(error.contains("spec.options.loadAware") && error.contains("Sometimes"), "{error}");
}

/// Fault R20: HCOMisconfiguredDescheduler fires wherever evictions in background are not switched
/// on (hyperconverged-cluster-operator release-1.13, pkg/util/cluster.go, `RefreshDeschedulerCR`),
/// and 4.17 has them for every profile.
#[test]
fn r20_evictions_in_background_are_on_wherever_the_release_has_them() {
    for (has, want) in [(false, Value::Null), (true, json!({"devEnableEvictionsInBackground": true}))] {
        let mut crd = crd(&["LongLifecycle"], &[]);
        let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        if has {
            spec["profileCustomizations"] =
                json!({"properties": {"devEnableEvictionsInBackground": {"type": "boolean"}}});
        }
        let drafts = planner(json!({})).draft(&inputs(crd, None, Some(hco("v1beta1", 5, 2)))).unwrap();
        assert_eq!(descheduler(&drafts)["spec"]["profileCustomizations"], want, "{has}");
    }
}

/// Fault R19: machines of the control plane that carry virtual machines are measured too, alone
/// where there are no others.
#[test]
fn r19_masters_that_carry_virtual_machines_get_psi() {
    use profile_sdk::Surroundings;
    use profile_sdk::platform::{CONTROL_PLANE_WORKS, DEDICATED_WORKERS};
    for (of_nodes, names) in [
        (vec![], vec!["99-worker-psi-karg"]),
        (vec![CONTROL_PLANE_WORKS.name, DEDICATED_WORKERS.name], vec!["99-worker-psi-karg", "99-master-psi-karg"]),
        (vec![CONTROL_PLANE_WORKS.name], vec!["99-master-psi-karg"]),
    ] {
        let surroundings = Surroundings { of_nodes: of_nodes.into_iter().collect(), ..Surroundings::default() };
        let inputs = inputs(crd(GA, &[]), None, None).in_surroundings(surroundings);
        let drafts = planner(json!({})).draft(&inputs).unwrap();
        let (descheduler, machines) = drafts.split_last().unwrap();
        let found: Vec<_> = machines
            .iter()
            .map(|draft| match &draft.body {
                Body::Ensure(object) => (object["metadata"]["name"].clone(), object["metadata"]["labels"].clone()),
                other @ (Body::Remove(_) | Body::Blocked { .. }) => panic!("{other:?}"),
            })
            .collect();
        let role = |name: &str| name.split('-').nth(1).unwrap().to_owned();
        let expected: Vec<_> = names
            .iter()
            .map(|name| (json!(name), json!({"machineconfiguration.openshift.io/role": role(name)})))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(descheduler.needs, machines.iter().map(|draft| draft.name.clone()).collect::<Vec<_>>());
    }
}
