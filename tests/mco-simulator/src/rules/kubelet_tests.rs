//! Tests of `kubelet.rs`.

use super::*;
use crate::rules::release::{MAIN, RELEASES, V4_14, V4_14_EARLY, V4_22};

fn observed(config: &KubeletConfig) -> Option<i64> {
    config.status.as_ref().and_then(|status| status.observed_generation)
}
use crate::api::POOL_LABEL_PREFIX;

fn config(name: &str, spec: Value) -> KubeletConfig {
    let mut spec: KubeletConfigSpec = serde_json::from_value(spec).expect("specs of the tests parse");
    let labels = [(format!("{POOL_LABEL_PREFIX}worker"), String::new())];
    spec.machine_config_pool_selector =
        serde_json::from_value(json!({"matchLabels": Labels::from(labels)})).expect("parses");
    let mut config = KubeletConfig::new(name, spec);
    config.metadata.generation = Some(1);
    config.metadata.uid = Some("uid".to_owned());
    config
}

fn worker() -> MachineConfigPool {
    let mut pool = MachineConfigPool::new("worker", crate::api::PoolSpec::default());
    pool.metadata.labels = Some([(format!("{POOL_LABEL_PREFIX}worker"), String::new())].into());
    pool
}

fn kinds(status: &KubeletConfigStatus) -> Vec<String> {
    status.conditions.iter().map(|condition| format!("{}={}", condition.kind, condition.status)).collect()
}

#[test]
fn forbidden_fields_are_refused_and_empty_ones_are_not() {
    for (name, spec) in [
        ("cgroupDriver", json!({"kubeletConfig": {"cgroupDriver": "systemd"}})),
        ("clusterDNS", json!({"kubeletConfig": {"clusterDNS": ["1.1.1.1"]}})),
        ("clusterDomain", json!({"kubeletConfig": {"clusterDomain": "x"}})),
        ("featureGates", json!({"kubeletConfig": {"featureGates": {"A": true}}})),
        ("failSwapOn", json!({"kubeletConfig": {"failSwapOn": false}})),
        ("memorySwap.swapBehavior", json!({"kubeletConfig": {"memorySwap": {"swapBehavior": "LimitedSwap"}}})),
        ("staticPodPath", json!({"kubeletConfig": {"staticPodPath": "/x"}})),
        ("LogLevel", json!({"logLevel": 11})),
        ("autoSizingReserved", json!({"autoSizingReserved": true, "kubeletConfig": {"systemReserved": {"cpu": "1"}}})),
    ] {
        let message = refusal(&config("k", spec).spec).unwrap_or_default();
        assert!(message.contains(name), "{name}: {message}");
    }
    let fine = json!({"logLevel": 10, "autoSizingReserved": false,
        "kubeletConfig": {"maxPods": 500, "clusterDNS": [], "systemReserved": {"cpu": "1"}}});
    assert_eq!(refusal(&config("k", fine).spec), None);
}

#[test]
fn the_generated_file_is_the_whole_file() {
    let generated = generate(&config("k", json!({"kubeletConfig": {"podPidsLimit": 8192}})), "worker", "");
    let mut content = template("worker");
    content["podPidsLimit"] = json!(8192);
    assert_eq!(generated.spec.config["storage"]["files"], json!([kubelet_conf(&content)]));
    assert_eq!(generated.name_any(), "99-worker-generated-kubelet");
    assert_eq!(generated.labels()[ROLE_LABEL], "worker");
    assert_eq!(generated.owner_references()[0].controller, Some(true));
    let more = json!({"logLevel": 4, "autoSizingReserved": true});
    let files = generate(&config("k", more), "worker", "1").spec.config["storage"]["files"].as_array().map(Vec::len);
    assert_eq!(files, Some(3), "logLevel and autoSizingReserved have a file each");
    assert_eq!((&template("worker")["failSwapOn"], &template("master")["failSwapOn"]), (&json!(false), &json!(true)));
}

