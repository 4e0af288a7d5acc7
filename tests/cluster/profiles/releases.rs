//! Golden plans: what each profile plans on the real CRDs of each release, and the table of them in
//! docs/profiles.

use std::path::Path;

use advisor_core::api::{Operation, Phase, VirtPlatformConfigStatus};
use advisor_core::plan::hash;
use controlplane::real_crd;
use mco_simulator::release::{Release, V4_14, V4_17, V4_20, V4_22};
use serde_json::{Value, json};
use tempfile::TempPath;

use crate::fixture::{Fixture, PROFILE, Setup, hyper_converged, root};

/// OpenShift, the machine-config controllers as mco-simulator plays them (those of 4.18 and 4.19
/// read as 4.17's do, those of 4.21 as 4.22's), HyperConverged, and the version of it that the
/// operator prefers. It is the only one that is served here, since the webhook that converts
/// between them can't run.
const RELEASES: [(&str, Release, &str, &str); 8] = [
    ("4.14", V4_14, "v1.14.0", "v1beta1"),
    ("4.17", V4_17, "v1.14.0", "v1beta1"),
    ("4.18", V4_17, "v1.16.0", "v1beta1"),
    ("4.19", V4_17, "v1.16.0", "v1beta1"),
    ("4.20", V4_20, "v1.16.0", "v1beta1"),
    ("4.21", V4_22, "v1.18.1", "v1"),
    ("4.22", V4_22, "v1.18.1", "v1"),
    ("4.22", V4_22, "main", "v1"),
];
const PROFILES: [&str; 2] = [PROFILE, "virt-higher-density"];
const TABLE: &str = "docs/profiles/releases.md";

/// The CRD with `version` as the only one that is served and stored, in a file that goes with the
/// answer.
pub fn only(path: &Path, version: &str) -> TempPath {
    let text = std::fs::read_to_string(path).unwrap();
    let limits = serde_saphyr::options! { budget: None };
    let mut crd: Value = serde_saphyr::from_str_with_options(&text, limits).unwrap();
    for found in crd["spec"]["versions"].as_array_mut().unwrap() {
        let is_it = found["name"] == version;
        found["served"] = json!(is_it);
        found["storage"] = json!(is_it);
    }
    let changed = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap().into_temp_path();
    std::fs::write(&changed, crd.to_string()).unwrap();
    changed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plans_on_the_real_crds() {
    let (Some(hyper_convergeds), Some(deschedulers)) = (real_crd("hco"), real_crd("descheduler")) else {
        return;
    };
    let mut rows = Vec::new();
    for (openshift, release, hco, version) in RELEASES {
        let limits = json!({"parallelMigrationsPerCluster": 20, "parallelOutboundMigrationsPerNode": 4});
        let spec = match version {
            "v1" => json!({"virtualization": {"liveMigrationConfig": limits}}),
            _ => json!({"liveMigrationConfig": limits}),
        };
        let hyper_converged_crd = only(&hyper_convergeds.join(format!("hyperconvergeds-{hco}.yaml")), version);
        let mut fixture = Fixture::start(Setup {
            descheduler_crd: Some(deschedulers.join(format!("kubedeschedulers-ocp-{openshift}.yaml"))),
            hyper_converged_crd: Some(hyper_converged_crd.to_path_buf()),
            hyper_converged: Some(hyper_converged(version, spec)),
            release,
            ..Setup::default()
        })
        .await;
        for profile in PROFILES {
            fixture.profile = profile;
            fixture.wait_for(Phase::Ignored).await;
            fixture.patch(json!({"action": "DryRun"})).await;
            let plan = fixture.wait_for(Phase::ReviewRequired).await;
            insta::assert_snapshot!(format!("{profile}_openshift_{openshift}_hyper_converged_{hco}"), golden(&plan));
            rows.push(format!("| {openshift} | {hco} ({version}) | {profile} | {} |", row(&plan)));
        }
        fixture.finish().await;
    }
    let table = format!(
        "# What each profile plans on which release\n\n\
         With default options, on a cluster on which nothing of it is set yet. Checked against the real definitions of each release by\n\
         `golden_plans_on_the_real_crds`, whose plans in full are in `tests/cluster/profiles/snapshots`. The machine-config controllers are those\n\
         of the release, as tests/mco-simulator plays them.\n\n\
         | OpenShift | HyperConverged | profile | plan |\n| --- | --- | --- | --- |\n{}\n",
        rows.join("\n")
    );
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(root().join(TABLE), &table).unwrap();
    }
    let written = std::fs::read_to_string(root().join(TABLE)).unwrap();
    assert_eq!(written, table, "{TABLE} is stale: run this test with INSTA_UPDATE=always");
}

pub fn golden(plan: &VirtPlatformConfigStatus) -> String {
    // The uids in the digest are others each time.
    let digest = hash::short(plan.plan_hash.as_deref().unwrap_or_default());
    let text = &plan.summary.as_ref().unwrap().text;
    let text = if digest.is_empty() { text.clone() } else { text.replace(&digest, "(its digest)") };
    let mut golden = format!("{text}\n");
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
    golden
}

/// The plan in one line: what is blocked says why.
fn row(plan: &VirtPlatformConfigStatus) -> String {
    let items = plan.items.iter().map(|item| match item.operation {
        Operation::Blocked => format!("**Blocked** `{}`: {}", item.name, item.message.trim_end_matches('.')),
        operation => format!("{operation:?} `{}`", item.name),
    });
    items.collect::<Vec<_>>().join("; ")
}
