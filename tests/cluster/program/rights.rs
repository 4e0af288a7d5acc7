//! The generated rights: none is missing, none is too many.

use std::collections::BTreeSet;
use std::time::Duration;

use advisor_core::api::{Operation, Phase, VirtPlatformConfigStatus};
use advisor_engine::registry::PROFILES;
use controlplane::{Mark, Request};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PATIENCE, PROFILE, Setup, create_namespace, root, third_party};
use crate::input::bad_input;
use crate::program::tools::documents;

/// One thing that somebody may do: a verb on a resource, perhaps of one name.
type Right = (String, String, String, Option<String>);

fn rights(path: &str, roles: &[&str]) -> BTreeSet<Right> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |rule: &Value, field: &str| rule[field].as_array().cloned().unwrap_or_default();
    let mut all = BTreeSet::new();
    for role in documents(&std::fs::read_to_string(root().join(path)).unwrap()) {
        if !roles.contains(&role["metadata"]["name"].as_str().unwrap()) {
            continue;
        }
        for rule in role["rules"].as_array().into_iter().flatten() {
            let mut names: Vec<_> = list(rule, "resourceNames").iter().map(|name| Some(text(name))).collect();
            if names.is_empty() {
                names.push(None);
            }
            for resource in list(rule, "resources") {
                for verb in list(rule, "verbs") {
                    let group = text(&rule["apiGroups"][0]);
                    all.extend(names.iter().map(|name| (group.clone(), text(&resource), text(&verb), name.clone())));
                }
            }
        }
    }
    assert!(!all.is_empty());
    all
}

fn uses(right: &Right, request: &Request) -> bool {
    let (group, resource, verb, name) = right;
    let whole = match request.subresource.as_str() {
        "" => request.resource.clone(),
        inner => format!("{}/{inner}", request.resource),
    };
    // An apply that creates is a patch in the audit log, and needs the right to create as well: it
    // is answered with 201.
    let creates = verb == "create" && request.verb == "patch" && request.code == 201;
    // Servers before 1.32 stream no lists: what is watched is listed there.
    let lists = verb == "list" && request.is_watch();
    let is_verb = request.verb == *verb || creates || lists;
    request.group == *group && whole == *resource && is_verb && name.as_ref().is_none_or(|name| request.name == *name)
}

/// The profile of which every feature has rights of its own.
const BASELINE: &str = "virt-platform-baseline";

/// Every feature of the baseline as `choice`, with what it needs.
pub fn every_feature(choice: &str) -> Value {
    let schema = advisor_core::api::options_schema(advisor_engine::registry::profile_named(BASELINE).unwrap());
    let features = schema.pointer("/properties/features/properties").and_then(Value::as_object).unwrap().keys();
    let features: serde_json::Map<_, _> = features.map(|name| (name.clone(), json!(choice))).collect();
    let device = json!({"resourceName": "kubevirt.io/storage", "vendor": "46f4", "product": "0001"});
    json!({"platformBaseline": {
        "features": features, "usbDevices": [device],
        "logging": {"storageClassName": "fast"}, "metricsExporter": {"image": "exporter:1"},
    }})
}

/// The kinds of the features of the baseline beside those that every fixture has.
pub const KINDS_OF_FEATURES: [&str; 14] = [
    "machineosconfigs",
    "nodehealthchecks",
    "storagebasedremediationconfigs",
    "forkliftcontrollers",
    "metallbs",
    "operationrulesets",
    "uiplugins",
    "persesdatasources",
    "persesdashboards",
    "prometheusrules",
    "podmonitors",
    "lokistacks",
    "clusterlogforwarders",
    "securitycontextconstraints",
];
/// Their namespaces.
pub const NAMESPACES_OF_FEATURES: [&str; 5] =
    ["openshift-mtv", "metallb-system", "openshift-workload-availability", "openshift-logging", "openshift-monitoring"];

/// What objects of profiles grant to others is never asked for by the operator: it only must have
/// it.
fn is_granted((group, resource, verb, name): &Right) -> bool {
    let mut grants = PROFILES.iter().flat_map(|profile| profile.grants());
    grants.any(|grant| {
        let is_named = match name {
            Some(name) => grant.names.contains(&name.as_str()),
            None => grant.names.is_empty(),
        };
        grant.group == group
            && grant.resources.contains(&resource.as_str())
            && grant.verbs.contains(&verb.as_str())
            && is_named
    })
}