#[test]
fn numbers_grow_and_end_at_nine() {
    let numbered = |name: &str, suffix: &str| {
        let mut config = config(name, json!({}));
        config.annotations_mut().insert(NAME_SUFFIX.to_owned(), suffix.to_owned());
        config
    };
    let (new, pool) = (config("new", json!({})), worker());
    assert_eq!(suffix(&new, &[&new], &pool), Ok(String::new()));
    assert_eq!(suffix(&new, &[&numbered("a", "")], &pool), Ok("1".to_owned()));
    assert_eq!(suffix(&new, &[&numbered("a", ""), &numbered("b", "4")], &pool), Ok("5".to_owned()));
    assert!(suffix(&new, &[&numbered("a", "9")], &pool).is_err());
    assert_eq!(suffix(&numbered("new", "3"), &[&numbered("a", "9")], &pool), Ok("3".to_owned()), "keeps its own");
    assert_eq!(generated_name("worker", "1"), "99-worker-generated-kubelet-1");
}

#[test]
fn conditions_keep_three_verdicts_and_end_with_the_old_style() {
    let mut config = config("k", json!({}));
    let mut sync = |error: Option<&str>, now: &str| {
        let status = outcome(&config, error, now, MAIN);
        config.status = Some(status.clone());
        status
    };
    let first = sync(None, "1");
    assert_eq!(kinds(&first), ["Accepted=True", "Success=True"]);
    assert_eq!(first.conditions[0].message, "Success");
    assert_eq!(sync(None, "2"), first, "conditions unchanged");
    let refused = sync(Some("no"), "3");
    assert_eq!(kinds(&refused), ["Accepted=True", "Accepted=False", "Failure=True"]);
    assert_eq!(refused.conditions[2].message, "Error: no");
    sync(None, "4");
    assert_eq!(kinds(&sync(Some("no"), "5")), ["Accepted=False", "Accepted=True", "Accepted=False", "Failure=True"]);
}

#[test]
fn only_a_success_for_this_generation_does_not_block() {
    let labels = worker().labels().clone();
    let mut config = config("k", json!({}));
    assert!(blocker([&config].into_iter(), &labels, observed).is_some(), "not looked at yet");
    config.status = Some(outcome(&config, None, "1", MAIN));
    assert_eq!(blocker([&config].into_iter(), &labels, observed), None);
    config.metadata.generation = Some(2);
    assert!(blocker([&config].into_iter(), &labels, observed).is_some(), "edited");
    config.status = Some(outcome(&config, Some("no"), "2", MAIN));
    assert!(blocker([&config].into_iter(), &labels, observed).is_some(), "refused");
    assert_eq!(blocker([&config].into_iter(), &Labels::new(), observed), None, "selects another pool");
}

/// The conditions of each release after a success and after a failure that follows it.
#[test]
fn each_release_has_its_own_conditions() {
    let said = |release| {
        let mut config = KubeletConfig::new("k", KubeletConfigSpec::default());
        config.metadata.generation = Some(1);
        config.status = Some(outcome(&config, None, "1", release));
        config.metadata.generation = Some(2);
        let status = outcome(&config, Some("no"), "2", release);
        let conditions = status.conditions.iter().map(|found| format!("{}={}", found.kind, found.status));
        (conditions.collect::<Vec<_>>().join(" "), status.observed_generation)
    };
    assert_eq!(said(V4_14_EARLY), ("Success=True Failure=False".to_owned(), None));
    assert_eq!(said(V4_14), ("Success=True Failure=False".to_owned(), Some(2)));
    assert_eq!(said(V4_22), ("Success=True Failure=True".to_owned(), Some(2)));
    assert_eq!(said(MAIN), ("Accepted=True Accepted=False Failure=True".to_owned(), Some(2)));
    assert_eq!(RELEASES.map(|release| release.name).len(), 6);
}
