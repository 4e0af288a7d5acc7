//! What a plan shows is what the server does: nothing hidden, nothing false, nothing that changes
//! by itself.

use advisor_core::api::Operation;
use advisor_core::plan::status::Written;
use advisor_core::rollout::Rollouts;
use object::diff::{self, without_noise, yaml};
use serde_json::{Value, json};

use super::world::{World, config_map, draft, widget};

/// S10, S2: for each pair of states the real apply gives what the preview showed, and changes
/// nothing where the plan says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_the_real_apply_gives_what_the_preview_showed() {
    let world = World::start(&[]).await;
    let full = json!({
        "size": 1, "atomic": ["a", "b"], "set": ["x", "y"], "map": [{"name": "m", "size": 1}, {"name": "n"}],
        "selector": {"a": "b"}, "labels": {"p": "q"}, "free": {"deep": {"list": [1, {"z": "y"}]}, "f": 1.0},
        "text": "line\n\nline  \r\nünï\u{2028}", "memory": "1Gi", "big": 9_007_199_254_740_993_i64,
    });
    for (theirs, ours) in [
        (None, json!({})),
        (None, full.clone()),
        (Some(json!({})), full.clone()),
        (Some(full.clone()), full.clone()),
        (Some(full.clone()), json!({"size": 2})),
        (Some(full.clone()), json!({"atomic": ["b"], "set": ["z"], "map": [{"name": "n", "size": 7}, {"name": "o"}]})),
        (
            Some(full.clone()),
            json!({"selector": {"c": "d"}, "labels": {"r": "s"}, "free": {"deep": {"list": []}, "new": true}}),
        ),
        (Some(full.clone()), json!({"mode": "Slow", "text": "line\n\nline  \r\nünï\u{2028}"})),
        (Some(json!({"map": [{"name": "m", "mode": "Fast"}]})), json!({"map": [{"name": "m"}]})),
        (Some(json!({"memory": "1024Mi"})), json!({"memory": "1Gi"})),
        (Some(json!({"atomic": ["a", "b"]})), json!({"atomic": ["b", "a"]})),
    ] {
        if let Some(theirs) = &theirs {
            world.create(&widget(theirs.clone()), "somebody").await;
        }
        let before = world.get(&widget(json!({}))).await;
        let item = world.item(&widget(ours.clone())).await;
        let (written, after) =
            world.try_execute(&item).await.map_or((None, before.clone()), |(written, after)| (Some(written), after));
        let after = after.unwrap();
        let refused = matches!(written, Some(Written::Refused(_) | Written::Differs(..)));
        assert!(!refused, "{theirs:?} {ours}: {written:?}");
        let changed = before.as_ref().map(without_noise) != Some(without_noise(&after));
        assert_eq!(item.operation != Operation::NoChange, changed, "{theirs:?} {ours}: {}", item.review.message);
        assert_eq!(item.review.diff.is_empty(), !changed, "{theirs:?} {ours}: {}", item.review.diff);
        let as_shown = |object: &Value| diff::legible(without_noise(object));
        let shown = |object: &Value| {
            let before = before.as_ref().map(as_shown);
            diff::unified(&item.target.to_string(), before.as_ref(), Some(&as_shown(object)))
        };
        assert_eq!(item.review.diff, shown(&after), "{theirs:?} {ours}");
        let again = world.item(&widget(ours.clone())).await;
        assert_eq!((again.operation, again.review.diff.as_str()), (Operation::NoChange, ""), "{theirs:?} {ours}");
        world.delete(&widget(json!({}))).await;
    }
}