impl Fixture {
    /// The kinds and namespaces of all features, and masters that carry virtual machines.
    pub async fn bring_everything(&self) {
        let kinds = KINDS_OF_FEATURES.map(third_party);
        controlplane::install_crds(&self.admin, &kinds).await.unwrap();
        for namespace in NAMESPACES_OF_FEATURES {
            create_namespace(&self.admin, namespace).await;
        }
        mco_simulator::set_role(&self.admin, "master-0", "worker", true).await.unwrap();
    }

    /// Waits until the operator has listed that resource.
    async fn until_asked(&self, mark: &Mark, resource: &str) {
        let until = tokio::time::Instant::now() + PATIENCE;
        while !self.requests(mark).iter().any(|request| request.resource == resource && request.verb == "list") {
            assert!(tokio::time::Instant::now() < until, "{resource} are not asked for");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Every profile there and back again, with a machine that fails under way: each right is used, and
/// none is missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_generated_right_is_used_and_none_is_missing() {
    let mut fixture = Fixture::without_operator(Setup { workers: 2, ..Setup::default() }).await;
    fixture.bring_everything().await;
    let refused = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": "bad"},
        "spec": {
            "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
            "kubeletConfig": {"cgroupDriver": "cgroupfs"},
        },
    });
    fixture.create(&refused, "somebody").await;
    // What holds a rollout up is asked soon.
    fixture.patience = Duration::from_secs(1);
    let mark = fixture.mark();
    fixture.start_operator();
    fixture.wait_for(Phase::Ignored).await;
    fixture.fail_machine("worker-0", "a disk is full");
    fixture.patch(json!({"action": "Apply"})).await;
    fixture.until_asked(&mark, "kubeletconfigs").await;
    fixture.api(&refused).delete("bad", &Default::default()).await.unwrap();
    fixture.until_asked(&mark, "nodes").await;
    fixture.repair_machine("worker-0");
    fixture.wait_for(Phase::Completed).await;
    let others: Vec<_> = PROFILES.iter().map(|profile| profile.about().name).filter(|name| *name != PROFILE).collect();
    // One after the other: what one changes may be an input of the next. The last one first, so
    // that it meets nothing of the others.
    for name in others.into_iter().rev() {
        let mut config = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": name}, "spec": {"profile": name, "action": "DryRun"}});
        if name == BASELINE {
            config["spec"]["options"] = every_feature("Enabled");
        }
        controlplane::apply_yaml(&fixture.admin, &config.to_string(), "somebody").await.unwrap();
        fixture.profile = name;
        // What is in a namespace that comes with the plan is reviewed when that is there.
        let mut reviews = 0;
        loop {
            let ends = |status: &VirtPlatformConfigStatus| match status.phase {
                Some(Phase::Completed) => true,
                Some(Phase::ReviewRequired) => status.approval.is_none(),
                _ => false,
            };
            let plan = fixture.wait("an end or a review", ends).await;
            if plan.phase == Some(Phase::Completed) {
                break;
            }
            reviews += 1;
            fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
            fixture.wait("it is begun", |status| status.plan_hash != plan.plan_hash || status.approval.is_some()).await;
        }
        assert_eq!(reviews, if name == BASELINE { 2 } else { 1 }, "{name}");
    }
    // And back: what was created is deleted.
    for (name, options) in [
        (PROFILE, json!({"loadAware": {"enablePSIMetrics": false}})),
        ("virt-higher-density", json!({"virtHigherDensity": {"enableSwap": false}})),
        (BASELINE, every_feature("Disabled")),
    ] {
        fixture.profile = name;
        fixture.patch(json!({"action": "DryRun", "approvedPlanHash": null, "options": options})).await;
        let plan = fixture
            .wait("a removal", |status| status.items.iter().any(|item| item.operation == Operation::Remove))
            .await;
        fixture.patch(json!({"action": "Apply", "approvedPlanHash": plan.plan_hash})).await;
        fixture.wait_for(Phase::Completed).await;
    }
    // An object that does not fit is told so.
    bad_input::loosen(&fixture).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    bad_input::create(&fixture, "nonsense", json!({"profile": 7})).await;
    bad_input::failure(&fixture, "nonsense").await;
    let asked: Vec<_> = fixture.requests(&mark).into_iter().filter(|request| !request.forbidden).collect();
    let mut unused = Vec::new();
    for (path, role) in [
        ("config/rbac/role.yaml", "virt-advisor-operator-manager-role"),
        ("config/rbac-namespaces/role.yaml", "virt-advisor-operator-manager-role"),
    ] {
        unused.extend(
            rights(path, &[role])
                .into_iter()
                .filter(|right| !is_granted(right) && !asked.iter().any(|request| uses(right, request))),
        );
    }
    assert_eq!(unused, [], "rights that nothing needs");
    fixture.finish().await;
}
