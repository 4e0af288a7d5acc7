//! Golden plans: what the profile plans on the real CRDs of each release.

use std::path::PathBuf;

use serde_json::json;
use virt_advisor::api::Phase;

use crate::fixture::{Fixture, Setup, hyper_converged, root};

/// The folder of real third-party CRDs, if there is one.
pub fn real_crds() -> Option<PathBuf> {
    let folder = match std::env::var_os("ADVISOR_TEST_CRDS") {
        Some(folder) => PathBuf::from(folder),
        None => root().join("../shared/crds"),
    };
    folder.is_dir().then_some(folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plans_on_the_real_crds() {
    let releases = [
        ("4.14", "v1.16.0", "v1beta1"),
        ("4.17", "v1.16.0", "v1beta1"),
        ("4.18", "v1.16.0", "v1beta1"),
        ("4.20", "v1.16.0", "v1beta1"),
        ("4.22", "v1.16.0", "v1beta1"),
        ("4.22", "main", "v1"),
    ];
    let Some(crds) = real_crds() else {
        eprintln!("skipped: {} golden plans need the real CRDs; set ADVISOR_TEST_CRDS to their folder", releases.len());
        return;
    };
    for (openshift, hco, version) in releases {
        let limits = json!({"parallelMigrationsPerCluster": 20, "parallelOutboundMigrationsPerNode": 4});
        let spec = match version {
            "v1" => json!({"virtualization": {"liveMigrationConfig": limits}}),
            _ => json!({"liveMigrationConfig": limits}),
        };
        let fixture = Fixture::start(Setup {
            descheduler_crd: Some(crds.join(format!("descheduler/kubedeschedulers-ocp-{openshift}.yaml"))),
            hyper_converged_crd: Some(crds.join(format!("hco/hyperconvergeds-{hco}.yaml"))),
            hyper_converged: Some(hyper_converged(version, spec)),
            ..Setup::default()
        })
        .await;
        fixture.wait_for(Phase::Ignored).await;
        fixture.patch(json!({"action": "DryRun"})).await;
        let plan = fixture.wait_for(Phase::ReviewRequired).await;
        let mut golden = format!("{}\n", plan.summary.unwrap().text);
        for input in &plan.inputs {
            let value = input.value.as_ref().map_or_else(|| "absent".to_owned(), ToString::to_string);
            golden.push_str(&format!("input {} {}: {value}\n", input.target, input.path));
        }
        for item in &plan.items {
            golden.push_str(&format!(
                "\n{} wave {} {:?} {:?}\n{}\n{}",
                item.name, item.wave, item.operation, item.impact_severity, item.message, item.diff
            ));
        }
        insta::assert_snapshot!(format!("openshift_{openshift}_hyper_converged_{hco}"), golden);
        fixture.finish().await;
    }
}