/// S5: a plan that is carried out stays carried out, whatever bumps the version meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_what_does_not_concern_the_plan_does_not_move_it() {
    let world = World::start(&[]).await;
    let ours = widget(json!({"size": 2, "map": [{"name": "m"}]}));
    world.create(&widget(json!({"size": 1, "text": "theirs"})), "somebody").await;
    let reviewed = world.plan(&[draft("item", &ours)]).await;
    for bump in [
        json!({"metadata": {"annotations": {"theirs": "1"}}}),
        json!({"metadata": {"labels": {"theirs": "1"}}}),
        json!({"spec": {"text": "theirs again"}}),
        json!({"metadata": {"finalizers": ["example.dev/hold"]}}),
        json!({"metadata": {"finalizers": []}}),
    ] {
        world.edit(&ours, bump.clone(), "somebody").await;
        let now = world.plan(&[draft("item", &ours)]).await;
        assert_eq!(now.digest, reviewed.digest, "{bump}");
        assert_ne!(now.items[0].live.resource_version, reviewed.items[0].live.resource_version, "{bump}");
    }
    world.edit(&ours, json!({"spec": {"size": 3}}), "somebody").await;
    assert_ne!(world.plan(&[draft("item", &ours)]).await.digest, reviewed.digest, "but its own field does");

    let item = world.item(&ours).await;
    let written = world.execute(&item).await;
    for _ in 0..10 {
        let now = world.item(&ours).await;
        assert_eq!(
            (now.operation, now.live.resource_version.as_deref()),
            (Operation::NoChange, written["metadata"]["resourceVersion"].as_str())
        );
    }
}

/// S7, S6: numbers, texts and quantities that mean the same are no change; what they are is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_s7_values_that_mean_the_same_are_no_change() {
    let world = World::start(&[]).await;
    world
        .create(
            &widget(json!({"memory": "1024Mi", "size": 150, "free": {"n": 1, "percent": "10%", "one": 1}})),
            "somebody",
        )
        .await;
    let ours = widget(json!({"memory": "1Gi", "size": 150, "free": {"n": 1.0, "percent": "10%", "one": 1}}));
    let plain = world.item(&ours).await;
    assert_eq!(plain.operation, Operation::Update, "a text is a text, where nobody says that it is a quantity");
    assert_eq!(plain.review.conflicts.len(), 1);
    let mut meant = draft("item", &ours);
    meant.quantities = vec!["/spec/memory".into()];
    let item = world.item_of(meant.clone()).await;
    assert_eq!((item.operation, item.review.conflicts.len()), (Operation::NoChange, 0), "{}", item.review.diff);
    meant.body = profile_sdk::Body::Ensure(widget(json!({"memory": "1G"})));
    assert_eq!(world.item_of(meant).await.operation, Operation::Update);

    // Kinds of Kubernetes itself are spelled alike by the server.
    let quota = |cpu: &str| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"cpu": cpu}}});
    world.create(&quota("2000m"), "somebody").await;
    assert_eq!(world.item(&quota("2")).await.operation, Operation::NoChange);

    // A number where a text is wanted is said as that.
    let wrong = world.item(&widget(json!({"size": "150"}))).await;
    assert_eq!(wrong.operation, Operation::Blocked);
    assert!(wrong.review.message.contains(".spec.size: expected numeric"), "{}", wrong.review.message);
}

/// S14: no noise of the server in a diff; X: what is left out by kubectl's own annotation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_a_diff_has_no_noise() {
    let world = World::start(&[]).await;
    let mut theirs = widget(json!({"size": 1}));
    theirs["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\":{}}", "kept": "yes"});
    world.create(&theirs, "kubectl-client-side-apply").await;
    let status = json!({"status": {"phase": "Running"}});
    world.edit(&theirs, status, "controller").await;
    let item = world.item(&widget(json!({"size": 2}))).await;
    for noise in [
        "managedFields",
        "resourceVersion",
        "uid",
        "generation",
        "creationTimestamp",
        "selfLink",
        "status",
        "last-applied",
    ] {
        assert!(!item.review.diff.contains(noise), "{noise}: {}", item.review.diff);
    }
    assert!(
        item.review.diff.starts_with("--- live/Widget default/w\n+++ planned/Widget default/w\n@@ "),
        "{}",
        item.review.diff
    );
    // S22: what is sent has no such annotation either.
    assert!(!item.review.desired.to_string().contains("last-applied"));
}

