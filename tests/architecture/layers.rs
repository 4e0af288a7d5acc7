//! Layers: which crate and which folder may know which.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use advisor_engine::registry::PROFILES;
use serde_json::Value;

use crate::{code, is_test, root, sources};

fn dependencies() -> Vec<(String, Vec<(String, bool)>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let dependencies = dependencies.map(|found| (text(&found["name"]), found["kind"].is_null()));
            (text(&package["name"]), dependencies.collect())
        })
        .collect()
}

#[test]
fn profiles_depend_on_the_sdk_and_nothing_else_of_ours() {
    let packages = dependencies();
    let ours: BTreeSet<_> = packages.iter().map(|(name, _)| name.clone()).collect();
    let profiles: BTreeSet<_> = PROFILES.iter().map(|profile| profile.about().name.to_owned()).collect();
    for (name, dependencies) in packages.iter().filter(|(name, _)| profiles.contains(name)) {
        let of_ours: Vec<_> = dependencies.iter().map(|(name, _)| name).filter(|name| ours.contains(*name)).collect();
        assert_eq!(of_ours, ["profile-sdk"], "{name}");
    }
    let (_, sdk) = packages.iter().find(|(name, _)| name == "profile-sdk").unwrap();
    for (dependency, _) in sdk {
        assert!(!ours.contains(dependency), "profile-sdk depends on {dependency}");
        assert!(!["kube", "k8s-openapi", "tokio"].contains(&dependency.as_str()), "profile-sdk knows {dependency}");
    }
}

/// What only operators link: a command line plugin needs none of it.
const OF_OPERATORS: &[&str] =
    &["clap", "nix", "rcgen", "axum", "opentelemetry", "prometheus-client", "tracing-subscriber", "operator-kit"];

/// The crates are layers: each knows those below it, and nothing that only a layer above may use.
#[test]
fn crates_depend_downwards_only() {
    let packages = dependencies();
    let ours: BTreeSet<_> = packages.iter().map(|(name, _)| name.as_str()).collect();
    let profiles = PROFILES.iter().map(|profile| profile.about().name);
    let engine = profiles.chain(["advisor-object", "advisor-core", "advisor-cluster", "profile-sdk"]).collect();
    let layers: [(&str, BTreeSet<&str>, &[&str]); 7] = [
        ("advisor-object", BTreeSet::new(), &["kube", "k8s-openapi", "tokio", "hyper", "tower", "futures", "http"]),
        (
            "advisor-core",
            ["advisor-object", "profile-sdk"].into(),
            &["tokio", "hyper", "tower", "futures", "http", "tracing"],
        ),
        ("advisor-cluster", ["advisor-object", "profile-sdk"].into(), OF_OPERATORS),
        ("operator-kit", ["advisor-object", "advisor-cluster"].into(), &[]),
        ("advisor-engine", engine, OF_OPERATORS),
        (
            "machines-core",
            ["advisor-object", "machines-api"].into(),
            &["tokio", "hyper", "tower", "futures", "http", "tracing"],
        ),
        (
            "kubevirt-operator",
            ["advisor-object", "advisor-cluster", "machines-api", "machines-core", "operator-kit"].into(),
            &["opentelemetry"],
        ),
    ];
    for (layer, below, forbidden) in layers {
        let (_, of_layer) = packages.iter().find(|(name, _)| name == layer).unwrap();
        for (name, _) in of_layer.iter().filter(|(_, is_shipped)| *is_shipped) {
            assert!(!ours.contains(name.as_str()) || below.contains(name.as_str()), "{layer} depends on {name}");
            assert!(!forbidden.contains(&name.as_str()), "{layer} depends on {name}");
        }
    }
    for core in ["crates/core", "machines/core", "machines/api"] {
        let manifest = fs::read_to_string(root().join(core).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("\"client\""), "{core} has no client");
    }
}

#[test]
fn the_operator_does_not_ship_what_only_tests_need() {
    let packages = dependencies();
    let (_, operator) = packages.iter().find(|(name, _)| name == "virt-advisor").unwrap();
    for dev_only in [
        "controlplane",
        "descheduler-simulator",
        "hco-simulator",
        "kubevirt-simulator",
        "mco-simulator",
        "node-healthcheck-simulator",
        "demo",
        "bench",
    ] {
        assert!(!operator.contains(&(dev_only.to_owned(), true)), "{dev_only} is a dependency of the operator");
    }
}

#[test]
fn pure_code_knows_no_client_no_clock_and_no_async() {
    let forbidden = [
        "kube::Client",
        "kube::Api",
        "kube::api::Api",
        "kube::client",
        "kube::runtime",
        "async fn",
        ".await",
        "tokio::",
        "Timestamp::now",
        "SystemTime",
        "Instant",
        "std::fs",
        "std::net",
        "std::env",
        "advisor_engine",
        "virt_advisor",
    ];
    let pure = ["crates/object/src", "crates/core/src", "machines/api/src", "machines/core/src", "profiles"];
    for path in pure.iter().flat_map(|folder| sources(folder)) {
        let code = code(&path);
        for word in forbidden {
            assert!(!code.contains(word), "{} is pure and names {word}", path.display());
        }
    }
}

#[test]
fn the_core_names_no_profile_and_no_kind_of_others() {
    let mut words: Vec<&str> = vec!["MachineConfig", "KubeletConfig", "HyperConverged", "KubeDescheduler"];
    for profile in PROFILES {
        words.extend([profile.about().name, profile.about().options_key]);
        words.extend(
            profile
                .kinds()
                .iter()
                .map(|declared| declared.kind)
                // Kinds of Kubernetes itself are on every cluster.
                .filter(|kind| !kind.group.is_empty() && !kind.group.ends_with(".k8s.io"))
                .map(|kind| kind.kind),
        );
    }
    // What is special about pools lives in one module, behind a trait.
    let special = root().join("crates/core/src/rollout");
    let core = ["crates", "src/controller"];
    for path in core.iter().flat_map(|folder| sources(folder)) {
        if path.starts_with(&special) || is_test(&path) {
            continue;
        }
        let code = code(&path).replace("MachineConfigPools", "");
        for word in &words {
            assert!(!code.contains(word), "{} names {word}", path.display());
        }
    }
}

/// The rooms of a plan, lowest first: each imports only those before it.
#[test]
fn the_rooms_of_a_plan_are_a_stair() {
    const STAIR: [&str; 12] = [
        "wire",
        "remedy",
        "target",
        "guard",
        "overrides",
        "items",
        "hash",
        "figures",
        "decision",
        "status",
        "check_drafts",
        "offline",
    ];
    let plan = root().join("crates/core/src/plan");
    let step = |room: &str| STAIR.iter().position(|other| *other == room);
    let mut steps = 0;
    for path in sources("crates/core/src/plan").iter().filter(|path| !is_test(path)) {
        let room = path.strip_prefix(&plan).unwrap().iter().next().unwrap().to_string_lossy().replace(".rs", "");
        // The model check is a test, and so are the cases of decisions.
        let Some(own) = step(&room).filter(|_| !path.starts_with(plan.join("decision/decide"))) else {
            assert!(
                ["mod", "model", "digest_vectors", "decision"].contains(&room.as_str()),
                "{room} has no place on the stair"
            );
            continue;
        };
        for imported in code(path).split("crate::plan::").skip(1) {
            let name = imported.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
            let Some(of) = step(name) else { continue };
            assert!(of <= own, "{} imports {name}, which is above it", path.display());
            steps += 1;
        }
    }
    assert!(steps > 40, "{steps} imports between rooms");
}
