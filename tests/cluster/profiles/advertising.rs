//! The configurations that are there for everybody to find.

use advisor_core::api::{Action, Phase, VirtPlatformConfig};
use advisor_engine::registry::PROFILES;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::fixture::{Fixture, PATIENCE, PROFILE, Setup};

async fn advertised(fixture: &Fixture, name: &str) -> VirtPlatformConfig {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let config = fixture.configs().get_opt(name).await.unwrap();
        if let Some(config) = config.filter(|config| config.status.is_some()) {
            return config;
        }
        assert!(tokio::time::Instant::now() < until, "{name} is not advertised");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_advertised_profile_is_there_and_says_what_it_is() {
    let fixture = Fixture::start(Setup::default()).await;
    for about in PROFILES.iter().map(|profile| profile.about()) {
        if !about.advertised {
            assert!(fixture.configs().get_opt(about.name).await.unwrap().is_none(), "{}", about.name);
            continue;
        }
        let config = advertised(&fixture, about.name).await;
        assert_eq!((config.spec.action, config.spec.options.as_ref()), (Action::Ignore, None));
        let annotation = |name: &str| config.annotations().get(&format!("advisor.kubevirt.io/{name}")).cloned();
        assert_eq!(annotation("auto-created").as_deref(), Some("true"));
        assert_eq!(annotation("description").as_deref(), Some(about.description));
        assert_eq!(annotation("impact-summary").as_deref(), Some(about.impact_summary));
        let page = annotation("documentation").unwrap();
        assert!(
            page.starts_with("https://") && page.ends_with(&format!("/profiles/{}/README.md", about.name)),
            "{page}"
        );
        assert_eq!(config.labels().get("advisor.kubevirt.io/category").map(String::as_str), Some(about.category));
    }
    // What automation of the Go program looks for.
    let says = |name: &str, word: &str| {
        let about = PROFILES.iter().map(|profile| profile.about()).find(|about| about.name == name).unwrap();
        assert!(format!("{} {}", about.description, about.impact_summary).contains(word), "{name}: {word}");
    };
    says("load-aware-rebalancing", "load-aware");
    for word in ["density", "swap", "CNV_SWAP"] {
        says("virt-higher-density", word);
    }
    fixture.finish().await;
}

/// What somebody has made of one is theirs, whatever it is; one that is deleted comes back as it
/// was at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn advertised_configurations_come_back_and_are_never_overwritten() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let edit = json!({"metadata": {"annotations": {"advisor.kubevirt.io/description": "ours", "advisor.kubevirt.io/auto-created": null}},
        "spec": {"action": "DryRun", "options": {"loadAware": {"enablePSIMetrics": false}}}});
    fixture.configs().patch(PROFILE, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    fixture.wait_for(Phase::ReviewRequired).await;
    fixture.rest().await;
    let before = fixture.config().await;
    fixture.stop_operator().await;
    fixture.start_operator();
    fixture.until_watching().await;
    fixture.rest().await;
    assert_eq!(fixture.config().await.resource_version(), before.resource_version(), "a restart writes nothing");

    for name in [PROFILE, "virt-higher-density"] {
        fixture.configs().delete(name, &DeleteParams::default()).await.unwrap();
        let back = advertised(&fixture, name).await;
        assert_eq!((back.spec.action, back.spec.options), (Action::Ignore, None), "{name}");
    }
    fixture.finish().await;
}