/// A person can apply the shown text, and `patch` does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patch_applies_the_shown_diff() {
    if std::process::Command::new("patch").arg("--version").output().is_err() {
        controlplane::left_out("the program patch");
        return;
    }
    let world = World::start(&[]).await;
    let line =
        |line: u32, changed: &str| if line % 20 == 7 { format!("{changed}\n") } else { format!("line {line}\n") };
    let text = |changed: &str| (0..60).map(|number| line(number, changed)).collect::<String>();
    world.create(&widget(json!({"text": text("old"), "atomic": ["a", "b"], "labels": {"x": "1"}})), "somebody").await;
    let before = world.get(&widget(json!({}))).await.unwrap();
    let item = world.item(&widget(json!({"text": text("new"), "atomic": ["b"], "size": 3}))).await;
    let after = world.execute(&item).await;
    let folder = tempfile::tempdir().unwrap();
    let (file, diff) = (folder.path().join("live.yaml"), folder.path().join("shown.diff"));
    std::fs::write(&file, yaml(&without_noise(&before))).unwrap();
    std::fs::write(&diff, &item.review.diff).unwrap();
    let patch =
        std::process::Command::new("patch").args(["--fuzz=0", "--input"]).args([&diff, &file]).output().unwrap();
    let said = String::from_utf8_lossy(&patch.stdout);
    assert!(patch.status.success() && !said.contains("offset"), "{patch:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), yaml(&without_noise(&after)));
}

const MUTATING: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: stamp}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [example.dev], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [widgets]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{annotations: {"policy/validated": "true"}}, spec: Object.spec{size: 7}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: stamp}
spec: {policyName: stamp}
"#;

/// W3: what admission adds or replaces is in the preview, in the digest, and is no drift
/// afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w3_what_admission_makes_of_it_is_what_is_shown() {
    let world = World::start(&[]).await;
    let ours = widget(json!({"size": 2}));
    let before = world.item(&ours).await;
    world.install(MUTATING).await;
    let item = world.until(&ours, "the policy", |item| item.hash != before.hash).await;
    assert!(
        item.review.diff.contains("+    policy/validated: \"true\"\n") && item.review.diff.contains("+  size: 7\n"),
        "{}",
        item.review.diff
    );
    assert_ne!(item.hash, before.hash, "what was reviewed is what happens");
    let after = world.execute(&item).await;
    assert_eq!(after["spec"]["size"], 7);
    for _ in 0..3 {
        let again = world.item(&ours).await;
        assert_eq!((again.operation, again.review.diff.as_str()), (Operation::NoChange, ""));
    }
    lift_stamp(&world).await;
}

/// Ends the policy `stamp`.
async fn lift_stamp(world: &World) {
    let version = "admissionregistration.k8s.io/v1";
    let installed =
        [(version, "MutatingAdmissionPolicyBinding", "stamp"), (version, "MutatingAdmissionPolicy", "stamp")];
    let mut probe = widget(json!({"size": 1}));
    probe["metadata"]["name"] = json!("lifted");
    world.lift(&installed, &probe, |item| !item.review.diff.contains("policy/validated")).await;
}

/// S10: where a real write is treated differently from a dry run, the item fails and says where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_a_result_that_is_not_the_reviewed_one_is_a_failure() {
    let world = World::start(&[]).await;
    install_for_real_writes(&world, MUTATING, |probe| probe["spec"]["size"] == 7).await;
    let item = world.item(&widget(json!({"size": 2, "text": "ours"}))).await;
    assert!(item.review.diff.contains("+  size: 2\n"), "the dry run knows nothing of it: {}", item.review.diff);
    let (written, _) = world.try_execute(&item).await.unwrap();
    let Written::Differs(_, problem) = written else { panic!("{written:?}") };
    assert!(
        problem.contains("differs from the reviewed preview at /spec/size, /metadata/annotations/policy~1validated"),
        "{problem}"
    );
    lift_from_real_writes(&world).await;
}

