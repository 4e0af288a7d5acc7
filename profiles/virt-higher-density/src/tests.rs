//! The profile on data alone: what it drafts from which options and inputs.

use super::*;

fn planner(options: &Value) -> Box<dyn Planner> {
    PROFILE.configure(Some(options)).expect("valid options")
}

fn drafts(options: &Value, version: &str) -> Vec<Draft> {
    let hco = json!({"apiVersion": format!("hco.kubevirt.io/{version}"), "spec": {}});
    let inputs = Inputs::new([(hyper_converged(), Some(hco)), (kubelet_of_workers(), None)]);
    planner(options).draft(&inputs).expect("drafts")
}

fn object(draft: &Draft) -> &Value {
    match &draft.body {
        Body::Ensure(object) => object,
        other @ (Body::Remove(_) | Body::Blocked { .. }) => panic!("{other:?}"),
    }
}

fn spec(options: &Value, version: &str) -> Value {
    object(drafts(options, version).last().expect("a draft"))["spec"].clone()
}

#[test]
fn swap_comes_one_wave_before_memory_is_overcommitted() {
    let drafts = drafts(&json!({}), "v1beta1");
    let waves: Vec<_> = drafts.iter().map(|draft| (draft.name.as_str(), draft.wave)).collect();
    assert_eq!(waves, [("enable-kubelet-swap", 0), ("configure-higher-density", 1)]);
    insta::assert_yaml_snapshot!(drafts.iter().map(object).collect::<Vec<_>>());
}

/// Defect D73: a machine without the partition, or with swap on already, starts all the same;
/// nothing marks it as done for good.
#[test]
fn d73_a_machine_without_the_partition_starts_all_the_same() {
    let files = ["swap-provision.service", "cgroup-system-slice-config.service"];
    let units = object(&drafts(&json!({}), "v1")[0])["spec"]["config"]["systemd"]["units"].clone();
    for (unit, file) in units.as_array().unwrap().iter().zip(files) {
        assert_eq!(unit["name"], file);
        let text = unit["contents"].as_str().unwrap();
        assert!(!text.contains("RequiredBy") && text.contains("WantedBy=kubelet-dependencies.target"), "{text}");
        assert!(!text.contains("ConditionPathExists"), "{text}");
    }
    let script = include_str!("../templates/find-swap-partition.sh");
    assert_eq!(script.matches("exit 0").count(), 4);
    assert!(!script.contains("exit 1") && script.contains("readlink"));
}

/// A release whose kubelet does not read our settings for swap gets none: beside swap it might not
/// start.
#[test]
fn swap_is_switched_on_only_where_the_kubelet_reads_its_settings() {
    let script = include_str!("../templates/find-swap-partition.sh");
    let (asks, switches_on) =
        (script.find("\"$drop_ins\" <<<").unwrap(), script.find("swapon \"$partition\"").unwrap());
    assert!(asks < switches_on);
    let machine = drafts(&json!({}), "v1").remove(0);
    let files = object(&machine)["spec"]["config"]["storage"]["files"].clone();
    assert_eq!(files[1]["path"], "/etc/openshift/kubelet.conf.d/90-swap.conf");
    assert!(script.contains("drop_ins=/etc/openshift/kubelet.conf.d\n"));
    assert!(include_str!("../templates/90-swap.conf").contains("failSwapOn: false\n"));
}

#[test]
fn both_shapes_of_hyper_converged_say_the_same() {
    for options in [
        json!({}),
        json!({"memoryToRequestRatio": 200, "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": "yes"}}}}),
        json!({"ksmConfiguration": {"enabled": false}}),
    ] {
        assert_eq!(spec(&options, "v1")["virtualization"], spec(&options, "v1beta1"), "{options}");
    }
}

