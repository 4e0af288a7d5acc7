//! What people and deployment tools wait for: `kubectl wait`, and the verdicts of a real kstatus
//! client.

use std::io::Write;
use std::process::{Command, Stdio};

use advisor_core::api::Phase;
use advisor_core::plan::status::conditions::{PhaseReport, derive};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PROFILE, Setup, descheduler, root};

/// The verdict of a kstatus client on each of `objects`.
fn kstatus(objects: &[Value]) -> Vec<String> {
    let built = Command::new("sh").arg(root().join("tests/kstatus/build.sh")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = String::from_utf8(built.stdout).unwrap().lines().last().unwrap().to_owned();
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for object in objects {
        writeln!(input, "{object}").unwrap();
    }
    drop(input);
    let answer = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    answer.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn a_kstatus_client_reads_every_phase_as_it_is_meant() {
    let object = |phase, observed: i64| {
        let verdict = PhaseReport {
            phase,
            reason: "Because",
            message: "text",
            input_drift: None,
            trouble: None,
            overridden: None,
            generation: observed,
        };
        let conditions = derive(&[], &verdict, jiff::Timestamp::UNIX_EPOCH);
        json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "x", "generation": 2}, "status": {"observedGeneration": observed, "conditions": conditions},
        })
    };
    let table = [
        (Phase::Pending, "InProgress"),
        (Phase::Drafting, "InProgress"),
        (Phase::InProgress, "InProgress"),
        (Phase::ReviewRequired, "Current"),
        (Phase::Drifted, "Current"),
        (Phase::Completed, "Current"),
        (Phase::CompletedWithUpgrade, "Current"),
        (Phase::Ignored, "Current"),
        (Phase::Failed, "Failed"),
        (Phase::CompletedWithErrors, "Failed"),
        (Phase::PrerequisiteFailed, "Failed"),
    ];
    let verdicts = kstatus(&table.map(|(phase, _)| object(phase, 2)));
    assert_eq!(verdicts, table.map(|(_, wanted)| wanted), "{table:?}");
    let behind = kstatus(&table.map(|(phase, _)| object(phase, 1)));
    assert!(behind.iter().all(|verdict| verdict == "InProgress"), "a spec that was not looked at: {behind:?}");
}

/// Whether `kubectl wait` comes to its end for this condition.
fn holds(fixture: &Fixture, condition: &str, patience: &str) -> bool {
    let output = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(fixture.plane.kubeconfig())
        .args([
            "wait",
            "virtplatformconfig",
            PROFILE,
            "--for",
            &format!("condition={condition}"),
            "--timeout",
            patience,
        ])
        .output()
        .expect("kubectl is installed");
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || problem.contains("timed out"), "{problem}");
    output.status.success()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_wait_ends_at_each_stage_where_people_expect_it() {
    let fixture = Fixture::start(Setup::default()).await;
    fixture.wait_for(Phase::Ignored).await;
    assert!(holds(&fixture, "Ignored", "10s") && holds(&fixture, "Ready", "10s"));

    fixture.patch(json!({"action": "DryRun"})).await;
    assert!(holds(&fixture, "ReviewRequired", "30s"));
    let stage = |condition| holds(&fixture, condition, "500ms");
    assert!(!stage("Ready") && !stage("Completed") && !stage("Drifted"), "a person is needed");

    // Asked for while it is under way: it ends when every machine has it, and not before.
    fixture.patch(json!({"action": "Apply"})).await;
    assert!(holds(&fixture, "InProgress", "30s"));
    assert!(!stage("Ready") && !stage("Completed"));
    assert!(holds(&fixture, "Completed", "60s"));
    assert!(stage("Ready") && !stage("InProgress") && !stage("Drifted"));
    let live = serde_json::to_value(fixture.config().await).unwrap();
    assert_eq!(kstatus(&[live]), ["Current"]);

    fixture.edit(&descheduler(json!({})), json!({"spec": {"mode": "Predictive"}}), "somebody").await;
    assert!(holds(&fixture, "Drifted", "30s"));
    assert!(!stage("Ready") && !stage("Completed"));
    fixture.finish().await;
}