/// T12: so it is where admission adds only what is not ours: paths beside it are reviewed. Their
/// values may be others each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_what_admission_adds_beside_ours_at_the_real_write_alone_is_a_failure() {
    let world = World::start(&[]).await;
    let beside = MUTATING.replace(", spec: Object.spec{size: 7}", "");
    let is_stamped = |object: &Value| object["metadata"]["annotations"]["policy/validated"] == "true";
    install_for_real_writes(&world, &beside, is_stamped).await;
    for spec in [json!({"size": 2}), json!({"size": 3})] {
        // Where it is there already, as at the second write, a real write changes nothing beside
        // ours.
        let item = world.item(&widget(spec)).await;
        let is_new = item.operation == Operation::Create;
        let (written, object) = world.try_execute(&item).await.unwrap();
        assert!(is_stamped(&object.unwrap()));
        match written {
            Written::Differs(_, problem) if is_new => {
                let place = "differs from the reviewed preview at /metadata/annotations/policy~1validated: admission";
                assert!(problem.contains(place), "{problem}");
            }
            Written::Applied(_) if !is_new => {}
            other => panic!("{is_new}: {other:?}"),
        }
    }
    lift_from_real_writes(&world).await;
}

/// Another value each time, at the same path, is what was reviewed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_another_value_beside_ours_at_each_write_is_no_failure() {
    let world = World::start(&[]).await;
    let each_time = MUTATING
        .replace(", spec: Object.spec{size: 7}", "")
        .replace("\"true\"}", "request.dryRun ? \"preview\" : \"real\"}");
    world.install(&each_time).await;
    let item = world
        .until(&widget(json!({"size": 2})), "the policy", |item| item.review.diff.contains("policy/validated"))
        .await;
    let object = world.execute(&item).await;
    assert_eq!(object["metadata"]["annotations"]["policy/validated"], "real");
    lift_stamp(&world).await;
}

/// Installs the policy `stamp` so that it acts on real writes alone, and waits until it does: a
/// moment after it is stored.
async fn install_for_real_writes(world: &World, policy: &str, acts: impl Fn(&Value) -> bool) {
    let real = "  matchConditions:\n  - {name: real, expression: \"!request.dryRun\"}\n  mutations:";
    world.install(&policy.replace("  mutations:", real)).await;
    for index in 0..100 {
        let mut probe = widget(json!({"size": 1}));
        probe["metadata"]["name"] = json!(format!("probe-{index}"));
        if acts(&world.apply(&probe, "probe").await) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the policy does not act");
}

/// Ends it: first it acts on dry runs too, so that its end can be seen in one.
async fn lift_from_real_writes(world: &World) {
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "stamp"}});
    world.edit(&policy, json!({"spec": {"matchConditions": null}}), "somebody").await;
    let mut probe = widget(json!({"size": 1}));
    probe["metadata"]["name"] = json!("policed");
    world.until(&probe, "the policy for dry runs", |item| item.review.diff.contains("policy/validated")).await;
    lift_stamp(world).await;
}

