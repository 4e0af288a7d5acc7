//! Every sample, applied as people apply it, and what comes of it.

use advisor_core::api::Phase;
use advisor_engine::registry;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::fixture::{Fixture, Setup, root};
use crate::profiles::releases::golden;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_makes_the_plan_that_it_promises() {
    let mut fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    let mark = fixture.mark();
    let mut paths: Vec<_> = std::fs::read_dir(root().join("samples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    assert!(paths.len() >= registry::PROFILES.len(), "one for each profile");
    for path in paths {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let sample: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let name = sample["metadata"]["name"].as_str().unwrap();
        // What the operator advertised is taken over as a whole, as the README says.
        let params = PatchParams::apply("kubectl").force();
        fixture.configs().patch(name, &params, &Patch::Apply(&sample)).await.unwrap();
        fixture.profile = registry::find(registry::PROFILES, name).unwrap().about().name;
        let phase = if sample["spec"]["action"] == "Ignore" { Phase::Ignored } else { Phase::ReviewRequired };
        let plan = fixture.wait_for(phase).await;
        insta::assert_snapshot!(format!("sample_{file}"), golden(&plan));
    }
    assert!(fixture.target_writes(&mark).is_empty(), "no sample writes anything");
    fixture.finish().await;
}