/// What is absent, empty and present means different things, and all of it reaches the target as it
/// was given.
#[test]
fn ksm_runs_where_the_options_say() {
    let expressions = json!({"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "gpu", "operator": "DoesNotExist"}]});
    for (ksm, selector) in [
        (None, Some(json!({}))),
        (Some(json!({})), Some(json!({}))),
        (Some(json!({"enabled": true})), Some(json!({}))),
        (Some(json!({"nodeLabelSelector": {}})), Some(json!({}))),
        (Some(json!({"nodeLabelSelector": {"matchLabels": {"a": "b"}}})), Some(json!({"matchLabels": {"a": "b"}}))),
        (Some(json!({"nodeLabelSelector": expressions})), Some(expressions.clone())),
        (Some(json!({"enabled": false})), None),
        (Some(json!({"enabled": false, "nodeLabelSelector": {"matchLabels": {"a": "b"}}})), None),
    ] {
        let options = ksm.clone().map_or_else(|| json!({}), |ksm| json!({"ksmConfiguration": ksm}));
        let found = spec(&options, "v1beta1").pointer("/ksmConfiguration/nodeLabelSelector").cloned();
        assert_eq!(found, selector, "{options}");
    }
    let off = json!({"ksmConfiguration": {"enabled": false}});
    assert_eq!(drafts(&off, "v1beta1")[1].unwanted, ["/spec/ksmConfiguration/nodeLabelSelector"]);
    assert_eq!(drafts(&off, "v1")[1].unwanted, ["/spec/virtualization/ksmConfiguration/nodeLabelSelector"]);
}

/// Defect D72: swap can be switched off without another word, and nothing is overcommitted then.
#[test]
fn d72_the_ratio_follows_swap_unless_it_is_given() {
    for (options, ratio) in [
        (json!({}), 150),
        (json!({"enableSwap": false}), 100),
        (json!({"enableSwap": false, "memoryToRequestRatio": 120}), 120),
        (json!({"memoryToRequestRatio": 300}), 300),
        (json!({"memoryToRequestRatio": 100}), 100),
    ] {
        let path = "/higherWorkloadDensity/memoryOvercommitPercentage";
        assert_eq!(spec(&options, "v1beta1").pointer(path), Some(&json!(ratio)), "{options}");
    }
    assert_eq!(drafts(&json!({"enableSwap": false}), "v1").len(), 1);
    let needs = |options: &Value| {
        planner(options).prerequisites().into_iter().map(|needed| needed.kind.kind).collect::<Vec<_>>()
    };
    assert_eq!(needs(&json!({})), ["MachineConfig", "HyperConverged"]);
    assert_eq!(needs(&json!({"enableSwap": false})), ["HyperConverged"]);
}

#[test]
fn options_that_do_not_fit_name_the_option_and_what_to_do() {
    let expression = |operator: &str, values: Value| json!({"ksmConfiguration": {"nodeLabelSelector": {"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}}});
    for (options, says) in [
        (
            json!({"enableSwap": false, "memoryToRequestRatio": 150}),
            "memoryToRequestRatio > 120 requires enableSwap=true",
        ),
        (expression("In", json!([])), "operator In of label zone requires one or more values"),
        (expression("Exists", json!(["a"])), "operator Exists of label zone takes no values"),
        (expression("Near", json!(["a"])), "Near"),
        (json!({"memoryToRequestRatio": "150"}), "150"),
        (json!({"ksmConfiguration": "all"}), "all"),
    ] {
        let error = PROFILE.configure(Some(&options)).err().expect("refused").to_string();
        assert!(error.contains("spec.options.virtHigherDensity") && error.contains(says), "{options}: {error}");
    }
}

/// Fault R16: what HyperConverged deploys because of our field is said, and only where it does.
#[test]
fn r16_wasp_agent_is_told_of_where_memory_is_overcommitted() {
    for (ratio, told) in [(100, false), (101, true), (150, true)] {
        let drafts = drafts(&json!({"memoryToRequestRatio": ratio}), "v1");
        let notes = drafts.last().unwrap().notes.join(" ");
        assert_eq!(notes.contains("wasp-agent, a privileged DaemonSet"), told, "{ratio}: {notes}");
    }
}

/// Fault R19: swap is for workers; where masters carry virtual machines that is said, and where
/// there are no others there is none.
#[test]
fn r19_what_gets_no_swap_is_said() {
    use profile_sdk::Surroundings;
    use profile_sdk::platform::{CONTROL_PLANE_WORKS, DEDICATED_WORKERS};
    let swap = |of_nodes: &[&'static str]| {
        let surroundings = Surroundings { of_nodes: of_nodes.iter().copied().collect(), ..Surroundings::default() };
        let inputs =
            Inputs::new([(hyper_converged(), None), (kubelet_of_workers(), None)]).in_surroundings(surroundings);
        PROFILE.configure(None).unwrap().draft(&inputs).unwrap().remove(0)
    };
    let says = |draft: &Draft| draft.notes.iter().any(|note| note.contains("get no swap: etcd"));
    let (workers, both) = (swap(&[]), swap(&[CONTROL_PLANE_WORKS.name, DEDICATED_WORKERS.name]));
    assert!(matches!(workers.body, Body::Ensure(_)) && !says(&workers));
    assert!(matches!(both.body, Body::Ensure(_)) && says(&both));
    match swap(&[CONTROL_PLANE_WORKS.name]).body {
        Body::Blocked { target, remedy } => {
            assert_eq!(target.name, "90-worker-kubelet-swap");
            assert!(remedy.contains("set spec.options.virtHigherDensity.enableSwap to false"), "{remedy}");
        }
        other @ (Body::Ensure(_) | Body::Remove(_)) => panic!("{other:?}"),
    }
}

/// Fault R18: what is written is the object that was found.
#[test]
fn r18_the_object_that_was_found_is_written() {
    let found = json!({"apiVersion": "hco.kubevirt.io/v1", "metadata": {"namespace": "kubevirt-hyperconverged"}});
    let inputs = Inputs::new([(hyper_converged(), Some(found)), (kubelet_of_workers(), None)]);
    let drafts = PROFILE.configure(None).unwrap().draft(&inputs).unwrap();
    match &drafts.last().unwrap().body {
        Body::Ensure(object) => assert_eq!(object["metadata"]["namespace"], "kubevirt-hyperconverged"),
        other @ (Body::Remove(_) | Body::Blocked { .. }) => panic!("{other:?}"),
    }
}

/// Observed beside the controllers of 4.17: machines rebooted for swap that no kubelet read of, and
/// memory was overcommitted.
#[test]
fn swap_is_no_plan_where_kubelets_read_no_settings() {
    let swap = |arguments: Option<&str>| {
        let unit = arguments.map(|arguments| json!({"name": "kubelet.service", "contents": format!("ExecStart=/usr/bin/kubelet {arguments}")}));
        let kubelet = unit.map(|unit| json!({"spec": {"config": {"systemd": {"units": [unit]}}}}));
        let inputs = Inputs::new([(hyper_converged(), None), (kubelet_of_workers(), kubelet)]);
        PROFILE.configure(None).unwrap().draft(&inputs).unwrap().remove(0)
    };
    let says = |draft: &Draft| draft.notes[0].contains("a release whose kubelet");
    let (unknown, new) = (swap(None), swap(Some("--config-dir=/etc/openshift/kubelet.conf.d")));
    assert!(matches!(unknown.body, Body::Ensure(_)) && says(&unknown));
    assert!(matches!(new.body, Body::Ensure(_)) && !says(&new));
    match swap(Some("--v=2")).body {
        Body::Blocked { remedy, .. } => assert!(remedy.contains("update to OpenShift 4.21"), "{remedy}"),
        other @ (Body::Ensure(_) | Body::Remove(_)) => panic!("{other:?}"),
    }
}