/// S9, H3: each real kind, created from a draft, is as wanted on the next look, defaults and all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_defaults_of_real_kinds_make_no_diff() {
    let pools = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    let kinds = [
        (
            "descheduler/kubedeschedulers-ocp-4.14.yaml",
            "operator.openshift.io/v1",
            "KubeDescheduler",
            "cluster",
            json!({"profiles": ["AffinityAndTaints"], "deschedulingIntervalSeconds": 60}),
        ),
        (
            "descheduler/kubedeschedulers-ocp-4.22.yaml",
            "operator.openshift.io/v1",
            "KubeDescheduler",
            "cluster",
            json!({"profiles": ["KubeVirtRelieveAndMigrate"], "evictionLimits": {"total": 5, "node": 2}}),
        ),
        (
            "hco/hyperconvergeds-v1.14.0.yaml",
            "hco.kubevirt.io/v1beta1",
            "HyperConverged",
            "kubevirt-hyperconverged",
            json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 150}}),
        ),
        (
            "hco/hyperconvergeds-v1.16.0.yaml",
            "hco.kubevirt.io/v1beta1",
            "HyperConverged",
            "kubevirt-hyperconverged",
            json!({"liveMigrationConfig": {"parallelMigrationsPerCluster": 8}, "featureGates": {"deployKubeSecondaryDNS": true}}),
        ),
        (
            "hco/hyperconvergeds-main.yaml",
            "hco.kubevirt.io/v1",
            "HyperConverged",
            "kubevirt-hyperconverged",
            json!({"virtualization": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 8}}, "featureGates": [{"name": "deployKubeSecondaryDNS"}]}),
        ),
        (
            "openshift/kubeletconfigs.yaml",
            "machineconfiguration.openshift.io/v1",
            "KubeletConfig",
            "k",
            json!({"machineConfigPoolSelector": pools, "kubeletConfig": {"maxPods": 300, "systemReserved": {"memory": "1Gi"}}}),
        ),
        (
            "openshift/machineconfigs.yaml",
            "machineconfiguration.openshift.io/v1",
            "MachineConfig",
            "m",
            json!({"kernelArguments": ["psi=1"], "config": {"ignition": {"version": "3.2.0"}}}),
        ),
        (
            "operators/nodehealthchecks.remediation.medik8s.io.yaml",
            "remediation.medik8s.io/v1alpha1",
            "NodeHealthCheck",
            "n",
            json!({"selector": {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]}, "remediationTemplate": {"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "name": "t", "namespace": "default"}}),
        ),
        ("operators/metallb.io_metallbs.yaml", "metallb.io/v1beta1", "MetalLB", "metallb", json!({"logLevel": "info"})),
        (
            "operators/forklift.konveyor.io_forkliftcontrollers.yaml",
            "forklift.konveyor.io/v1beta1",
            "ForkliftController",
            "forklift-controller",
            json!({"feature_ui_plugin": "true"}),
        ),
        (
            "operators/observability.openshift.io_uiplugins.yaml",
            "observability.openshift.io/v1alpha1",
            "UIPlugin",
            "monitoring",
            json!({"type": "Monitoring", "monitoring": {"perses": {"enabled": true}}}),
        ),
        (
            "operators/kubevirts.yaml",
            "kubevirt.io/v1",
            "KubeVirt",
            "kubevirt",
            json!({"configuration": {"developerConfiguration": {"memoryOvercommit": 150}}}),
        ),
        (
            "operators/nodemaintenance.medik8s.io_nodemaintenances.yaml",
            "nodemaintenance.medik8s.io/v1beta1",
            "NodeMaintenance",
            "nm",
            json!({"nodeName": "worker-0", "reason": "test"}),
        ),
        (
            "operators/monitoring.coreos.com_prometheusrules.yaml",
            "monitoring.coreos.com/v1",
            "PrometheusRule",
            "rules",
            json!({"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "vector(1)"}]}]}),
        ),
        (
            "operators/monitoring.coreos.com_servicemonitors.yaml",
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            "sm",
            json!({"selector": {"matchLabels": {"a": "b"}}, "endpoints": [{"port": "metrics"}]}),
        ),
        (
            "openshift/machineconfigurations.yaml",
            "operator.openshift.io/v1",
            "MachineConfiguration",
            "cluster",
            json!({"managementState": "Managed", "logLevel": "Normal"}),
        ),
    ];
    // A pool that renders everything, and has rendered nothing yet.
    let pool = json!({
        "metadata": {"name": "worker", "labels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
        "spec": {"machineConfigSelector": {}}, "status": {"machineCount": 3},
    });
    let mut seen = std::collections::BTreeSet::new();
    let mut world = World::start(&[]).await;
    for (file, api_version, kind, name, spec) in kinds {
        if !seen.insert(kind) {
            // Another release of a kind that is installed: on a server of its own.
            drop(world);
            world = World::start(&[]).await;
            seen = [kind].into();
        }
        world.pools.pools_listed(std::slice::from_ref(&pool));
        let Some(crd) = controlplane::real_crd(file) else {
            continue;
        };
        controlplane::install_crds(&world.admin, std::slice::from_ref(&crd)).await.unwrap();
        world.start_anew();
        let text = std::fs::read_to_string(&crd).unwrap();
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
        if text.contains("scope: Namespaced") {
            object["metadata"]["namespace"] = json!("default");
        }
        let item = world.item(&object).await;
        assert_eq!(item.operation, Operation::Create, "{file}: {}", item.review.message);
        world.execute(&item).await;
        let again = world.item(&object).await;
        assert_eq!(
            (again.operation, again.review.diff.as_str()),
            (Operation::NoChange, ""),
            "{file}: {}",
            again.review.message
        );
    }
}

/// P3: the digest does not depend on which request was answered first, nor on the process that
/// asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_a_plan_of_many_items_has_one_digest() {
    let mut world = World::start(&[]).await;
    let object = |index: usize| config_map(&format!("c{index}"), json!({"a": "b"}));
    let drafts: Vec<_> = (0..20).map(|index| draft(&format!("item-{index}"), &object(index))).collect();
    let first = world.plan(&drafts).await;
    for _ in 0..20 {
        world.start_anew();
        assert_eq!(world.plan(&drafts).await.digest, first.digest);
    }
    let mut later = drafts.clone();
    later[3].wave = 1;
    assert_ne!(world.plan(&later).await.digest, first.digest, "the order of execution counts");
    later = drafts.clone();
    later.swap(0, 1);
    assert_ne!(world.plan(&later).await.digest, first.digest, "also within a wave");
    later = drafts;
    later[19].body = profile_sdk::Body::Ensure(config_map("c19", json!({"a": "c"})));
    assert_ne!(world.plan(&later).await.digest, first.digest, "one byte counts");
}

/// DESIGN section 8: at most 3n + 3 requests for n items, none of them twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_of_n_items_costs_at_most_three_requests_each() {
    let mut world = World::start(&[]).await;
    world.as_user_with(json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await;
    for index in 0..10 {
        if index % 2 == 0 {
            world.create(&config_map(&format!("c{index}"), json!({"a": "theirs"})), "somebody").await;
        }
    }
    let drafts: Vec<_> = (0..10)
        .map(|index| draft(&format!("item-{index}"), &config_map(&format!("c{index}"), json!({"a": "ours"}))))
        .collect();
    let mark = world.plane.audit().mark();
    let plan = world.plan(&drafts).await;
    let requests: Vec<_> =
        world.plane.audit().since(&mark).into_iter().filter(|request| request.user == "planner").collect();
    assert_eq!(plan.items.iter().filter(|item| item.operation == Operation::Create).count(), 5);
    // A GET and a dry run each; where somebody else owns the field one more, forced; and what is
    // served.
    assert_eq!(requests.len(), 10 + 10 + 5 + 1, "{requests:#?}");
    assert!(requests.len() <= 3 * 10 + 3);
    let gets: Vec<_> = requests
        .iter()
        .filter(|request| request.verb == "get" && !request.name.is_empty())
        .map(|request| &request.name)
        .collect();
    let distinct: std::collections::BTreeSet<_> = gets.iter().collect();
    assert_eq!(gets.len(), distinct.len(), "nothing is read twice");
}
